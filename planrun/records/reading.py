"""Read and verify a ledger."""

from __future__ import annotations

import json
import os

from planrun import __version__
from planrun.errors import InvalidInput, RecordsLost
from planrun.model.events import EVENTS, RunEnded
from planrun.model.record import Record
from planrun.records.ledger import GENESIS
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from planrun.model.events import Event

    Found = Callable[..., "Reading"]
    EventReader = Callable[[bytes, int, str], Any]
    Condition = Literal["intact", "unfinished", "torn", "altered", "truncated", "newer"]


BROKEN = ("torn", "altered", "truncated", "newer")
"""Conditions in which a ledger ends early."""
REFUSED = ("altered", "truncated", "newer")
"""Conditions in which nothing continues from a ledger."""

_HASH = 66  # bytes at the end of a line: 64 digits, quote, brace
_KEY = len(',"hash":"')
_SECTOR = 512  # bytes that a disk writes at once, at least


class Reading(Record):
    """The content of a ledger file up to the first invalid line.

    intact: complete, ends with its end. unfinished: sound, but the run never ended. torn: its end did not reach
    the disk, from `line` on. altered: `line` (1-based) is not what was written there. truncated: lines are
    missing at the end. newer: `line` is sound, and another version of planrun wrote it.
    """

    condition: Condition
    events: tuple[Event, ...]
    head: str
    size: int  # bytes of the sound part
    line: int = 0
    detail: str = ""

    @property
    def problem(self) -> str:
        """What is wrong with it, with the line."""
        where = f" at line {self.line}" if self.line else ""
        return f"{self.condition}{where}: {self.detail}"


class Unknown(ValueError):
    """A sound line has something that this version does not know; `by`: its version, "" unless it has one."""

    def __init__(self, what: str, by: str) -> None:
        super().__init__(what)
        self.by = by


def read_ledger(path: str, head: str = "") -> Reading:
    """Read and verify a ledger; `head`, when known, must be the hash of its last line.

    Raises InvalidInput when there is no such file or it cannot be read.
    """
    try:
        with open(path, "rb", opener=_unblocked) as file:  # O_NONBLOCK: it may be a named pipe
            data = file.read()
    except OSError as error:
        raise InvalidInput(f"cannot read the ledger: {path}: {error.strerror}") from None
    return verify(data, head)


def _unblocked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def verify(data: bytes, head: str = "", read: EventReader | None = None) -> Reading:
    """Verify the bytes of a ledger; see `read_ledger`. `read`: of a line of another file in the form of a ledger."""
    read = read or _event
    lines = data.split(b"\n")
    tail = lines.pop()
    events: list[Event] = []
    previous, size = GENESIS, 0

    def reading(condition: Condition, detail: str = "", line: int = 0) -> Reading:
        return Reading(
            condition=condition, events=tuple(events), head=previous, size=size, line=line, detail=detail
        )

    for number, line in enumerate(lines, 1):
        try:
            events.append(read(line, number, previous))
        except Unknown as error:
            return reading("newer", _newer(error, events), number)
        except ValueError as error:
            if _is_hole(data, size):
                return reading("torn", "bytes of it never reached the disk, and whatever follows", number)
            return reading("altered", str(error), number)
        previous = line[-_HASH:-2].decode()
        size += len(line) + 1
    if tail:
        return reading("torn", f"{len(tail)} bytes after the last whole line", len(lines) + 1)
    return _finish(reading, events, head, previous)


def _newer(unknown: Unknown, events: Sequence[Any]) -> str:
    """Say what of another version a ledger has, and which version reads it."""
    versions = [unknown.by, *[getattr(event, "planrun", "") for event in reversed(events)]]
    writer = next((version for version in versions if version), "")
    known = writer and writer != __version__
    return f"{unknown}, which planrun {__version__} does not know; use " + (
        f"planrun {writer}, which wrote it" if known else "the version that wrote it"
    )


