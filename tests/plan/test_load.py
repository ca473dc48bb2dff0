"""Loading: the imports of a start, and the problems of a file that is no plan."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.keys.params import parse_params, resolve_params
from planrun.plan.load import Findings, check_bytes, load, load_bytes

PLAIN = (
    "version: 1\nsteps:\n  - {id: a, run: x}\n  - {id: b, run: y, depends_on: [a], timeout: 5m, retries: 2}\n"
)
HEAVY = (
    "typing",
    "re",
    "enum",
    "json",
    "hashlib",
    "yaml",
    "jinja2",
    "pydantic",
    "jsonschema",
    "subprocess",
    "pathlib",
)


def imported(file: Path) -> set[str]:
    """Return the heavy modules in a process that only loaded a plan."""
    code = (
        "import sys; from planrun.plan.load import load; load(sys.argv[1]);"
        "print(*[name for name in sys.argv[2:] if name in sys.modules])"
    )
    command = [sys.executable, "-S", "-c", code, str(file), *HEAVY]
    packages = [path for path in sys.path if path.endswith("site-packages")]
    env = {
        "PYTHONPATH": ":".join([str(Path(__file__).parents[2]), *packages]),
        "PLANRUN_CACHE_DIR": str(file.parent),
    }
    return set(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split())


def test_a_plan_that_was_seen_before_imports_nothing(tmp_path: Path) -> None:
    """From the cache, a plan needs neither YAML nor another slow import."""
    file = tmp_path / "plan.yml"
    file.write_text(PLAIN)
    assert "yaml" in imported(file)
    assert imported(file) == set()


def test_a_plain_plan_never_needs_the_grammar(tmp_path: Path) -> None:
    """Without a condition and without `${{`, the first load does without Jinja2 and other heavy libraries."""
    file = tmp_path / "plan.yml"
    file.write_text(PLAIN)
    assert imported(file).isdisjoint({"jinja2", "pydantic", "jsonschema", "json", "hashlib"})


@pytest.mark.parametrize(
    ("name", "code"), [("missing.yml", "E001"), (".", "E002"), ("empty.yml", "E006"), ("list.yml", "E101")]
)
def test_a_file_that_is_no_plan_is_a_problem(tmp_path: Path, name: str, code: str) -> None:
    """A file that cannot be read or holds something else ends in InvalidPlan, never in another exception."""
    (tmp_path / "empty.yml").write_text("")
    (tmp_path / "list.yml").write_text("- a\n")
    with pytest.raises(InvalidPlan) as caught:
        load(str(tmp_path / name))
    assert [getattr(problem, "code", "") for problem in caught.value.problems] == [code]


def test_loading_by_bytes_equals_loading_by_path(tmp_path: Path) -> None:
    """A run's own copy of its plan gives the same plan."""
    file = tmp_path / "plan.yml"
    file.write_text(PLAIN)
    assert load_bytes(PLAIN.encode(), str(file)) == load(str(file))
    assert check_bytes(PLAIN.encode(), str(file)) == Findings(problems=(), steps=2, later=(), sources={})


PARAMS = b"""\
version: 1
params:
  target: {enum: [staging, prod], default: staging}
  version: {pattern: '^\\d+\\.\\d+$', required: true}
  jobs: integer
  flags: {type: array, items: {type: string}}
steps: [run: x]
"""


def test_params_are_typed_and_defaults_fill_in() -> None:
    """Texts from the command line become values; a parameter without value and default is left out."""
    plan = load_bytes(PARAMS, "plan.yml", cache=False)
    assert parse_params(plan, ["version=1.2"]) == {"target": "staging", "version": "1.2"}
    given = {"version": "1.2", "jobs": "4", "flags": '["-v"]', "target": "prod"}
    assert resolve_params(plan, given) == {"target": "prod", "version": "1.2", "jobs": 4, "flags": ["-v"]}
    assert parse_params(plan, ["version=1.2", 'flags=["a=b"]'])["flags"] == ["a=b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], 'the parameter "version" is required; pass --param version=VALUE'),
        (["version=1.2", "tagret=prod"], 'unknown parameter "tagret"; did you mean "target"?'),
        (["version=1"], 'the parameter "version" is "1", which does not match the pattern'),
        (["version=1.2", "target=test"], 'the parameter "target" is "test", not one of "staging", "prod"'),
        (["version=1.2", "jobs=many"], 'the parameter "jobs" is "many", not an integer'),
        (["version=1.2", "flags=[1]"], 'the parameter "flags" does not fit at [0]'),
        (["version"], 'expected a parameter as name=value, got "version"'),
        (["version=1.2", "version=1.3"], 'duplicate parameter "version"'),
        (["jobs=x", "target=y"], 'the parameter "target" is "y", not one of'),
        (["jobs=x", "target=y"], 'the parameter "version" is required'),
    ],
)
def test_wrong_params_are_named_all_at_once(words: list[str], message: str) -> None:
    """Unknown, missing, doubled and unfitting ones are refused before anything starts."""
    with pytest.raises(InvalidInput) as caught:
        parse_params(load_bytes(PARAMS, "plan.yml", cache=False), words)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2
