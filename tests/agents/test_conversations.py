"""What the agent of a step begins with: a conversation of its own or an earlier one, and the memory of the project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import events, finish, ledger, repository, turns
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command
    from tests.fakes.messages import Asked

PLAN = """\
version: 1
llm: {model: model-a, SETTINGS}
limits: {output_bytes: 2000, summary_chars: 100}
policy: {auto_approve: high, llm_auto_approve: high, llm_sandbox: 'off'}
steps:
  - {id: look, agent: {type: explore, prompt: Find the fault.}}
  - {id: fix, depends_on: [look], agent: {prompt: Mend it., apply: never}}
"""


class Model:
    """A model that reads a large file and reports; `first` has the first request of each step."""

    def __init__(self) -> None:
        self.first: dict[str, Asked] = {}

    def __call__(self, asked: Asked) -> Any:
        """Answer a request."""
        step = "fix" if "Task of the step fix" in json.dumps(asked.body["messages"]) else "look"
        self.first.setdefault(step, asked)
        if step == "fix":
            return finish("nothing to mend")
        return turns(use(("read", {"path": "large.txt"})), finish("x" * 500))(asked)


def worked(planrun: Command, settings: str) -> Model:
    """Run the plan with settings of `llm` and return the model that was asked."""
    repository(planrun.folder)
    (planrun.folder / "large.txt").write_text("line of a large file\n" * 2000)
    (planrun.folder / "PLANRUN.md").write_text("Releases happen on Tuesdays.\n")
    (planrun.folder / "plan.yml").write_text(PLAN.replace("SETTINGS", settings))
    model = Model()
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    return model


def started(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the events that start the agents, by step."""
    return {each["step"]: each for each in events(folder) if each["type"] == "agent_started"}


@pytest.mark.shows("GP-69", "D-61", "X-07")
def test_an_agent_begins_with_a_conversation_of_its_own(planrun: Command) -> None:
    """It is told what the project's file says and nothing of the earlier conversation; sizes are those of the plan."""
    model = worked(planrun, "clear_context: true")
    (message,) = model.first["fix"].body["messages"]
    assert "Find the fault" not in json.dumps(message)
    assert "project memory: PLANRUN.md" in json.dumps(message)
    assert "Releases happen on Tuesdays." in json.dumps(message)
    assert "carries" not in started(planrun.folder)["fix"]
    assert len(started(planrun.folder)["fix"]["project"]) == 64
    steps = {step["id"]: step for step in ledger(planrun.folder)["steps"]}
    assert steps["look"]["outputs"]["summary"] == "x" * 100


@pytest.mark.shows("GP-69")
def test_an_agent_goes_on_with_the_conversation_of_the_step_before(planrun: Command) -> None:
    """With `clear_context: false` the first request has the task, the calls and the report of the agent before."""
    model = worked(planrun, "clear_context: false")
    messages = model.first["fix"].body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert "Find the fault" in json.dumps(messages[0])
    read = messages[2]["content"][0]["content"]
    assert len(read.encode()) < 3000
    assert "line of a large file" in read
    assert messages[3]["content"][0]["text"] == "x" * 100
    assert "Mend it" in json.dumps(messages[4])
    assert started(planrun.folder)["fix"]["carries"] == "look.1"


@pytest.mark.shows("GP-70")
def test_steps_are_not_delegated_to_agents_of_their_own(planrun: Command) -> None:
    """With `delegate_steps: false` one conversation goes through all steps, in the workspace itself."""
    model = worked(planrun, "delegate_steps: false")
    assert len(model.first["fix"].body["messages"]) == 5
    found = started(planrun.folder)
    assert (found["fix"]["workspace"], found["fix"]["carries"]) == ("shared", "look.1")
    shown = json.loads(planrun("show", "plan.yml", "--json").stdout)
    assert {step["id"]: step["risk"] for step in shown["steps"]} == {"look": "read-only", "fix": "high"}
