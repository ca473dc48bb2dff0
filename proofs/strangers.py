"""Records that a stranger wrote never crash a verb that reads them, block it, or show files from outside.

Each case changes the records of real runs, among which every type of event occurs: a line of the ledger with a field
that is missing, added, of another type, deep, huge or full of control characters, with all hashes right again; or one
file of the records that became a link, a device, a pipe, a socket, a folder or endless. Every verb that reads runs is
tried on it in one process; `serve` is asked for its pages, and `resume` is started as a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import http.client
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
from planrun.model.events import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
PLAN = """version: 1
name: strange
policy: {auto_approve: read-only}
notify: [{command: ["true"], on: [completed, failed, waiting]}]
steps:
  - {id: a, run: echo hi, inputs: plan.yml, cache: true}
  - {id: b, depends_on: [a], run: 'echo x=1 >> "$PLANRUN_OUTPUT"', outputs: {x: integer}}
  - {id: c, depends_on: [b], run: exit 3, retries: 1}
  - {id: d, depends_on: [a], run: touch made, produces: made}
"""
SECRET = "what-lies-outside"
VERBS = (
    ["status", "RUN"], ["status", "RUN", "--json"], ["report", "RUN"], ["report", "RUN", "--format", "html"],
    ["report", "RUN", "--format", "markdown"], ["report", "RUN", "--format", "junit"],
    ["report", "RUN", "--json"], ["logs", "RUN"], ["logs", "RUN", "STEP"], ["logs", "RUN", "--json"],
    ["logs", "RUN", "--tail", "1"], ["runs"], ["verify", "RUN"], ["stats"], ["attest", "RUN"],
    ["show", "RUN", "STEP", "--patch"], ["trace", "RUN"], ["decide", "RUN", "STEP=yes"],
    ["watch", "RUN", "--lines"], ["approve", "RUN", "STEP"], ["prune", "--keep", "1", "--dry-run"],
    ["queue", "list"], ["resume", "RUN", "--dry-run"],
)  # fmt: skip
"""What reads records; `approve` is the only one that changes them."""
DEADLINE = 20
"""Seconds that a verb may take under load."""
_DEEP: Any = json.loads("[" * 300 + "]" * 300)
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 10**400, 1e308, float("nan"), float("inf"), "", "\x1b[2J", "\0", "../../outside",
    "/etc/hosts", "\ud800", "x" * 100_000, [], [None], ["\x1b]0;x\x07"], {}, {"a": None}, {"\x1b[2J": 1}, _DEEP,
)  # fmt: skip


def record(folder: Path) -> list[Path]:
    """Put recorded runs, with models, agents and a queue, and some of now into a folder; return their folders."""
    newest = max(path.parent for path in (ROOT / "tests/upgrade").glob("*/models"))
    shutil.copytree(newest / "state", folder / ".planrun")
    for path in (newest / "models").iterdir():
        shutil.copytree(path, folder / ".planrun/runs" / path.name)
    (folder / "plan.yml").write_text(PLAN)
    for _ in range(2):  # the second takes `a` from the cache
        command = [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q"]
        subprocess.run(command, cwd=folder, check=False, capture_output=True, stdin=subprocess.DEVNULL)
    runs = sorted((folder / ".planrun/runs").iterdir())
    found = [run for run in runs if (run / "ledger.jsonl").exists()]
    have = {json.loads(line)["type"] for run in found for line in lines_of(run)}
    for run in found:
        complete(run / "ledger.jsonl", folder, have)
    if missing := EVENTS.keys() - have:
        raise AssertionError(f"no run has an event {', '.join(sorted(missing))}")
    return found


def lines_of(run: Path) -> list[bytes]:
    """Return the lines of the ledger of a run."""
    return (run / "ledger.jsonl").read_bytes().splitlines()


BESIDE = {
    "agent_compacted": "agent_started", "budget_crossed": "model_answered", "model_repeated": "model_asked",
    "round_started": "rollback_started", "step_held": "gate_opened", "cleanup_resumed": "run_ended",
    "rollback_started": "run_ending", "run_resumed": "gate_opened", "step_restored": "step_moved",
}  # fmt: skip
"""Where an event that no run has can stand: behind one of this type."""


def complete(ledger: Path, folder: Path, have: set[str]) -> None:
    """Move a run to a folder, and add events of the types that no run has, each where it can stand."""
    lines = []
    for body in bodies(ledger.read_bytes()):
        event = json.loads(body + b"}")
        if "workspace" in event.get("options", {}):
            event["options"]["workspace"] = str(folder)
        lines.append(json.dumps(event, separators=(",", ":"))[:-1].encode())
        for name in [name for name, before in BESIDE.items() if before == event["type"] and name not in have]:
            have.add(name)
            lines.append(json.dumps(like(name, event), separators=(",", ":"))[:-1].encode())
    ledger.write_bytes(chained(renumbered(lines)))


def like(name: str, before: dict[str, Any]) -> dict[str, Any]:
    """Return an event of this type, whose required fields are those of the event before it, or of their types."""
    kind: Any = EVENTS[name]
    simple = {"str": "a", "int": 1, "float": 1.0, "bool": False}
    required = {field: text for field, text in kind.__annotations__.items() if not hasattr(kind, field)}
    fields = {
        field: before.get(field, simple.get(text, {} if text.startswith("dict") else []))
        for field, text in required.items()
    }
    return {"seq": 0, "type": name, **fields}


def renumbered(lines: list[bytes]) -> list[bytes]:
    """Return the lines with the numbers of their places, and an end that counts them."""
    events = [json.loads(line + b"}") | {"seq": number} for number, line in enumerate(lines, 1)]
    for event in events:
        if event["type"] == "run_ended":
            event["events"] = len(events)
    return [json.dumps(event, separators=(",", ":"))[:-1].encode() for event in events]


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
        lines = renumbered(lines)
    return f"line {at + 1}: {kind}", chained(lines)


def replaced(home: Path, outside: Path) -> Iterator[str]:
    """Put something else in place of each file and folder of the records; yield what, while it is so."""
    paths = [path for path in sorted(home.rglob("*"), key=str) if path.name != "lock"]
    for path in paths:
        for kind in ("link", "endless", "pipe", "socket", "folder", "sparse"):
            kept = home.parent / "kept"
            path.rename(kept)
            try:
                _put(kind, path, outside / path.relative_to(home))
                yield f"{path.relative_to(home)} is {kind}"
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
    return _judged(code, out.buffer.getvalue() + err.buffer.getvalue())


def _judged(code: int, output: bytes) -> str:
    said = output.decode(errors="replace")
    if code == 4:
        return f"exit 4: {said[-600:]}"
    if "\x1b[2J" in said or "\x1b]0;" in said:
        return "a control character is printed"
    return "what lies outside is shown" if SECRET in said else ""


def verbs_of(run: Path, step: str) -> list[list[str]]:
    """Return the command lines that read a run."""
    names = {"RUN": run.name, "STEP": step, "STEP=yes": f"{step}=yes"}
    return [[names.get(word, word) for word in verb] for verb in VERBS]


def resumed(run: Path) -> str:
    """Resume a run as a process; return what is wrong with how it behaved."""
    command = [sys.executable, "-m", "planrun", "resume", run.name, "-q"]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=DEADLINE
        )
    except subprocess.TimeoutExpired:
        return "it hangs"
    return _judged(done.returncode, done.stdout + done.stderr)


class Pages:
    """`planrun serve` in this folder, which is asked for the pages of runs."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "planrun", "serve"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        address, _, token = self._process.stdout.readline().decode().strip().partition("/?token=")
        self._port = int(address.rpartition(":")[2])
        self._headers = {"Cookie": f"planrun_{self._port}={token}"}

    def problem(self, path: str) -> str:
        """Ask for a page; return what is wrong with the answer."""
        link = http.client.HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE)
        try:
            link.request("GET", path, headers=self._headers)
            reply = link.getresponse()
            return _judged(4 if reply.status >= 500 else reply.status, reply.read())
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            link.close()

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait(DEADLINE)


