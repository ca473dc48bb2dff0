"""A disk that refuses: whatever call of planrun on its records and reports fails, the run ends in order and goes on.

Every call of some kinds that planrun makes on `.planrun` and `planrun-out` is made to fail by strace, with each of
several errors, once or from then on. Besides, real short writes: a limit of the file size, and a full tmpfs.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from planrun.records.reading import verify
from proofs.crashing import COMMAND
from proofs.refusing import (
    CLEANUP,
    ERRORS,
    FAULTS,
    NAMES,
    PLAN,
    STEPS,
    Disk,
    Fault,
    Finding,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 3
_ROOM = 1300
"""Bytes after which writes are cut short where a planted fault must show: in the middle of the ledger."""


class Bench:
    """Where trials are made, with caches that they share."""

    def __init__(self, folder: Path, fault: str = "") -> None:
        self._folder = folder
        self._shared = folder / "shared"
        self._patch = NAMES + FAULTS[fault]
        self._numbers = count()
        self.disk().planrun("execute", "plan.yml")  # fills the caches

    def disk(self) -> Disk:
        """Return a new workspace."""
        return Disk(self._folder / str(next(self._numbers)), self._shared, PLAN, self._patch)

    def calls(self) -> dict[str, int]:
        """Count the calls of each kind that an undisturbed run makes on its records and reports."""
        code, rows = self.disk().execute()
        if code:
            raise RuntimeError(f"an undisturbed run ends with {code}")
        return dict(Counter(row.partition("(")[0] for row in rows))

    def carry_out(self, fault: Fault) -> Finding:
        """Run with a fault, judge, repair, let the run go on, judge."""
        disk = self.disk()
        try:
            code, rows = disk.execute(fault)
            hit = tuple(_path(row) for row in rows if "(INJECTED)" in row)
            return self.judge(disk, str(fault), code, hit)
        finally:
            disk.clean()

    def judge(self, disk: Disk, fault: str, code: int, hit: tuple[str, ...]) -> Finding:
        """Say everything that is not as it has to be; the disk is well again."""
        problems = [*_judge_end(disk, code, hit)]
        before = disk.account()
        ledger = disk.ledger()
        condition = verify(ledger.read_bytes()).condition if ledger.exists() else "none"
        if condition not in (("intact",) if code == 0 else ("intact", "unfinished", "none")):
            problems.append(f"exit code {code}, and the ledger is {condition}")
        problems += [
            f"{step} ran and is not recorded" for step, n in disk.done() if (step, n) not in before.started
        ]
        verbs = ("report", "status") if before.events else ()
        problems += [f"{verb} fails" for verb in verbs if disk.planrun(verb, "last")]
        done = Counter(disk.done())
        words = ("resume", "last") if before.events else ("execute", "plan.yml")
        if disk.planrun(*words):
            problems.append("the run does not go on to its end once the disk is well")
        last = Counter(disk.done())
        problems += [
            f"{step} had ended and ran again"
            for step in before.settled - {CLEANUP}
            if last[step, 1] > done[step, 1] and _completed(before.lines, step)
        ]
        problems += [f"{step} never ran" for step in STEPS if not last[step, 1]]
        if disk.planrun("verify", "last"):
            problems.append("the ledger is not intact at last")
        said = "".join(disk.said)
        if not problems:
            shutil.rmtree(disk.folder, ignore_errors=True)  # a mounted one stays until it is unmounted
        return Finding(fault, hit, code, condition, tuple(problems), said)


def _judge_end(disk: Disk, code: int, hit: tuple[str, ...]) -> Iterator[str]:
    """What a run with a fault must not do."""
    said = disk.said[-1]
    if "Traceback" in said or "internal error" in said:
        yield "a traceback"
    if left := disk.survivors():
        yield f"{len(left)} processes are left"
    if code not in ((0,) if not hit else (0, 74) if _harmless(hit) else (1, 74) if _output(hit) else (74,)):
        yield f"exit code {code}"
    if code == 74 and not any(_named(path, said) for path in hit):
        yield f"the message names none of {sorted(set(hit))}"
    junit = disk.report("junit.xml")
    if junit:
        try:
            ET.fromstring(junit)
        except ET.ParseError as error:
            yield f"junit.xml is not whole: {error}"


def _harmless(hit: Sequence[str]) -> bool:
    """Whether all that failed was to make the reserve or a folder that was there already, or to read a log."""
    return all(path.endswith(("/reserve", "/reserve.new", ".log", "/planrun-out")) for path in hit)


def _output(hit: Sequence[str]) -> bool:
    """Whether what a step handed on could not be read, which is the step's failure."""
    return all("/outputs/" in path for path in hit)


def _named(path: str, said: str) -> bool:
    """Whether an error names a file, its folder, the report that it was to become, or the log that it is for."""
    error = said[said.rfind("planrun: error:") :]
    folder, name = os.path.split(path)
    if name.startswith(".slot"):
        return folder in error
    return any(
        form in error for form in (path, f"{folder}:", os.path.join(folder, name[1:].removesuffix(".part")))
    )


