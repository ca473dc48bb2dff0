"""Plans without a model: which words choose which pattern, and what stands in its steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.llm.drafts import ANALYSIS, EDITING, READING, TESTS, DraftStep, tokens_of
from planrun.llm.offline import draft_of, pattern_of, searched
from planrun.llm.plantext import plan_text, step_text
from planrun.llm.repository import Repository
from planrun.plan.load import load_bytes

PROJECT = Repository(paths=("pyproject.toml",), texts={"pyproject.toml": "pytest"}, git=True)


@pytest.mark.parametrize(
    ("goal", "steps", "word"),
    [
        ("Implement a cache", "explore plan execute verify", "Implement"),
        ("create the page", "explore plan execute verify", "create"),
        ("build it", "explore plan execute verify", "build"),
        ("fix the login", "explore fix test", "fix"),
        ("There is a bug in x", "explore fix test", "bug"),
        ("debugging of y", "explore fix test", "debugging"),
        ("refactor the reader", "explore plan execute test", "refactor"),
        ("optimise queries", "explore plan execute test", "optimise"),
        ("write tests for x", "explore write-tests test", "tests"),
        ("test the build", "explore write-tests test", "test"),
        ("fix the test of the build", "explore fix test", "fix"),
        ("the latest rebuild, prefix and debugger", "analyze execute", ""),
        ("", "analyze execute", ""),
        ("contest protest", "analyze execute", ""),
    ],
)
def test_the_first_word_of_a_pattern_chooses_it(goal: str, steps: str, word: str) -> None:
    """Words count as words, whatever their case; the one that stands first decides."""
    pattern, found = pattern_of(goal)
    assert (" ".join(pattern.steps), found) == (steps, word)
    draft = draft_of(goal, PROJECT)
    assert [step.id for step in draft.steps] == steps.split()
    assert [step.depends_on for step in draft.steps] == [(), *[(step.id,) for step in draft.steps[:-1]]]


@given(st.text(max_size=200))
def test_any_goal_gives_a_plan_that_loads(goal: str) -> None:
    """The text of the plan is valid whatever the goal says, and looking around only reads."""
    draft = draft_of(goal, PROJECT)
    text = plan_text([goal], {"version": 1}, [step_text(step, 2, {}) for step in draft.steps])
    if "\0" in goal or any("\ud800" <= char <= "\udfff" for char in goal):
        return
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    assert plan.steps[0].risk == "read-only", plan.steps[0].risk_reason
    assert plan.steps[0].kind == "run"


def test_only_plain_words_are_searched_for() -> None:
    """No word of a goal means anything to a shell; common words and those of the patterns are left out."""
    assert searched("fix $(rm -rf /) `x` 'parser'; the reader-part of ledger_file") == [
        "ledger_file",
        "parser",
        "reader",
        "part",
    ]


@pytest.mark.parametrize(
    ("step", "title", "tokens"),
    [
        ("a", "Analyse the logs", ANALYSIS),
        ("b", "Read the configuration", READING),
        ("c", "Change the parser", EDITING),
        ("d", "Verify it", TESTS),
        ("write-tests", "Write the tests", EDITING),
        ("plan", "Plan the change", ANALYSIS),
        ("e", "Something", ANALYSIS),
    ],
)
def test_what_nobody_estimated_gets_the_estimate_of_its_kind(step: str, title: str, tokens: int) -> None:
    """Analysis 2000, reading 3000, editing 4000, tests 1000; the author's own figure wins; commands need no model."""
    found = DraftStep(id=step, title=title)
    assert tokens_of(found) == tokens
    assert tokens_of(found.but(estimated_tokens=77)) == 77
    assert tokens_of(found.but(run="make")) == 0
    assert (ANALYSIS, READING, EDITING, TESTS) == (2000, 3000, 4000, 1000)


def test_without_a_test_command_the_plan_says_so() -> None:
    """The step that tests is abstract then, and its comment tells what to do."""
    step = draft_of("fix it", Repository()).steps[-1]
    assert step.run == ""
    assert "no command that tests" in step.review
