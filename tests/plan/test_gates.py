"""Gates and policies as the engine gets them."""

from __future__ import annotations

import pytest

from planrun.errors import InvalidPlan
from planrun.model.plan import Plan
from planrun.model.policy import Match, Policy, Rule
from planrun.plan.kinds.question import Ask, Decide, Option
from planrun.plan.load import check_bytes, load_bytes


def compiled(text: str) -> Plan:
    """Compile a plan without the cache."""
    return load_bytes(("version: 1\n" + text).encode(), "plan.yml", cache=False)


def action(text: str) -> object:
    """Return what the only step of a plan does."""
    return compiled(f"steps:\n  - id: a\n    {text}\n").steps[0].action


def test_a_plain_question_has_no_default_unless_it_is_written() -> None:
    """Yes is never assumed: an answer that was not written does not exist."""
    assert action("ask: {question: Publish}") == Ask(question="Publish")


def test_a_default_is_the_one_that_is_written() -> None:
    """The default of a question is explicit, and kept with the time after which it counts."""
    asked = action("ask: {question: Publish, header: Release, default: false, timeout: 90s}")
    assert asked == Ask(question="Publish", header="Release", default=(False,), timeout=90.0)


def test_a_typed_question_keeps_its_schema() -> None:
    """Type, enum, pattern and bounds become a JSON Schema fragment; where text is wanted 3.10 is text."""
    asked = action("ask: {question: q, type: integer, minimum: 1, maximum: 9, default: 3}")
    assert isinstance(asked, Ask)
    assert (asked.schema, asked.default) == ({"type": "integer", "minimum": 1, "maximum": 9}, (3,))
    asked = action("ask: {question: q, type: string, pattern: '^3', default: 3.10}")
    assert isinstance(asked, Ask)
    assert (asked.schema, asked.default) == ({"type": "string", "pattern": "^3"}, ("3.10",))
    asked = action("ask: {question: q, enum: [eu, us]}")
    assert isinstance(asked, Ask)
    assert asked.schema == {"type": "string", "enum": ["eu", "us"]}


def test_a_decision_has_the_fields_of_a_decision() -> None:
    """Id, header, question, options with label and description, several choices; whether it is taken, no file says."""
    plan = compiled(
        "decisions:\n  store:\n    question: Which store?\n    header: Storage\n    multi_select: true\n"
        "    options: [{label: Redis, value: redis, description: Fast.}, {label: SQLite}]\n    default: redis\n"
        "steps:\n  - {run: x, depends_on: [store]}\n"
    )
    assert [(step.id, step.kind, step.line) for step in plan.steps] == [
        ("store", "decide", 3),
        ("1", "run", 10),
    ]
    assert plan.steps[0].action == Decide(
        question="Which store?",
        header="Storage",
        multi_select=True,
        options=(
            Option(label="Redis", value="redis", description="Fast."),
            Option(label="SQLite", value="SQLite"),
        ),
        default=(["redis"],),
    )
    taken = "steps: [{id: a, decide: {question: q, options: [{label: x}], resolved: true}}]\n"
    assert [each.code for each in check_bytes(("version: 1\n" + taken).encode(), "p").problems] == ["E104"]


def test_options_may_be_taken_by_a_condition() -> None:
    """`when` is an expression tree, and templates are filled in in the question."""
    taken = action(
        "decide: {question: 'For ${{ run.ref }}', options: [{label: a, when: run.ci}, {label: b}]}"
    )
    assert isinstance(taken, Decide)
    assert taken.options[0].when is not None
    assert taken.options[1].when is None
    assert isinstance(taken.question, tuple)


def test_gates_do_not_share_in_defaults() -> None:
    """A tolerated failure would make a refusal an approval; what is about processes has no meaning."""
    plan = compiled(
        "defaults: {on_failure: continue, retries: 3, timeout: 1s}\n"
        "steps:\n  - {id: a, ask: {question: q}}\n  - {id: b, ask: {question: q}, on_failure: continue}\n"
        "  - {id: c, run: x}\n"
    )
    assert [step.on_failure for step in plan.steps] == ["block", "continue", "continue"]
    assert [step.retries.max for step in plan.steps] == [0, 0, 3]


def test_a_policy_is_read_as_it_stands() -> None:
    """Levels, rules with their numbers, answers and failures; a single word is a list of one."""
    plan = compiled(
        "policy:\n  auto_approve: medium\n  llm_auto_approve: none\n  ask_for: plan\n  rules:\n"
        "    - deny: {words: [prod, live], event: pull_request}\n"
        "    - allow: {command: 'make *', risk: [medium, high]}\n"
        "  decisions: {n: 3}\n  on_failure: {low: continue, otherwise: abort}\n"
        "steps:\n  - {id: n, ask: {question: q, type: integer}}\n"
    )
    assert plan.policy == Policy(
        auto_approve="medium",
        llm_auto_approve="none",
        ask_for="plan",
        rules=(
            Rule(verb="deny", match=Match(words=("prod", "live"), event=("pull_request",)), number=1, line=7),
            Rule(verb="allow", match=Match(command=("make *",), risk=("medium", "high")), number=2, line=8),
        ),
        decisions={"n": 3},
        on_failure={"low": "continue", "otherwise": "abort"},
        line=3,
    )


def test_without_a_policy_there_is_none_and_a_level_is_the_boundary() -> None:
    """Which risk needs an approval is one word, `read-only` among them; without it the file decides nothing."""
    assert compiled("steps: [{run: x}]\n").policy is None
    for level in ("none", "read-only", "low", "medium", "high"):
        policy = compiled(f"policy: {{auto_approve: {level}}}\nsteps: [{{run: x}}]\n").policy
        assert policy is not None
        assert (policy.auto_approve, policy.llm_auto_approve) == (level, "low")


def test_a_policy_evaluates_no_expressions() -> None:
    """A template in a policy is text: neither a parameter nor the environment can widen it."""
    plan = compiled(
        "params: {x: {type: string, default: '*'}}\npolicy: {rules: [{allow: {command: '${{ params.x }}'}}],"
        " auto_approve: low}\nsteps: [{run: x}]\n"
    )
    assert plan.policy is not None
    assert plan.policy.rules[0].match.command == ("${{ params.x }}",)
    with pytest.raises(InvalidPlan):
        compiled("policy: {auto_approve: '${{ params.x }}'}\nsteps: [{run: x}]\n")


@pytest.mark.parametrize(
    ("policy", "warned"),
    [
        ("{rules: [{allow: {step: a}}]}", True),
        ("{auto_approve: high, rules: [{allow: {step: a}}]}", True),
        ("{auto_approve: medium, rules: [{allow: {step: a}}]}", False),
        ("{auto_approve: medium, rules: [{allow: {step: a, risk: low}}]}", True),
        ("{auto_approve: medium, rules: [{allow: {risk: [low, high]}}]}", False),
        ("{auto_approve: high, llm_auto_approve: low, rules: [{allow: {step: a}}]}", False),
        ("{rules: [{allow: {origin: agent}}]}", False),
        ("{llm_auto_approve: high, rules: [{allow: {origin: agent}}]}", True),
        ("{rules: [{require: {step: a}}, {deny: {risk: high}}]}", False),
    ],
)
def test_rules_that_change_nothing_are_reported(policy: str, warned: bool) -> None:  # noqa: FBT001
    """A rule that changes nothing is a warning: its author expects another result."""
    data = f"version: 1\npolicy: {policy}\nsteps: [{{id: a, run: x}}]\n".encode()
    assert [each.code for each in check_bytes(data, "p").problems] == ["W303"] * warned
