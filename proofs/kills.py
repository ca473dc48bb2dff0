"""Killed anywhere, planrun loses nothing and repeats nothing that had ended: resume brings the run to the same end.

It is killed before each of its system calls that changes or waits for something, in a run and in a resume, and at
random moments; some runs twice, some together with their guardian. Every step adds a line to a file outside, and from
that file and the ledger it is judged. Not counted as repeated: cleanup, which belongs to every end of a run.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from planrun.records.reading import verify
from proofs.crashing import Account, Kill, Scene, known
from proofs.killfaults import CAUGHT_BY, FAULTS
from proofs.killplans import CLEANUP, ONCE, UNSEEN, VARIED, WIDE
from proofs.sameness import differences, reports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

AT_ONCE = 3
CALLS = (
    *("write", "pwrite64", "fdatasync", "fsync", "openat", "ftruncate", "truncate"),
    *("rename", "renameat", "renameat2", "mkdir", "mkdirat", "unlink", "unlinkat"),
    *("clone3", "clone", "vfork", "wait4", "waitid", "poll", "ppoll", "pidfd_open", "flock", "kill"),
)
"""The system calls before which planrun is killed; those that this machine's run does not make are left out."""
MIDDLE = Kill("write", 16)
"""How a run is killed whose resume is to be killed, too."""
_JOBS = 6
_EXECUTE = ("execute", "plan.yml", "--jobs", str(_JOBS))
_RESUME = ("resume", "last", "--jobs", str(_JOBS))


@dataclass(frozen=True)
class Trial:
    """A plan and the kills that hit its run one after the other; the last of them may come too late."""

    plan: str
    kills: tuple[Kill, ...]
    fault: str = ""

    def __str__(self) -> str:
        return ", then ".join(map(str, self.kills))


@dataclass(frozen=True)
class Finding:
    """What a trial came to. `hit`: how many of its kills planrun did not escape; `extra`: effects more than needed."""

    trial: Trial
    hit: int
    events: int  # whole lines of the ledger at the first kill
    extra: int
    problems: tuple[str, ...]
    said: str = ""


