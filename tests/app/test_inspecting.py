"""Checks of model-written steps before they run: against the reviewed plan, its guards and all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.approval.rules import Ceiling, Layers
from planrun.model.policy import Policy
from planrun.plan.keys.policy import policy_in
from planrun.plan.load import load_bytes
from planrun.planner.conversation import Refused
from planrun.planner.inspect import Bounds, inspect

if TYPE_CHECKING:
    from planrun.llm.drafts import Fault
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


def inspected(
    text: str, new: tuple[str, ...], ceiling: Ceiling | None = CEILING
) -> Refused | list[Fault] | None:
    """Inspect a plan in which `test` failed."""
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
    result = inspected(added(f'{{id: fix, run: "{run}", replaces: [test]}}'), ("fix",))
    assert isinstance(result, Refused)
    assert result.refusals[-1]["step"] == "fix"
    assert {each["rule"] for each in result.refusals} == {"ceiling:llm_auto_approve"}
    assert all("its risk is high" in each["reason"] for each in result.refusals)


def rules_of(result: Refused | list[Fault] | None) -> set[str]:
    """Return the rules of refusals or of faults."""
    assert result is not None
    return (
        {each["rule"] for each in result.refusals}
        if isinstance(result, Refused)
        else {one.rule for one in result}
    )


GOOD = '{id: fix, run: "touch made", replaces: [test]}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("policy: {auto_approve: medium}", "policy: {auto_approve: high}"),
        ("env: {STAGE: test}", "env: {STAGE: prod}"),
        ("limits: {max_replans: 2}", "limits: {max_replans: 3}"),
        ("limits: {max_replans: 2}\n", ""),
        ("version: 1\n", "version: 1\nsecrets: [PYPI_TOKEN]\n"),
        ("version: 1\n", "version: 1\nlimits: {deadline: 9h}\n"),
        ('finally:\n  - {id: collect, run: "true"}', ""),
    ],
)
def test_what_stands_above_the_steps_stays(old: str, new: str) -> None:
    """A plan whose policy, limits, environment, secrets or cleanup differ is refused, whatever the source."""
    text = added(GOOD)
    assert old in text
    if "limits: {deadline" in new:
        text = text.replace("limits: {max_replans: 2}\n", "")
    result = inspected(text.replace(old, new), ("fix",))
    assert isinstance(result, Refused)
    assert rules_of(result) <= {"bounds:plan", "bounds:reviewed"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{id: done, run: "true"}', '{id: done, run: "false"}'),
        ("run: pytest -q, on_failure: replan", "run: pytest -q, on_failure: continue"),
        ("run: mkdir -p dist", "run: mkdir -p dist, timeout: 9h"),
        ("run: twine upload dist/x", "run: twine upload dist/x, env: {A: b}"),
        ("depends_on: [build], run: twine", "run: twine"),
        ('ask: {question: "Publish?"}', 'ask: {question: "Publish"}'),
        ('{id: collect, run: "true"}', '{id: collect, run: "false"}'),
    ],
)
def test_a_reviewed_step_stays(old: str, new: str) -> None:
    """Not a value of a step that was reviewed may differ, ended or not."""
    text = added(GOOD)
    assert old in text
    assert rules_of(inspected(text.replace(old, new), ("fix",))) == {"bounds:reviewed"}


@pytest.mark.parametrize(
    "more",
    [
        "risk: high",
        "env: {A: b}",
        "timeout: 9h",
        "retries: 9",
        "workdir: sub",
        "on_failure: continue",
        "idempotent: false",
        "shell: sh",
        "tags: [a]",
        "owner: me",
        "parallel: false",
    ],
)
def test_a_new_step_says_what_a_model_may_say(more: str) -> None:
    """A key that no draft has is refused in the text itself, however it came there."""
    result = inspected(added(f'{{id: fix, run: "touch made", replaces: [test], {more}}}'), ("fix",))
    assert "bounds:keys" in rules_of(result)


def test_a_step_outside_the_draft_is_refused() -> None:
    """A step besides those of the draft, here or under `finally`, is refused."""
    result = inspected(added(GOOD, '{id: more, run: "true"}'), ("fix",))
    assert rules_of(result) == {"bounds:new"}
    text = added(GOOD) + '  - {id: more, run: "true"}\n'
    assert rules_of(inspected(text, ("fix",))) == {"bounds:new"}
    assert rules_of(inspected(added(), ("fix",))) == {"bounds:new"}
    assert rules_of(inspected(BEFORE + '  - {id: fix, run: "true"}\n', ("fix",))) == {"bounds:keys"}


def test_a_step_that_a_model_wrote_says_so() -> None:
    """What a model wrote, and what comes after it, does not pass for a person's."""
    before = plan_of(BEFORE)
    bounds = Bounds(before=before, layers=Layers(file="plan.yml"), failed=frozenset(("test",)), pending=KEPT)
    result = inspect(plan_of(added(GOOD), ("fix",)), ("fix",), bounds)
    assert isinstance(result, Refused)
    assert {each["step"] for each in result.refusals} == KEPT
    assert rules_of(result) == {"bounds:origin"}
    assert inspect(plan_of(added(GOOD), ("fix", *KEPT)), ("fix",), bounds) is None


