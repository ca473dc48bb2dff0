"""Recorded files are opened below their folder: no link, device, pipe or endless file takes the place of one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from planrun.agents import kept
from planrun.errors import PlanrunError
from planrun.opening import extent, open_below, open_record, read_record
from planrun.places.folder import Folder
from planrun.records import planmemory
from planrun.records.history import read_progress
from planrun.records.ledger import GENESIS
from planrun.records.lock import holder
from planrun.records.queuefile import QueueFile
from planrun.records.reading import verify
from planrun.replays import results
from planrun.reports import notifications
from planrun.reports.escape import excerpt
from planrun.reports.searches import read_searches
from planrun.store.entries import Store
from tests.conftest import LIMIT


@pytest.mark.parametrize("part", ["", ".planrun", ".planrun/runs", ".planrun/runs/r"])
def test_no_component_below_the_base_may_be_a_link(tmp_path: Path, part: str) -> None:
    """Above the records folder links are the user's own; from it on there are none."""
    folder = tmp_path / "w/.planrun/runs/r"
    folder.mkdir(parents=True)
    (folder / "ledger.jsonl").write_bytes(b"data")
    (tmp_path / "link").symlink_to(tmp_path / "w")
    path = tmp_path / "link/.planrun/runs/r/ledger.jsonl"
    if not part:
        assert read_record(str(path)) == b"data"
        return
    place = tmp_path / "w" / part
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"directory|symbolic|not a path"):
        open_record(str(path))


@pytest.mark.parametrize("path", ["", "/etc/hosts", "../x", "a/../../x", "a//x", "a/"])
def test_a_path_stays_below(tmp_path: Path, path: str) -> None:
    """A path that leaves its folder, or names none in it, is refused."""
    with pytest.raises(OSError, match=r"directory|symbolic|not a path"):
        open_below(str(tmp_path), path)


def test_only_regular_files_of_a_bounded_size(tmp_path: Path) -> None:
    """A pipe does not block, and a file that is too large is not read."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_record(str(tmp_path / "pipe"))
    (tmp_path / "big").write_bytes(b"12345")
    with pytest.raises(OSError, match="over 4 bytes"):
        read_record(str(tmp_path / "big"), 4)


MOVED = {"seq": 1, "type": "plan_moved", "at": "2026-01-01T00:00:00.000Z", "status": "approved"}


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"type": ["x"]}, "its type is not a text"),
        ({"status": 1}, '"status" of plan_moved is not of the type str'),
        ({"exit_code": True}, '"exit_code" of plan_moved is not of the type int'),
        ({"exit_code": 1 << 70}, '"exit_code" of plan_moved is not of the type int'),
        ({"exit_code": float("nan")}, "not a JSON object"),
        ({"at": "now"}, '"at" of plan_moved is no time'),
        ({"type": "\x1b[2J"}, 'an event "\\u001b[2J", which'),
        ({"\x1b[2J": 1}, 'a field "\\u001b[2J", which'),
    ],
)
def test_types_are_checked_where_a_line_is_read(changes: dict[str, Any], detail: str) -> None:
    """With a right hash the line is still named, and nothing of it steers a terminal."""
    body = json.dumps(MOVED | changes, separators=(",", ":"))[:-1].encode()
    line = body + b',"hash":"' + sha256(GENESIS.encode() + body).hexdigest().encode() + b'"}\n'
    reading = verify(line)
    assert reading.line == 1
    assert reading.condition in ("altered", "newer")
    assert reading.detail.startswith(detail)


@pytest.mark.parametrize("path", [".planrun/../../outside", ".planrun/runs/../../x", ".planrun/a\0b"])
def test_a_recorded_path_does_not_leave_its_folder(tmp_path: Path, path: str) -> None:
    """What a ledger names is no way out of the records."""
    (tmp_path / "x").write_bytes(b"outside")
    with pytest.raises(OSError, match=r"leaves|not a path"):
        open_record(f"{tmp_path}/{path}")


@pytest.mark.parametrize(("recorded", "expected"), [(-1, 4096), (3, 3), (1 << 40, 4096)])
def test_a_log_ends_at_its_first_hole_and_its_recorded_size(
    tmp_path: Path, recorded: int, expected: int
) -> None:
    """A sparse file of 1 TB, whatever size its record claims, has no more bytes than were written."""
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(1 << 40)
    fd = open_record(str(path))
    try:
        assert extent(fd, recorded) == expected
    finally:
        os.close(fd)


ROOT = Path(__file__).parents[2]
RUN = ".planrun/runs/r"
BYTES = b"outside-bytes 0.5\n"
READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "a queue": (".planrun/queue/queue.jsonl", lambda here: QueueFile(here).read()),
    "kept plans": (".planrun/plans/p.json", lambda here: planmemory._read(here, "p.json")),
    "memory of agents": (".planrun/agents/x", lambda here: kept.read(f"{here}/.planrun/agents/x", "form")),
    "notifications": (f"{RUN}/notifications.jsonl", lambda here: notifications.read(f"{here}/{RUN}")),
    "searches": (f"{RUN}/search-1.json", lambda here: list(read_searches(f"{here}/{RUN}", 1))),
    "excerpts": (f"{RUN}/logs/a.log", lambda here: excerpt(f"{here}/{RUN}", "logs/a.log")),
    "ends of logs": (f"{RUN}/logs/a.log", lambda here: results._tail(f"{here}/{RUN}", "logs/a.log")),
    "progress": (f"{RUN}/outputs/a.1.progress", lambda here: read_progress(f"{here}/{RUN}", "a", 1)),
    "a holder": (".planrun/lock", holder),
    "a place": (f"{RUN}/key", lambda here: Folder(f"{here}/.planrun").read("runs/r/key")),
    "cached results": (
        ".planrun/store/entries/ke/key",
        lambda here: Store(f"{here}/.planrun/store").read("key"),
    ),
}
"""Who reads what below the records folder."""


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["link", "folder above is a link", "device", "pipe", "folder"])
def test_every_reader_refuses_what_is_no_file(tmp_path: Path, name: str, kind: str) -> None:
    """Whatever stands in the place of a record, nothing from outside is returned and nobody waits."""
    path, read = READERS[name]
    place = tmp_path / "w" / path
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / place.name).write_bytes(BYTES)
    (place.parent.parent if kind == "folder above is a link" else place.parent).mkdir(parents=True)
    if kind == "link":
        place.symlink_to(outside / place.name)
    elif kind == "folder above is a link":
        place.parent.symlink_to(outside)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    signal.alarm(LIMIT)  # whoever waits for a pipe ends the tests
    try:
        found = read(str(tmp_path / "w"))
    except PlanrunError as error:
        found = str(error)
    finally:
        signal.alarm(0)
    assert "outside-bytes" not in repr(found)


def test_watch_ends_at_an_altered_ledger(tmp_path: Path) -> None:
    """Where nothing more can be read of a run that waits, nobody watches on."""
    run = "20261126-195723-815bb2"
    shutil.copytree(ROOT / "tests/upgrade/2026-11-26/state", tmp_path / ".planrun")
    ledger = tmp_path / ".planrun/runs" / run / "ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([*lines[:5], lines[5].replace(b'"at"', b'"aX"')]))
    command = [sys.executable, "-m", "planrun", "watch", run, "--lines"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert "the ledger is altered at line 6" in done.stderr
