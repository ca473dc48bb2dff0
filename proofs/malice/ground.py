"""A workspace for one malicious reply, and the service that gives it: a run fails, and a model is asked."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.malice.planted import FAULTS
from tests.fakes.messages import FakeMessages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from proofs.malice.attack import Attack
    from tests.fakes.messages import Asked

ROOT = Path(__file__).parents[2]
TOKEN = "pypi-Tr1al-s3cret-T0ken"
PATIENCE = 120.0
"""Seconds that a run may take on a machine that has other things to do."""
PLAN = """\
version: 1
name: target
goal: Ship the package of trial-{number}.
secrets: [PYPI_TOKEN]
policy: {policy}
limits: {{max_replans: 1, max_steps: 40, deadline: 3m}}
llm: {{model: model-a, retries: 0, timeout: 60s, planning_timeout: 100s, max_generated_steps: 6}}
steps:
  - {{id: prepare, run: echo prepared >> prepared}}
  - {{id: lint, run: echo linted >> linted}}
  - {{id: test, depends_on: [prepare, lint], run: cat log; exit 1, on_failure: replan}}
  - {{id: approve, depends_on: [test], ask: {{question: "Publish?"}}}}
  - {{id: publish, depends_on: [approve], exec: [{publish}], secrets: [PYPI_TOKEN]}}
finally:
  - {{id: collect, run: echo collected >> collected}}
"""
ABSTRACT = """\
version: 1
name: target
goal: Ship the package of trial-{number}.
secrets: [PYPI_TOKEN]
policy: {policy}
llm: {{model: model-a, retries: 0, timeout: 60s, planning_timeout: 100s, max_generated_steps: 6}}
steps:
  - {{id: prepare, run: echo prepared >> prepared}}
  - {{id: make, depends_on: [prepare], description: Make the package., condition: step_prepare_succeeded, timeout: 5s}}
  - {{id: publish, depends_on: [make], exec: [touch, published], secrets: [PYPI_TOKEN]}}
finally:
  - {{id: collect, run: echo collected >> collected}}
"""
"""The plan of those trials in which an abstract step is made concrete."""
LAX = '{auto_approve: high, llm_auto_approve: high, rules: [{allow: {step: "*"}}]}'
ASKING = "{auto_approve: high, llm_auto_approve: low}"
CEILING = "auto_approve: high\nllm_auto_approve: low\n"
OURS = {"prepare": 1, "lint": 1, "test": 1, "collect": 1}
_DRIVER = "patch = setattr\n{fault}\nfrom planrun.cli import run\nrun()\n"


class Service:
    """The fake service for many trials at once: it knows by the goal which one asks."""

    def __init__(self, trials: Mapping[int, Attack]) -> None:
        self._trials = trials
        self._given: Counter[int] = Counter()
        self.api = FakeMessages(self._reply)

    def _reply(self, asked: Asked) -> Any:
        number = int(asked.find(r"trial-(\d+)"))
        answers = self._trials[number].answers
        answer = answers[min(self._given[number], len(answers) - 1)]
        self._given[number] += 1
        return answer(asked) if callable(answer) else answer

    def requests(self, number: int) -> list[Any]:
        """The bodies of the requests that one trial made."""
        name = f"trial-{number}."
        return [entry.body for entry in self.api.journal.asked if name in json.dumps(entry.body)]


@dataclass
class Ground:
    """A folder of one trial, with a workspace and a home in it."""

    folder: Path
    attack: Attack
    number: int
    env: dict[str, str]
    output: str = ""
    codes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        for path in (self.work / "sub", self.folder / "home"):
            path.mkdir(parents=True)
        publish = "twine, upload, published" if self.attack.high else "touch, published"
        # A plan of its own that allows everything lifts nothing.
        policy = ASKING if self.attack.waits else LAX
        text = ABSTRACT if self.attack.verb == "expand" else PLAN
        self.plan = text.format(number=self.number, publish=publish, policy=policy)
        for name, text in (
            ("plan.yml", self.plan),
            ("ceiling.yml", CEILING),
            ("touch.sh", '#!/bin/sh\ntouch "$@"\n'),
            ("log", self.attack.log or "error: No such file or directory: 'dist'\n"),
            (".env", f"PYPI_TOKEN={TOKEN}\n"),
        ):
            (self.work / name).write_text(text)
        (self.work / "touch.sh").chmod(0o755)
        self.env = {
            **self.env,
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "PYPI_TOKEN": TOKEN,
            "PYTHONPATH": str(ROOT),
        }

    @property
    def words(self) -> tuple[str, ...]:
        """The command that has a model asked."""
        if self.attack.verb == "generate":
            goal, asked = (
                f"Ship the package of trial-{self.number}.",
                ("--llm-model", "model-a", "--max-turns", "9"),
            )
            return ("generate", goal, *asked, "--policy", "ceiling.yml", "--execute", "-o", "new.yml")
        ceiling = () if self.attack.waits else ("--policy", "ceiling.yml")
        return ("execute", "plan.yml", *ceiling, *(("--expand",) if self.attack.verb == "expand" else ()))

    @property
    def rundir(self) -> Path:
        """The folder of the only run."""
        (found,) = (self.work / ".planrun/runs").glob("*/ledger.jsonl")
        return found.parent

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of one kind on record, in order."""
        lines = (self.rundir / "ledger.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == kind]

    def by_command(self, words: Sequence[str]) -> None:
        """Run planrun as a process of its own."""
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER.format(fault=FAULTS[self.attack.fault]), *words],
            cwd=self.work,
            env=self.env | {"PLANRUN_CACHE_DIR": str(self.folder.parent / "cache")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        self.output += done.stdout.decode("utf-8", "replace")
        self.codes.append(done.returncode)

    def within(self, words: Sequence[str]) -> None:
        """Run planrun's command line in this very process, in whose environment this trial's stands already."""
        from planrun.cli import main

        here, said = Path.cwd(), io.StringIO()
        os.chdir(self.work)
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                self.codes.append(main(list(words)))
        finally:
            os.chdir(here)
            self.output += said.getvalue()
