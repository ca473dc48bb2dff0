"""Files as large, as long and as dense as files can be, and things that are no files: what reading each one takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planrun.plan.yaml.file import MAX_BYTES
from proofs.fuzzing.corpus import ROOT
from proofs.fuzzing.memory import most_memory
from proofs.hostile import HOSTILE, special_files

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS, MEBIBYTES = 2.0, 150
"""What a file that is no plan may take: processor time, and memory of the whole process."""
LARGE = (8.0, 300)
"""The same for a plan of 100,000 steps, and for one of 500,000 edges: there is that much to be done."""
LIKE_PLANS = "steps of short lists"
"""What looks like a plan of very many steps until its end."""
HEAD = b"version: 1\nsteps: [{run: x}]\nx-a:\n"
PARAMS = b"version: 1\nsteps: [{run: x}]\nparams:\n"
SLOW = b"a" * 40 + b"b"


def _rows(
    count: int, row: Callable[[int], bytes], head: bytes = b"version: 1\nsteps:\n", tail: bytes = b""
) -> Callable[[], bytes]:
    return lambda: head + b"".join(map(row, range(count))) + tail


def _full(row: bytes, head: bytes = HEAD, tail: bytes = b"\n") -> Callable[[], bytes]:
    """Repeat a row until the file is as large as it may be."""
    return lambda: head + row * ((MAX_BYTES - len(head) - len(tail)) // len(row)) + tail


def _lists(inner: bytes, each: int = 50_000) -> Callable[[], bytes]:
    """Return lists of so many values, each short enough, until the file is full."""
    return _full(b"- [" + inner * each + b"]\n")


def _anchor(number: int) -> bytes:
    """Return one of many values with anchors, fifty thousand to a list."""
    opens = b"" if number % 50_000 else b"- [" if not number else b"]\n- ["
    return b"%s&a%d 1," % (opens, number)


def _reading(number: int) -> bytes:
    """Return a step that reads an output of the one before it."""
    if not number:
        return b"- {id: s0, run: x, outputs: {n: string}}\n"
    row = b"- {id: s%d, run: 'echo ${{ steps.s%d.outputs.n }}', outputs: {n: string}, depends_on: {s%d: completed}}\n"
    return row % (number, number - 1, number - 1)


def _step(number: int) -> bytes:
    """Return a step of the usual size that waits for the one before it."""
    if not number:
        return b"- {id: s0, run: x}\n"
    return b"- {id: s%d, run: echo %d, depends_on: [s%d]}\n" % (number, number, number - 1)


PLANS: dict[str, Callable[[], bytes]] = {
    "100,000 steps": _rows(100_000, _step),
    "a chain of 5,000": _rows(
        5000,
        lambda n: b"- {id: s%d, run: x, depends_on: [s%d]}\n" % (n, n + 1),
        tail=b"- {id: s5000, run: x}\n",
    ),
    "a dense graph": _rows(
        1000,
        lambda n: b"- {id: s%d, run: x, depends_on: [%s]}\n" % (n, b",".join(map(b"s%d".__mod__, range(n)))),
    ),
    "10,000 steps that read outputs": _rows(10_000, _reading),
    "50,000 declared risks": _rows(50_000, lambda n: b"- {run: echo %d > out, risk: high}\n" % n),
    "long scripts that declare a risk": _rows(
        400, lambda n: b"- {run: 'ls %s%d', risk: high}\n" % (b"a " * 8000, n)
    ),
    "one long script in many environments": _rows(
        10_000,
        lambda n: (
            b"- {<<: *s, env: {A: '%d'}}\n" % n
            if n
            else b"- &s {run: 'ls %s', risk: high}\n" % (b"a " * 8000)
        ),
    ),
}
"""What is a plan, and has to be read as one."""
FILES: dict[str, Callable[[], bytes]] = {
    "lists of empty lists": _lists(b"[],"),
    "lists of short lists": _lists(b"[[1]],", 30_000),
    "lists 60 levels deep": _lists(b"[" * 60 + b"]" * 60 + b",", 700),
    "lists of empty mappings": _lists(b"{},"),
    "lists of short mappings": _lists(b"{a: },"),
    "lists of nested mappings": _lists(b"{a: {a: {a: {}}}},", 25_000),
    "lists of pairs": _lists(b"? a,"),
    "lists of quotes": _lists(b"'',"),
    "lists of anchors": _rows(500_000, _anchor, HEAD),
    "steps of short lists": _full(b"- {run: x, tags: [a, a, a, a, a, a, a, a]}\n", b"version: 1\nsteps:\n"),
    "steps of nonsense": _full(b"- {a: [[],[],[],[]]}\n", b"version: 1\nsteps:\n"),
    "a cycle of 5,000": _rows(
        5000, lambda n: b"- {id: s%d, run: x, depends_on: [s%d]}\n" % (n, (n + 1) % 5000)
    ),
    "100,000 equal ids": _rows(100_000, lambda _: b"- {id: a, run: x}\n"),
    "50,000 unknown ids": _rows(50_000, lambda n: b"- {id: s%d, run: x, depends_on: [q%d]}\n" % (n, n)),
    "40,000 conditions": _rows(
        40_000, lambda n: b"- {run: x, condition: params.a%d == 'x'}\n" % n, tail=b"params: {a: string}\n"
    ),
    "1,000 long conditions": _rows(
        1000, lambda n: b"- {run: x, condition: '%s or %d == 1'}\n" % (b" or ".join([b"true"] * 900), n)
    ),
    "one deep expression": _rows(
        1, lambda _: b"- {run: x, condition: '%s1%s'}\n" % (b"(" * 4_000_000, b")" * 4_000_000)
    ),
    "one expression as deep as its length allows": _rows(
        1, lambda _: b"- {run: x, condition: '%s1%s'}\n" % (b"(" * 4000, b")" * 4000)
    ),
    "100 scripts of 1,000 interpolations": _rows(
        100, lambda n: b"- run: '%s%d'\n" % (b"${{ run.id }} " * 1000, n)
    ),
    "60,000 broken interpolations": _rows(3000, lambda n: b"- run: '%s%d'\n" % (b"${{ x y }} " * 20, n)),
    "a script of 4 MiB with quotes": lambda: (
        b'version: 1\nsteps:\n- run: "%s%s"\n' % (b"$(' ${{ run.id | sh }}\\n" * 900, b"x'" * 2_000_000)
    ),
    "20,000 properties": _rows(
        20_000, lambda n: b"k%d: {type: string}, " % n, PARAMS + b" a: {type: object, properties: {", b"}}\n"
    ),
    "20,000 parameters": _rows(20_000, lambda n: b" k%d: {type: array, minItems: 1}\n" % n, PARAMS),
    "options that are no answer": lambda: (
        b"version: 1\nsteps: [{id: d, decide: {question: q, multi_select: true, options: [%s], default: [%s]}}]\n"
        % (
            b",".join([b"{label: a%d}" % n for n in range(50_000)]),
            b",".join([b"b%d" % n for n in range(50_000)]),
        )
    ),
    "answers that nobody asks for": lambda: (
        b"version: 1\npolicy: {decisions: {%s}}\nsteps:\n%s"
        % (
            b",".join([b"a%d: x" % n for n in range(20_000)]),
            b"".join([b"- {id: b%d, ask: {question: q}}\n" % n for n in range(20_000)]),
        )
    ),
    "rules about steps that are not there": lambda: (
        b"version: 1\npolicy: {rules: [%s]}\nsteps:\n%s"
        % (
            b",".join([b"{deny: {step: a%d}}" % n for n in range(20_000)]),
            b"".join([b"- {id: b%d, run: x}\n" % n for n in range(20_000)]),
        )
    ),
    "answers to patterns that never end": lambda: (
        b"version: 1\npolicy: {decisions: {%s}}\nsteps:\n%s"
        % (
            b",".join([b"a%d: %s" % (n, SLOW) for n in range(50)]),
            b"".join(
                [b"- {id: a%d, ask: {question: q, type: string, pattern: '(a+)+$'}}\n" % n for n in range(50)]
            ),
        )
    ),
    "patterns that never end": _rows(
        20, lambda n: b" k%d: {pattern: '(a+)+$', default: %s}\n" % (n, SLOW), PARAMS
    ),
    "patterns inside that never end": _rows(
        20, lambda n: b" k%d: {type: array, items: {pattern: '(a+)+$'}, default: [%s]}\n" % (n, SLOW), PARAMS
    ),
    **{name: hostile.make for name, hostile in HOSTILE.items()},
}
"""What is none, and has to be refused soon."""


class Taken(NamedTuple):
    """What reading one thing took, and what was said to it."""

    name: str
    seconds: float
    mebibytes: float
    said: str

    @property
    def problem(self) -> str:
        """What is wrong, or nothing."""
        seconds, mebibytes = LARGE if self.name in (*PLANS, LIKE_PLANS) else (SECONDS, MEBIBYTES)
        if (self.said == "accepted") != (self.name in PLANS):
            return "REFUSED" if self.name in PLANS else "ACCEPTED"
        return "TOO MUCH" if self.seconds > seconds or self.mebibytes > mebibytes else ""


def take(name: str, folder: str = "") -> Taken:
    """Read one of them in a process of its own; with a folder, the file of that name in it, or the path itself."""
    command = [sys.executable, "-m", "proofs.huge", name, folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    if done.returncode or done.stderr:
        return Taken(name, 0.0, 0.0, f"ended by {done.returncode}: {done.stderr[-200:]}")
    return Taken(*json.loads(done.stdout))


def report() -> int:
    """Print what each of them takes; returns how many take too much, or are answered wrongly."""
    failed = 0
    for name in (*PLANS, *FILES):
        taken = take(name)
        failed += bool(taken.problem)
        _print(name, taken, taken.said, taken.problem)
    with tempfile.TemporaryDirectory(prefix="huge-") as folder:
        for kind, (path, code) in {**special_files(Path(folder)), **_real(folder)}.items():
            failed += bool(_report_path(kind, path, code, folder))
    print(f"{failed} too much, or answered wrongly")
    return failed


def _real(folder: str) -> dict[str, tuple[str, str]]:
    """Write a file of 100 MB that is a plan but for its size; returns it as `special_files` does."""
    row = b"- {run: echo hello, title: a step of a plan}\n"
    with open(f"{folder}/real.yml", "wb") as file:
        file.write(b"version: 1\nsteps:\n")
        file.writelines(row * (1_000_000 // len(row) + 1) for _ in range(100))
    return {"a real file of 100 MB": (f"{folder}/real.yml", "E003")}


def _report_path(kind: str, path: str, code: str, folder: str) -> str:
    """Print what reading a path takes; returns what is wrong, or nothing. No argument can hold a NUL."""
    taken = Taken(kind, 0, 0, code) if "\0" in path else take(path, "path")
    wrong = taken.problem or ("" if taken.said.startswith(code) else "WRONG")
    _print(kind, taken, taken.said.replace(folder, ""), wrong)
    return wrong


def _print(name: str, taken: Taken, said: str, wrong: str) -> None:
    print(f"{name:40} {taken.seconds:6.2f} s {taken.mebibytes:6.0f} MiB  {said[:90]} {wrong}")


def _read(name: str, kind: str) -> Taken:
    """Read in this process."""
    from planrun.app.check import check
    from planrun.plan.load import check_bytes
    from planrun.plan.printing import render_text

    data = b"" if kind else ({**PLANS, **FILES})[name]()
    before = time.process_time()
    problems = check(name).problems if kind else check_bytes(data, "plan.yml").problems
    text = render_text(problems, {"plan.yml": data})
    seconds = time.process_time() - before
    first = f"{problems[0].code} {problems[0].message}" if problems else "accepted"
    assert bool(text) == bool(problems)
    return Taken(name, seconds, most_memory() / (1 << 20), first)


if __name__ == "__main__":
    print(json.dumps(_read(sys.argv[1], sys.argv[2])))
