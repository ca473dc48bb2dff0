"""Delegation: the six rules, exact scores, and what holds a delegation back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.agents.delegation import (
    RULES,
    Decision,
    DelegationBook,
    Situation,
    decide,
    fires,
    score,
    turns_at,
)
from planrun.agents.metrics import Metrics, PathStats, path_key
from planrun.model.collaboration import Delegation
from tests.agents.moments import Moments

TYPES = ("explore", "bash", "general", "plan", "claude-code-guide", "reviewer")


class Book(DelegationBook):
    """A book with its clock, its journal and its metrics."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Moments()
        self.journal: list[dict[str, Any]] = []
        self.metrics = Metrics(0.1)
        super().__init__(
            "fix", Delegation(**{"enabled": True, **settings}), self.clock.stamp, self.journal.append
        )

    def decide(self, **situation: Any) -> Decision:
        """Decide about a situation."""
        return decide(Situation(**situation), self.metrics, self)

    def delegate(self, *, ok: bool = True, **situation: Any) -> str:
        """Decide, begin and end a delegation; returns its target."""
        chosen = self.decide(**situation).chosen
        assert chosen is not None
        number = self.begin(chosen, "fix", situation.get("depth", 0) + 1)
        self.end(number, ok=ok, seconds=2.0, metrics=self.metrics)
        return chosen.target


MISSING: dict[str, Any] = {"tool": "read", "is_error": True, "category": "file_not_found"}
CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "explore-needs-bash",
        {"agent": "explore", "tool": "bash", "unavailable": True, "is_error": True},
        "bash",
    ),
    (
        "compilation-error",
        {"agent": "bash", "tool": "bash", "is_error": True, "category": "compilation_error"},
        "explore",
    ),
    ("general-stuck", {"agent": "general", "stuck_turns": 5}, "plan"),
    ("nothing-found", {"agent": "plan", "tool": "glob", "found": 0}, "explore"),
    ("nothing-found", {"agent": "plan", "tool": "grep", "found": 0}, "explore"),
    *[("file-not-found", {"agent": name, **MISSING}, "explore") for name in TYPES if name != "explore"],
    *[
        ("specialised-stuck", {"agent": name, "stuck_turns": 7}, "general")
        for name in TYPES
        if name != "general"
    ],
]


@pytest.mark.parametrize(("rule", "situation", "target"), CASES)
def test_each_rule_fires_in_its_situation(rule: str, situation: dict[str, Any], target: str) -> None:
    """The rule, its target and its reason are in the decision."""
    chosen = Book().decide(**situation).chosen
    assert chosen is not None
    assert (chosen.rule, chosen.source, chosen.target) == (rule, situation["agent"], target)
    assert chosen.reason


@pytest.mark.parametrize(
    "situation",
    [
        {"agent": "explore", "tool": "write", "unavailable": True},
        {"agent": "explore", "tool": "bash"},
        {"agent": "bash", "tool": "bash", "is_error": True, "category": "test_failure"},
        {"agent": "bash", "tool": "bash", "category": "compilation_error"},  # no error
        {"agent": "general", "stuck_turns": 4},
        {"agent": "bash", "stuck_turns": 6},
        {"agent": "plan", "tool": "glob", "found": 1},
        {"agent": "plan", "tool": "read", "found": 0},
        {"agent": "plan", "tool": "glob", "is_error": True, "found": None},  # an error is no empty result
        {"agent": "plan", "tool": "glob", "is_error": True, "found": 0},
        {"agent": "explore", "tool": "glob", "found": 0},
        {"agent": "explore", **MISSING},  # an agent does not delegate to its own type
    ],
)
def test_no_rule_fires_in_other_situations(situation: dict[str, Any]) -> None:
    """Nothing is delegated without a reason that stands in the table."""
    assert Book().decide(**situation) == Decision()


