"""Plan mode: an agent only reads until its plan is approved, by the policy or at a gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import EDIT, FIXED, events, finish, ledger, repository, results, turns
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.conftest import Command
    from tests.fakes.messages import Asked

PROPOSAL = ("exit_plan_mode", {"plan": "1. Change calc.py: add must add.\n2. Run check_calc.py."})


def plan(level: str = "low", **agent: Any) -> str:
    """Return a plan with one agent in plan mode; `level`: what runs of a model without approval."""
    step = {"id": "fix", "agent": {"prompt": "Fix it.", "plan_mode": True, "apply": "auto", **agent}}
    step |= {"verify": "python3 check_calc.py"}
    policy = {"auto_approve": "medium", "llm_auto_approve": level}
    return json.dumps({"version": 1, "llm": {"model": "model-a"}, "policy": policy, "steps": [step]})


class Model:
    """A model that tries to write, proposes a plan, and then carries it out."""

    def __init__(self) -> None:
        self.tools: list[set[str]] = []
        self.first: list[str] = []

    def __call__(self, asked: Asked) -> Any:
        self.tools.append({tool["name"] for tool in asked.body["tools"]})
        if len(self.tools) == 2:
            self.first = results(asked)
        return turns(use(EDIT, ("read", {"path": "calc.py"})), use(PROPOSAL), use(EDIT), finish("fixed"))(
            asked
        )


def start(planrun: Command, text: str, model: Any) -> CompletedProcess[str]:
    """Run a plan in a repository with a bug."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(text)
    with FakeMessages(model) as api:
        return planrun("execute", "plan.yml", env=api.env)


@pytest.mark.shows("GM-04")
def test_a_plan_waits_for_its_gate_and_is_carried_out_after_it(planrun: Command) -> None:
    """Writing is refused in plan mode; the run waits with the plan; after the approval it is done.

    The tools that are offered are the same in each request: a service takes no thought back behind others.
    """
    model = Model()
    done = start(planrun, plan(), model)
    assert done.returncode == 5, done.stderr
    assert {"read", "edit", "bash", "enter_plan_mode", "exit_plan_mode"} <= model.tools[0]
    assert "you do not have 'edit' in plan mode; you have read" in model.first[0]
    assert "its plan, sha256" in done.stderr
    assert "Change calc.py" in done.stderr
    assert "Change calc.py" in planrun("logs", "last", "fix").stdout
    assert planrun("approve", "last", "fix").returncode == 0
    with FakeMessages(model) as api:
        done = planrun("resume", "last", env=api.env)
    assert done.returncode == 0, done.stderr
    assert all(tools == model.tools[0] for tools in model.tools)
    assert (planrun.folder / "calc.py").read_text() == FIXED
    one, two = ledger(planrun.folder)["agents"]
    assert one["proposed"]["text"] == PROPOSAL[1]["plan"]
    assert (one["reason"], two["continues"], two["status"]) == ("plan", "fix.1", "completed")
    assert [event["type"] for event in events(planrun.folder) if event["type"].startswith("gate_")] == [
        "gate_opened",
        "gate_answered",
    ]
    assert "Change calc.py" in (planrun.folder / "planrun-out" / "report.md").read_text()
    assert planrun("verify", "last").returncode == 0


def test_a_rejected_plan_fails_the_step(planrun: Command) -> None:
    """`planrun reject` ends the step; nothing was changed."""
    done = start(planrun, plan(), Model())
    assert done.returncode == 5, done.stderr
    assert planrun("reject", "last", "fix").returncode == 0
    with FakeMessages(Model()) as api:
        done = planrun("resume", "last", env=api.env)
    assert done.returncode == 3, done.stderr
    assert (planrun.folder / "calc.py").read_text() != FIXED


def test_a_policy_approves_a_plan_of_its_level(planrun: Command) -> None:
    """Without a gate the agent goes on at once; the decision is in the report."""
    done = start(planrun, plan("medium"), Model())
    assert done.returncode == 0, done.stderr
    (agent,) = ledger(planrun.folder)["agents"]
    (call,) = [each for each in agent["effects"] if each["tool"] == "exit_plan_mode"]
    assert (call["answer"], call["risk"]) == ("allow", "medium")
    assert (planrun.folder / "calc.py").read_text() == FIXED
