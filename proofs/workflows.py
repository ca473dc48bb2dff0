"""Drawn GitHub workflows run as plans exactly the steps that GitHub's documented rules run, with the same variables.

The oracle below is written from GitHub's documentation of `needs`, `if`, the status functions, `outcome` and
`conclusion`, `continue-on-error`, matrices and GITHUB_ENV, and shares nothing with the converter: a job without a
status function needs success of every ancestor, not only of those that it names; `failure()` is true if one of them
failed; `always()` and `!cancelled()` run after anything. In a job the same functions speak of its earlier steps.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from planrun.convert.github.facts import Job

NAMES = "abcde"
STATUS = (
    "success()", "failure()", "always()", "!cancelled()", "success() || failure()", "!failure()", "!success()",
)  # fmt: skip
FACTS = ("", "", "", "", "github.ref == 'never'", "github.ref != 'never'")
OF_MATRIX = ("matrix.x == 2", "matrix.x != 2")
RESULTS = ("success", "failure", "skipped")


def holds(status: str, *, good: bool, bad: bool) -> bool:
    """Say what a status function is where what came before was good, or where some of it was bad."""
    return {
        "": good, "success()": good, "failure()": bad, "always()": True, "!cancelled()": True,
        "success() || failure()": good or bad, "!failure()": not bad, "!success()": not good,
    }[status]  # fmt: skip


class Script:
    """One step: its `if`, how its script ends (2: badly in the second instance only), and what it hands on."""

    def __init__(self, chance: random.Random, name: str, before: list[Script], *, many: bool) -> None:
        self.name = name
        self.status = chance.choice(STATUS) if chance.random() < 0.4 else ""
        self.tolerated = chance.random() < 0.2
        self.fails = chance.choice((0, 0, 0, 1, 2) if many else (0, 0, 0, 1))
        self.fact = chance.choice((*FACTS, *OF_MATRIX) if many else FACTS)
        self.reads: tuple[str, str, str, bool] | None = None
        if before and chance.random() < 0.3:
            word = chance.choice(("outcome", "conclusion"))
            self.reads = (chance.choice(before).name, word, chance.choice(RESULTS), chance.random() < 0.6)
        # What a script writes before it fails does not count here, which the converter says of every file.
        self.hands_on = not self.fails and chance.random() < 0.25

    @property
    def text(self) -> str:
        """The condition as it stands in the file."""
        read = ""
        if self.reads:
            name, word, wanted, is_equal = self.reads
            read = f"steps.{name}.{word} {'==' if is_equal else '!='} '{wanted}'"
        return " && ".join(f"({part})" for part in (self.status, read, self.fact) if part)


class Drawn:
    """One job: what it needs, its `if`, and its steps."""

    def __init__(self, chance: random.Random, name: str, before: list[Drawn]) -> None:
        self.name = name
        self.needs = [job.name for job in before if chance.random() < 0.45]
        self.status = chance.choice(STATUS) if chance.random() < 0.5 else ""
        self.many = chance.random() < 0.35
        self.tolerant = chance.random() < 0.15
        self.fact = chance.choice(FACTS)
        # What a tolerant job's result reads as is not documented: it is not asked for.
        known = [job.name for job in before if job.name in self.needs and not job.tolerant]
        self.reads = chance.choice(known) if known and chance.random() < 0.35 else ""
        self.wanted, self.is_equal = chance.choice(RESULTS), chance.random() < 0.6
        self.steps: list[Script] = []
        for at in range(chance.randint(1, 4)):
            self.steps.append(Script(chance, f"{name}{at}", self.steps, many=self.many))

    @property
    def text(self) -> str:
        """The condition as it stands in the file."""
        read = f"needs.{self.reads}.result {'==' if self.is_equal else '!='} '{self.wanted}'"
        return " && ".join(
            f"({part})" for part in (self.status, read if self.reads else "", self.fact) if part
        )


def drawn(chance: random.Random) -> list[Drawn]:
    """Return the jobs of a workflow, each after all that it needs."""
    jobs: list[Drawn] = []
    for name in NAMES[: chance.randint(1, len(NAMES))]:
        jobs.append(Drawn(chance, name, jobs))
    return jobs


def workflow(jobs: list[Drawn]) -> str:
    """Return the text of the file."""
    lines = ["on: push", "jobs:"]
    for job in jobs:
        lines += [f"  {job.name}:", "    runs-on: ubuntu-latest"]
        lines += [f"    needs: [{', '.join(job.needs)}]"] if job.needs else []
        lines += [f'    if: "{job.text}"'] if job.text else []
        lines += ["    continue-on-error: true"] if job.tolerant else []
        lines += ["    strategy: {fail-fast: false, matrix: {x: [1, 2]}}"] if job.many else []
        lines += ["    steps:"]
        for step in job.steps:
            lines += [f"      - id: {step.name}"]
            lines += [f'        if: "{step.text}"'] if step.text else []
            lines += ["        continue-on-error: true"] if step.tolerated else []
            end = ("exit 0", "exit 1", "exit $(( ${{ matrix.x }} - 1 ))")[step.fails]
            hand = f"echo V={step.name} >> $GITHUB_ENV; " if step.hands_on else ""
            number = "-${{ matrix.x }}" if job.many else ""
            lines += [f"        run: echo {step.name}{number}=$V >> said; {hand}{end}"]
    return "\n".join(lines) + "\n"


def expected(jobs: list[Drawn]) -> tuple[list[str], bool]:
    """Return what the steps say that GitHub runs, by its documentation, and whether the run is red."""
    results: dict[str, str] = {}
    above: dict[str, set[str]] = {}
    said: list[str] = []
    for job in jobs:
        above[job.name] = set(job.needs).union(*[above[name] for name in job.needs])
        tolerated = {each.name for each in jobs if each.tolerant and results.get(each.name) == "failure"}
        ends = ["success" if name in tolerated else results[name] for name in above[job.name]]
        runs = holds(job.status, good=all(end == "success" for end in ends), bad="failure" in ends)
        runs = runs and (not job.reads or (results[job.reads] == job.wanted) is job.is_equal)
        if not runs or job.fact == "github.ref == 'never'":
            results[job.name] = "skipped"
            continue
        failed = [_instance(job, x, said) for x in ((1, 2) if job.many else (0,))]
        results[job.name] = "failure" if any(failed) else "success"
    red = any(results[job.name] == "failure" and not job.tolerant for job in jobs)
    return sorted(said), red


def _instance(job: Drawn, x: int, said: list[str]) -> bool:
    """Run one instance of a job; returns whether it failed."""
    ends: dict[tuple[str, str], str] = {}
    bad, variable = False, ""
    for step in job.steps:
        runs = holds(step.status, good=not bad, bad=bad)
        runs = runs and step.fact not in ("github.ref == 'never'", f"matrix.x {'!=' if x == 2 else '=='} 2")
        if step.reads:
            name, word, wanted, is_equal = step.reads
            runs = runs and (ends[name, word] == wanted) is is_equal
        outcome = "skipped"
        if runs:
            said.append(f"{step.name}{f'-{x}' if x else ''}={variable}")
            outcome = "failure" if step.fails == 1 or (step.fails == 2 and x == 2) else "success"
            variable = step.name if step.hands_on else variable
        ends[step.name, "outcome"] = outcome
        ends[step.name, "conclusion"] = "success" if outcome == "failure" and step.tolerated else outcome
        bad = bad or ends[step.name, "conclusion"] == "failure"
    return bad


def tried(seed: int, rounds: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Return how many workflows ended how, and a line for each difference."""
    chance, ends, wrong = random.Random(seed), Counter[str](), []
    for number in range(rounds):
        jobs = drawn(chance)
        place = folder / str(number)
        place.mkdir()
        text = workflow(jobs)
        (place / "ci.yml").write_text(text)
        _planrun(place, "convert", "ci.yml", "-o", "plan.yml")
        done = _planrun(place, "execute", "plan.yml")
        said = place / "said"
        ran = sorted(said.read_text().split()) if said.exists() else []
        lines, red = expected(jobs)
        if done == 2:
            ends["left to a person"] += 1
        elif ran == lines and (done != 0) == red:
            ends["alike"] += 1
        else:
            ends["different"] += 1
            missing, extra = sorted({*lines} - {*ran}), sorted({*ran} - {*lines})
            wrong.append(
                f"seed {seed}, workflow {number}: missing {missing}, extra {extra}, ended {done}, red {red}:\n{text}"
            )
    return ends, wrong


def _planrun(folder: Path, *words: str) -> int:
    """Return the exit code of planrun in a process of its own, with the fault if one is planted."""
    root = str(Path(__file__).parents[1])
    plant = "from proofs.workflows import broken; broken().start(); " if PLANTED else ""
    script = (
        f"import sys; sys.path.insert(0, {root!r}); {plant}from planrun.cli import main; sys.exit(main())"
    )
    argv = [sys.executable, "-c", script, *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=120).returncode


PLANTED = False


def broken() -> Any:
    """Plant a fault: a job looks only at the jobs that it names."""
    return mock.patch.object(Job, "behind", lambda job: list(job.needs))


def main(argv: list[str] | None = None) -> int:
    """Try workflows and print how they ended; exit code 1 for a difference."""
    parser = argparse.ArgumentParser(prog="python -m proofs workflows", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="workflows-") as folder:
        ends, wrong = tried(chosen.seed, chosen.rounds, Path(folder))
    for each in wrong:
        print(each)
    print(f"{chosen.rounds} workflows, seed {chosen.seed}: {dict(ends)}")
    return 1 if wrong else 0
