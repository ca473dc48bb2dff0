"""The file of a queue: what is added stays, torn ends are cut, changed lines are found, clearing forgets."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidInput
from planrun.model.queue import EntryAdded, EntryEnded, QueuePaused
from planrun.records.queuefile import QueueFile, exists

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-01-01T00:00:00.000Z"
MANY = """
import sys
from planrun.model.queue import EntryAdded
from planrun.records.queuefile import QueueFile
file = QueueFile(sys.argv[1])
for _ in range(20):
    with file.change() as change:
        change.add(EntryAdded(at="2026-01-01T00:00:00.000Z", entry=change.queue.last + 1, plan="p.yml", folder="."))
"""


def put(file: QueueFile, *plans: str) -> None:
    """Add entries."""
    for plan in plans:
        with file.change() as change:
            change.add(EntryAdded(at=AT, entry=change.queue.last + 1, plan=plan, folder="."))


def test_what_was_added_is_read_back(tmp_path: Path) -> None:
    """Entries come back with their numbers; folders and files are for their user alone."""
    assert not exists(str(tmp_path))
    file = QueueFile(str(tmp_path))
    put(file, "a.yml", "b.yml")
    assert {number: entry.added.plan for number, entry in file.read().entries.items()} == {
        1: "a.yml",
        2: "b.yml",
    }
    assert os.stat(file.folder).st_mode & 0o777 == 0o700
    assert os.stat(file.path).st_mode & 0o777 == 0o600


def test_several_processes_add_at_once(tmp_path: Path) -> None:
    """No entry is lost and no number given twice when four processes add twenty entries each."""
    words = [sys.executable, "-c", MANY, str(tmp_path)]
    writers = [subprocess.Popen(words) for _ in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert list(QueueFile(str(tmp_path)).read().entries) == list(range(1, 81))


@pytest.mark.parametrize("left", [1, 40, -1])
def test_a_torn_end_is_cut_off(tmp_path: Path, left: int) -> None:
    """What a writer that was killed left of a line is no entry, and does not spoil the next one."""
    file = QueueFile(str(tmp_path))
    put(file, "a.yml")
    with open(file.path, "rb") as whole:
        line = whole.read()
    with open(file.path, "ab") as torn:
        torn.write(line[:left])
    assert list(file.read().entries) == [1]
    put(file, "b.yml")
    assert [entry.added.plan for entry in file.read().entries.values()] == ["a.yml", "b.yml"]


def test_a_changed_line_is_found(tmp_path: Path) -> None:
    """What was not written by planrun is not run: every line holds the hash of the one before."""
    file = QueueFile(str(tmp_path))
    put(file, "a.yml", "b.yml")
    with open(file.path, "rb+") as changed:
        text = changed.read()
        changed.seek(0)
        changed.write(text.replace(b"a.yml", b"c.yml"))
    with pytest.raises(InvalidInput, match=r"queue\.jsonl:1: its hash"):
        file.read()


def test_clearing_forgets_entries_and_no_number(tmp_path: Path) -> None:
    """Cleared entries are deleted from the file, others keep their number, and the next entry gets a new one."""
    file = QueueFile(str(tmp_path))
    put(file, "a.yml", "b.yml", "c.yml")
    with file.change() as change:
        change.add(EntryEnded(at=AT, entry=3, status="completed"))
        change.add(QueuePaused(at=AT))
        change.forget([2, 3])
        assert list(change.queue.entries) == [1]
    put(file, "d.yml")
    queue = file.read()
    assert ({number: entry.added.plan for number, entry in queue.entries.items()}, queue.paused) == (
        {1: "a.yml", 4: "d.yml"},
        True,
    )


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """The author of the checkout cannot move the queue to another place."""
    (tmp_path / ".planrun").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".planrun" / "queue").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="symbolic link"):
        QueueFile(str(tmp_path))
