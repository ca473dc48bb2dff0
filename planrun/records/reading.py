"""Read and verify a ledger."""

from __future__ import annotations

import json
import os
import time

from planrun import __version__
from planrun.errors import InvalidInput, RecordsLost
from planrun.model.events import EVENTS, RunEnded
from planrun.model.record import Record
from planrun.opening import read_record
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
        data = read_record(path)
    except OSError as error:
        raise InvalidInput(f"cannot read the ledger: {path}: {error.strerror}") from None
    return verify(data, head)


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
            versions = [error.by, *[getattr(event, "planrun", "") for event in reversed(events)]]
            writer = next((version for version in versions if version), "")
            known = writer and writer != __version__
            newer = f"{error}, which planrun {__version__} does not know; use " + (
                f"planrun {writer}, which wrote it" if known else "the version that wrote it"
            )
            return reading("newer", newer, number)
        except ValueError as error:
            if _is_hole(data, size):
                return reading("torn", "bytes of it never reached the disk, and whatever follows", number)
            return reading("altered", str(error), number)
        previous = line[-_HASH:-2].decode()
        size += len(line) + 1
    if tail:
        return reading("torn", f"{len(tail)} bytes after the last whole line", len(lines) + 1)
    return _finish(reading, events, head, previous)


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
        record: Any = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError("not a JSON object") from None
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - one kind of error for the caller
    if record.pop("seq", None) != number:
        raise ValueError(f"its number is not {number}")
    del record["hash"]
    name = record.pop("type", "")
    if not isinstance(name, str):
        raise ValueError("its type is not a text")  # noqa: TRY004 - one kind of error for the caller
    kind: Any = kinds.get(name)
    if kind is None:
        raise Unknown(f"an event {_quoted(name)}", _version_in(record))
    _check_fields(kind, record)
    _check_types(kind, name, record)
    return kind(**{name: _field(kind.__annotations__[name], value) for name, value in record.items()})


def _no_number(text: str) -> Any:
    raise ValueError(text)


def _quoted(name: str) -> str:
    """Return a name from a ledger as a message may have it: short, and with nothing that steers a terminal."""
    return json.dumps(name[:60])


_LEVELS = {"auto_approve": "str", "llm_auto_approve": "str", "rules": "int", "ask_for": "str"}
_INSIDE: dict[str, dict[str, Any]] = {
    "plan": {"name": "str", "version": "int", "digest": "str", "file": "str", "sha256": "str"},
    "options": {
        "policy": {
            "plan": _LEVELS,
            "ceilings": ({"file": "str", "sha256": "str", "commit": "str", **_LEVELS},),
            "told": "str",
            "option": "str",
        },
        "selection": "dict[str, Any] | None",
        "answers": "dict[str, Any] | tuple[Any, ...] | str | None",
        **dict.fromkeys(("given", "env_left_out"), "tuple[str, ...]"),
        **dict.fromkeys(("workspace", "schedule", "inherit_env", "memory"), "str | None"),
        **dict.fromkeys(("strict", "fail_on_flaky"), "bool"),
        "jobs": "int | None",
        "secrets": "dict[str, Any]",
    },
    "files": {"path": "str", "op": "str", "sha256": "str | None", "bytes": "int | None"},
    "hooks": {"name": "str", "when": "str", "ok": "bool", "message": "str", "log": "str"},
    "tools": {"name": "str"},
    "resources": {"kind": "str", "id": "str", "action": "str"},
}
"""Types of what stands in the objects of events, by the name of the field: an object or None, in a tuple a list."""
_NEEDED = {("attempt_ended", "files"): ("op",)}
"""Keys that such objects of an event have; any other may be missing."""
_BASIC: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
_LARGEST = 1 << 63
_PLAIN = ("fingerprint", "risk", "log", "log_sha256", "planrun", "status", "verdict")
"""Texts that only planrun makes, never with a control character."""


