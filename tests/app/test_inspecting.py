"""What a model wrote, before it may run: held against what was reviewed, its guards, and every policy in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.app.planning.conversing import Refused
from planrun.app.planning.inspecting import Bounds, inspect
from planrun.model.policy import Policy
from planrun.policy.deciding import Ceiling, Layers
from planrun.source.load import load_bytes

if TYPE_CHECKING:
    from planrun.llm.faults import Fault
    from planrun.model.plan import Plan

BEFORE = """\
version: 1
policy: {auto_approve: medium}
env: {STAGE: test}
limits: {max_replans: 2}
steps:
  - {id: done, run: "true"}
  - {id: test, depends_on: [done], run: pytest -q, on_failure: replan}
  - {id: approve, depends_on: [test], ask: {question: "Publish?"}}
  - {id: build, depends_on: [approve], run: mkdir -p dist}
  - {id: publish, depends_on: [build], run: twine upload dist/x}
finally:
  - {id: collect, run: "true"}
"""
CEILING = Ceiling(policy=Policy(auto_approve="high", llm_auto_approve="low"), file="ceiling.yml")
KEPT = frozenset(("approve", "build", "publish"))


def plan_of(text: str, marked: tuple[str, ...] = ()) -> Plan:
    """Return a plan with steps that say that a model wrote or arranged them."""
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    steps = [step.but(origin="replanned") if step.id in marked else step for step in plan.steps]
    return plan.but(steps=tuple(steps))


def added(*lines: str, before: str = BEFORE) -> str:
    """Return the plan with more steps."""
    head, _, tail = before.partition("finally:")
    return head + "".join(f"  - {line}\n" for line in lines) + "finally:" + tail


def found(text: str, new: tuple[str, ...], ceiling: Ceiling | None = CEILING) -> Refused | list[Fault] | None:
    """Return what is said of a plan in which `test` failed."""
    before = plan_of(BEFORE)
    layers = Layers(plan=before.policy, file="plan.yml", ceilings=(ceiling,) if ceiling else ())
    bounds = Bounds(before=before, layers=layers, failed=frozenset(("test",)), pending=KEPT)
    return inspect(plan_of(text, (*new, *KEPT)), new, bounds)


def test_what_is_below_every_ceiling_may_stay() -> None:
    """A low step in the place of the failed one passes, where nothing above the ceiling comes after it."""
    before = BEFORE.replace("twine upload dist/x", "ls dist")
    text = added('{id: fix, run: "touch made", replaces: [test]}', before=before)
    layers = Layers(file="plan.yml", ceilings=(CEILING,))
    bounds = Bounds(before=plan_of(before), layers=layers, failed=frozenset(("test",)), pending=KEPT)
    assert inspect(plan_of(text, ("fix", *KEPT)), ("fix",), bounds) is None


@pytest.mark.parametrize("run", ["git push", "rm -rf ..", "echo x > .git/hooks/pre-commit", "env"])
def test_a_step_above_the_ceiling_is_denied(run: str) -> None:
    """What a ceiling denies is refused with its rule and the reason, and not asked for again."""
    told = found(added(f'{{id: fix, run: "{run}", replaces: [test]}}'), ("fix",))
    assert isinstance(told, Refused)
    assert told.refusals[-1]["step"] == "fix"
    assert {each["rule"] for each in told.refusals} == {"ceiling:llm_auto_approve"}
    assert all("its risk is high" in each["reason"] for each in told.refusals)
