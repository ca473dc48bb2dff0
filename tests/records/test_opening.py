"""Recorded files are opened below their folder: no link, device, pipe or endless file takes the place of one."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from planrun.opening import open_below, open_record, read_record
from planrun.records.ledger import GENESIS
from planrun.records.reading import verify

if TYPE_CHECKING:
    from pathlib import Path


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