def _check_types(kind: Any, event: str, record: dict[str, Any]) -> None:
    """Raise ValueError unless each field has the type that the record of the event declares."""
    for name, value in record.items():
        annotation = kind.__annotations__[name]
        if not _is(annotation, value):
            raise ValueError(f'"{name}" of {event} is not of the type {annotation}')
        if name == "at" and not _is_stamp(value):
            raise ValueError(f'"at" of {event} is no time')
        if name in _PLAIN and not value.isprintable():
            raise ValueError(f'"{name}" of {event} has control characters')
        inner = _INSIDE.get(name)
        if inner and "dict[str, Any]" in annotation:
            for each in value if isinstance(value, list) else [value]:
                wrong = _wrong(inner, each, _NEEDED.get((event, name), ()))
                if wrong:
                    raise ValueError(f'"{wrong}" in "{name}" of {event} is missing or of another type')
    plan = record.get("plan")
    if plan and event in ("run_started", "run_resumed", "planning_ended") and "version" not in plan:
        raise ValueError(f'"version" in "plan" of {event} is missing')


def _wrong(shape: dict[str, Any], value: dict[str, Any], needed: Sequence[str] = ()) -> str:
    """Return the first key of an object that is missing or has another type; "" for a sound object."""
    for key in needed:
        if key not in value:
            return key
    for key, wanted in shape.items():
        if key not in value:
            continue
        each = value[key]
        if isinstance(wanted, str):
            is_right = _is(wanted, each)
        elif isinstance(wanted, tuple):
            is_right = isinstance(each, list) and all(
                isinstance(item, dict) and not _wrong(wanted[0], item) for item in each
            )
        else:
            is_right = each is None or (isinstance(each, dict) and not _wrong(wanted, each))
        if not is_right:
            return key
    return ""


def _is(annotation: str, value: Any) -> bool:
    """Whether a value of JSON has the type of an annotation in `planrun.model.events`."""
    if annotation == "str":  # most fields
        return isinstance(value, str)
    if annotation == "Any":
        return True
    basic = _BASIC.get(annotation)
    if basic:
        right = isinstance(value, basic) and isinstance(value, bool) is (annotation == "bool")
        return right and (not isinstance(value, int | float) or -_LARGEST <= value < _LARGEST)
    if " | " in annotation:
        return any(_is(each, value) for each in annotation.split(" | "))
    if annotation == "None":
        return value is None
    if annotation.startswith("dict[str, "):
        inner = annotation[len("dict[str, ") : -1]
        return isinstance(value, dict) and (
            inner == "Any" or all(_is(inner, each) for each in value.values())
        )
    inner = annotation[len("tuple[") : -len(", ...]")]
    return isinstance(value, list) and (inner == "Any" or all(_is(inner, each) for each in value))


def _is_stamp(text: str) -> bool:
    """Whether a text is a time as events have it, `2026-01-31T09:30:00.125Z`."""
    if (
        len(text) != len("2026-01-31T09:30:00.125Z")
        or text[19] != "."
        or text[23] != "Z"
        or not text.isascii()
    ):
        return False
    try:
        time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return False
    return text[20:23].isdigit()


def _field(annotation: str, value: Any) -> Any:
    """Return a field as the event has it: an answer, which may be anything, stays the list that was given."""
    return tuple(value) if isinstance(value, list) and annotation.startswith("tuple") else value


def _version_in(record: dict[str, Any]) -> str:
    version = record.get("planrun", "")
    return version if isinstance(version, str) and version.isprintable() and len(version) < 40 else ""


def _check_fields(kind: Any, record: dict[str, Any]) -> None:
    known = kind.__annotations__
    for name in record:
        if name not in known:
            raise Unknown(f"a field {_quoted(name)}", _version_in(record))
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
        ended = bool(reading.events) and isinstance(reading.events[-1], RunEnded)
        return reading.but(condition="intact" if ended else "unfinished", detail="a torn end was cut off")
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
