"""`expect` and `verify` in a plan: valid combinations, readable values, and their effect on risk and digest."""

from __future__ import annotations

import pytest

from planrun.errors import InvalidPlan
from planrun.model.plan import Step
from planrun.plan.kinds.command import Exec, Run
from planrun.plan.load import load_bytes


def load(text: str) -> tuple[Step, ...]:
    """Load the steps of a plan without the cache."""
    return load_bytes(f"version: 1\nsteps:\n{text}".encode(), "plan.yml", cache=False).steps


@pytest.mark.parametrize("action", ["ask: {question: Go on?}", "validate: [{env_set: [HOME]}]", "title: x"])
@pytest.mark.parametrize("key", ["expect: [{files_exist: [a]}]", "verify: test -f a"])
def test_a_step_that_does_nothing_has_nothing_to_prove(action: str, key: str) -> None:
    """Gates, checks and abstract steps with proofs are an error at the key."""
    with pytest.raises(InvalidPlan) as caught:
        load(f"  - id: a\n    {action}\n    {key}\n")
    (problem,) = [each for each in caught.value.problems if each.severity == "error"]
    assert (problem.code, problem.line) == ("E208", 5)


def test_a_check_may_read_the_step_itself_and_a_command_may_not() -> None:
    """`that` under `expect` reads own outputs; the commands are rendered before the action runs."""
    (step,) = load(
        "  - id: a\n    run: 'true'\n    outputs: {n: integer}\n    expect: [{that: steps.a.outputs.n > 0}]\n"
    )
    assert step.expect[0].kind == "that"
    with pytest.raises(InvalidPlan) as caught:
        load(
            "  - id: a\n    run: 'true'\n    outputs: {n: integer}\n    verify: test ${{ steps.a.outputs.n }} = 1\n"
        )
    assert [problem.code for problem in caught.value.problems] == ["E203"]


def test_commands_that_verify_count_for_the_risk_of_their_step() -> None:
    """The step is as risky as the worst of them, and a lower declared risk is an error."""
    (step,) = load("  - id: a\n    run: ls\n    verify: [ls, rm -rf /]\n")
    assert step.risk == "high"
    assert "rm -rf /" in step.risk_reason
    with pytest.raises(InvalidPlan) as caught:
        load("  - id: a\n    run: ls\n    risk: low\n    verify: rm -rf /\n")
    assert [problem.code for problem in caught.value.problems] == ["E260"]


def test_texts_are_scripts_and_lists_are_programs() -> None:
    """A single text is one script, and a list is one program."""
    (step,) = load("  - id: a\n    run: ls\n    verify: [./check.sh, [python, tool.py]]\n")
    assert isinstance(step.verify[0], Run)
    assert isinstance(step.verify[1], Exec)


def test_another_proof_is_another_plan() -> None:
    """The digest covers what has to hold."""
    texts = ["", "    verify: a\n", "    verify: b\n", "    expect: [{that: 'true'}]\n"]
    plans = [
        load_bytes(f"version: 1\nsteps:\n  - id: a\n    run: ls\n{text}".encode(), "p.yml", cache=False)
        for text in texts
    ]
    assert len({plan.digest for plan in plans}) == 4
