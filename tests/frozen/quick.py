"""Many command lines of planrun in little time: `python -m tests.frozen.quick` reads them as JSON and answers as JSON.

The imports are done once, and each command line runs in a fork of its own, so that none sees another. A command that
runs a plan is not run in this way.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
PROCESSES = 2


class Line(NamedTuple):
    """A command line: its words after `planrun`, and the folder that it runs in."""

    folder: str
    words: tuple[str, ...]


class Done(NamedTuple):
    """The exit code of a command line, and what it printed on stdout."""

    code: int
    out: str


def run_all(lines: Sequence[Line]) -> list[Done]:
    """Run command lines, two at a time, and return what each did, in the same order."""
    parts = [part for part in (lines[n::PROCESSES] for n in range(PROCESSES)) if part]
    with ThreadPoolExecutor(PROCESSES) as pool:
        answers = list(pool.map(_ask, parts))
    return [answers[n % PROCESSES][n // PROCESSES] for n in range(len(lines))]


def _ask(lines: Sequence[Line]) -> list[Done]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.frozen.quick"],
        input=json.dumps(lines),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
        encoding="utf-8",
    )
    return [Done(*each) for each in json.loads(done.stdout)]


def _planrun(words: Sequence[str]) -> int:
    """Run `python -m planrun WORDS…` in this process and return the code that it would leave with."""

    def leave(status: int) -> NoReturn:
        raise SystemExit(status)

    leave_for_good, os._exit = os._exit, leave
    sys.argv = ["planrun", *words]
    try:
        runpy.run_module("planrun", run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        os._exit = leave_for_good
    raise AssertionError("planrun returned")


def _forked(line: Line) -> Done:
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.dup2(file.fileno(), 1)
                os.chdir(line.folder)
                code = _planrun(line.words)
            finally:
                sys.stdout.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        file.seek(0)
        return Done(os.waitstatus_to_exitcode(status), file.read().decode())


def main() -> None:
    """Answer what stdin asks."""
    lines = [Line(folder, tuple(words)) for folder, words in json.load(sys.stdin)]
    answer = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    for verb in ("validate", "show", "lint"):  # whatever these import, every fork has
        _planrun([verb, "--json", str(ROOT / "plans" / "quickstart.yml")])
    gc.collect()
    gc.freeze()  # what is collected in a fork copies every page that it looks at
    found = [_forked(line) for line in lines]
    with os.fdopen(answer, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
