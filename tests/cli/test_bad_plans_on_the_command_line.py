"""Bad and hostile plan files through the command line: exit 2, the place of every problem, and nothing else happens."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.plan.corpus import BadPlan, bad_plans
from tests.plan.hostile import HOSTILE, special_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Said

BAD = bad_plans()
# The heaviest of each sort as measured: bombs, depth, size, encodings, binaries.
HEAVIEST = (
    "billion-laughs", "quadratic-aliases", "merge-chain", "aliases-of-text", "nested-30000-flow",
    "nested-30000-block", "nested-4-million", "short-steps", "single-pairs", "keys", "equal-keys",
    "anchors", "long-quoted", "long-root-text", "too-large-by-one", "utf-16-le", "latin-1",
    "escape-character", "nul", "gzip", "empty",
)  # fmt: skip
MOST_MEMORY = 150
"""MiB of resident memory, for any plan file."""


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Take up collecting garbage again, which `execute` stops for its process."""
    yield
    gc.enable()


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_plan_is_exit_2_with_every_place(
    say: Callable[..., Said], tmp_path: Path, bad: BadPlan
) -> None:
    """`validate` and `execute` name file, line, column and code of every problem, run nothing and record nothing."""
    told = [f"{bad.path}:{each.line}:{each.col}: error[{each.code}]: " for each in bad.expected]
    checked = say("validate", bad.path)
    assert (checked.code, checked.err) == (2, "")
    refused = say("execute", bad.path, "--no-cache")
    assert (refused.code, refused.out) == (2, "")
    for text in (checked.out, refused.err):
        assert [place for place in told if place not in text] == []
        assert "Traceback" not in text
        assert text.replace("\n", "").isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["show"], ["explain"]])
def test_verbs_that_look_refuse_the_same_way(say: Callable[..., Said], words: list[str]) -> None:
    """`show` and `explain` of a bad plan say what `execute` says."""
    bad = BAD[0]
    said = say(words[0], bad.path, *(["a"] if words == ["explain"] else []))
    assert (said.code, said.out, said.err) == (2, "", say("execute", bad.path).err)


def test_the_whole_collection_in_one_call(say: Callable[..., Said]) -> None:
    """All bad plans in one call are told in one document, each file with its own problems."""
    said = say("validate", *[bad.path for bad in BAD], "--json")
    assert (said.code, said.err) == (2, "")
    told = {problem["file"] for problem in json.loads(said.out)["problems"]}
    assert told == {str(bad.path) for bad in BAD}


class Ended(NamedTuple):
    """How a process ended, what it printed and how much memory it took at most (MiB)."""

    code: int
    text: str
    memory: float


# A process between this one and planrun: a child begins with the size of its parent, and ours is large.
BETWEEN = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
if sys.platform == "linux":
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
pid = os.fork()
if not pid:
    os.dup2(2, 1)
    os.execv(sys.executable, [sys.executable, "-m", "planrun", *sys.argv[1:]])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def run(folder: Path, *words: str) -> Ended:
    """Run planrun in a process of its own, with the kernel's limits as a net under it: 10 s of processor, 1 GiB."""
    done = subprocess.run(
        [sys.executable, "-c", BETWEEN, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    code, memory = map(int, done.stdout.split())
    return Ended(code, done.stderr, memory * (1 if sys.platform == "darwin" else 1024) / 2**20)


@pytest.mark.parametrize("name", HEAVIEST)
def test_a_hostile_file_takes_little(tmp_path: Path, name: str) -> None:
    """A hostile file ends the whole command with exit 2, a place, a short text, and at most 150 MiB of memory."""
    (tmp_path / "plan.yml").write_bytes(HOSTILE[name].data)
    ended = run(tmp_path, "execute", "plan.yml")
    assert ended.code == 2, ended.text[:400]
    assert re.match(r"plan\.yml:\d+:\d+: error\[E\d{3}\]: ", ended.text)
    assert ended.text.replace("\n", "").isprintable()
    assert len(ended.text) < 20_000
    assert "Traceback" not in ended.text
    assert ended.memory <= MOST_MEMORY
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yml"]


def test_a_path_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """Devices, pipes, sockets, folders and broken links are exit 2 with a place; nothing is read from them."""
    found = {kind: path for kind, (path, _) in special_files(tmp_path).items() if "\0" not in path and path}
    ended = run(tmp_path, "validate", *found.values())
    assert ended.code == 2
    assert ended.text.count(":1:1: error[E00") == len(found)
    assert ended.memory <= MOST_MEMORY
