"""Runs that a team has published: their records as rows, and one run as a workspace in which every verb can read it."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager

from planrun.app.inspect import find
from planrun.app.publishing import MOST, RECORDS, RUNS, home_of, publisher_of
from planrun.app.summaries import Row
from planrun.errors import InternalError, InvalidInput, RemoteError
from planrun.places.keys import check_key
from planrun.places.place import open_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.places.place import Place

_LARGEST = 512 << 20
"""Bytes of one run that are fetched."""


class Published(Row):
    """A row with the machine, the user and the page of the job."""

    machine: str = ""
    user: str = ""
    link: str = ""


def published(url: str, limit: int) -> tuple[list[Published], int]:
    """Return the newest published runs, 0: all, and how many there are; raises InvalidInput, RemoteError."""
    place = open_place(url)
    try:
        names = _known(place)
        return [_row(place, name) for name in names[: limit or None]], len(names)
    finally:
        place.close()


def publish(run: str, url: str) -> str:
    """Send a run of this folder and return its id; raises InvalidInput, RemoteError."""
    rundir = find(run)
    publisher = publisher_of(url)
    try:
        publisher.rests(rundir)
    finally:
        publisher.close()
    if publisher.problem:
        raise RemoteError(f"the run was not published: {publisher.problem}")
    return os.path.basename(rundir)


def _known(place: Place) -> list[str]:
    """Return the ids of the published runs, newest first."""
    keys = [key.rpartition("/")[2] for key in place.list(RECORDS)]
    return sorted((key.removesuffix(".json") for key in keys if key.endswith(".json")), reverse=True)


def _row(place: Place, name: str) -> Published:
    try:
        data: dict[str, Any] = json.loads(place.read(f"{RECORDS}/{name}.json") or b"")
        return Published(
            run=name,
            status=str(data["status"]),
            plan=str(data["plan"]["name"]),
            file=str(data["plan"]["file"]),
            started_at=str(data["started_at"] or ""),
            duration=None if data["duration_s"] is None else float(data["duration_s"]),
            exit_code=None if data["exit_code"] is None else int(data["exit_code"]),
            failed=tuple([str(step) for step in data["failed"]]),
            waiting=tuple([(str(each["step"] or ""), str(each["kind"])) for each in data["waiting"]]),
            machine=str(data["machine"]),
            user=str(data["user"]),
            link=str(data["link"] or ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Published(run=name, status="unreadable", detail="not a record of a run")


@contextmanager
def opened(run: str, url: str | None) -> Iterator[str]:
    """Stand in a workspace that has a published run, and return its id; without a URL stay here.

    The workspace is a temporary folder, since a published run is only read. Raises InvalidInput, RemoteError.
    """
    if not url:
        yield run
        return
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="planrun-") as folder:
        place = open_place(url)
        try:
            name = _meant(place, run)
            rundir = os.path.join(home_of(folder), name)
            rest = _LARGEST
            prefix = f"{RUNS}/{name}"
            found = place.list(prefix)
            if not found:
                raise InvalidInput(
                    f"{place.url} has only the record of the run {name}: it is running, or was not sent whole"
                )
            for key, each in found.items():
                try:
                    check_key(key)
                except InternalError:  # written by something else
                    continue
                rest -= each.bytes
                if rest < 0 or each.bytes > max(MOST, _LARGEST // 4):
                    raise InvalidInput(f"the run {name} in {place.url} has more than {_LARGEST:,} bytes")
                path = os.path.join(rundir, key.removeprefix(f"{prefix}/"))
                os.makedirs(os.path.dirname(path), exist_ok=True)
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                try:
                    place.fetch(key, fd, each.bytes)
                finally:
                    os.close(fd)
        finally:
            place.close()
        os.chdir(folder)
        try:
            yield name
        finally:
            os.chdir(before)


def _meant(place: Place, run: str) -> str:
    known = _known(place)
    matches = known[:1] if run == "last" else [name for name in known if name.startswith(run)]
    matches = [run] if run in matches else matches
    if len(matches) == 1:
        return matches[0]
    if not known:
        raise InvalidInput(f"no runs in {place.url}")
    if not matches:
        raise InvalidInput(f'no run "{run}" in {place.url}; to list all: planrun runs --from {place.url}')
    raise InvalidInput(f'"{run}" could be {len(matches)} runs: {", ".join(matches[:5])}')