def _completed(lines: bytes, step: str) -> bool:
    """Whether the last that is recorded of a step is that it completed."""
    last = [line for line in lines.splitlines() if f'"step":"{step}"'.encode() in line][-1]
    return b'"step_status":"completed"' in last


def _path(row: str) -> str:
    """The file that a row of the trace is about."""
    found = re.search(r'"(/[^"]*)"', row) or re.search(r"<(/[^>]*)>", row)
    return found.group(1) if found else row


def points(bench: Bench, every: int = 1) -> list[Fault]:
    """One fault for each call, error and duration; a few calls more than were counted, which hit nothing."""
    planned = []
    for call, number in bench.calls().items():
        for n in range(1, number + 3):
            planned += [Fault(call, error, n, lasting) for error in ERRORS for lasting in (False, True)]
    return planned[::every]


def prove(bench: Bench, planned: Sequence[Fault], most: int = 10) -> list[Finding]:
    """Carry trials out, some at once, and print what they came to."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        findings = list(pool.map(bench.carry_out, planned))
    table: dict[str, Counter[str]] = {}
    for fault, finding in zip(planned, findings, strict=True):
        row = table.setdefault(f"{fault.call} {fault.error}", Counter())
        row["tried"] += 1
        row["hit"] += bool(finding.hit)
        row[f"exit {finding.code}"] += 1
        row[finding.condition] += 1
    columns = ("tried", "hit", "exit 0", "exit 1", "exit 74", "intact", "unfinished", "torn", "none")
    print(f"{'':20}" + "".join(f"{column:>11}" for column in columns))
    for name, row in sorted(table.items()):
        print(f"{name:20}" + "".join(f"{row[column]:>11}" for column in columns))
    for finding in [finding for finding in findings if finding.problems][:most]:
        print(f"{finding.fault}:", *finding.problems, finding.said, sep="\n  ")
    print(f"{len(findings)} trials, {sum(bool(f.problems) for f in findings)} of them went wrong")
    return findings


def short_write(bench: Bench, room: int) -> Finding:
    """Run with a limit on the size of files, in bytes: writes are cut short by the kernel itself."""
    disk = bench.disk()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    try:
        code = disk.run([str(COMMAND), "execute", "plan.yml"], limit)
        hit = (str(disk.ledger()), *disk.paths()) if code else ()
        return bench.judge(disk, f"no file larger than {room} bytes", code, hit)
    finally:
        disk.clean()


def full_disk(bench: Bench, kib: int) -> Finding:
    """Run on a tmpfs of this size that another program has filled but for a little; afterwards there is room again."""
    disk = bench.disk()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", disk.workspace], check=True)
    try:
        (disk.workspace / "plan.yml").write_text(PLAN, "utf-8")
        code = disk.planrun("execute", "plan.yml")
        hit = tuple(disk.paths()) if code else ()
        subprocess.run(["mount", "-o", "remount,size=8m", disk.workspace], check=True)
        return bench.judge(disk, f"a disk of {kib} KiB", code, hit)
    finally:
        disk.clean()
        subprocess.run(["umount", "-l", disk.workspace], check=True)


def can_mount(folder: Path) -> bool:
    """Whether a tmpfs can be mounted here."""
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=False, capture_output=True).returncode:
        return False
    subprocess.run(["umount", folder], check=True)
    return True


def can_inject() -> bool:
    """Whether strace is there and may trace."""
    return (
        bool(shutil.which("strace"))
        and not subprocess.run(
            ["strace", "-qq", "-o", os.devnull, "true"], check=False, capture_output=True
        ).returncode
    )


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a trial went wrong or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs faults", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try each so manyth fault")
    chosen = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        top = Path(folder).resolve()
        bench = Bench(top / "true")
        findings = prove(bench, points(bench, chosen.every)) if can_inject() else []
        if not findings:
            print("left out: strace is not there, or may not trace")
        findings += shorten(bench, top)
        missed = [fault for fault in FAULTS if fault and not prove_fault(top / fault, fault)]
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(missed) or any(finding.problems for finding in findings))


def prove_fault(folder: Path, fault: str) -> bool:
    """Plant a fault and let the disk refuse; returns whether that shows."""
    finding = short_write(Bench(folder, fault), _ROOM)
    print(f"planted fault {fault}, {finding.fault}: {(*finding.problems, 'NOT CAUGHT')[0]}")
    return bool(finding.problems)


def shorten(bench: Bench, top: Path, step: int = 97) -> list[Finding]:
    """Real short writes at every so manyth byte of the ledger, and full disks."""
    findings = [short_write(bench, room) for room in range(40, 4000, step)]
    if can_mount(top):
        findings += [full_disk(bench, kib) for kib in range(8, 200, 4)]
    else:
        print("left out: no tmpfs can be mounted here")
    codes = Counter(f"exit {finding.code}, {finding.condition}" for finding in findings)
    print(f"short writes: {len(findings)} trials: {dict(sorted(codes.items()))}")
    for finding in [finding for finding in findings if finding.problems][:5]:
        print(f"{finding.fault}:", *finding.problems, finding.said, sep="\n  ")
    return findings