def _is_hole(data: bytes, start: int) -> bool:
    """Whether the line that starts there has zeros up to the end of a sector, as a power cut leaves them.

    A file system may know the size of a file before all its sectors are written, and write these in any order. A
    ledger has no zeros otherwise: JSON escapes them.
    """
    end = data.find(b"\n", start)
    first = data.find(b"\0", start, end if end >= 0 else None)
    if first < 0:
        return False
    after = len(data) - len(data[first:].lstrip(b"\0"))
    return after == len(data) or after % _SECTOR == 0


def _finish(reading: Found, events: list[Event], head: str, previous: str) -> Reading:
    last = events[-1] if events else None
    if head and head != previous:
        if isinstance(last, RunEnded):
            return reading("altered", "its hash is not the given head", len(events))
        return reading("truncated", "the last line is not the one with the given head", len(events))
    if not isinstance(last, RunEnded):
        return reading("unfinished", "the run has no end")
    if last.events != len(events):
        return reading("truncated", f"the end counts {last.events} events, the file has {len(events)}")
    return reading("intact")


def _event(line: bytes, number: int, previous: str) -> Event:
    """Parse the event of a run; raises ValueError with the problem."""
    event: Event = event_of(EVENTS, line, number, previous)
    return event


def event_of(kinds: Mapping[str, Any], line: bytes, number: int, previous: str) -> Any:
    """Parse an event of one of these kinds; raises ValueError with the problem."""
    body, end = line[: -_HASH - _KEY], line[-_HASH - _KEY :]
    digest = sha256(previous.encode() + body).hexdigest()
    if end != f',"hash":"{digest}"}}'.encode():
        raise ValueError("its hash does not match its content")
    try:
        record: Any = json.loads(line)
    except ValueError:
        raise ValueError("not a JSON object") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - one kind of error for the caller
    if record.pop("seq", None) != number:
        raise ValueError(f"its number is not {number}")
    del record["hash"]
    name = record.pop("type", "")
    kind: Any = kinds.get(name)
    if kind is None:
        raise Unknown(f'an event "{name}"', _version_in(record))
    _check_fields(kind, record)
    return kind(**{name: _field(kind.__annotations__[name], value) for name, value in record.items()})


def _field(annotation: str, value: Any) -> Any:
    """Return a field as the event has it: an answer, which may be anything, stays the list that was given."""
    return tuple(value) if isinstance(value, list) and annotation.startswith("tuple") else value


def _version_in(record: dict[str, Any]) -> str:
    version = record.get("planrun", "")
    return version if isinstance(version, str) else ""


def _check_fields(kind: Any, record: dict[str, Any]) -> None:
    known = kind.__annotations__
    for name in record:
        if name not in known:
            raise Unknown(f'a field "{name}"', _version_in(record))
    for name in known:
        if name not in record and not hasattr(kind, name):
            raise ValueError(f'the field "{name}" is missing')


def repair(path: str, *, discard: bool = False) -> Reading:
    """Remove a torn end, under the workspace lock, and return the rest.

    `discard`: the caller drops the broken end itself, also an altered one.
    Raises InvalidInput when the ledger was altered, or is of a later version: such a run is not resumed.
    """
    reading = read_ledger(path)
    if discard and reading.condition in ("torn", "altered"):
        return reading
    if reading.condition == "torn":
        cut(path, reading.size)
        return _mended(reading)
    if reading.condition in REFUSED:
        where = f"{path}:{reading.line}" if reading.line else path
        hint = (
            "; `planrun resume RUN --discard` drops it and what follows"
            if reading.condition == "altered"
            else ""
        )
        raise InvalidInput(f"the ledger is {reading.condition}: {where}: {reading.detail}{hint}")
    return reading


def cut(path: str, size: int) -> None:
    """Cut a file, so that nothing of what stood there can come back behind what will be written."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise RecordsLost(f"the torn end of the ledger cannot be cut off: {path}: {error.strerror}") from None


def _mended(torn: Reading) -> Reading:
    ended = bool(torn.events) and isinstance(torn.events[-1], RunEnded)
    return torn.but(condition="intact" if ended else "unfinished", detail="a torn end was cut off")
