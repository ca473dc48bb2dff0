"""Plan, script, lock, approval and policy swapped while planrun starts and runs: what nobody reviewed never runs.

Somebody swaps a file for an evil one and back at random moments. Evil bytes leave a mark. That may be found only where
the ledger says that these bytes are what ran: with another digest, or under another policy, than those of the review.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parents[1]
LIMIT = 300.0
"""Seconds after which a planrun is said to hang."""
GOOD_SCRIPT = "#!/bin/sh\n: >> good\n"
EVIL_SCRIPT = "#!/bin/sh\n: >> evil\n"
GOOD_PLAN = """\
version: 1
{policy}steps:
  - {{id: a, run: ./tools/x.sh}}
  - {{id: b, depends_on: [a], run: cd tools && bash x.sh}}
  - {{id: c, depends_on: [a], exec: [sh, tools/x.sh]}}
  - {{id: d, depends_on: [c], run: "./tools/x.sh; 'tools/x.sh'"}}
"""
EVIL_STEP = "  - {id: evil, run: ': >> evil'}\n"
STRICT = "auto_approve: none\n"
MANNERS = ("rename", "write", "link")
MODES = ("plain", "locked", "approval")
# What is swapped, and in which modes.
TARGETS: dict[str, tuple[str, ...]] = {
    "script": MODES,
    "plan": MODES,
    "lock": ("locked",),
    "approval": ("approval",),
    "policy": ("policy",),
    "copies": ("plain",),
}
SHAPES = tuple(
    (target, mode, manner)
    for target, modes in TARGETS.items()
    for mode in modes
    for manner in (MANNERS if target != "copies" else ("write",))
)

_DRIVER = "{fault}\nfrom planrun.cli import run\nrun()\n"
FAULTS = {
    "": "",
    "runs the file": "from planrun.actions import scripts as c\n"
    "c.Copies.of = lambda self, step, recipe: c.Copying()\n",
    "checks, then runs the file": "from planrun.actions import scripts as c\nkept = c.Copies.of\n"
    "def of(self, step, recipe):\n"
    "    found = kept(self, step, recipe)\n"
    "    return c.Copying(refusal=self._changed([s.name for s in found.scripts]))\n"
    "c.Copies.of = of\n",
    "does not look at its copies": "from planrun.executors import scriptcopies as p\n"
    "p._verified = lambda script: p.read_script(script.source)\n",
    "digest without scripts": "from planrun.approval import digest as r\nkept = r.digest_of\n"
    "r.digest_of = lambda canonical, params, scripts: kept(canonical, params, {})\n",
    "does not compare with the lock": "from planrun.approval import lockfile as l\n"
    "l.drift = lambda lock, now: iter(())\n",
    "takes any approval": "from planrun.approval.policies import Approval\n"
    "from planrun.approval.approvals import Approvals as A\nA._against = lambda self, one, step, digest: ''\n",
}
"""Faults to plant, as what is run before planrun; the empty name is planrun as it is."""
CAUGHT_BY = {
    "runs the file": ("script", "plain", "rename"),
    "checks, then runs the file": ("script", "plain", "rename"),
    "does not look at its copies": ("copies", "plain", "write"),
    "digest without scripts": ("script", "approval", "rename"),
    "does not compare with the lock": ("script", "locked", "rename"),
    "takes any approval": ("plan", "approval", "rename"),
}
"""The shape that shows each fault."""


@dataclass
class Tally:
    """What races came to."""

    races: int = 0
    ran: int = 0  # runs that began
    swapped: int = 0  # runs of the evil bytes as such: another digest, or another policy
    kept: int = 0  # runs that noticed a change, and ran what they kept
    refused: int = 0  # ended with exit code 2, 3 or 5
    marks: list[str] = field(
        default_factory=list
    )  # evil bytes that ran under the name of good ones, and other faults

    def add(self, other: Tally) -> None:
        """Take another tally in."""
        for name in ("races", "ran", "swapped", "kept", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.marks += other.marks


class Ground:
    """A folder with a plan that is locked and approved, good and evil forms of each file, and a planrun to run it."""

    def __init__(self, folder: Path, fault: str = "") -> None:
        self.folder = folder
        self._driver = _DRIVER.format(fault=FAULTS[fault])
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)}
        self.good: dict[str, bytes] = {}
        self.evil: dict[str, bytes] = {}
        self.paths = {
            "script": folder / "tools" / "x.sh",
            "plan": folder / "plan.yml",
            "lock": folder / "plan.lock.json",
            "approval": folder / "approval.json",
            "policy": folder / "policy.yml",
        }

    def planrun(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run planrun to its end."""
        return subprocess.run(
            [sys.executable, "-c", self._driver, *words],
            cwd=self.folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def prepare(self, mode: str, target: str) -> str:
        """Write everything as it was reviewed, and know the evil forms; returns the digest of the good."""
        policy = f"policy: {{{STRICT.strip()}}}\n" if mode == "approval" else ""
        plan = GOOD_PLAN.format(policy=policy)
        self.paths["script"].parent.mkdir()
        self.good["script"], self.evil["script"] = GOOD_SCRIPT.encode(), EVIL_SCRIPT.encode()
        self.good["plan"], self.evil["plan"] = plan.encode(), (plan + EVIL_STEP).encode()
        if target == "policy":  # the plan has the evil step from the start, and a policy stands against it
            self.good["plan"] = self.evil["plan"]
            self.good["policy"] = b"rules: [{deny: {step: evil}}]\n"
            self.evil["policy"] = b"rules: [{require: {step: never}}]\n"
        evil_file = "plan" if target != "policy" else "policy"
        # The evil lock and the evil approval are of the evil plan.
        for name in ("good", "evil") if evil_file == "plan" else ("good",):
            self._put("script", GOOD_SCRIPT.encode())
            self._put("plan", getattr(self, name)["plan"])
            for made, words in (
                ("lock", ("lock", "plan.yml")),
                ("approval", ("approve", "plan.yml", "--uses", "9", "-o", "approval.json")),
            ):
                self.paths[made].unlink(missing_ok=True)
                done = self.planrun(*words)
                assert done.returncode == 0, done.stderr
                getattr(self, name)[made] = self.paths[made].read_bytes()
        self.restore()
        shown = self.planrun("show", "plan.yml", "--json")
        assert shown.returncode == 0, shown.stderr
        return str(json.loads(shown.stdout)["plan"]["digest"])

    def restore(self) -> None:
        """Have everything as it was reviewed, and nothing that a run left."""
        shutil.rmtree(self.folder / ".planrun", ignore_errors=True)
        for mark in ("evil", "good", "tools/evil", "tools/good"):
            (self.folder / mark).unlink(missing_ok=True)
        for name, data in self.good.items():
            self._put(name, data)

    def _put(self, name: str, data: bytes) -> None:
        path = self.paths[name]
        if path.is_symlink():
            path.unlink()
        path.write_bytes(data)
        if name == "script":
            path.chmod(0o755)


class Swapper:
    """Swaps a file for its evil form and back, again and again, until it is told to stop."""

    def __init__(self, ground: Ground, target: str, manner: str, chance: random.Random) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._swap, args=(ground, target, manner, chance))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _swap(self, ground: Ground, target: str, manner: str, chance: random.Random) -> None:
        self._over.wait(chance.uniform(0, 0.15))
        while not self._over.is_set():
            if target == "copies":
                _spoil(ground.folder)
            else:
                path = ground.paths[target]
                for number, data in enumerate((ground.evil[target], ground.good[target])):
                    MANNER[manner](path, data, f"{path}.{number}")
                    self._over.wait(chance.choice((0, 0.0005, 0.002, 0.01, 0.04)))
            self._over.wait(chance.choice((0, 0.001, 0.005)))


