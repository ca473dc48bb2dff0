"""`planrun explain PLAN STEP` on the cache: hit or miss, the key, and the first part that differs."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import Said
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("project")

PLAN = """\
version: 1
params: {word: {type: string, required: true}}
steps:
  - id: count
    run: |
      wc -w < in.txt > count.txt
      echo "count=$(cat count.txt)" >> "$PLANRUN_OUTPUT"
    inputs: [in.txt]
    produces: [count.txt]
    outputs: {count: integer}
    cache: true
  - {id: note, run: "true", depends_on: [count]}
  - id: page
    depends_on: [note, count]
    run: cat count.txt other.txt
    inputs: [other.txt]
    env: {WORD: "${{ params.word }}"}
    cache: true
  - id: far
    depends_on: [note]
    run: echo "${{ steps.count.outputs.count }}"
    inputs: [other.txt]
    cache: true
"""


def say(*words: str) -> Said:
    """Start planrun in the current folder."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan with two files that its steps read, and a store of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "in.txt").write_text("a b c\n")
    (tmp_path / "other.txt").write_text("x\n")
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))


def cache(step: str, *words: str, word: str = "one") -> dict[str, Any]:
    """Return what `explain` reports of the cache of a step."""
    said = say("explain", "plan.yml", step, "--param", f"word={word}", *words, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)["cache"]
    return found


def test_hit_and_miss(tmp_path: Path) -> None:
    """Before any run, after one, and after a change of an input, its report matches `execute`."""
    assert cache("count") | {"key": ""} == {
        "hit": False,
        "key": "",
        "run": None,
        "why": "no earlier result",
        "depends_on": None,
    }
    assert not (tmp_path / "cache" / "store").exists()  # it changes nothing
    assert say("execute", "plan.yml", "--param", "word=one").code == 0
    report = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text())
    keys = {step["id"]: step["cache"]["key"] for step in report["steps"] if step.get("cache")}
    for step in ("count", "page", "far"):
        found = cache(step)
        assert (found["hit"], found["key"], found["why"]) == (True, keys[step], None)
    (tmp_path / "other.txt").write_text("y\n")
    text = say("explain", "plan.yml", "page", "--param", "word=one").out
    assert "\nCache: miss, input other.txt changed\n  key: " in text
    assert say("explain", "plan.yml", "count", "--param", "word=one").out.count(
        "\nCache: hit, the result of run "
    )
    missed = cache("page")["key"]
    said = say("execute", "plan.yml", "--param", "word=one")
    assert "ran: input other.txt changed" in said.err + said.out
    assert (cache("page")["hit"], cache("page")["key"]) == (True, missed)


def test_results_of_other_steps_that_are_not_known(tmp_path: Path) -> None:
    """A key with parts of a step that would run is not known; a part of its own that differs is named."""
    assert say("execute", "plan.yml", "--param", "word=one").code == 0
    (tmp_path / "in.txt").write_text("a b\n")
    found = cache("page")
    assert (found["hit"], found["key"], found["depends_on"], found["why"]) == (None, None, "count", None)
    found = cache("page", word="two")
    assert (found["depends_on"], found["why"]) == ("count", "env WORD changed")
    assert "steps.count.outputs.count has no value" in cache("far")["why"]
    text = say("explain", "plan.yml", "page", "--param", "word=one").out
    assert "its key depends on the results of count, which are not known yet" in text


def test_parameters_files_and_shared_stores(tmp_path: Path) -> None:
    """A parameter without a value, a result whose files are gone, and a store that others use."""
    assert "the parameter word has no value" in say("explain", "plan.yml", "page").out
    shared = ("--cache-store", "shared")
    assert say("execute", "plan.yml", "--param", "word=one", *shared).code == 0
    (tmp_path / "count.txt").unlink()
    for blob in (tmp_path / "cache" / "store" / "blobs").glob("*/*"):
        blob.unlink()
    assert cache("count")["why"] == "its files are not in the store any more"
    assert cache("count", *shared)["hit"] is True
    assert not (tmp_path / "count.txt").exists()


def test_steps_without_cache() -> None:
    """They have nothing to report."""
    assert cache("note") is None
    assert "\nCache" not in say("explain", "plan.yml", "note", "--param", "word=one").out
