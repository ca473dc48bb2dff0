"""A policy that allows more than before is called that, and one that does not is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.approval.rules import LEVELS, Facts, Layers, decide
from planrun.diff.plans import laxer
from planrun.model.plan import Plan, Step
from planrun.model.policy import Match, Policy, Rule
from planrun.plan.kinds.command import Exec
from planrun.plan.tables import OBJECTS
from tests.app.differing import BASE, difference

MATCHERS: dict[str, tuple[Any, Any]] = {
    "step": ("first", "other"),
    "tool": ("run", "exec"),
    "command": ("git push*", ["git push*", "twine*"]),
    "words": ("deploy", "publish"),
    "topic": ("deploy", ["deploy", "data"]),
    "secret": ("FIRST_KEY", "OTHER_KEY"),
    "effect": ("network", ["network", "destroys"]),
    "risk": ("high", ["high", "medium"]),
    "origin": ("file", "expanded"),
    "ref": ("main", "release/*"),
    "event": ("push", "pull_request"),
}
SETTINGS: dict[str, tuple[Any, Any]] = {
    "auto_approve": ("low", "medium"),
    "llm_auto_approve": ("none", "low"),
    "ask_for": ("plan", "steps"),
    "rules": ([{"deny": {"risk": "high"}}], [{"require": {"risk": "high"}}]),
    "decisions": ({"gate": True}, {"gate": False}),
    "on_failure": ({"high": "abort"}, {"high": "block"}),
    "preset": ("careful", "none"),
    "sandbox": ("read-only", "low"),
    "llm_sandbox": ("low", "off"),
}


def with_policy(**policy: Any) -> dict[str, Any]:
    """Return a plan with a question and this policy."""
    gate = {"id": "gate", "ask": {"question": "Go on?"}}
    return {**BASE, "steps": [*BASE["steps"], gate], "policy": policy}


def test_there_is_a_pair_for_every_key_of_a_policy() -> None:
    """The tables of these tests have every key of a policy and of a matcher."""
    assert set(OBJECTS["Policy"]) == set(SETTINGS)
    assert set(OBJECTS["Matcher"]) == set(MATCHERS)


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_every_key_of_a_policy_is_reported(key: str) -> None:
    """A change of one policy key is reported under its name, and not as a change of steps."""
    old, new = (with_policy(**{key: value}) for value in SETTINGS[key])
    changes = difference(old, new)
    assert {change.path[:2] for change in changes.policy} == {("policy", key)}
    assert bool(changes.laxer) == (key != "on_failure")


@pytest.mark.parametrize("key", sorted(MATCHERS))
@pytest.mark.parametrize("verb", ["deny", "require", "allow"])
def test_every_matcher_is_reported(key: str, verb: str) -> None:
    """A rule about something else is the old rule gone and a new one there."""
    old, new = (with_policy(rules=[{verb: {key: value}}]) for value in MATCHERS[key])
    changes = difference(old, new)
    assert [(change.key, change.sign) for change in changes.policy] == [
        ("policy.rules", "-"),
        ("policy.rules", "+"),
    ]
    assert changes.laxer or key in ("command", "effect", "topic")


@pytest.mark.parametrize(
    ("old", "new", "allows_more"),
    [
        ({"auto_approve": "low"}, {"auto_approve": "high"}, True),
        ({"auto_approve": "high"}, {"auto_approve": "low"}, False),
        (
            {"rules": [{"deny": {"step": "first"}}]},
            {"rules": [{"deny": {"step": ["first", "other"]}}]},
            False,
        ),
        ({"rules": [{"deny": {"step": ["first", "other"]}}]}, {"rules": [{"deny": {"step": "first"}}]}, True),
        (
            {"rules": [{"deny": {"step": "first", "ref": "main"}}]},
            {"rules": [{"deny": {"step": "first"}}]},
            False,
        ),
        (
            {"rules": [{"deny": {"step": "first"}}]},
            {"rules": [{"deny": {"step": "first", "ref": "main"}}]},
            True,
        ),
        ({"rules": [{"require": {"risk": "high"}}]}, {"rules": [{"deny": {"risk": "high"}}]}, False),
        ({"rules": [{"deny": {"risk": "high"}}]}, {"rules": [{"require": {"risk": "high"}}]}, True),
        ({"auto_approve": "low"}, {"auto_approve": "low", "rules": [{"allow": {"step": "first"}}]}, True),
        ({"auto_approve": "low"}, {"auto_approve": "low", "rules": [{"deny": {"step": "first"}}]}, False),
        ({"ask_for": "steps"}, {"ask_for": "plan"}, False),
    ],
)
def test_what_allows_more_is_called_that(
    old: dict[str, Any], new: dict[str, Any], *, allows_more: bool
) -> None:
    """Higher levels, rules that are gone, narrower or milder, and new allowances; not what is stricter."""
    assert bool(difference(with_policy(**old), with_policy(**new)).laxer) is allows_more


def test_a_policy_that_is_gone_allows_more() -> None:
    """Without a policy the committed file is taken as reviewed."""
    changes = difference(
        with_policy(auto_approve="low"), {**with_policy(), "policy": {"auto_approve": "low"}}
    )
    assert not changes
    bare = {key: value for key, value in with_policy().items() if key != "policy"}
    assert "the plan no longer has a policy" in difference(with_policy(auto_approve="low"), bare).laxer


_WORDS = st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True).map(tuple)
_MATCHES = st.builds(
    Match,
    step=_WORDS,
    effect=_WORDS,
    ref=_WORDS,
    risk=st.lists(st.sampled_from(LEVELS[1:]), max_size=2, unique=True).map(tuple),
)
_RULES = st.lists(
    st.builds(Rule, verb=st.sampled_from(["deny", "require", "allow"]), match=_MATCHES, number=st.just(1)),
    max_size=3,
).map(tuple)
_POLICIES = st.none() | st.builds(
    Policy, auto_approve=st.sampled_from(LEVELS), llm_auto_approve=st.sampled_from(LEVELS), rules=_RULES
)
_FACTS = st.builds(
    Facts,
    step=st.builds(
        Step,
        id=st.sampled_from(["a", "b", "c"]),
        action=st.just(Exec(argv=("x",))),
        kind=st.just("exec"),
        origin=st.sampled_from(["file", "expanded"]),
    ),
    risk=st.sampled_from(LEVELS[1:]),
    effects=_WORDS,
    ref=st.sampled_from(["a", "b", "c"]),
)
_STRICT = {"allow": 0, "ask": 1, "deny": 2}


@settings(max_examples=400, deadline=None)
@given(_POLICIES, _POLICIES, st.lists(_FACTS, min_size=1, max_size=12))
def test_no_policy_allows_more_unsaid(old: Policy | None, new: Policy | None, facts: list[Facts]) -> None:
    """Whenever the new policy decides milder than the old one about any step, at least one sentence says so."""
    milder = [
        fact
        for fact in facts
        if _STRICT[decide(fact, Layers(plan=new)).answer] < _STRICT[decide(fact, Layers(plan=old)).answer]
    ]
    sides = (Plan(name="p", file="p.yml", digest="", steps=(), policy=policy) for policy in (old, new))
    assert not milder or list(laxer(*sides))
