"""One file run by its own tool and by the plan that it becomes, in two folders that are the same before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

from planrun.convert.convert import Order, convert
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES = {"make": "Makefile", "just": "justfile", "task": "Taskfile.yml"}
WORDS = {"make": ["make", "-s"], "just": ["just", "--quiet"], "task": ["task", "--silent"]}
# Writes its arguments, one in brackets each, to the file that LOG names.
_SHOW = r"""#!/bin/sh
line=
for word in "$@"; do line="$line<$word>"; done
printf '%s\n' "$line" >> "$LOG"
"""


class Case(NamedTuple):
    """A file, what is wanted of it, files and variables that are there before."""

    tool: str
    text: str
    goal: str = ""
    files: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    args: Sequence[str] = ()  # `NAME=value` for the tool, as parameters for the plan
    orderless: bool = False  # tasks run at the same time: only which lines there are counts


class Result(NamedTuple):
    """What a run left: whether it was green, the lines of the log, and the files with their texts."""

    green: bool
    log: tuple[str, ...]
    files: Mapping[str, str]


def program(tool: str) -> str | None:
    """Return the path of a tool, beside Python or on the PATH; None where it is not installed."""
    beside = Path(sys.executable).parent / tool
    return str(beside) if beside.exists() else shutil.which(tool)


def folder_of(case: Case, folder: Path) -> dict[str, str]:
    """Write the files of a case into a new folder; returns the environment of what runs there."""
    bin_ = folder / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "show").write_text(_SHOW)
    (bin_ / "show").chmod(0o755)
    work = folder / "work"
    work.mkdir()
    for name, text in {**case.files, NAMES[case.tool]: dedent(case.text).replace("\\t", "\t")}.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if name.endswith((".sh", ".bin")):
            path.chmod(0o755)
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "PLANRUN_"))
    }
    return {**keep, **case.env, "LOG": str(folder / "log"), "PATH": f"{bin_}:{os.environ['PATH']}"}


def _left(folder: Path, *, green: bool, orderless: bool) -> Result:
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    skipped = (".planrun", ".task")
    files = {
        str(path.relative_to(folder / "work")): path.read_text(errors="replace")
        for path in sorted((folder / "work").rglob("*"))
        if path.is_file() and path.relative_to(folder / "work").parts[0] not in skipped
    }
    return Result(green, tuple(sorted(lines) if orderless else lines), files)


def by_tool(case: Case, folder: Path) -> Result:
    """Run the case by its own tool."""
    env = folder_of(case, folder)
    words = [program(case.tool) or case.tool, *WORDS[case.tool][1:]]
    goal = [case.goal] if case.goal else []
    words += [*goal, *case.args]
    done = subprocess.run(
        words,
        cwd=folder / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    return _left(folder, green=done.returncode == 0, orderless=case.orderless)


def by_plan(case: Case, folder: Path) -> Result | str:
    """Run the plan that the case becomes; returns why nothing runs where a step is abstract or the file is refused."""
    env = folder_of(case, folder)
    work = folder / "work"
    found = convert(Order(file=str(work / NAMES[case.tool]), jobs=(case.goal,) if case.goal else ()))
    if not found.text:
        return "refused: " + "; ".join(each.text for each in found.findings if each.kind == "refused")
    (folder / "plan.yml").write_text(found.text)
    params = [word for each in case.args for word in ("--param", each)]
    words = [
        sys.executable,
        "-m",
        "planrun",
        "execute",
        "../plan.yml",
        "--jobs",
        "4",
        "--report-dir",
        "../out",
        *params,
    ]
    done = subprocess.run(
        words,
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode == 2:
        said = done.stdout + done.stderr
        return ("abstract: " if "abstract" in said else "invalid: ") + said + found.text
    return _left(folder, green=done.returncode == 0, orderless=case.orderless)


def difference(case: Case, folder: Path) -> str:
    """Return how the plan differs from the tool, "" where it does not; "abstract: …" where the plan does not run."""
    plan = by_plan(case, folder / "plan")
    if isinstance(plan, str):
        return plan
    tool = by_tool(case, folder / "tool")
    if plan == tool:
        return ""
    text = (folder / "plan" / "plan.yml").read_text()
    return f"differs: {case.tool}: {tool}\nplan: {plan}\n{case.text}\n---\n{text}"