def prove(count: int, seed: int, *, files: int) -> list[str]:
    """Return every finding of `count` changed ledgers, and of every `files`-th replacement of a file; 0: of none."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        os.environ.pop("NO_COLOR", None)
        os.environ["PLANRUN_CACHE_DIR"] = str(Path(name) / "cache")
        runs = record(Path(name))
        home, kept = Path(name, ".planrun"), Path(name, "sound")
        shutil.copytree(home, kept, symlinks=True)
        outside = Path(name, "outside")
        shutil.copytree(home, outside)
        for path in outside.rglob("*"):
            if path.is_file() and path.name != "ledger.jsonl":
                path.write_text(f"{SECRET}\n")
        chance = random.Random(seed)
        pages = Pages()

        def tried(run: Path, what: str, number: int) -> None:
            events = [
                json.loads(line)
                for line in (kept / "runs" / run.name / "ledger.jsonl").read_bytes().splitlines()
            ]
            step = chance.choice([str(event["step"]) for event in events if "step" in event] or ["a"])
            ends = events[-1]["type"] == "run_ended"  # `watch` stays with a run that waits
            verbs = [verb for verb in verbs_of(run, step) if ends or verb[0] != "watch"]
            problems = {" ".join(verb): problem(verb) for verb in verbs}
            for page in ("/", f"/runs/{run.name}", f"/runs/{run.name}/report/report.md"):
                problems[f"serve {page}"] = pages.problem(page)
            if number % 10 == 0:
                problems["resume"] = resumed(run)
            found.extend(
                f"{number}: {run.name}: {what}: {verb}: {why}" for verb, why in problems.items() if why
            )

        try:
            for number in range(count):
                run = chance.choice(runs)
                what, data = mutated((run / "ledger.jsonl").read_bytes(), chance)
                (run / "ledger.jsonl").write_bytes(data)
                tried(run, what, number)
                shutil.rmtree(run)
                shutil.copytree(kept / "runs" / run.name, run, symlinks=True)
            for number, what in enumerate(replaced(home, outside) if files else ()):
                if number % (files or 1) == 0:
                    tried(next((run for run in runs if run.name in what), runs[-1]), what, number + 1)
        finally:
            pages.close()
    return found


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a verb did what it must not."""
    parser = argparse.ArgumentParser(prog="python -m proofs strangers", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="ledgers to change")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    found = prove(chosen.count, chosen.seed, files=1)
    print(f"{chosen.count} changed ledgers, seed {chosen.seed}: {len(found)} findings", *found[:20], sep="\n")
    return int(bool(found))