def test_the_rules_are_data_with_ids() -> None:
    """Six of them, each id once."""
    assert [rule.id for rule in RULES] == [
        "explore-needs-bash",
        "compilation-error",
        "general-stuck",
        "nothing-found",
        "file-not-found",
        "specialised-stuck",
    ]
    assert not any(fires(rule, Situation(agent="nobody")) for rule in RULES)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((0.5, 0.5, 1.0, 0.0, 0.0), 0.5),
        ((1.0, 0.5, 1.0, 0.0, 0.0), 0.7),
        ((0.5, 1.0, 1.0, 0.0, 0.0), 0.8),
        ((1.0, 1.0, 2.0, 1.0, 0.0), 2.1),
        ((0.0, 0.0, 0.5, -1.0, 0.0), -0.1),
        ((0.75, 0.25, 1.2, 0.5, 0.0), 0.59),
        ((0.75, 0.25, 1.2, 0.5, 0.3), 0.413),
    ],
)
def test_a_score_is_made_of_rates_weight_and_trend(parts: tuple[float, ...], expected: float) -> None:
    """(base x 0.4 + history x 0.6) x weight + trend x 0.1, less what the load takes."""
    names = ("base", "history", "weight", "trend", "load")
    assert score(dict(zip(names, parts, strict=True))) == expected


def test_the_parts_of_a_score_come_from_the_metrics() -> None:
    """Base: of the type of agent; history, weight and trend: of the path."""
    book = Book()
    book.metrics.strategies["explore"] = (3, 1)
    path = path_key("bash", "explore", "compilation_error")
    book.metrics.paths[path] = PathStats(
        success=1, failure=3, weight=1.2, recent=(False, False, True, True, True)
    )
    [candidate] = book.decide(agent="bash", is_error=True, category="compilation_error").considered
    assert candidate.score_parts == {"base": 0.75, "history": 0.25, "weight": 1.2, "trend": 1.0, "load": 0.0}
    assert candidate.score == 0.64


def test_a_load_counts_only_when_it_is_asked_for() -> None:
    """`load_penalty: 0.3` takes 0.3 x load / 5 of a score away."""
    situation = {"agent": "general", "stuck_turns": 5, "running": 3}
    for penalty, expected in ((0.0, 0.5), (0.3, 0.41)):
        chosen = Book(load_penalty=penalty).decide(**situation).chosen
        assert chosen is not None
        assert chosen.score == expected


def test_the_highest_score_wins_and_the_order_of_the_table_among_equals() -> None:
    """Two rules fire for a plan agent that is stuck and misses a file."""
    book = Book()
    situation = {"agent": "plan", "stuck_turns": 7, **MISSING}
    first = book.decide(**situation)
    assert [each.rule for each in first.considered] == ["file-not-found", "specialised-stuck"]
    book.metrics.strategies["general"] = (9, 0)
    second = book.decide(**situation)
    assert second.chosen is not None
    assert (second.chosen.rule, second.chosen.score) == ("specialised-stuck", 0.7)


def test_the_query_names_reason_tool_and_task() -> None:
    """What the other agent is asked, without the output of the tool."""
    query = Book().decide(agent="bash", task="Fix the build.", detail="Paths: src/app.py", **MISSING).query
    assert query == (
        "A bash agent needs help: a file was not found: the right path is needed.\nTool: read\n"
        "Its task: Fix the build.\nPaths: src/app.py"
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"depth": 5}, "depth 5 is reached"),
        ({"running": 5}, "5 agents are at work already"),
        ({"allowed": frozenset(["plan"])}, "the step does not allow explore agents"),
    ],
)
def test_what_holds_a_delegation_back_is_named(change: dict[str, Any], why: str) -> None:
    """The rule is in the decision with the reason, and nothing is chosen."""
    decision = Book().decide(**{"agent": "bash", **MISSING, **change})
    assert decision.chosen is None
    assert [each.refused for each in decision.considered] == [why]


def test_another_rule_is_taken_when_the_best_one_is_held_back() -> None:
    """A refusal is about one rule."""
    chosen = Book().decide(agent="plan", stuck_turns=7, allowed=frozenset(["general"]), **MISSING).chosen
    assert chosen is not None
    assert chosen.target == "general"


def test_delegation_can_be_switched_off() -> None:
    """`enabled: false`: no rule is looked at."""
    assert Book(enabled=False).decide(agent="general", stuck_turns=9) == Decision()


