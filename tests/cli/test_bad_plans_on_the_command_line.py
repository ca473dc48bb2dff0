"""Bad and hostile plan files through the command line: exit 2, the place of every problem, and nothing else happens."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import pytest

from proofs.hostile import MOST_MEMORY, little, run, special_files
from tests.plan.corpus import bad_plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Said

BAD = bad_plans()
HOSTILE_FILES = ("billion-laughs", "nested-30000-flow", "latin-1")
"""One bomb, one depth, one encoding; proofs/test_hostile.py takes more."""


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Take up collecting garbage again, which `execute` stops for its process."""
    yield
    gc.enable()


def test_a_bad_plan_is_exit_2_with_every_place(say: Callable[..., Said], tmp_path: Path) -> None:
    """`validate` and `execute` name file, line, column and code of every problem, run nothing and record nothing."""
    for bad in BAD:
        places = [f"{bad.path}:{each.line}:{each.col}: error[{each.code}]: " for each in bad.expected]
        checked = say("validate", bad.path)
        first = checked.out.partition(": error[")[2][:4]
        assert checked.err == f"for details: planrun explain {first}\n", bad.name
        assert checked.code == 2, bad.name
        refused = say("execute", bad.path, "--no-cache")
        assert (refused.code, refused.out) == (2, ""), bad.name
        for text in (checked.out, refused.err):
            assert [place for place in places if place not in text] == [], bad.name
            assert "Traceback" not in text, bad.name
            assert text.replace("\n", "").isprintable(), bad.name
        assert list(tmp_path.iterdir()) == [], bad.name


@pytest.mark.parametrize("words", [["show"], ["explain"]])
def test_verbs_that_look_refuse_the_same_way(say: Callable[..., Said], words: list[str]) -> None:
    """`show` and `explain` of a bad plan report the same as `execute`."""
    bad = BAD[0]
    said = say(words[0], bad.path, *(["a"] if words == ["explain"] else []))
    assert (said.code, said.out, said.err) == (2, "", say("execute", bad.path).err)


def test_the_whole_collection_in_one_call(say: Callable[..., Said]) -> None:
    """All bad plans in one call are reported in one document, each file with its own problems."""
    said = say("validate", *[bad.path for bad in BAD], "--json")
    assert (said.code, said.err) == (2, "")
    files = {problem["file"] for problem in json.loads(said.out)["problems"]}
    assert files == {str(bad.path) for bad in BAD}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_hostile_file_takes_little(tmp_path: Path, name: str) -> None:
    """A hostile file ends the whole command with exit 2, a place, a short text, and at most 150 MiB of memory."""
    assert little(tmp_path, name) == []


def test_a_path_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """Devices, pipes, sockets, folders and broken links are exit 2 with a place; nothing is read from them."""
    found = {kind: path for kind, (path, _) in special_files(tmp_path).items() if "\0" not in path and path}
    ended = run(tmp_path, "validate", *found.values())
    assert ended.code == 2
    assert ended.text.count(":1:1: error[E00") == len(found)
    assert ended.memory <= MOST_MEMORY