class Bench:
    """Where trials are made: caches that they share, and the undisturbed run of each plan to compare with."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared = folder / "shared"
        self._numbers = count()
        self.seconds: dict[str, float] = {}
        self._wanted: dict[str, Scene] = {}
        for plan in (VARIED, WIDE):
            self._scene(plan).planrun(*_EXECUTE)  # fills the caches
            scene = self._wanted[plan] = self._scene(plan)
            began = time.monotonic()
            code = scene.planrun(*_EXECUTE)
            self.seconds[plan] = time.monotonic() - began
            if code or scene.planrun("verify", "last"):
                raise RuntimeError(f"an undisturbed run does not end well:\n{''.join(scene.said)}")

    def _scene(self, plan: str, fault: str = "") -> Scene:
        return Scene(self._folder / str(next(self._numbers)), self._shared, plan, FAULTS[fault])

    def calls(self, words: Sequence[str], *before: Kill) -> dict[str, list[int]]:
        """Number the system calls of each kind that planrun makes once it works on the plan.

        Of the files of /proc that it opens, to look for processes, every twentieth is enough.
        """
        scene = self._scene(VARIED)
        for kill in before:
            scene.planrun(*_EXECUTE, kill=kill)
        traced = known(CALLS)
        scene.planrun(*words, trace=("-e", f"trace={','.join(traced)}"))
        total: Counter[str] = Counter()
        found: dict[str, list[int]] = {}
        begun = False
        for row in (scene.folder / "trace").read_text("utf-8", "replace").splitlines():
            begun = begun or "plan.yml" in row or ".planrun" in row
            name = row.partition("(")[0]
            total[name] += 1
            if name in traced and begun and ('"/proc/' not in row or total[name] % 20 == 0):
                found.setdefault(name, []).append(total[name])
        return found

    def carry_out(self, trial: Trial) -> Finding:
        """Run, kill, resume, judge."""
        scene = self._scene(trial.plan, trial.fault)
        try:
            finding = self._carry_out(trial, scene)
        finally:
            scene.clean()
        if not finding.problems:
            shutil.rmtree(scene.folder)
        return finding

    def _carry_out(self, trial: Trial, scene: Scene) -> Finding:
        words, accounts, hit, code = _EXECUTE, [], 0, 0
        problems: list[str] = []
        for kill in trial.kills:
            code = scene.planrun(*words, kill=kill)
            if code >= 0:
                break
            hit += 1
            accounts.append(scene.account())
            unknown = set(scene.done()) - accounts[-1].started
            problems += [f"{step} {n} ran and is not recorded" for step, n in unknown]
            if len(accounts[-1].flying) > _JOBS:
                problems.append(f"{len(accounts[-1].flying)} attempts have no end")
            if accounts[-1].events:
                words = _RESUME
            elif scene.ledger().exists() and scene.planrun(*_RESUME) != 2:
                problems.append("a run without any record is resumed")
        if hit and (code < 0 or words is _EXECUTE):
            code = scene.planrun(*words)
        wanted = self._wanted[trial.plan]
        problems += _judge(scene, wanted, accounts, code)
        extra = len(scene.done()) - len(wanted.done())
        events = accounts[0].events if accounts else 0
        return Finding(trial, hit, events, extra, tuple(problems), "".join(scene.said))


def _judge(scene: Scene, wanted: Scene, accounts: Sequence[Account], code: int) -> Iterator[str]:
    """Say everything that is not as it has to be once a run has ended after all."""
    if code:
        yield f"the last planrun ended with {code}"
    if "Traceback" in "".join(scene.said):
        yield "a traceback"
    left = scene.survivors()
    if left:
        yield f"{len(left)} processes are left"
    last = scene.account()
    before = [account for account in accounts if account.events]
    yield from _judge_ledger(last, before)
    yield from _judge_effects(scene.done(), wanted.done(), last, before)
    if scene.files() - _of_lost(before) != wanted.files() - _of_lost(before):
        yield f"files: {sorted(scene.files() ^ wanted.files())}"
    touched = frozenset(step for a in before for step in (*a.waiting, *(name for name, _ in a.flying)))
    touched |= {CLEANUP} if before else frozenset()
    try:
        yield from differences(reports(scene, touched, last.lost), reports(wanted, touched, last.lost))
    except (ValueError, SyntaxError, AssertionError) as error:
        yield f"a report is not whole: {error!r}"
    if f'"planrun.head" value="{_head(last)}"' not in scene.report("junit.xml"):
        yield "junit.xml does not name the head of the ledger"


def _judge_ledger(last: Account, before: Sequence[Account]) -> Iterator[str]:
    reading = verify(last.lines)
    if reading.condition != "intact":
        yield f"the ledger is {reading.condition}: {reading.detail}"
    for account in before:
        if account.run != last.run or not last.lines.startswith(account.lines):
            yield f"of {account.events} events that were recorded some are gone"


def _judge_effects(
    done: Sequence[tuple[str, int]],
    wanted: Sequence[tuple[str, int]],
    last: Account,
    before: Sequence[Account],
) -> Iterator[str]:
    """Compare what happened with what had to happen, given what was known when planrun was killed."""
    counts, needed = Counter(step for step, _ in done), Counter(step for step, _ in wanted)
    flights = Counter(step for account in before for step, _ in account.flying)
    yield from (f"{step} {n} ran {k} times" for (step, n), k in Counter(done).items() if k > 1)
    for step in needed:
        if not counts[step] and step not in last.lost:
            yield f"{step} never ran"
        most = needed[step] + (len(before) if step == CLEANUP else 0 if step == ONCE else flights[step])
        if counts[step] > most:
            yield f"{step} ran {counts[step]} times, {flights[step]} of them in flight at a kill"
    for account in before:
        for step, n in set(done):
            if step in account.settled - {CLEANUP} and n > _last_attempt(account, step):
                yield f"{step} had ended and ran again"
        if ONCE in dict(account.flying) and ONCE not in last.lost:
            yield f"{ONCE} is not told as lost"
    if unknown := set(counts) - set(needed) | (UNSEEN & set(counts)):
        yield f"ran, and should not have: {sorted(unknown)}"


def _last_attempt(account: Account, step: str) -> int:
    """How many attempts of a step are recorded."""
    start = b'"type":"attempt_started"'
    return sum(start in line and f'"step":"{step}",'.encode() in line for line in account.lines.splitlines())


def _of_lost(before: Iterable[Account]) -> set[str]:
    """The logs of attempts whose end is unknown: there may be one or not."""
    return {f"logs/{step}/N.log" for account in before for step, _ in account.flying}


def _head(account: Account) -> str:
    return account.lines[-67:-3].decode("ascii", "replace")


def points(bench: Bench, every: int) -> list[Trial]:
    """One trial for each system call of a run, and of the resume of a run that was killed in the middle."""
    planned = []
    for words, before in ((_EXECUTE, ()), (_RESUME, (MIDDLE,))):
        for call, numbers in bench.calls(words, *before).items():
            # A few more than were counted: no two runs are the same to the last call.
            more = range(numbers[-1] + 1, numbers[-1] + 4)
            planned += [Trial(VARIED, (*before, Kill(call, n))) for n in (*numbers, *more)]
    return planned[::every]


def moments(bench: Bench, rounds: int, seed: int) -> list[Trial]:
    """Kills at random moments of a wide run: each fourth hits the resume, too, each fifth the guardian first."""
    chance = random.Random(seed)
    planned = []
    for number in range(rounds):
        kills = [
            Kill(seconds=chance.uniform(0, bench.seconds[WIDE]), guardian=number % 5 == turn)
            for turn in range(2 if number % 4 == 0 else 1)
        ]
        planned.append(Trial(WIDE, tuple(kills)))
    return planned


def told(findings: Sequence[Finding]) -> str:
    """Sum up what trials came to."""
    struck = [finding for finding in findings if finding.hit]
    at = {finding.events for finding in struck}
    extra = sum(finding.extra for finding in findings)
    bad = [finding for finding in findings if finding.problems]
    return (
        f"{len(findings)} trials, {sum(f.hit for f in findings)} kills, the ledger being {min(at, default=0)} to "
        f"{max(at, default=0)} lines long ({len(at)} lengths); {extra} effects of attempts in flight repeated; "
        f"{len(bad)} trials went wrong"
    )


def prove(bench: Bench, planned: Sequence[Trial], most: int = 10) -> list[Finding]:
    """Carry trials out, some at once, and print what they came to."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        findings = list(pool.map(bench.carry_out, planned))
    print(told(findings))
    for finding in [finding for finding in findings if finding.problems][:most]:
        print(f"killed {finding.trial}:", *finding.problems, finding.said, sep="\n  ")
    return findings


def prove_faults(bench: Bench) -> bool:
    """Plant each fault where it must show; returns whether every one was caught."""
    missed = False
    for fault, kills in CAUGHT_BY.items():
        finding = bench.carry_out(Trial(VARIED, kills, fault))
        print(f"planted fault {fault}, killed {finding.trial}: {(*finding.problems, 'NOT CAUGHT')[0]}")
        missed = missed or not finding.problems
    return not missed


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a trial went wrong or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs kills", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="how many random kills")
    parser.add_argument("--every", type=int, default=1, help="try each so manyth system call; 0: none")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        bench = Bench(Path(folder).resolve())
        findings = []
        if chosen.every:
            print("before each system call: ", end="", flush=True)
            findings += prove(bench, points(bench, chosen.every))
        print(f"at random moments, seed {chosen.seed}: ", end="", flush=True)
        findings += prove(bench, moments(bench, chosen.rounds, chosen.seed))
        caught = prove_faults(bench)
    print(f"{time.monotonic() - began:.0f} s")
    return int(not caught or any(finding.problems for finding in findings))