@pytest.mark.parametrize(
    ("lines", "new", "rule"),
    [
        (('{id: fix, run: "true", replaces: [test, done]}',), ("fix",), "replaces"),
        (('{id: fix, run: "true", replaces: [test, approve]}',), ("fix",), "replaces"),
        (('{id: fix, run: "true", replaces: [test, build]}',), ("fix",), "guard"),
        (
            ('{id: a, run: "true", replaces: [test]}', '{id: b, run: "true", replaces: [build]}'),
            ("a", "b"),
            "guard",
        ),
        (("{id: fix, replaces: [test]}",), ("fix",), "empty"),
        (('{id: fix, run: "echo ${{ env.GITHUB_TOKEN }}", replaces: [test]}',), ("fix",), "secret"),
        (('{id: fix, run: "true", condition: "len(env) > 0", replaces: [test]}',), ("fix",), "secret"),
    ],
)
def test_what_a_model_can_repair_is_reported_with_its_place(
    lines: tuple[str, ...], new: tuple[str, ...], rule: str
) -> None:
    """What ended and what guards stay, names differ, no credential is read: each fault names a place."""
    result = inspected(added(*lines), new)
    assert isinstance(result, list)
    assert rule in rules_of(result)
    assert all(fault.path.startswith("steps") for fault in result)


def test_a_guard_may_be_passed_on() -> None:
    """A step that takes the place of one behind a question may do so behind the same question."""
    lines = (GOOD, '{id: again, run: "mkdir -p dist", replaces: [build], depends_on: [approve]}')
    result = inspected(added(*lines), ("fix", "again"))
    assert isinstance(result, Refused)  # `publish` is above the ceiling, and nothing else is wrong
    assert {each["step"] for each in result.refusals} == {"publish"}


def test_a_rule_of_a_policy_denies_where_a_value_is_missing() -> None:
    """A rule about commands is looked for in the text of a step whose values are not known yet."""
    ceiling = policy_in(b"llm_auto_approve: high\nrules: [{deny: {command: 'git push*'}}]\n", "c.yml")
    text = BEFORE.replace("version: 1\n", "version: 1\nparams: {what: {type: string, default: push}}\n")
    before = plan_of(text)
    layers = Layers(file="plan.yml", ceilings=(Ceiling(policy=ceiling, file="c.yml"),))
    bounds = Bounds(before=before, layers=layers, failed=frozenset(("test",)), pending=KEPT)
    after = added('{id: fix, run: "git ${{ params.what }} origin", replaces: [test]}', before=text)
    result = inspect(plan_of(after, ("fix", *KEPT)), ("fix",), bounds)
    assert rules_of(result) == {"ceiling:rules.1"}


def test_reasons_do_nothing_on_a_terminal() -> None:
    """A reason quotes the script, and none of its characters does anything."""
    script = r'"\u202e\u200b\u2028$(a) && git push"'
    result = inspected(added(f"{{id: fix, run: {script}, replaces: [test]}}"), ("fix",))
    assert isinstance(result, Refused)
    assert all(each["reason"].isprintable() for each in result.refusals)


ABSTRACT = """\
version: 1
steps:
  - {id: first, run: "true"}
  - {id: gate, depends_on: [first], ask: {question: "Go on?"}}
  - {id: make, depends_on: [gate], condition: step_first_succeeded, timeout: 5s, env: {A: b}}
  - {id: last, depends_on: [make], run: "true"}
"""
WHOLE = "{id: make, depends_on: [gate], condition: step_first_succeeded, timeout: 5s, env: {A: b}}"
REVIEWED = "condition: step_first_succeeded, timeout: 5s, env: {A: b}"


@pytest.mark.parametrize(
    ("pieces", "rule"),
    [
        ((f"{{id: make, depends_on: [gate], run: ls, {REVIEWED}}}",), ""),
        (
            (
                f"{{id: make-a, depends_on: [gate], run: ls, {REVIEWED}}}",
                f"{{id: make, depends_on: [make-a], run: ls, {REVIEWED}}}",
            ),
            "",
        ),
        (
            (f"{{id: make, depends_on: [gate], run: ls, {REVIEWED.replace('d,', 'd and true,')}}}",),
            "bounds:keys",
        ),
        (
            (
                (
                    "{id: make, depends_on: [gate], run: ls, timeout: 5s, env: {A: b}, "
                    'condition: "(step_first_succeeded) and (run.ci)"}'
                ),
            ),
            "",
        ),
        (
            (
                (
                    "{id: make, depends_on: [gate], run: ls, timeout: 5s, env: {A: b}, "
                    'condition: "(step_first_succeeded) and (run.ci) or (true)"}'
                ),
            ),
            "bounds:keys",
        ),
        ((f"{{id: make, depends_on: [gate], run: ls, {REVIEWED.replace('5s', '9h')}}}",), "bounds:keys"),
        (("{id: make, depends_on: [gate], run: ls, timeout: 5s, env: {A: b}}",), "bounds:keys"),
        ((f"{{id: make, depends_on: [first], run: ls, {REVIEWED}}}",), "guard"),
        ((f"{{id: make, depends_on: [gate], run: git push, {REVIEWED}}}",), "ceiling:llm_auto_approve"),
    ],
)
def test_what_a_reviewer_said_of_an_abstract_step_holds_for_what_becomes_of_it(
    pieces: tuple[str, ...], rule: str
) -> None:
    """Timeout, environment, condition and what stands before it are those that were reviewed, or stricter."""
    text = ABSTRACT.replace(WHOLE, "\n  - ".join(pieces))
    before = load_bytes(ABSTRACT.encode(), "plan.yml", cache=False)
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    new = tuple(step.id for step in plan.steps if step.id.startswith("make"))
    plan = plan.but(steps=tuple(s.but(origin="expanded") if s.id in new else s for s in plan.steps))
    bounds = Bounds(
        before=before,
        layers=Layers(file="plan.yml", ceilings=(CEILING,)),
        pending=frozenset(step.id for step in before.steps),
        made_of=dict.fromkeys(new, "make"),
    )
    result = inspect(plan, new, bounds)
    assert (result is None) if not rule else (rule in rules_of(result))