def _spoil(folder: Path) -> None:
    for path in folder.glob(".planrun/runs/*/scripts/*"):
        path.chmod(0o600)
        path.write_text(EVIL_SCRIPT)


def _rename(path: Path, data: bytes, other: str) -> None:
    Path(other).write_bytes(data)
    os.chmod(other, 0o755)
    os.replace(other, path)


def _write(path: Path, data: bytes, _other: str) -> None:
    path.write_bytes(data)


def _link(path: Path, data: bytes, other: str) -> None:
    Path(other).write_bytes(data)
    os.chmod(other, 0o755)
    link = f"{other}.link"
    os.symlink(os.path.basename(other), link)
    os.replace(link, path)


MANNER: dict[str, Callable[[Path, bytes, str], None]] = {"rename": _rename, "write": _write, "link": _link}


class Course:
    """One shape of race, run again and again on the same ground."""

    def __init__(self, shape: tuple[str, str, str], folder: Path, fault: str = "") -> None:
        self.shape = shape
        self.ground = Ground(folder.resolve(), fault)
        self._digest = self.ground.prepare(shape[1], shape[0])

    def race(self, seed: str) -> Tally:
        """Run the plan while one of its files is swapped, and say what ran."""
        target, mode, manner = self.shape
        tally = Tally(races=1)
        ground = self.ground
        ground.restore()
        words = ["execute", "plan.yml", "--quiet", "--no-cache"]
        words += {"locked": ["--locked"], "approval": ["--approval", "approval.json"]}.get(mode, [])
        words += ["--policy", "policy.yml"] if mode == "policy" else []
        with Swapper(ground, target, manner, random.Random(seed)):
            done = ground.planrun(*words)
        tally.refused = int(done.returncode in (2, 3, 5))
        if done.returncode not in (0, 1, 2, 3, 5):
            tally.marks.append(f"{self.shape} {seed}: exit code {done.returncode}: {done.stderr[:300]}")
        _judge(ground, self.shape, seed, self._digest, tally)
        return tally


