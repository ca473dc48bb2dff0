"""The ledger: written events are read back, and every change is detected and named."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidInput, RecordsLost
from planrun.model import events as ev
from planrun.records.ledger import GENESIS, Ledger, fill
from planrun.records.reading import read_ledger, repair, verify
from planrun.records.rundir import create, find, home, new_run_id, runs

if TYPE_CHECKING:
    from pathlib import Path

AT = "2026-01-01T00:00:00.000Z"


def write(path: Path, steps: int = 3) -> Ledger:
    """Write a small whole ledger."""
    ledger = Ledger(str(path))
    plan = {"name": "p", "version": 1, "digest": "d", "file": "p.yml"}
    ledger.append(
        ev.RunStarted(
            at=AT, run="r", planrun="0", plan=plan, params={}, context={}, options={}, pid=1, host="h"
        )
    )
    for number in range(steps):
        ledger.append(ev.AttemptStarted(at=AT, step=f"s{number}", n=1))
        ledger.append(
            ev.AttemptEnded(
                at=AT, step=f"s{number}", n=1, status="completed", step_status="completed", reason="ran"
            )
        )
    ledger.append(
        ev.RunEnded(
            at=AT,
            status="completed",
            verdict="completed",
            exit_code=0,
            duration=1.0,
            summary={"total": steps},
            events=ledger.records + 1,
        )
    )
    ledger.close()
    return ledger


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Every event comes back as it was, and the head is the hash of the last line."""
    ledger = write(tmp_path / "l")
    reading = read_ledger(str(tmp_path / "l"))
    assert (reading.condition, reading.head, len(reading.events)) == ("intact", ledger.head, 8)
    assert reading.events[1] == ev.AttemptStarted(at=AT, step="s0", n=1)
    lines = (tmp_path / "l").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 9))
    body, stated = lines[0].rsplit(',"hash":"', 1)
    assert stated == sha256((GENESIS + body).encode()).hexdigest() + '"}'
    assert (tmp_path / "l").stat().st_mode & 0o777 == 0o600


def test_a_cut_end_is_distinguished(tmp_path: Path) -> None:
    """A cut inside a line is torn, a cut between lines unfinished, and with the known head truncated."""
    head = write(tmp_path / "l").head
    data = (tmp_path / "l").read_bytes()
    assert verify(data[:-5]).condition == "torn"
    whole = data[: data[:-1].rindex(b"\n") + 1]
    assert verify(whole).condition == "unfinished"
    assert verify(whole, head).condition == "truncated"
    assert verify(b"").condition == "unfinished"


def test_a_torn_line_is_cut_off_and_the_ledger_continues(tmp_path: Path) -> None:
    """Repair leaves only whole lines, and what is appended then follows them."""
    write(tmp_path / "l")
    path = tmp_path / "l"
    path.write_bytes(path.read_bytes()[:-20])
    reading = repair(str(path))
    assert reading.condition == "unfinished"
    ledger = Ledger(str(path), seq=len(reading.events), head=reading.head)
    ledger.append(ev.PlanMoved(at=AT, status="approved"))
    ledger.close()
    assert len(read_ledger(str(path)).events) == 8
    path.write_bytes(path.read_bytes().replace(b"s0", b"s9", 1))
    with pytest.raises(InvalidInput, match=r"altered: .*l:2"):
        repair(str(path))


def test_what_never_reached_the_disk_is_torn_and_cut_off(tmp_path: Path) -> None:
    """Zeros up to the edge of a sector or to the end are what a power cut leaves; elsewhere they are a change."""
    write(tmp_path / "l", steps=8)
    data = (tmp_path / "l").read_bytes()
    for hole in ((700, 1024), (512, 1536), (900, len(data)), (1030, len(data))):
        spoilt = data[: hole[0]] + bytes(hole[1] - hole[0]) + data[hole[1] :]
        line = data[: hole[0]].count(b"\n") + 1
        reading = verify(spoilt)
        assert (reading.condition, reading.line) == ("torn", line), hole
        (tmp_path / "l").write_bytes(spoilt)
        assert len(repair(str(tmp_path / "l")).events) == line - 1
        assert (tmp_path / "l").read_bytes() == data[: reading.size]
    assert verify(data[:700] + bytes(8) + data[708:]).condition == "altered"


