"""`planrun prune`: delete finished runs that are no longer needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.records.lock import WorkspaceLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

GOOD = "version: 1\nsteps:\n  - {id: a, run: 'true'}\n"
ASKS = "version: 1\nsteps:\n  - {id: sure, ask: {question: 'Sure?'}}\n"
DIES = "version: 1\nsteps:\n  - {id: a, run: kill -KILL $PPID; sleep 0.2}\n"


def runs(folder: Path) -> list[str]:
    """Return the runs that there are, newest first."""
    return sorted(os.listdir(folder / ".planrun" / "runs"), reverse=True)


@pytest.mark.shows("X-09")
def test_only_finished_runs_are_deleted(say: Callable[..., Said], tmp_path: Path) -> None:
    """Of five runs one is kept, one waits, one was killed, one failed for good, one completed: two of them go."""
    for text in (DIES, ASKS, "version: 1\nsteps:\n  - {id: a, run: exit 1}\n", GOOD, GOOD):
        (tmp_path / "plan.yml").write_text(text)
        words = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--quiet"]
        subprocess.run(words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    newest, good, failed, waits, killed = runs(tmp_path)
    tried = json.loads(say("prune", "--keep", "1", "--dry-run", "--json").out)
    assert tried["removed"] == [good, failed]
    assert len(runs(tmp_path)) == 5
    said = say("prune", "--keep", "1")
    assert (said.code, said.err) == (0, "")
    assert runs(tmp_path) == [newest, waits, killed]
    assert f"{waits} kept: it did not end; to continue: planrun resume {waits}\n" in said.out
    assert f"{killed} kept: it did not end; to continue: planrun resume {killed}\n" in said.out
    assert "2 runs deleted, " in said.out
    assert [name for name in os.listdir(tmp_path / ".planrun") if name.startswith(".pruned")] == []
    assert say("decide", waits, "sure=yes").code == 0
    assert say("resume", waits).code == 0
    assert say("verify", waits).code == 0


def test_runs_that_wait_take_no_place_of_finished_ones(say: Callable[..., Said], tmp_path: Path) -> None:
    """The only completed run stays, however many newer ones wait."""
    for text in (GOOD, GOOD, ASKS, ASKS, ASKS):
        (tmp_path / "plan.yml").write_text(text)
        say("execute", "plan.yml")
    *waiting, second, first = runs(tmp_path)
    assert json.loads(say("prune", "--keep", "1", "--json").out)["removed"] == [first]
    assert runs(tmp_path) == [*waiting, second]
    assert json.loads(say("prune", "--keep", "0", "--json").out)["kept"] == 0
    assert runs(tmp_path) == waiting


def test_age_queue_and_lock_are_heeded(say: Callable[..., Said], tmp_path: Path) -> None:
    """A run that is too young or named by the queue stays; while a run holds the folder nothing is looked at."""
    (tmp_path / "plan.yml").write_text(GOOD)
    for _ in range(2):
        assert say("execute", "plan.yml").code == 0
    _newest, old = runs(tmp_path)
    assert f"{old} kept: it is too recent\n" in say("prune", "--keep", "1", "--older-than", "1h").out
    assert say("prune", "--keep", "1", "--older-than", "soon").code == 2
    (tmp_path / ".planrun" / "queue").mkdir()
    (tmp_path / ".planrun" / "queue" / "queue.jsonl").write_text(f'{{"run":"{old}"}}\n')
    assert f"{old} kept: it is in the queue\n" in say("prune", "--keep", "1").out
    (tmp_path / ".planrun" / "queue" / "queue.jsonl").unlink()
    lock = WorkspaceLock(str(tmp_path / ".planrun"))
    lock.acquire("another run")
    said = say("prune", "--keep", "0")
    lock.release()
    assert (said.code, len(runs(tmp_path))) == (2, 2)
    assert say("prune", "--keep", "0").code == 0
    assert runs(tmp_path) == []
    assert "no runs in this folder" in say("runs").out


def test_leftovers_of_a_killed_call_are_deleted(say: Callable[..., Said], tmp_path: Path) -> None:
    """A run that was half removed is no run any more, and the next call takes the rest away."""
    (tmp_path / "plan.yml").write_text(GOOD)
    for _ in range(2):
        assert say("execute", "plan.yml").code == 0
    _newest, old = runs(tmp_path)
    left = tmp_path / ".planrun" / f".pruned-{old}"
    (tmp_path / ".planrun" / "runs" / old).rename(left)
    assert old not in say("runs").out
    assert say("prune", "--keep", "0").code == 0
    assert not left.exists()