def test_a_rule_that_failed_is_suppressed_for_a_time() -> None:
    """By its id: another rule with the same target goes on."""
    book = Book(suppress_for=600.0)
    assert book.delegate(agent="bash", ok=False, **MISSING) == "explore"
    held = book.decide(agent="bash", **MISSING)
    assert held.chosen is None
    assert held.considered[0].refused == "the rule is suppressed until 2026-01-31T09:40:00.000Z"
    other = book.decide(agent="bash", is_error=True, category="compilation_error").chosen
    assert other is not None
    assert other.target == "explore"
    book.clock.pass_by(599.999)
    assert book.decide(agent="bash", **MISSING).chosen is None
    book.clock.pass_by(0.001)
    assert book.decide(agent="bash", **MISSING).chosen is not None


def test_no_rule_is_suppressed_after_a_success_or_for_no_time() -> None:
    """`suppress_for: 0s` switches it off."""
    good, off = Book(), Book(suppress_for=0.0)
    good.delegate(agent="bash", **MISSING)
    off.delegate(agent="bash", ok=False, **MISSING)
    assert good.decide(agent="bash", **MISSING).chosen is not None
    assert off.decide(agent="bash", **MISSING).chosen is not None


def test_the_third_delegation_between_the_same_types_is_a_loop() -> None:
    """Whatever rule it is by; other types are not concerned."""
    book = Book()
    book.delegate(agent="bash", **MISSING)
    book.delegate(agent="bash", is_error=True, category="compilation_error")
    decision = book.decide(agent="bash", **MISSING)
    assert decision.chosen is None
    assert decision.considered[0].refused == "bash has delegated to explore 2 times: more would be a loop"
    assert book.delegate(agent="plan", **MISSING) == "explore"


def test_results_move_weights_and_rates() -> None:
    """A success raises the score of its path, a failure lowers it."""
    book = Book(suppress_for=0.0)
    scores = []
    for ok in (True, False):
        chosen = book.decide(agent="bash", **MISSING).chosen
        assert chosen is not None
        scores.append(chosen.score)
        book.delegate(agent="bash", ok=ok, **MISSING)
    path = path_key("bash", "explore", "file_not_found")
    assert scores == [0.5, 1.1]
    assert (book.metrics.of(path).success, book.metrics.of(path).failure) == (1, 1)
    assert book.metrics.of(path).weight == 1.04


def test_a_delegation_is_one_row_of_plain_data() -> None:
    """With everything that ledger.json shows of it."""
    book = Book()
    book.delegate(agent="bash", ok=False, **MISSING)
    [row] = book.rows()
    assert (row["id"], row["by"], row["rule"], row["from"], row["to"]) == (
        "fix.d1",
        "fix",
        "file-not-found",
        "bash",
        "explore",
    )
    assert (row["score"], row["depth"], row["result"], row["seconds"]) == (0.5, 1, "failed", 2.0)
    assert row["score_parts"] == {"base": 0.5, "history": 0.5, "weight": 1.0, "trend": 0.0, "load": 0.0}
    assert row["suppressed_until"] == "2026-01-31T09:40:00.000Z"


def test_a_ledger_gives_the_same_book_back() -> None:
    """Counts, suppressions, metrics, and the delegation whose end is missing."""
    book = Book()
    book.delegate(agent="bash", **MISSING)
    book.delegate(agent="plan", ok=False, tool="glob", found=0)
    chosen = book.decide(agent="general", stuck_turns=5).chosen
    assert chosen is not None
    book.begin(chosen, "fix", 1)
    again = Book()
    other = {**book.journal[0], "id": "other.d1"}
    again.restore([other, *book.journal], again.metrics)
    assert again.journal == []
    assert again.rows() == book.rows()
    assert again.lost() == ["fix.d3"]
    assert again.metrics.as_data() == book.metrics.as_data()
    assert again.decide(agent="plan", tool="glob", found=0) == book.decide(agent="plan", tool="glob", found=0)


@pytest.mark.parametrize(("depth", "turns"), [(0, 20), (1, 17), (4, 8), (5, 5), (50, 5)])
def test_turns_grow_fewer_with_the_depth(depth: int, turns: int) -> None:
    """Base - depth x 3, and never fewer than five."""
    assert turns_at(20, depth, Delegation()) == turns


@given(st.integers(1, 200), st.integers(0, 20), st.integers(0, 50))
def test_turns_are_never_more_than_the_base_or_fewer_than_five(base: int, depth: int, penalty: int) -> None:
    """For every setting."""
    turns = turns_at(base, depth, Delegation(depth_penalty=penalty))
    assert 5 <= turns <= max(5, base)
