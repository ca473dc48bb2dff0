"""Steps have no say: what people and those who reviewed a plan decide is refused to whatever a step started.

The door of a run that goes on: a socket in its folder through which other processes of the same user answer.

It is there while somebody is asked. One JSON object a line each way, and one line a connection: verb, steps, skip, by,
reason and digest as in Reply; back comes `answers`, the events to be recorded, or `error`. Loaded with the first
gate. A step of the run is turned away, as is everybody whom the kernel names no process of.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time

from planrun.approval.responses import Reply, events_of
from planrun.errors import Denied, InvalidInput, PlanrunError
from planrun.executors.owners import from_step
from planrun.executors.tree import HAS_PROC
from planrun.model import events as ev
from planrun.model.jsontext import dumps
from planrun.records.rundir import LEDGER
from planrun.reports.gates import open_gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.model.events import GateAnswered
    from planrun.model.state import RunState
    from planrun.ports import Clock


def refuse_steps(what: str) -> None:
    """Raise Denied, saying `what` a step cannot do, when this process belongs to a step of whatever run."""
    inside = "PLANRUN_RUN" in os.environ or "PLANRUN_STEP" in os.environ
    if inside or (HAS_PROC and from_step(os.getpid())):
        raise Denied(f"a step of a run cannot {what}")


NAME = "door"
MAX_LINE = 1 << 17  # bytes of one reply
MAX_GUESTS = 16  # connections at once
PATIENCE = 5.0
"""Seconds that a connection may take for its line: nobody who says nothing keeps others out."""
ANSWERED_BY = 10.0
"""Seconds that who answers waits for the run to take it; it looks several times in a second."""
_LONGEST = 100  # bytes of a socket's path that every system takes (Linux: 107, macOS: 103)
_PAUSE = 0.05
_OPENED_BY = 1.0  # seconds from the first gate to a socket, and some more for a busy machine
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid, as SO_PEERCRED gives them


class Deaf(Exception):
    """The process that works on a run cannot be reached; the message says what to do."""


class Door:
    """Where answers come in while a run goes on; opened with the first gate, closed when it ends."""

    def __init__(
        self, rundir: str, clock: Clock, refuse: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        self._rundir = rundir
        self._clock = clock
        self._refuse_secrets = refuse
        self._socket: socket.socket | None = None
        self._closed = not (HAS_PROC and hasattr(socket, "SO_PEERCRED"))
        self._guests: list[_Guest] = []
        remove(rundir)  # of a process that was killed

    def heard(self, state: RunState) -> list[GateAnswered]:
        """Return what was answered since the last call, checked; never waits for anybody."""
        if not open_gates(state):
            return []
        self._open()
        self._admit()
        answers: list[GateAnswered] = []
        for guest in list(self._guests):
            try:
                line = guest.line()
                if line is None and not guest.is_late:
                    continue
                if line:
                    # One at a time: the second to answer the same gate hears that it was answered.
                    answers += self._heed(guest, line, state)
            except OSError:
                pass
            guest.close()
            self._guests.remove(guest)
            if answers:
                break
        if {gate.step for gate in open_gates(state)} <= {event.step for event in answers}:
            self._shut()  # nobody is asked any more, and nobody would listen
        return answers

    def close(self) -> None:
        """Take the socket away for good; whoever waits at it hears nothing, and looks again."""
        self._shut()
        self._closed = True

    def _shut(self) -> None:
        for guest in self._guests:
            guest.close()
        self._guests = []
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            remove(self._rundir)

    def _open(self) -> None:
        """Listen; where that cannot be, the door stays closed and answers wait until the run rests."""
        if self._closed or self._socket is not None:
            return
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.setblocking(False)
            remove(self._rundir)  # what a step may have put in its place
            for path in _paths(self._rundir):
                listening.bind(path)
                os.chmod(os.path.join(self._rundir, NAME), 0o600)
                listening.listen(MAX_GUESTS)
                self._socket = listening
                return
        except OSError:
            pass
        self._closed = True
        listening.close()

    def _admit(self) -> None:
        while self._socket is not None and len(self._guests) < MAX_GUESTS:
            try:
                found, _ = self._socket.accept()
            except OSError:  # nobody waits, or whoever did is gone
                return
            found.setblocking(False)
            self._guests.append(_Guest(found, self._clock))

    def _heed(self, guest: _Guest, line: bytes, state: RunState) -> list[GateAnswered]:
        try:
            self._refuse(guest)
            answers = events_of(_parsed(line), state, self._clock.stamp())
            if self._refuse_secrets:
                self._refuse_secrets({event.step: event.answer for event in answers})
        except PlanrunError as error:
            guest.say({"error": str(error), "exit_code": error.exit_code})
            return []
        guest.say({"answers": [vars(event) for event in answers]})
        return answers

    def _refuse(self, guest: _Guest) -> None:
        pid, user = guest.credentials()
        if user != os.geteuid():
            raise Denied("this run belongs to somebody else")
        if from_step(pid):
            raise Denied("a step of a run cannot answer gates")


class _Guest:
    """One connection and what came through it so far."""

    def __init__(self, connection: socket.socket, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._until = clock.monotonic() + PATIENCE
        self._data = b""

    @property
    def is_late(self) -> bool:
        return self._clock.monotonic() > self._until

    def line(self) -> bytes | None:
        """Return the line when it is there, b"" when none will come; None: it may still come. Raises OSError."""
        while b"\n" not in self._data:
            try:
                data = self._connection.recv(MAX_LINE)
            except BlockingIOError:
                return None
            self._data += data
            if not data or len(self._data) > MAX_LINE:
                return b""
        return self._data.partition(b"\n")[0]

    def credentials(self) -> tuple[int, int]:
        """Return process and user of who connected, as the kernel knows them."""
        found = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(found)
        return pid, user

    def say(self, told: dict[str, Any]) -> None:
        """Answer; somebody who does not read has had his answer. Raises OSError."""
        self._connection.send(f"{dumps(told)}\n".encode())

    def close(self) -> None:
        self._connection.close()


def knock(rundir: str, reply: Reply) -> tuple[GateAnswered, ...]:
    """Bring a reply to the run in a folder; returns its answers when they are in the ledger.

    Raises Deaf when nobody listens, InvalidInput and Denied as the run says.
    """
    size = os.path.getsize(_ledger(rundir))
    told = _exchange(rundir, reply)
    if "error" in told:
        kind = Denied if told.get("exit_code") == Denied.exit_code else InvalidInput
        raise kind(str(told["error"]))
    answers = tuple([ev.GateAnswered(**fields) for fields in told["answers"]])
    limit = time.monotonic() + ANSWERED_BY
    while not all(_is_recorded(rundir, size, event) for event in answers):
        if time.monotonic() > limit:
            raise Deaf("the run took the answer and did not record it; planrun status tells how it stands")
        time.sleep(_PAUSE)
    return answers


def remove(rundir: str) -> None:
    """Take away what a killed run left."""
    try:
        os.unlink(os.path.join(rundir, NAME))
    except OSError:
        return


def _exchange(rundir: str, reply: Reply) -> dict[str, Any]:
    said = dumps(
        {name: list(value) if isinstance(value, tuple) else value for name, value in vars(reply).items()}
    )
    with _connected(rundir) as connection:
        connection.settimeout(ANSWERED_BY)
        try:
            connection.sendall(f"{said}\n".encode())
            data = b""
            while not data.endswith(b"\n") and (more := connection.recv(MAX_LINE)):
                data += more
            told: dict[str, Any] = json.loads(data)
        except (OSError, ValueError):
            raise Deaf(_unheard(rundir)) from None
    return told


def _connected(rundir: str) -> socket.socket:
    """Connect; a door that is just being opened gets a moment."""
    limit = time.monotonic() + _OPENED_BY
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            for path in _paths(rundir):
                connection.connect(path)
                return connection
        except OSError:
            pass
        connection.close()
        if time.monotonic() > limit:
            raise Deaf(_unheard(rundir))
        time.sleep(_PAUSE)


def _paths(rundir: str) -> Iterator[str]:
    """Yield the one spelling of the socket's path that is short enough, if there is any."""
    path = os.path.join(rundir, NAME)
    spelled = [path, os.path.relpath(path)]
    short = [word for word in spelled if len(os.fsencode(word)) <= _LONGEST]
    if short:
        yield short[0]
        return
    try:
        folder = os.open(rundir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield f"/proc/self/fd/{folder}/{NAME}"
    finally:
        os.close(folder)


def _parsed(line: bytes) -> Reply:
    """Return the reply on a line; raises InvalidInput for anything else."""
    try:
        found = json.loads(line)
        verb = found.pop("verb")
        steps, skip = (tuple(map(_text, found.pop(name, ()))) for name in ("steps", "skip"))
        rest = {name: _text(value) for name, value in found.items() if name in ("by", "reason", "digest")}
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise InvalidInput("not a reply") from None
    if verb not in ("approve", "reject", "decide"):
        raise InvalidInput("not a reply")
    return Reply(verb=verb, steps=steps, skip=skip, **rest)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _is_recorded(rundir: str, size: int, event: GateAnswered) -> bool:
    """Say whether an answer stands behind the first `size` bytes of a ledger."""
    with open(_ledger(rundir), "rb") as file:
        file.seek(size)
        rows = file.read().splitlines(keepends=True)
    whole = [json.loads(row) for row in rows if row.endswith(b"\n") and b'"gate_answered"' in row]
    return any(row["step"] == event.step and row["at"] == event.at for row in whole)


def _ledger(rundir: str) -> str:
    return os.path.join(rundir, LEDGER)


def _unheard(rundir: str) -> str:
    run = os.path.basename(rundir)
    return (
        f"the process that works on the run {run} takes no answers now: answer when the run has come to rest, "
        f"then planrun resume {run} goes on"
    )
