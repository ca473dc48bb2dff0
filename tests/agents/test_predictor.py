"""Which file was meant: the nearest of those that git lists, by exact rules."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.agents import predictor
from planrun.agents.predictor import certain, files_of, predicted
from planrun.plan.problems import distance

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    "README.md",
    "docs/index.md",
    "src/app.py",
    "src/parser.py",
    "src/core/parser.py",
    "src/core/tokens.py",
    "tests/test_app.py",
    "web/App.tsx",
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("app.py", [("src/app.py", "folder")]),
        ("lib/tokens.py", [("src/core/tokens.py", "folder")]),
        ("parser.py", [("src/parser.py", "folder"), ("src/core/parser.py", "folder")]),
        ("src/prser.py", [("src/parser.py", "slip"), ("src/core/parser.py", "slip")]),
        ("src/aap.py", [("src/app.py", "slip")]),
        ("readme.md", [("README.md", "case")]),
        ("docs/index.mdx", [("docs/index.md", "slip")]),
        ("docs/index.html", [("docs/index.md", "ending")]),
        ("src/other.py", []),
        ("src/app.py", []),
        ("", []),
        (".", []),
        ("x" * 600, []),
    ],
)
def test_the_nearest_files_come_first(path: str, found: list[tuple[str, str]]) -> None:
    """The same name in another folder, then another case, then a slip, then another ending; nothing far away."""
    assert [(each.path, each.why) for each in predicted(path, FILES)] == found


def test_a_path_with_the_folder_of_the_workspace_counts_from_there() -> None:
    """Programs print whole paths."""
    [first, *_] = predicted("/home/me/work/src/prser.py", FILES, "/home/me/work/")
    assert (first.path, first.edits) == ("src/parser.py", 1)


def test_at_most_three_are_named() -> None:
    """In an order that does not depend on that of the files."""
    files = [f"{letter}/setup.cfg" for letter in "dcba"]
    assert [each.path for each in predicted("setup.cfg", files)] == [
        "a/setup.cfg",
        "b/setup.cfg",
        "c/setup.cfg",
    ]
    assert predicted("setup.cfg", files) == predicted("setup.cfg", files[::-1])


def test_only_the_single_file_of_a_name_is_certain() -> None:
    """A slip is never certain, and of two files of the same name neither is."""
    assert certain(predicted("app.py", FILES)) == "src/app.py"
    assert certain(predicted("parser.py", FILES)) == ""
    assert certain(predicted("src/prser.py", FILES)) == ""
    assert certain(()) == ""


def test_a_second_file_of_the_same_name_is_seen_in_the_largest_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the first one would count as certain; names that are only alike are not looked at beyond the limit."""
    monkeypatch.setattr(predictor, "MAX_FILES", 2)
    files = ("a/x.py", "b/app.py", "c/app.py", "d/aap.py")
    assert [each.path for each in predicted("app.py", files)] == ["b/app.py", "c/app.py"]
    assert certain(predicted("app.py", files)) == ""


@pytest.mark.parametrize(
    ("one", "other", "limit", "number"),
    [
        ("", "", 3, 0),
        ("abc", "abc", 3, 0),
        ("abc", "abd", 3, 1),
        ("abc", "acb", 3, 1),
        ("abc", "ab", 3, 1),
        ("abc", "", 3, 3),
        ("abc", "", 2, 3),
        ("kitten", "sitting", 3, 3),
        ("kitten", "sitting", 2, 3),
        ("parser", "prasre", 5, 2),
    ],
)
def test_edits_are_counted_up_to_a_limit(one: str, other: str, limit: int, number: int) -> None:
    """Adding, leaving out, changing, and swapping neighbours count one each."""
    assert distance(one, other, limit + 1) == number


WORDS = st.text("abcd", max_size=8)


def naive(one: str, other: str) -> int:
    """Return the same by the definition, with the whole table."""
    table = [
        [max(row, column) if not row or not column else 0 for column in range(len(other) + 1)]
        for row in range(len(one) + 1)
    ]
    for row in range(1, len(one) + 1):
        for column in range(1, len(other) + 1):
            same = one[row - 1] == other[column - 1]
            cost = min(
                table[row - 1][column] + 1,
                table[row][column - 1] + 1,
                table[row - 1][column - 1] + (not same),
            )
            if (
                row > 1
                and column > 1
                and one[row - 1] == other[column - 2]
                and one[row - 2] == other[column - 1]
            ):
                cost = min(cost, table[row - 2][column - 2] + 1)
            table[row][column] = cost
    return table[-1][-1]


@given(WORDS, WORDS, st.integers(0, 8))
def test_edits_are_those_of_the_definition(one: str, other: str, limit: int) -> None:
    """For all texts and limits, and in both directions."""
    assert (
        distance(one, other, limit + 1)
        == min(naive(one, other), limit + 1)
        == distance(other, one, limit + 1)
    )


def test_the_files_are_those_that_git_lists(tmp_path: Path) -> None:
    """Committed or not, without what is ignored; without a repository there are none."""
    assert files_of(str(tmp_path)) == []
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "src").mkdir()
    for name, text in (("src/a.py", "a"), ("new.txt", ""), (".gitignore", "*.log\n"), ("x.log", "")):
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "add", "src"], cwd=tmp_path, check=True)
    assert sorted(files_of(str(tmp_path))) == [".gitignore", "new.txt", "src/a.py"]
