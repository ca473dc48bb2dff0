"""A small run on a disk that refuses: its plan, its faults, and planrun under strace in a workspace of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofs.crashing import COMMAND, LIMIT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CALLS = (
    *("write", "pwrite64", "fdatasync", "fsync", "openat", "ftruncate"),
    *("rename", "renameat", "renameat2", "mkdir", "mkdirat"),
)
"""The calls that are made to fail, under the names of all machines."""
ERRORS = ("ENOSPC", "EIO", "EROFS")
CLEANUP = "z"
PLAN = """\
version: 1
name: faults
defaults: {shell: sh}
limits: {max_parallel: 2}
steps:
  - {id: a, run: echo a 1 >> ../effects}
  - {id: b, run: echo b 1 >> ../effects; echo printed}
  - id: c
    depends_on: [a, b]
    run: echo c 1 >> ../effects; echo size=3 >> "$PLANRUN_OUTPUT"
    outputs: {size: integer}
  - {id: d, depends_on: [a], run: echo d 1 >> ../effects; sleep 0.2}
  - {id: e, depends_on: [c], run: echo e 1 >> ../effects; echo printed}
finally:
  - {id: z, run: echo z 1 >> ../effects}
"""
STEPS = "abcdez"
# Runs whose names are known beforehand, so that all paths are; each workspace has its own.
NAMES = """\
import os
from planrun.records import rundir

def named():
    runs = os.listdir(".planrun/runs") if os.path.isdir(".planrun/runs") else ()
    return f"20260101-{int(os.path.basename(os.path.dirname(os.getcwd()))):06d}-{len(runs):06d}"

rundir.new_run_id = named
"""
FAULTS = {
    "": "",
    "no-cut": "from planrun.records.ledger import Ledger as L\nL._cut_back = lambda self: True\n",
    "short-writes": "import os\nfrom planrun.records.ledger import Ledger as L\n"
    "L._put = lambda self, line: os.write(self._fd, line)\n",
    "deaf": "from planrun.records.ledger import Ledger as L\nL._lose = lambda self, error: None\n",
    "goes-on": "from planrun.engine.scheduler import Scheduler as S\nS.lost = None\n",
}
"""Faults to plant, as what is run when planrun starts; the empty name is planrun as it is."""


@dataclass(frozen=True)
class Fault:
    """The `n`-th matching call of a kind fails; `lasting`: and so do all after it."""

    call: str
    error: str
    n: int
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.call} {self.n}{' and all after it' if self.lasting else ''}: {self.error}"


@dataclass(frozen=True)
class Finding:
    """What a trial came to: the paths whose calls failed, the exit code, and all that is wrong."""

    fault: str
    hit: tuple[str, ...]
    code: int
    condition: str
    problems: tuple[str, ...]
    said: str = ""


class Disk(Scene):
    """A workspace whose disk refuses."""

    def paths(self) -> list[str]:
        """All names that planrun gives to its files in the run; known since the run's name is."""
        home, out = self.workspace / ".planrun", self.workspace / "planrun-out"
        run = home / "runs" / f"20260101-{int(self.folder.name):06d}-000000"
        names = ["ledger.jsonl", "plan.yml", "logs", "outputs", "logs/.slots"]
        names += [f"logs/.slot-{number}" for number in range(4)] + [f"outputs/{step}.1" for step in STEPS]
        names += [f"logs/{step}{file}" for step in STEPS for file in ("", "/1.log")]
        found = [home, home / "lock", home / "reserve", home / ".gitignore", home / "runs", run, out]
        found += [run / name for name in names]
        reports = ("junit.xml", "report.md", "ledger.json")
        found += [out / file for report in reports for file in (report, f".{report}.part")]
        return [str(path) for path in found]

    def execute(self, fault: Fault | None = None) -> tuple[int, list[str]]:
        """Run planrun with a fault, or count what could fail; returns its exit code and the rows of the trace."""
        trace = self.folder / "trace"
        what = fault.call if fault else ",".join(known_calls())
        line = [
            "strace",
            "-qq",
            "-y",
            "-s",
            "0",
            "-o",
            str(trace),
            "-e",
            f"trace={what}",
            "-e",
            "signal=none",
        ]
        for path in self.paths():
            line += ["-P", path]
        if fault:
            when = f"{fault.n}{'+' * fault.lasting}"
            line += ["-e", f"inject={fault.call}:error={fault.error}:when={when}"]
        code = self.run([*line, str(COMMAND), "execute", "plan.yml"])
        return code, trace.read_text("utf-8", "replace").splitlines()

    def run(self, line: Sequence[str], limit: Callable[[], object] | None = None) -> int:
        """Run a command in the workspace; keeps what it said."""
        process = subprocess.Popen(
            line,
            cwd=self.workspace,
            # A limit would cut Python's own files short as well, which it does not notice.
            env=self._env() | ({"PYTHONDONTWRITEBYTECODE": "1"} if limit else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # a file would be limited, too
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=limit,  # noqa: PLW1509 - it makes one call
        )
        try:
            said, _ = process.communicate(timeout=LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            code = -signal.SIGALRM
        self.said.append(f"$ {line[-2]} {line[-1]}: {code}\n{said.decode('utf-8', 'replace')}")
        return code


def known_calls() -> list[str]:
    """Return the calls that this machine has."""
    return [
        call
        for call in CALLS
        if not subprocess.run(
            ["strace", "-qq", "-o", os.devnull, "-e", f"trace={call}", "true"],
            check=False,
            capture_output=True,
        ).returncode
    ]
