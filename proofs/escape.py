"""Nothing survives a step: eight ways to escape, four ways to end, and nobody left three seconds later.

Each planted fault switches a part of planrun off, and the same trials must find survivors.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.trials import ALLOWED, ENDS, FAULTS, MASKED, SHAPES, Finding, Trial, living, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

AT_ONCE = 4
LATEST = 0.15
"""Seconds: what ends a step comes at a random time up to this one after it is ready."""

# Where each fault shows: the trial in which it leaves somebody behind.
CAUGHT_BY = {
    "no-guardian": ("double-fork", "kill"),
    "no-marks": ("without-a-trace", "normal"),
    "no-spawned-pids": ("setsid", "normal"),
    "one-look": ("ignores-term", "normal"),
    "late-sweep": ("setsid", "normal"),
}


def trials(rounds: int, seed: int, fault: str = "", secrets: str = "") -> list[Trial]:
    """Every shape with every end, so many times, in an order that mixes short and long ones.

    `secrets`: a line of each plan, with which output is masked.
    """
    chance = random.Random(seed)
    made = [
        Trial(shape, end, 0, chance.uniform(0, LATEST))
        for _ in range(rounds)
        for shape in SHAPES
        for end in ENDS
    ]
    chance.shuffle(made)
    return [Trial(t.shape, t.end, number, t.delay, fault, secrets) for number, t in enumerate(made)]


def carry_out(planned: Sequence[Trial], allowed: float = ALLOWED) -> list[Finding]:
    """Run trials, some at once, each in a folder of its own; `allowed`: seconds in which everybody has to be gone."""
    with tempfile.TemporaryDirectory(prefix="escape-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:

        def one(trial: Trial) -> Finding:
            own = Path(folder, str(trial.number))
            own.mkdir()
            return run(trial, own, allowed)

        return list(pool.map(one, planned))


def escaped(finding: Finding) -> bool:
    """Whether anybody outlived the step."""
    return bool(finding.seen or finding.survivors)


def late(findings: Iterable[Finding]) -> list[int]:
    """Return processes of any trial that are there now, after all trials: somebody may have been overlooked."""
    return [pid for finding in findings for pid in living(finding.trial.token)]


def table(findings: Sequence[Finding]) -> str:
    """What the next step saw of each shape and end, survivors, and the longest time until all were gone."""
    lines = [f"{'seen, left, slowest':20}" + "".join(f"{end:>16}" for end in ENDS)]
    for shape in SHAPES:
        cells = []
        for end in ENDS:
            found = [f for f in findings if (f.trial.shape, f.trial.end) == (shape, end)]
            slowest = max((f.seconds for f in found), default=0.0)
            seen, left = sum(f.seen for f in found), sum(len(f.survivors) for f in found)
            cells.append(f"{seen} {left} {slowest:5.2f} s")
        lines.append(f"{shape:20}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def prove_faults() -> bool:
    """Plant each fault where it must show; returns whether every one was caught."""
    planned = [
        Trial(shape, end, number, LATEST, fault)
        for number, (fault, (shape, end)) in enumerate(CAUGHT_BY.items(), 1_000_000)
    ]
    findings = carry_out(planned)
    for finding in findings:
        trial = finding.trial
        says = f"{finding.seen} seen by the next step, {len(finding.survivors)} left after {ALLOWED:g} s"
        print(
            f"planted fault {trial.fault}: {trial.shape}, {trial.end}: {says if escaped(finding) else 'NOT CAUGHT'}"
        )
    return all(map(escaped, findings))


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when somebody survived, planrun did not end as it should, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs escape", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--fault", choices=[name for name in FAULTS if name], default="", help="plant one")
    parser.add_argument("--masked", action="store_true", help="have all output pass through masks")
    chosen = parser.parse_args(words)
    planned = trials(chosen.rounds, chosen.seed, chosen.fault, MASKED if chosen.masked else "")
    print(
        f"{len(planned)} trials: {len(SHAPES)} shapes x {len(ENDS)} ends x {chosen.rounds}, seed {chosen.seed}"
        f"{', output masked' if chosen.masked else ''}"
    )
    findings = carry_out(planned)
    print(table(findings))
    for finding in findings:
        if finding.problem:
            print(f"{finding.trial.shape}, {finding.trial.end}: {finding.problem}")
    loose = sum(map(escaped, findings))
    print(f"{loose} of {len(findings)} trials with survivors; {len(late(findings))} processes left at last")
    caught = bool(chosen.fault) or prove_faults()
    wrong = loose or late(findings) or any(finding.problem for finding in findings)
    return int(bool(wrong) or not caught)
