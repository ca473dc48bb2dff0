"""The six scenarios that a planner has to get right, each through the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.messages import FakeMessages
from tests.fakes.messages import say as text_reply

if TYPE_CHECKING:
    from tests.conftest import Command

pytestmark = pytest.mark.shows("D-52")


def ran(planrun: Command, plan: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Execute a plan; return the exit code and the steps of its ledger by id."""
    (planrun.folder / "plan.yml").write_text(f"version: 1\n{plan}")
    done = planrun("execute", "plan.yml", *words)
    ledger = json.loads((planrun.folder / "planrun-out" / "ledger.json").read_text())
    return done.returncode, {step["id"]: step for step in ledger["steps"]}


def span(step: dict[str, Any]) -> tuple[str, str]:
    """Return when the last attempt of a step began and ended."""
    return step["attempts"][-1]["started_at"], step["attempts"][-1]["ended_at"]


def test_sequential(planrun: Command) -> None:
    """Steps that depend on each other run one after the other, in this order."""
    plan = "steps:\n" + "".join(
        f"  - {{id: {name}, run: echo {name} >> order{edge}}}\n"
        for name, edge in (("c", ", depends_on: [b]"), ("b", ", depends_on: [a]"), ("a", ""))
    )
    code, steps = ran(planrun, plan)
    assert code == 0
    assert (planrun.folder / "order").read_text() == "a\nb\nc\n"
    assert span(steps["a"])[1] <= span(steps["b"])[0] <= span(steps["b"])[1] <= span(steps["c"])[0]


def test_parallel(planrun: Command) -> None:
    """Two steps without an edge are under way at the same time: each waits until it sees the other."""
    wait = "touch {0}; until test -e {1}; do sleep 0.01; done"
    steps = "".join(f"  - {{id: {a}, run: {wait.format(a, b)}}}\n" for a, b in (("a", "b"), ("b", "a")))
    code, found = ran(planrun, "limits: {max_parallel: 2}\nsteps:\n" + steps)
    assert code == 0
    assert {step["status"] for step in found.values()} == {"completed"}


def test_skipping(planrun: Command) -> None:
    """A step with a false condition is skipped, with its reason, and none of it runs."""
    code, steps = ran(
        planrun,
        "params: {deploy: {type: boolean, default: false}}\nsteps:\n  - {id: a, run: echo a}\n"
        "  - {id: b, depends_on: [a], condition: params.deploy, run: touch deployed}\n",
    )
    assert code == 0
    assert (steps["b"]["status"], steps["b"]["reason"]) == ("skipped", "condition")
    assert not (planrun.folder / "deployed").exists()


def test_failure(planrun: Command) -> None:
    """A failure blocks what depends on it, lets the rest go on, and ends in exit code 1."""
    code, steps = ran(
        planrun,
        "steps:\n  - {id: a, run: exit 3}\n  - {id: b, depends_on: [a], run: touch b}\n  - {id: c, run: touch c}\n",
    )
    assert code == 1
    assert {name: step["status"] for name, step in steps.items()} == {
        "a": "failed",
        "b": "blocked",
        "c": "completed",
    }
    assert not (planrun.folder / "b").exists()
    assert (planrun.folder / "c").exists()


def test_invalid_json(planrun: Command) -> None:
    """A model that answers without JSON gets the error back, twice, and then no plan is written."""
    with FakeMessages([text_reply("Sure! Here is the plan: {")] * 3) as api:
        done = planrun("generate", "ship it", env={**api.env, "PLANRUN_LLM_MODEL": "m"})
        assert len(api.journal.entries) == 3
    assert done.returncode == 1
    assert "no plan was written" in done.stderr
    assert not (planrun.folder / "plan.yml").exists()


def test_confirmation(planrun: Command) -> None:
    """A plan that asks waits with exit code 5, nothing behind the question has run; a yes lets it go on."""
    code, _ = ran(
        planrun,
        "steps:\n  - {id: go, ask: {question: Ship it?}}\n  - {id: ship, depends_on: [go], run: touch shipped}\n",
    )
    assert code == 5
    assert not (planrun.folder / "shipped").exists()
    assert planrun("decide", "last", "go=yes").returncode == 0
    assert planrun("resume", "last").returncode == 0
    assert (planrun.folder / "shipped").exists()
