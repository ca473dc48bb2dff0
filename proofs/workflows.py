"""Drawn graphs of GitHub jobs run as plans exactly the jobs that GitHub's documented rules run.

The oracle below is written from GitHub's documentation of `needs`, `if` and the status functions, and shares nothing
with the converter: a job without a status function needs success of every ancestor, not only of those that it names;
`failure()` is true if one of them failed; `always()` and `!cancelled()` run after anything.
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

NAMES = "abcdefg"
STATUS = ("success()", "failure()", "always()", "!cancelled()", "success() || failure()")


class Drawn:
    """One job: what it needs, how its script ends, and its `if`, as text and as a function of the other results."""

    def __init__(self, chance: random.Random, name: str, before: list[str], tolerant: set[str]) -> None:
        self.name = name
        self.needs = [each for each in before if chance.random() < 0.45]
        self.fails = chance.random() < 0.3
        self.tolerant = chance.random() < 0.15
        self.status = chance.choice(STATUS) if chance.random() < 0.5 else ""
        # What a tolerant job's result reads as is not documented: it is not asked for.
        known = [each for each in self.needs if each not in tolerant]
        self.reads = chance.choice(known) if known and chance.random() < 0.35 else ""
        self.wanted = chance.choice(("success", "failure", "skipped"))
        self.is_equal = chance.random() < 0.6
        self.fact = chance.choice(("", "", "", "github.ref == 'never'", "github.ref != 'never'"))

    @property
    def text(self) -> str:
        """The condition as it stands in the file."""
        parts = [self.status] if self.status else []
        if self.reads:
            parts.append(f"needs.{self.reads}.result {'==' if self.is_equal else '!='} '{self.wanted}'")
        if self.fact:
            parts.append(self.fact)
        return " && ".join(f"({part})" for part in parts)

    def runs(self, results: dict[str, str], ancestors: set[str], tolerated: set[str]) -> bool:
        """Say whether GitHub runs the job."""
        ends = ["success" if name in tolerated else results[name] for name in ancestors]
        good, bad = all(end == "success" for end in ends), "failure" in ends
        status = {
            "": good, "success()": good, "failure()": bad, "always()": True, "!cancelled()": True,
            "success() || failure()": good or bad,
        }[self.status]  # fmt: skip
        read = not self.reads or (results[self.reads] == self.wanted) is self.is_equal
        return status and read and self.fact != "github.ref == 'never'"


def drawn(chance: random.Random) -> list[Drawn]:
    """Return the jobs of a workflow, each after all that it needs."""
    jobs: list[Drawn] = []
    for name in NAMES[: chance.randint(2, len(NAMES))]:
        tolerant = {job.name for job in jobs if job.tolerant}
        jobs.append(Drawn(chance, name, [job.name for job in jobs], tolerant))
    return jobs


def workflow(jobs: list[Drawn]) -> str:
    """Return the text of the file."""
    lines = ["on: push", "jobs:"]
    for job in jobs:
        lines += [f"  {job.name}:", "    runs-on: ubuntu-latest"]
        lines += [f"    needs: [{', '.join(job.needs)}]"] if job.needs else []
        lines += [f'    if: "{job.text}"'] if job.text else []
        lines += ["    continue-on-error: true"] if job.tolerant else []
        lines += ["    steps:", f"      - run: echo {job.name} >> said; exit {int(job.fails)}"]
    return "\n".join(lines) + "\n"


def expected(jobs: list[Drawn]) -> list[str]:
    """Return the names of the jobs that GitHub runs, by its documentation."""
    results: dict[str, str] = {}
    above: dict[str, set[str]] = {}
    for job in jobs:
        above[job.name] = set(job.needs).union(*[above[name] for name in job.needs])
        tolerated = {each.name for each in jobs if each.tolerant and results.get(each.name) == "failure"}
        if job.runs(results, above[job.name], tolerated):
            results[job.name] = "failure" if job.fails else "success"
        else:
            results[job.name] = "skipped"
    return sorted(name for name, result in results.items() if result != "skipped")


def tried(seed: int, rounds: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Return how many graphs ended how, and a line for each difference."""
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
        if done == 2:
            ends["left to a person"] += 1
        elif ran == expected(jobs):
            ends["alike"] += 1
        else:
            ends["different"] += 1
            wrong.append(f"seed {seed}, graph {number}: ran {ran}, GitHub runs {expected(jobs)}:\n{text}")
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
    """Try graphs and print how they ended; exit code 1 for a difference."""
    parser = argparse.ArgumentParser(prog="python -m proofs workflows", description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="workflows-") as folder:
        ends, wrong = tried(chosen.seed, chosen.rounds, Path(folder))
    for each in wrong:
        print(each)
    print(f"{chosen.rounds} graphs, seed {chosen.seed}: {dict(ends)}")
    return 1 if wrong else 0
