"""Runs with a replanning: a plan whose third step fails fatally, and drafts for the model to return."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from planrun.app.copies import state_of
from planrun.app.resume import ResumeRequest, resume
from planrun.app.run import RunRequest, execute
from planrun.cli.run import changes, planner
from planrun.model.call import Answer, Repeat, Usage
from planrun.plan.load import load
from planrun.records.reading import read_ledger
from planrun.settings import Settings
from tests.conftest import LIMIT
from tests.fakes import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pytest

    from planrun.app.session import Result
    from planrun.llm.drafts import Draft
    from planrun.model.call import Request
    from planrun.model.plan import Plan
    from planrun.model.state import RunState

    Reply = str | dict[str, Any] | Answer | Callable[[Request], str | dict[str, Any]]

PLAN = """\
version: 1
name: shop
goal: The shop is packed.
llm: {model: model-a}
steps:
  - {id: 1, title: Fetch, run: echo 1 >> ran}
  - {id: 2, title: Compile, depends_on: [1], run: echo 2 >> ran}
  - {id: 3, title: Generate, depends_on: [2], run: echo 3 >> ran; echo Permission denied; exit 77}
  - {id: 4, title: Check, depends_on: [3], run: echo 4 >> ran}
  - {id: 5, title: Pack, depends_on: [2, 4], run: echo 5 >> ran}
finally:
  - {id: 6, run: echo 6 >> ran}
"""


def step(name: str, run: str, **more: Any) -> dict[str, Any]:
    """Return a step as a model writes it."""
    return messages.step(name, run, **{"title": "", **more})


def draft(
    *steps: dict[str, Any], keep: Sequence[str] = (), analysis: str = "It has to be."
) -> dict[str, Any]:
    """Return an answer with steps."""
    return messages.draft(steps, analysis, keep=list(keep))


REPAIRED = draft(
    step("7", "echo 7 >> ran", title="Generate by hand", replaces=["3"], depends_on=["2"]),
    step("8", "echo 8 >> ran", title="Check by hand", replaces=["4"], depends_on=["7"]),
    keep=["5"],
    analysis="Nobody may write there.",
)


class Scripted:
    """A model that gives one prepared reply for each request, and keeps the requests."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.closed = False

    def ask(self, request: Request) -> None:
        self.requests.append(request)

    def repeats(self) -> list[Repeat]:
        """Return none."""
        return []

    def wait(self, timeout: float | None) -> Answer | None:
        reply = self.replies.pop(0)
        if callable(reply):
            reply = reply(self.requests[-1])
        if isinstance(reply, Answer):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        usage = Usage(input_tokens=900, output_tokens=100)
        return Answer(ending="answered", text=text, usage=usage, model="model-a", stop_reason="end_turn")

    def stop(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        self.closed = True


class Shop:
    """A folder with a plan, and the runs of it in this process, whose model is a Scripted."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, text: str = PLAN) -> None:
        self.folder = folder
        self.patch = patch
        self.model = Scripted()
        patch.chdir(folder)
        patch.setenv("ANTHROPIC_API_KEY", "fake-key-0123456789abcdef")
        patch.setattr("planrun.planner.models.open_model", lambda *_, **__: self.model)
        (folder / "plan.yml").write_text(text, encoding="utf-8")

    def run(self, *replies: Reply, **settings: Any) -> Result:
        """Execute the plan; the model answers with `replies`."""
        self.model = Scripted(*replies)
        chosen = Settings(**{"logs": "none", "jobs": 2, **settings})
        return execute(
            load("plan.yml", cache=False), chosen, RunRequest(planner=planner, workspace=str(self.folder))
        )

    def resume(
        self, *replies: Reply, plan: Plan | None = None, steps: tuple[str, ...] = (), **settings: Any
    ) -> Result | None:
        """Resume the newest run; `replan` among the settings: failures to replan."""
        replan = settings.pop("replan", None)
        self.model = Scripted(*replies)
        chosen = Settings(**{"logs": "none", "jobs": 2, **settings})
        request = ResumeRequest(
            report=lambda _: None,
            planner=planner,
            changes=changes,
            plan=plan,
            steps=steps,
            replan=replan,
            workspace=str(self.folder),
        )
        return resume("last", chosen, request)

    @property
    def ran(self) -> list[str]:
        """What ran, in order."""
        path = self.folder / "ran"
        return path.read_text(encoding="utf-8").split() if path.exists() else []


def ends(state: RunState) -> dict[str, str]:
    """Status and reason of every step."""
    return {name: f"{found.status}({found.reason})" for name, found in state.steps.items()}


def planrun(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env={**os.environ, "PLANRUN_CACHE_DIR": str(folder / "cache"), **env},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def newest(folder: Path) -> tuple[str, RunState]:
    """Return the folder of the newest run, and its state from the ledger."""
    rundir = max((folder / ".planrun" / "runs").iterdir())
    return str(rundir), state_of(str(rundir), read_ledger(str(rundir / "ledger.jsonl")))


def as_draft(data: dict[str, Any]) -> Draft:
    """Read an answer as planrun does."""
    from planrun.llm.drafts import STEPS

    result = STEPS.read(json.dumps(data), 100)
    assert not isinstance(result, list), result
    return result
