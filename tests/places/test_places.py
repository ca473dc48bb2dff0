"""Shared places: a folder, and URLs through the process that knows fsspec."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InternalError, InvalidInput, RemoteError
from planrun.places.addresses import masked
from planrun.places.place import open_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from planrun.places.place import Place


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place of each kind."""
    opened = open_place(str(tmp_path / "team") if request.param == "folder" else "memory://team")
    yield opened
    opened.close()


def test_objects(place: Place, tmp_path: Path) -> None:
    """An object is read as it was written last, listed with its size and age, and gone after it was removed."""
    assert place.read("runs/one") is None
    place.write("runs/one", b"first")
    place.write("runs/one", b"second")
    assert place.read("runs/one") == b"second"
    assert place.create("runs/two", b"2")
    assert not place.create("runs/two", b"3")
    assert place.read("runs/two") == b"2"
    found = place.list("runs")
    assert {key: each.bytes for key, each in found.items()} == {"runs/one": 6, "runs/two": 1}
    assert 0 <= place.now() - found["runs/one"].modified < 60
    assert place.list("run") == {}
    place.remove("runs/one")
    place.remove("runs/one")
    assert [*place.list("")] == ["runs/two"]
    data = os.urandom(3 << 20)
    (tmp_path / "source").write_bytes(data)
    with (tmp_path / "source").open("rb") as source, (tmp_path / "target").open("wb") as target:
        place.send("big", source.fileno())
        assert not place.fetch("big", target.fileno(), len(data) - 1)
        assert not place.fetch("none", target.fileno(), 10)
        assert place.fetch("big", target.fileno(), len(data))
    assert (tmp_path / "target").read_bytes() == data
    with pytest.raises(RemoteError, match="more than 5 bytes"):
        place.read("big", 5)


@pytest.mark.parametrize("key", ["/etc/passwd", "a/../b", "", "a//b", "a\nb", "a/.new-1"])
def test_keys(place: Place, key: str) -> None:
    """A key names one object below the place."""
    with pytest.raises(InternalError):
        place.write(key, b"")


def test_create_is_atomic(tmp_path: Path) -> None:
    """Of four processes that create the same objects, one alone creates each."""
    script = (
        "import sys\nfrom planrun.places.place import open_place\nplace = open_place(sys.argv[1])\n"
        "sys.stdin.read()\nprint(''.join('1' if place.create(f'race/{n}', b'') else '0' for n in range(40)))"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    racers = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    rows = [racer.communicate()[0].decode().strip() for racer in racers]
    assert ["".join(column).count("1") for column in zip(*rows, strict=True)] == [1] * 40


def test_a_link_is_no_object(tmp_path: Path) -> None:
    """A symbolic link in a shared folder is not followed, and the remains of a killed process are not listed."""
    (tmp_path / "secret").write_text("hidden")
    folder = tmp_path / "team"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / ".new-host-1-1").write_text("")
    os.utime(folder / ".new-host-1-1", (0, 0))
    place = open_place(str(folder))
    assert place.list("") == {}
    assert not (folder / ".new-host-1-1").exists()
    with pytest.raises(RemoteError, match="link"):
        place.read("link")


def test_a_server_that_does_not_answer() -> None:
    """A call ends at its limit or at a signal, names the URL without its password, and the next call tries anew."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = open_place(f"ftp://bob:secret@127.0.0.1:{server.getsockname()[1]}/x", limit=1.0)
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(RemoteError, match=r"ftp://bob:\*\*\*@127.0.0.1:\d+/x: no answer within 1 s"):
                place.read("a")
            assert time.monotonic() - began >= 1
        stopped = open_place(f"ftp://127.0.0.1:{server.getsockname()[1]}/x", stopped=lambda: True)
        with pytest.raises(RemoteError, match="stopped by a signal"):
            stopped.read("a")


def test_addresses() -> None:
    """An address that cannot be used is refused with what to do, and credentials are masked."""
    with pytest.raises(InvalidInput, match="fsspec knows no foo://"):
        open_place("foo://x/y").read("a")
    with pytest.raises(InvalidInput, match="names no bucket"):
        open_place("s3://")
    with pytest.raises(InvalidInput, match="is empty"):
        open_place("")
    with pytest.raises(InvalidInput, match="s3:// needs one more package: pip install s3fs"):
        open_place("s3://bucket/x").read("a")
    assert masked("s3://key:secret@bucket/a?token=t&x=1") == "s3://key:***@bucket/a?token=***&x=***"
    assert masked("/srv/team") == "/srv/team"
