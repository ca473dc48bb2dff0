"""`planrun explain RUN STEP` gives advice for each of the four problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.messages import FakeMessages, draft

if TYPE_CHECKING:
    from tests.conftest import Command

pytestmark = pytest.mark.shows("V-81")


def explained(planrun: Command, plan: str, step: str, **env: str) -> str:
    """Execute a plan and return the explanation of one step."""
    (planrun.folder / "plan.yml").write_text(f"version: 1\n{plan}")
    planrun("execute", "plan.yml", env=env)
    return planrun("explain", "last", step).stdout.partition("What to do\n")[2].partition("\n\n")[0]


def test_needs_decision(planrun: Command) -> None:
    """A step that asks: the command that answers."""
    output = explained(planrun, "steps: [{id: go, ask: {question: Ship?}}]\n", "go")
    assert "needs a decision: planrun decide " in output


@pytest.mark.parametrize(
    ("top", "keys", "why"),
    [
        ("", ", parallel: false", "`parallel: false`"),
        ("schedule: sequential\n", "", "`schedule: sequential`"),
        ("limits: {max_parallel: 1}\n", "", "`limits.max_parallel` is 1"),
        ("", ", lock: db", "the same lock never run beside it: db"),
    ],
)
def test_no_parallel(planrun: Command, top: str, keys: str, why: str) -> None:
    """What keeps a step alone is named by its key."""
    output = explained(planrun, f"{top}steps:\n  - {{id: a, run: ls{keys}}}\n  - {{id: b, run: ls}}\n", "a")
    assert why in output


def test_context_limit(planrun: Command) -> None:
    """For an answer that was cut off, the setting that allows a longer one is named."""
    with FakeMessages([draft([{"id": "2", "run": "ls", "replaces": ["a"]}])] * 2) as api:
        plan = "goal: x\nllm: {model: m, plan_max_tokens: 9}\nsteps: [{id: a, run: exit 77}]\n"
        output = explained(planrun, plan, "a", **api.env)
    assert "context limit: the answer was cut off at max_tokens" in output
    assert "`llm.plan_max_tokens`" in output


def test_not_resuming(planrun: Command) -> None:
    """A failed step that a resume does not run again: why, and the command that does."""
    output = explained(planrun, "steps: [{id: a, run: exit 3, idempotent: false}]\n", "a")
    assert "a resume does not run it again (`idempotent: false`)" in output
    assert "planrun retry " in output


def test_nothing_is_advised_where_nothing_is_wrong(planrun: Command) -> None:
    """A step that completed beside others has no such section."""
    assert explained(planrun, "steps: [{id: a, run: ls}, {id: b, run: ls}]\n", "a") == ""
