"""The tutorial and the how-tos show what really happens: every command on them is run, in a fresh folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from planrun.executors.sandbox.probe import find
from tests.docs.pages import DOCS, ROOT, text_of
from tests.docs.playing import Reader, played, steady

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden import Golden

BEGINNINGS = (DOCS / "tutorial.md", DOCS / "README.md")
"""The pages that say how to begin; all others go on where the second one ends."""


@pytest.mark.parametrize("page", played(), ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page: Path, tmp_path: Path, golden: Golden) -> None:
    """Each session is on the page word for word but for times, ids and hashes."""
    if page.stem in ("sandbox", "mcp") and not (found := find())[0]:
        pytest.skip(f"no sandbox here: {found[1]}")
    text = page.read_text("utf-8")
    with Reader(tmp_path) as reader:
        if page not in BEGINNINGS:
            reader.play(text_of("README.md"))  # how to begin
        now = reader.play(text)
    assert "internal error" not in now.text
    assert "Traceback" not in now.text
    golden(page, now.text, steady)


def test_a_page_that_lies_is_told(tmp_path: Path) -> None:
    """A word that a command does not print, or a wrong exit code, is a difference; another time is none."""
    text = "```console\n$ echo took 1.5s; (exit 3)\ntook 0.2s\nexit code 3\n```\n"
    with Reader(tmp_path) as reader:
        assert steady(reader.play(text).text) == steady(text)
        for lie in (text.replace("code 3", "code 4"), text.replace("took 0.2s", "took long")):
            assert steady(reader.play(lie).text) != steady(lie)


def test_nothing_is_added_to_what_a_page_shows(tmp_path: Path) -> None:
    """A script without `chmod`, a command before `activate` and a hidden file name fail, as for a reader."""
    page = (
        "File `run.sh`:\n\n```sh\n#!/bin/sh\necho ran\n```\n\n<!-- file: hidden -->\n```text\ntext\n```\n\n"
        "```console\n$ ./run.sh\n$ chmod +x run.sh && ./run.sh\n$ planrun --version\n$ cat hidden\n"
        "$ source .venv/bin/activate\n$ planrun --version\n$ X=1; mkdir new && cd new\n$ echo $X ${PWD##*/}\n```\n"
    )
    with Reader(tmp_path) as reader:
        text = reader.play(page).text
    denied, ran, missing, hidden, activated, version, moved, kept = re.split(
        r"^\$ .*\n", text, flags=re.MULTILINE
    )[1:]
    assert "exit code 126\n" in denied
    assert ran == "ran\n"
    assert "exit code 127\n" in missing
    assert "exit code 1\n" in hidden
    assert (activated, moved, kept) == ("", "", "1 new\n```\n")
    assert version.startswith("planrun ")


def test_the_tutorial_and_each_how_to_are_played() -> None:
    """No page of these kinds tells of a plan that nothing has run."""
    pages = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
    assert [page.name for page in pages if page not in played()] == []


def test_no_page_hides_a_file_or_a_session() -> None:
    """Marks in comments are not played: a page with such a file shows the error that it is missing."""
    hidden = re.compile(r"<!-- (?:file|session)\b")
    assert [page.name for page in sorted(DOCS.rglob("*.md")) if hidden.search(page.read_text("utf-8"))] == []


def test_the_index_names_every_page() -> None:
    """docs/README.md leads to each page below docs/, ARCHITECTURE.md to the decisions."""
    text = (DOCS / "README.md").read_text("utf-8")
    listed = set(re.findall(r"\]\(([\w/-]+\.md)\)", text))
    listed |= set(
        re.findall(r"\]\(docs/(decisions/[\w-]+\.md)\)", (ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    )
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
