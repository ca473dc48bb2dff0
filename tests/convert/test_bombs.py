"""Files whose expansions would fill the memory: one clear error with its place, in little time and memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

SECONDS, BYTES = 5, 1 << 29


def _axes(names: str, indent: str) -> str:
    values = ", ".join(f"v{number}" for number in range(200))
    return f"\n{indent}".join(f"{name}: [{values}]" for name in names)


def _doubled(line: str, first: str) -> str:
    return first + "".join(line.format(number, number - 1) for number in range(1, 30))


BOMBS = {
    "gitlab-matrix": (
        "gitlab",
        f"job:\n  script: [echo]\n  parallel:\n    matrix:\n      - {_axes('ABCDE', ' ' * 8)}\n",
        "file.yml:7:12: its variables or lists expand to too much",
    ),
    "gitlab-variables": (
        "gitlab",
        _doubled("  A{0}: " + "$A{1}" * 8 + "\n", "variables:\n  A0: xxxxxxxxxx\n")
        + "job: {script: [echo]}\n",
        "file.yml:1:1: its variables or lists expand to too much",
    ),
    "gitlab-references": (
        "gitlab",
        _doubled(
            ".r{0}:\n  s:\n    - !reference [.r{1}, s]\n    - !reference [.r{1}, s]\n", ".r0: {s: [echo]}\n"
        )
        + "job:\n  script:\n    - !reference [.r29, s]\n",
        "",
    ),
    "make-variables": (
        "make",
        _doubled("A{0} := " + "$(A{1})" * 8 + "\n", "A0 := xxxxxxxxxx\n") + "job:\n\techo $(A29)\n",
        "file.yml: its variables or lists expand to too much",
    ),
    "just-variables": (
        "just",
        _doubled("a{0} := " + " + ".join(["a{1}"] * 8) + "\n", "a0 := 'xxxxxxxxxx'\n")
        + "job:\n    echo {{a29}}\n",
        "file.yml: its variables or lists expand to too much",
    ),
    "taskfile-variables": (
        "taskfile",
        _doubled("  A{0}: '" + "{{{{.A{1}}}}}" * 8 + "'\n", "version: 3\nvars:\n  A0: xxxxxxxxxx\n")
        + "tasks:\n  default: echo {{.A29}}\n",
        "file.yml: its variables or lists expand to too much",
    ),
    "github-matrix": (
        "github",
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{run: echo}]\n"
        "    strategy:\n      matrix:\n        " + _axes("abcdefg", " " * 8) + "\n",
        "",
    ),
    "github-brackets": (
        "github",
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ "
        + "(" * 30_000
        + "1"
        + ")" * 30_000
        + " }}\n",
        "",
    ),
    "github-variables": (
        "github",
        _doubled("  A{0}: " + "${{{{ env.A{1} }}}}" * 8 + "\n", "on: push\nenv:\n  A0: xxxxxxxxxx\n")
        + "jobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{run: echo $A29}]\n",
        "",
    ),
}


def bounded() -> None:
    """Limit the memory and the processor time of a child."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def converted(planrun: Command, file: str, source: str) -> subprocess.CompletedProcess[str]:
    """Convert a file within the limits."""
    return subprocess.run(
        [sys.executable, "-m", "planrun", "convert", file, "--from", source, "-o", "plan.yml"],
        cwd=planrun.folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=bounded,
    )


def test_workflows_that_call_each_other_many_times_are_an_error(planrun: Command) -> None:
    """Six levels of eight calls each would be 32,768 jobs: the call that is too much is named."""
    folder = planrun.folder / ".github" / "workflows"
    folder.mkdir(parents=True)
    for level in range(6):
        calls = [f"  c{n}:\n    uses: ./.github/workflows/w{level + 1}.yml\n" for n in range(8)]
        jobs = "".join(calls) if level < 5 else "  a: {runs-on: ubuntu-latest, steps: [{run: echo}]}\n"
        (folder / f"w{level}.yml").write_text(f"on: [push, workflow_call]\njobs:\n{jobs}")
    done = converted(planrun, ".github/workflows/w0.yml", "github")
    assert done.returncode == 2, done.stderr
    assert "w4.yml:" in done.stderr
    assert "expand to too much" in done.stderr


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_an_error_or_an_ordinary_plan(planrun: Command, name: str) -> None:
    """The conversion ends with 0 or 2, within seconds and a gigabyte; what is too much is named with its place."""
    source, text, said = BOMBS[name]
    (planrun.folder / "file.yml").write_text(text)

    done = converted(planrun, "file.yml", source)
    assert done.returncode in ((2,) if said else (0, 2)), done.stderr
    assert said in done.stderr
    assert "internal error" not in done.stderr