def _judge(ground: Ground, shape: tuple[str, str, str], seed: str, digest: str, tally: Tally) -> None:
    """Compare what ran with what the ledger says that ran."""
    evil = any((ground.folder / place).exists() for place in ("evil", "tools/evil"))
    ledgers = list(ground.folder.glob(".planrun/runs/*/ledger.jsonl"))
    events = [json.loads(line) for line in ledgers[0].read_text().splitlines()] if ledgers else []
    tally.ran = len(ledgers)
    is_other = bool(events) and _bound(events[0], shape, ground) != (digest, True)
    tally.swapped = int(is_other)
    tally.kept = int(any("reviewed copy" in note for event in events for note in event.get("notes", ())))
    if evil and not is_other:
        tally.marks.append(f"{shape} {seed}: evil bytes ran as what was reviewed")
    # A lock or an approval that is good lets nothing else run.
    if evil and shape[0] in ("script", "plan") and shape[1] in ("locked", "approval"):
        tally.marks.append(f"{shape} {seed}: evil bytes ran past a good {shape[1]}")
    if strays := [str(path) for path in ground.folder.rglob(".planrun-*")]:
        tally.marks.append(f"{shape} {seed}: left behind: {strays}")


def _bound(started: dict[str, Any], shape: tuple[str, str, str], ground: Ground) -> tuple[str, bool]:
    """Return the digest that a run names, and whether its policy is the good one."""
    good = True
    if shape[0] == "policy":
        import hashlib

        (ceiling,) = started["options"]["policy"]["ceilings"]
        good = ceiling["sha256"] == hashlib.sha256(ground.good["policy"]).hexdigest()
    return started["plan"]["digest"], good


def is_caught(fault: str, seed: int, most: int = 60) -> int:
    """Return after how many races a planted fault was seen; 0: it was not."""
    with tempfile.TemporaryDirectory(prefix="races-") as folder:
        course = Course(CAUGHT_BY[fault], Path(folder), fault)
        for number in range(1, most + 1):
            if course.race(f"{seed}.{number}").marks:
                return number
    return 0


def races(trials: int, seed: int) -> Iterator[tuple[tuple[str, str, str], Tally]]:
    """Run so many races of every shape."""
    for shape in SHAPES:
        tally = Tally()
        with tempfile.TemporaryDirectory(prefix="races-") as folder:
            course = Course(shape, Path(folder))
            for number in range(trials):
                tally.add(course.race(f"{seed}.{number}"))
        yield shape, tally


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when anything ran that was not reviewed, or a planted fault was not seen."""
    parser = argparse.ArgumentParser(prog="python -m proofs races", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="of each shape")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument(
        "--fault", choices=[name for name in FAULTS if name], default="", help="plant this one alone"
    )
    chosen = parser.parse_args(words)
    began = time.monotonic()
    if chosen.fault:
        found = is_caught(chosen.fault, chosen.seed, chosen.trials)
        print(f"{chosen.fault}: " + (f"caught by race {found}" if found else "not caught"))
        return int(not found)
    print(f"{len(SHAPES)} shapes, {chosen.trials} races each, seed {chosen.seed}")
    marks: list[str] = []
    total: Counter[str] = Counter()
    for shape, tally in races(chosen.trials, chosen.seed):
        print(
            f"{' '.join(shape):24} {tally.races} races, {tally.ran} ran, {tally.swapped} as something else,"
            f" {tally.kept} kept what they had, {tally.refused} refused, {len(tally.marks)} faults",
            flush=True,
        )
        marks += tally.marks
        total["races"] += tally.races
    missed = []
    for fault in CAUGHT_BY:
        found = is_caught(fault, chosen.seed)
        print(f"planted: {fault}: " + (f"caught by race {found}" if found else "NOT CAUGHT"), flush=True)
        missed += [] if found else [fault]
    print(
        f"{total['races']} races, {len(marks)} times something ran that was not reviewed",
        *marks[:20],
        sep="\n",
    )
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(marks or missed))