def test_a_ledger_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A full disk ends in the error that has exit code 74 and names the file."""
    with pytest.raises(RecordsLost, match="No such file"):
        Ledger(str(tmp_path / "missing" / "l"))
    ledger = Ledger("/dev/full")
    assert ledger.lost is None
    ledger.append(ev.PlanMoved(at=AT, status="approved"))
    assert str(ledger.lost) == "the records cannot be written: /dev/full: No space left on device"
    assert ledger.records == 0


FULL = """
import os, resource, signal, sys
sys.path[:0] = sys.argv[3].split(os.pathsep)
from planrun.model import events as ev
from planrun.records.ledger import Ledger
ledger = Ledger(sys.argv[1], reserve=sys.argv[2])
moved = ev.PlanMoved(at="2026-01-01T00:00:00.000Z", status="approved")
ledger.append(moved)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(sys.argv[1]).st_size + 100, resource.RLIM_INFINITY))
ledger.append(moved)
print(ledger.lost)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.append(moved)
ledger.close()
print(ledger.records)
"""


def test_a_line_that_does_not_fit_is_cut_off_again(tmp_path: Path) -> None:
    """After a write that the system cut short no half line stays, and nothing follows."""
    path = tmp_path / "l"
    said = subprocess.run(
        [sys.executable, "-c", FULL, path, tmp_path / "reserve", os.pathsep.join(sys.path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert said.stdout == f"the records cannot be written: {path}: File too large\n1\n"
    reading = read_ledger(str(path))
    assert (reading.condition, len(reading.events)) == ("unfinished", 1)


def test_a_full_disk_gets_the_reserve_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the line fits once the reserve is gone, and what is lost is known all the same."""
    reserve = tmp_path / "reserve"
    fill(str(reserve))
    assert reserve.stat().st_blocks * 512 >= 64 * 1024
    ledger = Ledger(str(tmp_path / "l"), reserve=str(reserve))
    ledger.append(ev.PlanMoved(at=AT, status="approved"))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if reserve.exists():
            write(fd, data[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    ledger.append(ev.PlanMoved(at=AT, status="executing"))
    ledger.append(ev.PlanMoved(at=AT, status="failed"))
    monkeypatch.undo()
    ledger.close()
    assert str(ledger.lost).endswith("l: No space left on device")
    reading = read_ledger(str(tmp_path / "l"))
    assert (reading.condition, len(reading.events), reading.head) == ("unfinished", 3, ledger.head)


def test_a_sync_that_failed_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel reports lost data once: a second call would succeed and mean nothing."""
    calls = []

    def broken(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("planrun.records.ledger._sync", broken)
    ledger = Ledger(str(tmp_path / "l"))
    for _ in range(3):
        ledger.append(ev.PlanMoved(at=AT, status="approved"))
        ledger.sync()
    assert len(calls) == 1
    assert str(ledger.lost).endswith("l: Input/output error")
    assert ledger.records == 3


def test_a_ledger_that_a_step_removed_is_missed(tmp_path: Path) -> None:
    """Writing into a file that has no name any more is not taken for a record; neither is another in its place."""
    for remove in ("rm", "replace"):
        path = tmp_path / remove
        ledger = Ledger(str(path))
        ledger.append(ev.PlanMoved(at=AT, status="approved"))
        if remove == "rm":
            path.unlink()
        else:
            path.rename(tmp_path / "moved")
            path.write_bytes(b"")
        ledger.append(ev.PlanMoved(at=AT, status="approved"))
        ledger.close()
        assert "removed or replaced during the run" in str(ledger.lost)


@pytest.mark.parametrize("mode", ["ab", "wb"])
def test_a_ledger_that_something_else_wrote_into_is_found_out(tmp_path: Path, mode: str) -> None:
    """Data that was added or cut off in place is reported by the next sync, not only by `verify`."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(str(path))
    ledger.append(ev.PlanMoved(at=AT, status="approved"))
    with path.open(mode) as file:
        file.write(b"x\n")
    ledger.append(ev.PlanMoved(at=AT, status="approved"))
    ledger.close()
    assert "another process wrote to it during the run" in str(ledger.lost)


def test_runs_are_found_by_id_by_its_beginning_and_as_the_last(tmp_path: Path) -> None:
    """Run folders are private, sort by time, and an ambiguous or unknown name is an error."""
    folder = home(str(tmp_path))
    for name in ("20260101-000000-aaaaaa", "20260101-000001-bbbbbb"):
        path = create(folder, name, b"version: 1\n")
        write(tmp_path / ".planrun" / "runs" / name / "ledger.jsonl")
        assert os.stat(path).st_mode & 0o777 == 0o700
    assert list(runs(str(tmp_path))) == ["20260101-000001-bbbbbb", "20260101-000000-aaaaaa"]
    assert find(str(tmp_path), "last").endswith("bbbbbb")
    assert find(str(tmp_path), "20260101-000000").endswith("aaaaaa")
    with pytest.raises(InvalidInput, match="could be 2 runs"):
        find(str(tmp_path), "2026")
    with pytest.raises(InvalidInput, match="no run"):
        find(str(tmp_path), "x")
    assert len(new_run_id()) == len("20260101-000000-aaaaaa")
    assert (tmp_path / ".planrun" / ".gitignore").read_text() == "*\n"


def test_run_ids_sort_by_time_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that start in the same second, `last` is the last one."""
    moments = iter([1_790_000_000 + number / 1000 for number in range(0, 2000, 20)])
    monkeypatch.setattr(time, "time", lambda: next(moments))
    ids = [new_run_id() for _ in range(100)]
    assert ids == sorted(ids)


def test_a_pipe_in_the_place_of_a_ledger_blocks_no_reader(tmp_path: Path) -> None:
    """A step may leave one behind; its reader says so at once."""
    os.mkfifo(tmp_path / "ledger.jsonl")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_ledger(str(tmp_path / "ledger.jsonl"))
