"""A workspace in which planrun is killed and goes on: what it ran, what its ledger said, who is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMMAND = Path(sys.executable).with_name("planrun")
LIMIT = 120.0
"""Seconds after which a planrun that should have ended is said to hang."""
GONE = 10.0
"""Seconds in which nobody may be left once planrun has ended."""
_ENDS = ("completed", "failed", "skipped", "blocked", "cancelled")


@dataclass(frozen=True)
class Kill:
    """When planrun is killed: before its `n`-th system call of a kind, after so many seconds, or when a step runs.

    `seen`: the step, which is held until then. `guardian`: the guardian is killed first.
    """

    call: str = ""
    n: int = 0
    seconds: float = 0.0
    seen: str = ""
    guardian: bool = False

    def __str__(self) -> str:
        when = self.seen and f"while {self.seen} ran"
        when = when or (f"before {self.call} {self.n}" if self.call else f"after {self.seconds:.3f} s")
        return when + (", guardian first" if self.guardian else "")


@dataclass(frozen=True)
class Account:
    """What a ledger tells at one moment, read without any code of planrun's.

    `lines`: its whole lines. `started`: step and number of all attempts, `flying`: of those without an end.
    `waiting`: steps between two attempts. `settled`: steps that ended for good. `lost`: steps that failed
    because nobody knows their end.
    """

    run: str = ""
    lines: bytes = b""
    started: frozenset[tuple[str, int]] = frozenset()
    flying: frozenset[tuple[str, int]] = frozenset()
    waiting: frozenset[str] = frozenset()
    settled: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def events(self) -> int:
        """How many lines there are."""
        return self.lines.count(b"\n")


def account(data: bytes, run: str = "") -> Account:
    """Read the whole lines of a ledger."""
    lines = data[: data.rfind(b"\n") + 1]
    status: dict[str, str] = {}
    started: set[tuple[str, int]] = set()
    flying: set[tuple[str, int]] = set()
    lost: set[str] = set()
    for line in lines.splitlines():
        event = json.loads(line)
        kind, step = event["type"], event.get("step", "")
        if kind == "attempt_started":
            status[step] = "running"
            flying.add((step, event["n"]))
            started.add((step, event["n"]))
        elif kind == "attempt_ended":
            status[step] = event["step_status"]
            flying.discard((step, event["n"]))
        elif kind == "step_moved":
            status[step] = event["status"]
            lost.update({step} if event["reason"] == "lost" else ())
        elif kind == "run_resumed":
            flying.clear()
            status.update(dict.fromkeys(event["rerun"], "pending"))
    waiting = frozenset(step for step, found in status.items() if found == "waiting")
    settled = frozenset(step for step, found in status.items() if found in _ENDS)
    return Account(
        run=run,
        lines=lines,
        started=frozenset(started),
        flying=frozenset(flying),
        waiting=waiting,
        settled=settled,
        lost=frozenset(lost),
    )


@dataclass
class Scene:
    """One workspace with its plan, and everything that was said and done in it.

    `shared`: a folder for caches, the same for all scenes. `patch`: Python that is run when planrun starts.
    """

    folder: Path
    shared: Path
    plan: str
    patch: str = ""
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace = self.folder / "ws"
        self.effects = self.folder / "effects"
        self.workspace.mkdir(parents=True)
        self.effects.touch()
        (self.workspace / "plan.yml").write_text(self.plan, "utf-8")
        (self.folder / "sitecustomize.py").write_text(self.patch, "utf-8")

    def planrun(self, *words: str, kill: Kill | None = None, trace: Sequence[str] = ()) -> int:
        """Run the installed command; returns its exit code, or minus the signal that ended it.

        `trace`: what strace is told, that writes into `trace` in the scene's folder.
        """
        line = [str(COMMAND), *words]
        if trace:
            line = ["strace", "-qq", "-o", str(self.folder / "trace"), *trace, *line]
        elif kill and kill.call:
            fate = f"inject={kill.call}:signal=KILL:when={kill.n}"
            line = ["strace", "-qq", "-o", os.devnull, "-e", f"trace={kill.call}", "-e", fate, *line]
        hold = self.folder / f"hold-{kill.seen}" if kill and kill.seen else None
        if hold:
            hold.touch()
        with (self.folder / "said").open("w+b") as said:
            process = subprocess.Popen(
                line,
                cwd=self.workspace,
                env=self._env(),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                if kill and not kill.call:
                    self._strike(kill, process)
                if hold:
                    hold.unlink()
                code = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = -signal.SIGALRM
            said.seek(0)
            self.said.append(f"$ planrun {' '.join(words)}: {code}\n{said.read().decode('utf-8', 'replace')}")
        return code

    def done(self) -> list[tuple[str, int]]:
        """Step and attempt of everything that happened, in order."""
        rows = [row.split() for row in self.effects.read_text("ascii").splitlines()]
        return [(step, int(number)) for step, number in rows]

    def ledger(self) -> Path:
        """The ledger of the newest run, whether there is one or not."""
        runs = self.workspace / ".planrun" / "runs"
        names = sorted(path.parent.name for path in runs.glob("*/ledger.jsonl"))
        return runs / (names[-1] if names else "none") / "ledger.jsonl"

    def account(self) -> Account:
        """What the newest ledger tells now."""
        ledger = self.ledger()
        return account(ledger.read_bytes() if ledger.exists() else b"", ledger.parent.name)

    def report(self, name: str) -> str:
        """Return a report file; empty when it is not there."""
        path = self.workspace / "planrun-out" / name
        return path.read_text("utf-8") if path.exists() else ""

    def files(self) -> set[str]:
        """Every file below the run's folder and in that of the reports, numbers of attempts left out."""
        rundir = self.ledger().parent
        found = {str(path.relative_to(rundir)) for path in rundir.rglob("*") if path.is_file()}
        numberless = {"/".join([*name.split("/")[:-1], "N.log"]) if "/" in name else name for name in found}
        above = {f"home/{path.name}" for path in (self.workspace / ".planrun").iterdir()}
        return (
            numberless | above | {f"out/{path.name}" for path in (self.workspace / "planrun-out").iterdir()}
        )

    def survivors(self) -> list[int]:
        """Wait until no process works in this scene; returns those that are still there when the time is over."""
        limit = time.monotonic() + GONE
        while (found := self.living()) and time.monotonic() < limit:
            time.sleep(0.02)
        return found

    def living(self) -> list[int]:
        """Return the processes whose folder is the workspace."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(self.workspace):
                    found.append(int(name))
            except OSError:  # it ended, or is a zombie
                continue
        return found

    def clean(self) -> None:
        """Leave no process behind, whatever planrun did."""
        for pid in self.living():
            os.kill(pid, signal.SIGKILL)

    def _env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return kept | {
            "LC_ALL": "C.UTF-8",
            "PLANRUN_CACHE_DIR": str(self.shared / "plans"),
            "PYTHONPYCACHEPREFIX": str(self.shared / "code"),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH", "")])),
        }

    def _strike(self, kill: Kill, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        while process.poll() is None:
            if kill.seen and kill.seen in (step for step, _ in self.done()):
                break
            if not kill.seen and time.monotonic() - began >= kill.seconds:
                break
            if time.monotonic() - began > LIMIT:
                return
            time.sleep(0.0005)
        if kill.guardian:
            for pid in _guardians(self.account().run):
                os.kill(pid, signal.SIGKILL)
        process.kill()


def known(calls: Iterable[str]) -> list[str]:
    """Return those of some system calls that this machine has."""
    return [call for call in calls if not _trace_of_nothing(call)]


def may_trace() -> bool:
    """Whether there is a strace here that may look at a process of ours."""
    return bool(shutil.which("strace")) and not _trace_of_nothing("write")


def _trace_of_nothing(call: str) -> int:
    line = ["strace", "-qq", "-o", os.devnull, "-e", f"trace={call}", "true"]
    return subprocess.run(line, check=False, capture_output=True).returncode


def _guardians(run: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if b"guardian.sh" in words and run.encode() in words.split(b"\0"):
            found.append(int(name))
    return found
