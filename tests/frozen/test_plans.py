"""Every plan file there is keeps its digest, or its problems with their places; texts of messages are free.

    digests.json    the digest of each valid plan, as `planrun show --json` names it
    problems.json   of each other file the exit code of `planrun validate`; code, line and column of each problem
    advice.json     the same of `planrun lint`, for valid plans with advice
    locks.json      what `planrun lock` writes about `plans/` of this folder: a digest for each step and key

The files are those of `plans/` without `check.yml`, of `tests/cases/`, the good and bad plans of the loader's tests,
`examples.txt` (a plan for each code that a short plan can show, as docs/errors.md and docs/lint.md have them) and
`plans/` in this folder, which has every key of the plan language. A file that is added, moved or altered changes its
own line.

A difference that is no mistake is accepted by `pytest tests/frozen --update-goldens`; the commit message says why. A
digest that changes makes every approval and lock of such a plan void: that is never a detail.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.frozen.quick import ROOT, Done, Line, run_all
from tests.frozen.table import HERE, table

if TYPE_CHECKING:
    from tests.golden import Golden

OWN = HERE / "plans"
CORPORA = {
    "plans": ROOT / "plans",
    "cases": ROOT / "tests" / "cases",
    "good": ROOT / "tests" / "plan" / "good",
    "bad": ROOT / "tests" / "plan" / "bad",
    "frozen": OWN,
}
"""Folders of plan files. The name stands in the data files, so that a folder may move."""
EXAMPLE = re.compile(r"^=== (\S+)\n(.*?)(?=^=== |\Z)", re.MULTILINE | re.DOTALL)
LEFT_OUT = ("dist", "expected", ".planrun", "planrun-out")
"""What runs leave behind."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return every plan file by the name that the data files have for it; copies, which a command may write beside."""
    top = tmp_path_factory.mktemp("plans")
    for name, folder in CORPORA.items():
        shutil.copytree(folder, top / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (top / "plans" / "check.yml").unlink()  # this repository's own CI: it changes for reasons of its own
    for name, text in EXAMPLE.findall((HERE / "examples.txt").read_text("utf-8")):
        path = top / "examples" / name / "plan.yml"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return {str(path.relative_to(top)): path for path in sorted(top.rglob("*.yml"))}


def line(path: Path, verb: str) -> Line:
    """Return a command about a plan; one of a case runs where the case does."""
    folder = next((each for each in path.parents if each.parent.name in ("cases", "examples")), path.parent)
    return Line(str(folder), (verb, "--json", str(path.relative_to(folder))))


def places(out: str) -> list[str]:
    """Return code, file, line and column of each problem that a command printed as JSON."""
    return [
        f"{each['code']} {each['file']}:{each['line']}:{each['column']}"
        for each in json.loads(out)["problems"]
    ]


@pytest.fixture(scope="module")
def shown(files: dict[str, Path]) -> dict[str, Done]:
    """Show every file once but the bad ones and the examples, as JSON."""
    chosen = {name: path for name, path in files.items() if not name.startswith(("bad/", "examples/"))}
    return dict(zip(chosen, run_all([line(path, "show") for path in chosen.values()]), strict=True))


def bad(folder: Path) -> dict[str, Any]:
    """Validate files that do not refer to each other by one command, for speed: all have to be invalid."""
    names = sorted(path.name for path in folder.iterdir())
    [done] = run_all([Line(str(folder), ("validate", "--json", *names))])
    found: dict[str, Any] = {f"bad/{name}": [done.code] for name in names}
    for place in places(done.out):
        found[f"bad/{place.split()[1].split(':')[0]}"].append(place)
    assert [
        name for name, each in found.items() if not any(place.startswith("E") for place in each[1:])
    ] == []
    return found


def test_digests_stay(shown: dict[str, Done], golden: Golden) -> None:
    """Each valid plan has the digest that it had."""
    found = {name: json.loads(each.out)["plan"]["digest"] for name, each in shown.items() if not each.code}
    golden(HERE / "digests.json", table(found))


def test_problems_stay(files: dict[str, Path], shown: dict[str, Done], golden: Golden) -> None:
    """Each file that is no valid plan, and each example, has the problems that it had, at the same places."""
    chosen = [name for name, each in shown.items() if each.code]
    chosen += [name for name in files if name.startswith(("examples/E", "examples/W"))]
    done = run_all([line(files[name], "validate") for name in chosen])
    found = {name: [each.code, *places(each.out)] for name, each in zip(chosen, done, strict=True)}
    found |= bad(next(path.parent for name, path in files.items() if name.startswith("bad/")))
    golden(HERE / "problems.json", table(found))


def test_advice_stays(files: dict[str, Path], shown: dict[str, Done], golden: Golden) -> None:
    """Each valid plan but those of cases gets the advice that it got, at the same places."""
    chosen = [name for name, each in shown.items() if not each.code and not name.startswith("cases/")]
    chosen += [name for name in files if name.startswith("examples/L")]
    done = run_all([line(files[name], "lint") for name in chosen])
    found = {name: [each.code, *places(each.out)] for name, each in zip(chosen, done, strict=True)}
    golden(HERE / "advice.json", table({name: each for name, each in found.items() if each != [0]}))


def test_locks_stay(files: dict[str, Path], golden: Golden) -> None:
    """A lock names the same digests for the plan, for each of its steps and for each of its other keys."""
    chosen = [
        path for name, path in files.items() if name.startswith("frozen/") and path.parent.name == "frozen"
    ]
    written = chosen[0].parents[1] / "locks"  # a lock beside the plans would be covered by the next one
    written.mkdir()
    lines = [
        Line(str(path.parent), ("lock", path.name, "-o", str(written / f"{path.stem}.json")))
        for path in chosen
    ]
    assert {each.code for each in run_all(lines)} == {0}
    found = {path.stem: json.loads((written / f"{path.stem}.json").read_text("utf-8")) for path in chosen}
    rows = {
        f"{plan} {part}" + (f" {name}" if name else ""): value
        for plan, lock in found.items()
        for part, values in lock.items()
        for name, value in (values.items() if isinstance(values, dict) and values else [("", values)])
    }
    golden(HERE / "locks.json", table(rows))


def test_every_key_is_in_a_digest() -> None:
    """The plans of this folder have every key of the plan language but those that planrun refuses."""
    schema = json.loads((ROOT / "schemas" / "plan.schema.json").read_text("utf-8"))
    definitions = schema["definitions"]
    every = {("", key) for key in schema["properties"]}
    every |= {(name, key) for name, each in definitions.items() for key in each.get("properties", {})}
    seen: set[tuple[str, str]] = set()
    for path in OWN.rglob("*.yml"):
        mark(("", schema), yaml.load(path.read_bytes(), yaml.BaseLoader), definitions, seen)
    missing = {(name, key) for name, key in every - seen}
    assert missing == set(), "add them to a plan in tests/frozen/plans"


def mark(
    at: tuple[str, dict[str, Any]], value: object, definitions: dict[str, Any], seen: set[tuple[str, str]]
) -> None:
    """Note each key of a value as (object of the schema, key); `at` names the part of the schema that it fits."""
    name, schema = at
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return mark((name, definitions[name]), value, definitions, seen)
    for form in ("allOf", "anyOf"):
        for each in schema.get(form, ()):
            mark((name, each), value, definitions, seen)
    if isinstance(value, list):
        for each in value:
            mark(("", schema.get("items", {})), each, definitions, seen)
    elif isinstance(value, dict):
        others = schema.get("additionalProperties")
        for key, each in value.items():
            if key in schema.get("properties", {}):
                seen.add((name, key))
                mark(("", schema["properties"][key]), each, definitions, seen)
            elif isinstance(others, dict):
                mark(("", others), each, definitions, seen)
    return None
