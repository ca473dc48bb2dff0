"""No plan file does anything but give a plan or problems with places: files and expressions made at random.

What reaches new lines of the reader is changed further. Each input is judged in a process of its own kind, within two
seconds and 150 MiB, by `fuzzing.oracle`; a sample is shown to the schema too. Planted faults must be found.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.fuzzing.corpus import ROOT
from proofs.fuzzing.faults import FAULTS
from proofs.fuzzing.witnesses import WITNESSES
from proofs.fuzzing.worker import read_input, smallest

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Sum:
    """What all workers together came to. `findings` by mark: complaint, kind and bytes of the input."""

    findings: dict[str, tuple[str, str, bytes]] = field(default_factory=dict)
    ends: list[dict[str, Any]] = field(default_factory=list)
    restarts: int = 0

    def total(self, what: str) -> int:
        """Add up a figure of all workers."""
        return sum(end[what] for end in self.ends)


def fuzz(*, seed: int, files: int, jobs: int = 1, **orders: Any) -> Sum:
    """Make and judge so many inputs by some processes at once; `orders` go to each of them."""
    found = Sum()
    threads = []
    for job in range(jobs):
        told = {"seconds": 86400.0, "agree": 0.02, "fault": "", "most": 40, **orders}
        told |= {"seed": seed + job, "files": files // jobs, "whole": job == 0, "only": ""}
        threads.append(threading.Thread(target=_keep_working, args=(told, found)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def _keep_working(orders: dict[str, Any], found: Sum) -> None:
    """Run a worker; after one that was ended by its input, run another that makes other inputs."""
    end = _now() + orders["seconds"]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        orders["progress"] = f"{folder}/input"
        while True:
            code, said = _run(orders, folder, found)
            if code == 0 and not said:
                return
            try:
                kind, name, data = read_input(orders["progress"])
            except (OSError, ValueError):  # it did not even begin: no disk, no memory
                found.findings["no worker"] = (said[-300:], "", b"")
                return
            mark = f"ended by {_name(code)}" if code else f"wrote to stderr: {said.splitlines()[-1][:100]}"
            if mark not in found.findings:
                if code and orders["most"] > 1:
                    data = _smallest(orders, code, data, (kind, name))
                found.findings[mark] = (f"{mark}: {said[-300:]}", kind, data)
            if code == 0 or orders["most"] == 1 or found.restarts > 20:
                return
            found.restarts += 1
            orders |= {"seed": orders["seed"] + 1000, "whole": False, "files": orders["files"] // 2}
            orders["seconds"] = max(0.0, end - _now())


def _run(orders: dict[str, Any], folder: str, found: Sum) -> tuple[int, str]:
    """Run one worker to its end; returns how it ended, and what it wrote to stderr."""
    with open(f"{folder}/stderr", "w+b") as errors:
        command = [sys.executable, "-m", "proofs.fuzzing.worker", json.dumps(orders)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT) as worker:
            assert worker.stdout
            said = list(worker.stdout)
        for line in said:
            told = json.loads(line)
            if "complaint" in told:
                found.findings.setdefault(
                    told["mark"], (told["complaint"], told["kind"], base64.b64decode(told["data"]))
                )
            else:
                found.ends.append(told)
        errors.seek(0)
        return worker.returncode, errors.read().decode("utf-8", "replace")


def _name(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    name = signal.Signals(-code).name
    return f"{name} (it never ends)" if -code == signal.SIGXCPU else name


def _smallest(orders: dict[str, Any], code: int, data: bytes, how: tuple[str, str]) -> bytes:
    """Return the smallest input that still ends a worker in the same way; few tries, since each is a process."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder, "only")

        def ends(some: bytes) -> bool:
            name = base64.b64encode(how[1].encode("utf-8", "surrogateescape")).decode()
            path.write_bytes(f"{how[0]} {name} {len(some)}\n".encode() + some)
            alone = {**orders, "only": str(path), "progress": f"{folder}/input"}
            return _run(alone, folder, Sum())[0] == code

        return smallest(data, ends, tries=8 if code == -signal.SIGXCPU else 25)


def prove_fault(fault: str) -> bool:
    """Plant a fault; returns whether one of the inputs finds it that always come first."""
    found = fuzz(seed=1, fault=fault, most=1, files=len(WITNESSES), agree=1.0)
    said = next(iter(found.findings.values()), ("NOT FOUND", "", b""))
    after = f" after {found.total('done')} inputs" if found.ends else ""
    print(f"planted fault {fault}{after}: {said[0][:150]!r}, {said[2][:60]!r}")
    return bool(found.findings)


def report(found: Sum, folder: str) -> None:
    """Print figures and findings, and save the inputs of those."""
    lines = max((end["reached"], end["lines"]) for end in found.ends) if found.ends else (0, 1)
    codes = {code for end in found.ends for code in end["codes"]}
    print(
        f"{found.total('done')} inputs, {found.total('accepted')} accepted,"
        f" {found.total('agreed')} shown to the schema, {found.total('kept')} kept for new lines, {len(codes)} codes"
    )
    print(f"{lines[0]} of {lines[1]} lines of functions reached ({100 * lines[0] / lines[1]:.1f} %)")
    if found.ends:
        memory = max(end["memory"] for end in found.ends) >> 20
        print(f"slowest input {max(end['slowest'] for end in found.ends):.2f} s, largest worker {memory} MiB")
    for number, (mark, (complaint, kind, data)) in enumerate(found.findings.items(), 1):
        path = Path(folder, f"finding-{number}.{'yml' if kind == 'plan' else kind}")
        path.write_bytes(data)
        print(
            f"FINDING {mark}\n  {complaint}\n  {kind} of {len(data)} bytes, saved as {path}: {data[:200]!r}"
        )
    print(f"{len(found.findings)} findings")


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when something was found, or a planted fault was not."""
    parser = argparse.ArgumentParser(prog="python -m proofs fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="go on for so long, however many files that are"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument(
        "--agree", type=float, default=0.02, help="the share of files that the schema is asked about"
    )
    parser.add_argument("--fault", choices=[name for name in FAULTS if name], default="", help="plant one")
    parser.add_argument("--missing", action="store_true", help="name the lines that were not reached")
    chosen = parser.parse_args(words)
    began = _now()
    bounds = {"files": 10**9, "seconds": chosen.minutes * 60} if chosen.minutes else {"files": chosen.files}
    found = fuzz(seed=chosen.seed, jobs=chosen.jobs, agree=chosen.agree, fault=chosen.fault, **bounds)
    spent = _now() - began
    print(
        f"seed {chosen.seed}, {chosen.jobs} processes: {found.total('done') / spent:.0f} inputs/s for {spent:.0f} s"
    )
    report(found, tempfile.mkdtemp(prefix="fuzz-findings-"))
    if chosen.missing and found.ends:
        print(*max(found.ends, key=lambda end: end["reached"])["missing"], sep="\n")
    missed = [] if chosen.fault else [fault for fault in FAULTS if fault and not prove_fault(fault)]
    return int(bool(found.findings or missed))


def _now() -> float:
    from time import monotonic

    return monotonic()
