"""The classifier of tasks: the tables, read as words; files that exist; counts; and always the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.llm.offline import KEYWORDS, LEVELS, classify

FILES = ("src/app.py", "src/api/users.py", "README.md", "setup.cfg", "tests/test_app.py")


def rules(text: str, files: tuple[str, ...] = FILES) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return rule, level and matched words of every reason."""
    return [(each.rule, each.level, each.matched) for each in classify(text, files).reasons]


@pytest.mark.parametrize("keyword", KEYWORDS["complex"])
def test_every_complex_keyword_makes_a_task_complex(keyword: str) -> None:
    """All 15 count, in any case and with an article in between, and the reason names the words as they stand."""
    assert len(KEYWORDS["complex"]) == 15
    for text in (f"Please {keyword} now", keyword.upper(), keyword.replace(" ", " the new ")):
        found = classify(text)
        assert found.level == "complex"
        assert any(each.rule == "keyword" and f'"{keyword}"' in each.message for each in found.reasons)


@pytest.mark.parametrize("keyword", KEYWORDS["medium"])
def test_every_medium_keyword_makes_a_task_at_least_medium(keyword: str) -> None:
    """All 9 count; `build a` holds the complex keyword `build`, too, and the higher level wins."""
    found = classify(f"{keyword} x")
    assert LEVELS.index(found.level) >= LEVELS.index("medium")
    assert ("keyword", "medium", (keyword,)) in rules(f"{keyword} x")
    assert found.level == ("complex" if keyword == "build a" else "medium")


@pytest.mark.parametrize(
    "text",
    [
        "explain src/app.py",
        "What does main do?",
        "fix the typo in README.md",
        "rebuilding the latest one",
        "",
    ],
)
def test_what_nothing_speaks_for_is_simple(text: str) -> None:
    """A single file, a question, and words that only contain a keyword are simple, and the reason says so."""
    found = classify(text, FILES)
    assert found.level == "simple"
    assert [each.rule for each in found.reasons] == ["default"]
    assert found.advice() == "not needed"


@pytest.mark.parametrize(
    "text", ["rebuild it", "a builder", "reconfigured", "prerefactor x", "build-up", "setups", "migrated"]
)
def test_a_keyword_is_a_word(text: str) -> None:
    """No keyword is found inside another word."""
    assert classify(text).level == "simple"


def test_two_files_are_medium_and_four_complex() -> None:
    """Files count when they exist, by path or by name, each once."""
    assert rules("app.py and README.md, app.py") == [("files", "medium", ("app.py", "README.md"))]
    four = "src/app.py, ./README.md, users.py and setup.cfg"
    assert rules(four) == [("files", "complex", ("src/app.py", "README.md", "users.py", "setup.cfg"))]
    assert classify(four).level == "simple", "without a repository nothing is a file"
    assert classify("in v1.2 e.g. node.js and a.b.c and x.py", FILES).level == "simple"


def test_many_words_are_more_work() -> None:
    """More than 15 words are medium, more than 30 complex."""
    assert [classify("word " * count).level for count in (15, 16, 30, 31)] == [
        "simple",
        "medium",
        "medium",
        "complex",
    ]


def test_from_the_threshold_on_planning_is_suggested() -> None:
    """Nothing is drawn by lot: the level and a threshold say whether a plan is suggested."""
    assert [classify(text).advice() for text in ("explain it", "refactor x", "migrate x")] == [
        "not needed",
        "optional",
        "suggested",
    ]
    assert classify("refactor x").advice("medium") == "suggested"


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5))
def test_the_same_text_always_gets_the_same_answer(text: str, files: list[str]) -> None:
    """Any text has a level with at least one reason, and asking again changes nothing."""
    found = classify(text, files)
    assert found == classify(text, files)
    assert found.reasons
    assert found.level == max((each.level for each in found.reasons), key=LEVELS.index)
