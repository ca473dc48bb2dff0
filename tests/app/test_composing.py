"""Whatever a draft says: it becomes a plan that holds exactly that, or faults, or a refusal, and nothing in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.llm.drafts import Draft, DraftStep
from planrun.plan.load import load_bytes
from planrun.planner.conversation import Accepted, Refused
from planrun.planner.generate import Frame, check, compose, name_of
from planrun.settings import Settings

FRAME = Frame(file="plan.yml", goal="ship it", settings=Settings())
PLAIN = DraftStep(id="a", run="echo hi")
TEXTS = st.text(st.sampled_from("a \n\t#:-'\"\\{}[]|>&*!%@`$,?~=\x85\u2028\u202e\ufeffé1"), max_size=30)
IDS = st.sampled_from(("a", "b", "c", "1", "no", "0x1", "A"))
STEPS = st.builds(
    DraftStep,
    id=IDS,
    title=TEXTS,
    description=TEXTS,
    run=st.one_of(st.sampled_from(("", "echo hi", "rm -rf /", "curl x | sh")), TEXTS),
    condition=st.one_of(st.just(""), st.sampled_from(("run.ci", "steps.a.status == 'failed'")), TEXTS),
    review=TEXTS,
    depends_on=st.lists(IDS, max_size=2).map(tuple),
    replaces=st.just(()),
    outputs=st.lists(st.sampled_from(("x", "y z", "no")), max_size=2).map(tuple),
    estimated_tokens=st.integers(0, 10),
)


def draft(*steps: DraftStep, **more: Any) -> Draft:
    """Return a draft with these steps."""
    return Draft(analysis="because", steps=steps, **more)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=1, max_size=4), TEXTS)
def test_any_draft_ends_well_defined(steps: list[DraftStep], analysis: str) -> None:
    """What is accepted holds the draft's own values and nothing else, comments or not."""
    result = check(draft(*steps).but(analysis=analysis), FRAME)
    if not isinstance(result, Accepted):
        assert isinstance(result, list)
        assert all(fault.path.startswith("steps[") or fault.path == "$" for fault in result)
        return
    made = compose(result.value, FRAME, [analysis])
    bare = load_bytes(made.text.encode(), "plan.yml", cache=False)
    assert [step.id for step in bare.steps] == [step.id for step in steps]
    for step, said in zip(bare.steps, steps, strict=True):
        assert (step.title, step.description) == (said.title, said.description)
        assert step.kind == ("run" if said.run else "abstract")
        assert (step.secrets, step.declared_risk, step.timeout, step.env) == ((), "", 300.0, {})
    assert bare.policy is not None
    assert (bare.policy.auto_approve, bare.policy.llm_auto_approve, bare.policy.rules) == (
        "medium",
        "low",
        (),
    )


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("llm_auto_approve: low", "ceiling:llm_auto_approve"),
        ("{auto_approve: high, llm_auto_approve: high, rules: [{deny: {command: rm}}]}", "ceiling:rules.1"),
    ],
)
def test_a_ceiling_refuses_what_it_denies(tmp_path: Any, policy: str, rule: str) -> None:
    """By level or by rule; what it only asks for goes into the file."""
    (tmp_path / "policy.yml").write_text(policy)
    frame = FRAME.but(settings=Settings(policy=str(tmp_path / "policy.yml")))
    result = check(draft(PLAIN, PLAIN.but(id="b", run="rm -rf build")), frame)
    assert isinstance(result, Refused)
    assert [(each["step"], each["rule"]) for each in result.refusals] == [("b", rule)]
    assert isinstance(check(draft(PLAIN), frame), Accepted)


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("Fix the login, please!", "fix-the-login-please"),
        ("überprüfe es", "überprüfe-es"),
        ("日本語", "日本語"),
        ("!?", ""),
        ("x" * 200, "x" * 60),
        ("1 2", "1-2"),
    ],
)
def test_a_plan_is_named_by_its_goal(goal: str, name: str) -> None:
    """The first words of it; none where it has no letters, and then the file names it."""
    assert name_of(goal) == name
    made = compose(draft(PLAIN), FRAME.but(goal=goal), [])
    assert made.plan.name == (name or "plan")
