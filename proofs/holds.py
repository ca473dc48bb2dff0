"""What stands around a harmless command cannot have it run code: it is switched off, or the command's class is higher.

Each attack is first tried with nothing in its way, to show that it works; then as a step that a policy lets in.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from planrun.actions import gitconfig, trust, variables
from planrun.actions import gitconfig as gitfolders
from planrun.model.job import Job
from planrun.risk.classifier import classify
from proofs.planting import ATTACKS, Attack, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

LIMIT = 60.0
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Finding:
    """What came of an attack: whether it works at all, the class that was told, and whether it worked nevertheless."""

    attack: Attack
    works: bool
    level: str
    reason: str
    got_through: bool

    @property
    def problem(self) -> str:
        """What is wrong; empty when it is held off as it is to be."""
        if not self.works:
            return "the attack does nothing, even with nothing in its way"
        if self.got_through:
            return "the planted code ran"
        told = self.level or "off"
        return "" if told == self.attack.held else f"{told}, not {self.attack.held}"


def trial(attack: Attack, folder: Path) -> Finding:
    """Make an attack twice, in scenes of their own: with nothing in its way, and as a step."""
    bare = _scene(attack, folder / "bare")
    works = _runs(attack, bare, _job(attack, bare))
    scene = _scene(attack, folder / "held")
    job = _job(attack, scene)
    found = trust.raised(commands(attack.text), job, str(scene.work))
    if found is not None:
        return Finding(attack, works, *found, got_through=False)
    got_through = _runs(attack, scene, trust.cleaned(job, "low"))
    return Finding(attack, works, "", "", got_through)


def commands(text: str) -> list[trust.Command]:
    """Return the commands of a text, each as if its class were low: that is what is put to the test."""
    return [command.but(level="low") for command in classify(text).commands]


def _scene(attack: Attack, folder: Path) -> Scene:
    scene = Scene(folder)
    attack.plant(scene)
    scene.canary.unlink(missing_ok=True)  # git may have run it while it was planted
    return scene


def _job(attack: Attack, scene: Scene) -> Job:
    return Job(
        step="s",
        attempt=1,
        argv=(*attack.shell, attack.text),
        env=scene.env,
        cwd=str(scene.work),
        log=os.devnull,
        timeout=LIMIT,
    )


def _runs(attack: Attack, scene: Scene, job: Job) -> bool:
    """Run a job, and say whether the canary appeared."""
    output: int = subprocess.DEVNULL
    ends: tuple[int, ...] = ()
    if attack.terminal:
        ends = pty.openpty()
        output = ends[1]
    try:
        process = subprocess.Popen(
            job.argv,
            env=job.env,
            cwd=job.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(LIMIT)
        finally:
            process.kill()
            process.wait()
    finally:
        for end in ends:
            os.close(end)
    return scene.canary.exists()


FAULTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": nullcontext,
    "variables stay": lambda: mock.patch.object(variables, "changes_code", return_value=False),
    "functions stay": lambda: mock.patch.object(
        variables, "means_more", lambda name, _: name in variables._SHELL
    ),
    "BASH_ENV stays": lambda: mock.patch.object(variables, "_SHELL", frozenset()),
    "git as configured": lambda: mock.patch.object(variables, "GIT_OFF", ()),
    "keys unread": lambda: mock.patch.object(gitconfig, "runs_program", return_value=False),
    "includes not followed": lambda: mock.patch.object(gitfolders, "included", return_value=False),
    "inner repositories unread": lambda: mock.patch.object(gitfolders, "gitlinks", return_value=[]),
    "the workspace trusted": lambda: mock.patch.object(trust.Ground, "inside", return_value=False),
    "every program known": lambda: mock.patch.object(trust, "doubt", return_value=""),
    "home not looked at": lambda: mock.patch.object(trust._Look, "_at_home", return_value=None),
    "files not looked at": lambda: mock.patch.object(trust, "CODE_FILES", {}),
}
"""Faults to plant; the empty name is planrun as it is."""
CAUGHT_BY = {
    "variables stay": "GIT_EXTERNAL_DIFF",
    "functions stay": "a function for a program",
    "BASH_ENV stays": "BASH_ENV",
    "git as configured": "core.fsmonitor",
    "keys unread": "diff.*.textconv",
    "includes not followed": "includeIf",
    "inner repositories unread": "filter of an inner repository",
    "the workspace trusted": "ls of the workspace",
    "every program known": "conftest.py",
    "home not looked at": "HOME in the workspace",
    "files not looked at": "rust-toolchain.toml",
}
"""Which attack gets through with each fault."""


def faulty(fault: str, folder: Path) -> str:
    """Plant a fault and make the attack that is to get through; returns what was found, "" when nothing was."""
    attack = next(attack for attack in ATTACKS if attack.name == CAUGHT_BY[fault])
    if attack.missing:
        return f"not tried, there is no {attack.missing}"
    with FAULTS[fault](), mock.patch.object(trust, "_FILES", gitfolders.GitFiles()):
        return trial(attack, folder).problem


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when planted code ran, an attack did nothing at all, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs holds", description=__doc__)
    parser.add_argument(
        "--fault", choices=sorted(filter(None, FAULTS)), help="plant it and make every attack"
    )
    chosen = parser.parse_args(words)
    began = time.monotonic()
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{git}, {sys.platform}, user {os.getuid()}")
    problems, missed = 0, 0
    with tempfile.TemporaryDirectory(prefix="holds-") as name, FAULTS[chosen.fault or ""]():
        folder = Path(name).resolve()
        for number, attack in enumerate(ATTACKS):
            if attack.missing:
                print(f"{attack.name:34} not tried, there is no {attack.missing}")
                continue
            finding = trial(attack, folder / str(number))
            problems += bool(finding.problem)
            told = (
                finding.problem.upper()
                or finding.reason.replace(str(folder / str(number)), "")
                or "switched off"
            )
            print(f"{attack.name:34} {attack.text:46} {told}")
    if not chosen.fault:
        with tempfile.TemporaryDirectory(prefix="holds-") as name:
            for number, fault in enumerate(CAUGHT_BY):
                found = faulty(fault, Path(name).resolve() / str(number))
                missed += not found
                print(f"planted fault: {fault}: {found or 'NOT CAUGHT'}")
    print(f"{len(ATTACKS)} attacks, {problems} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems or missed else 0
