"""Records that a stranger wrote never crash a verb that reads them, block it, or show files from outside.

Each case changes the records of a real run: a line of the ledger with a field that is missing, added, of another type,
deep, huge or full of control characters, with all hashes right again; or one file of the run that became a link, a
device, a pipe, a socket or a folder. Every verb that reads runs is tried on it, in one process.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planrun.cli import main as planrun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLAN = """version: 1
steps:
  - {id: a, run: echo hi}
  - {id: b, depends_on: [a], run: 'echo x=1 >> "$PLANRUN_OUTPUT"', outputs: {x: integer}}
  - {id: c, depends_on: [b], run: exit 3, retries: 1}
"""
SECRET = "what-lies-outside"
VERBS = (
    ["status", "last"],
    ["report", "last"],
    ["logs", "last"],
    ["logs", "last", "a"],
    ["runs"],
    ["verify", "last"],
    ["stats"],
    ["attest", "last"],
    ["diff", "last", "plan.yml"],
    ["answer", "last", "--list"],
    ["prune", "--dry-run"],
    ["resume", "last", "--dry-run"],
)
"""What reads the records of a run and changes nothing of them."""
DEADLINE = 20
"""Seconds that a verb may take under load."""
_DEEP: Any = json.loads("[" * 300 + "]" * 300)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 10**400, 1e308, float("nan"), float("inf"), "", "\x1b[2J", "\0", "../../outside",
    "/etc/hosts", "\ud800", "x" * 100_000, [], [None], ["\x1b]0;x\x07"], {}, {"a": None}, {"\x1b[2J": 1}, _DEEP,
)  # fmt: skip


def record(folder: Path) -> Path:
    """Make a run of three steps in a folder; return the folder of the run."""
    (folder / "plan.yml").write_text(PLAN)
    command = [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q"]
    subprocess.run(command, cwd=folder, check=False, capture_output=True)
    (run,) = (folder / ".planrun/runs").iterdir()
    return run


def chained(lines: list[bytes]) -> bytes:
    """Return the lines as a ledger whose hashes are right; each line is an object without its last brace."""
    head, out = "0" * 64, b""
    for body in lines:
        head = sha256(head.encode() + body).hexdigest()
        out += body + b',"hash":"' + head.encode() + b'"}\n'
    return out


def bodies(ledger: bytes) -> list[bytes]:
    """Return the lines of a ledger without their hashes."""
    return [line[: line.rindex(b',"hash":')] for line in ledger.splitlines()]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def mutated(ledger: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Return a ledger with one change and right hashes, and what was changed."""
    lines = bodies(ledger)
    at = chance.randrange(len(lines))
    kind = chance.choice(["value"] * 6 + ["missing", "extra", "bytes", "type", "doubled", "left out"])
    event = json.loads(lines[at] + b"}")
    if kind == "bytes":
        cut = chance.randrange(1, len(lines[at]))
        lines[at] = (
            lines[at][:cut] + chance.choice([b"\xff", b"\x1b", b"\xc3", b'"', b"{", b"\0"]) + lines[at][cut:]
        )
        return f"line {at + 1}: a byte at {cut}", chained(lines)
    if kind == "doubled":
        lines.insert(at, lines[at])
    elif kind == "left out":
        del lines[at]
    else:
        new = copy.deepcopy(chance.choice(VALUES))
        path = chance.choice(list(places(event)))
        if kind == "type":
            path = ("type",)
        inner = event
        for key in path[:-1]:
            inner = inner[key]
        if kind == "missing":
            del inner[path[-1]]
        elif kind == "extra" and isinstance(inner, dict):
            inner[f"x{chance.choice(['', chr(27) + '[2J'])}"] = new
        else:
            inner[path[-1]] = new
        lines[at] = json.dumps(event, separators=(",", ":"))[:-1].encode()
        kind = f"{kind} at {path}: {str(new)[:20]!r}"
    if kind in ("doubled", "left out"):
        numbered = [json.loads(line + b"}") | {"seq": number} for number, line in enumerate(lines, 1)]
        lines = [json.dumps(event, separators=(",", ":"))[:-1].encode() for event in numbered]
    return f"line {at + 1}: {kind}", chained(lines)


def replaced(run: Path, outside: Path) -> Iterator[tuple[str, Path]]:
    """Put something else in place of each file and folder of a run; yield what, while it is so."""
    for path in sorted(run.rglob("*"), key=str):
        for kind in ("link", "endless", "pipe", "socket", "folder", "sparse"):
            if kind == "sparse" and "logs" in path.parts:
                continue  # a log may be of any size, and is printed as far as one reads
            kept = run.parent.parent / "kept"
            path.rename(kept)
            try:
                _put(kind, path, outside / path.relative_to(run))
                yield f"{path.relative_to(run)} is {kind}", path
            finally:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                kept.rename(path)


def _put(kind: str, path: Path, outside: Path) -> None:
    if kind == "link":
        path.symlink_to(outside)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(path.parent):
            listener.bind(path.name)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)


def _late(*_: object) -> None:
    raise TimeoutError


def problem(verb: list[str]) -> str:
    """Run a verb in this folder; return what is wrong with how it behaved, or an empty text."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(DEADLINE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = planrun(verb)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 4
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    out.flush()
    err.flush()
    said = (out.buffer.getvalue() + err.buffer.getvalue()).decode(errors="replace")
    if code == 4:
        return f"exit 4: {said[-600:]}"
    if "\x1b[2J" in said or "\x1b]0;" in said:
        return "a control character is printed"
    return "what lies outside is shown" if SECRET in said else ""


def prove(count: int, seed: int, *, files: bool) -> list[str]:
    """Return every finding of `count` changed ledgers and, if `files`, of each replaced file."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        os.environ.pop("NO_COLOR", None)
        run = record(Path(name))
        outside = Path(name).parent / f"{Path(name).name}.outside"
        shutil.copytree(run, outside)
        for path in outside.rglob("*.log"):
            path.write_text(f"{SECRET}\n")
        chance = random.Random(seed)
        ledger = run / "ledger.jsonl"
        sound = ledger.read_bytes()
        try:
            for number in range(count):
                what, data = mutated(sound, chance)
                ledger.write_bytes(data)
                found += [
                    f"{number}: {what}: {' '.join(verb)}: {why}" for verb in VERBS if (why := problem(verb))
                ]
            ledger.write_bytes(sound)
            if files:
                for what, _ in replaced(run, outside):
                    found += [f"{what}: {' '.join(verb)}: {why}" for verb in VERBS if (why := problem(verb))]
        finally:
            shutil.rmtree(outside)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    findings = prove(options.count, options.seed, files=True)
    sys.stdout.write("\n".join([*findings, f"{options.count} changed ledgers, {len(findings)} findings", ""]))
    sys.exit(bool(findings))


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a verb did what it must not."""
    parser = argparse.ArgumentParser(prog="python -m proofs strangers", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="ledgers to change")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    found = prove(chosen.count, chosen.seed, files=True)
    print(f"{chosen.count} changed ledgers, seed {chosen.seed}: {len(found)} findings", *found[:20], sep="\n")
    return int(bool(found))
