"""The control socket of an active run: other processes of the same user answer its gates through it.

The socket exists in the run's folder while a gate is open. Each connection carries one JSON line each way: verb, steps,
skip, by, reason and digest as in Reply; the response has `answers`, the events to be recorded, or `error`. The caller
check refuses steps of any run, and connections whose process the kernel does not name.
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
from planrun.opening import open_record
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
    """Raise Denied with `what` a step cannot do, when this process belongs to a step of any run."""
    inside = "PLANRUN_RUN" in os.environ or "PLANRUN_STEP" in os.environ
    if inside or (HAS_PROC and from_step(os.getpid())):
        raise Denied(f"a step of a run cannot {what}")


NAME = "door"
MAX_LINE = 1 << 17  # bytes of one reply
MAX_CONNECTIONS = 16  # connections at once
PATIENCE = 5.0
"""Seconds within which a connection must send its line; a silent one blocks no other."""
ANSWERED_BY = 10.0
"""Seconds that a client waits until the run records its answer; the run polls several times a second."""
_LONGEST = 100  # bytes of a socket's path that every system supports (Linux: 107, macOS: 103)
_PAUSE = 0.05
_OPENED_BY = 1.0  # seconds from the first gate to a socket, with a margin for a busy machine
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid, as SO_PEERCRED gives them


class ControlSocketUnavailable(Exception):
    """The process that works on a run cannot be reached; the message says what to do."""


class Listener:
    """The server side of a socket in the folder of a run: one JSON line each way, but for its steps."""

    def __init__(self, rundir: str, clock: Clock, name: str = NAME) -> None:
        self._rundir = rundir
        self._clock = clock
        self._name = name
        self._socket: socket.socket | None = None
        self._closed = not (HAS_PROC and hasattr(socket, "SO_PEERCRED"))
        self._connections: list[Connection] = []
        remove(rundir, name)  # of a process that was killed

    def serve(self, handle: Callable[[Connection, bytes], bool]) -> None:
        """Give each line that has arrived to `handle`, without waiting, until it returns True; close its connection."""
        self._open()
        self._accept()
        for client in list(self._connections):
            is_enough = False
            try:
                line = client.line()
                if line is None and not client.is_late:
                    continue
                if line:
                    is_enough = handle(client, line)
            except OSError:
                pass
            client.close()
            self._connections.remove(client)
            if is_enough:
                return

    def close(self) -> None:
        """Remove the socket for good; a waiting client gets no response and tries again."""
        self._close()
        self._closed = True

    def _close(self) -> None:
        for client in self._connections:
            client.close()
        self._connections = []
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            remove(self._rundir, self._name)

    def _open(self) -> None:
        if self._closed or self._socket is not None:
            return
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.setblocking(False)
            remove(self._rundir, self._name)  # a step may have put something else there
            for path in _paths(self._rundir, self._name):
                listening.bind(path)
                os.chmod(os.path.join(self._rundir, self._name), 0o600)
                listening.listen(MAX_CONNECTIONS)
                self._socket = listening
                return
        except OSError:
            pass
        self._closed = True
        listening.close()

    def _accept(self) -> None:
        while self._socket is not None and len(self._connections) < MAX_CONNECTIONS:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # no client waits, or it is gone
                return
            connection.setblocking(False)
            self._connections.append(Connection(connection, self._clock))

    def refuse(self, client: Connection, what: str = "answer gates") -> None:
        """Raise Denied for a client of another user, or one that is a step of any run."""
        pid, user = client.credentials()
        if user != os.geteuid():
            raise Denied("this run belongs to another user")
        if from_step(pid):
            raise Denied(f"a step of a run cannot {what}")


class ControlSocket(Listener):
    """The socket for answers: opened with the first gate, closed when the run ends."""

    def __init__(
        self, rundir: str, clock: Clock, refuse: Callable[[Mapping[str, str]], None] | None = None
    ) -> None:
        super().__init__(rundir, clock)
        self._refuse_secrets = refuse

    def poll_replies(self, state: RunState) -> list[GateAnswered]:
        """Return the checked answers since the last call, without waiting."""
        if not open_gates(state):
            return []
        answers: list[GateAnswered] = []

        def handle(client: Connection, line: bytes) -> bool:
            # One at a time: a second answer to the same gate is refused as answered.
            answers.extend(self._handle(client, line, state))
            return bool(answers)

        self.serve(handle)
        if {gate.step for gate in open_gates(state)} <= {event.step for event in answers}:
            self._close()  # no gate is open any more
        return answers

    def _handle(self, client: Connection, line: bytes, state: RunState) -> list[GateAnswered]:
        try:
            self.refuse(client)
            try:
                data = json.loads(line)
                verb = data.pop("verb")
                steps, skip = (tuple(map(_text, data.pop(name, ()))) for name in ("steps", "skip"))
                rest: dict[str, Any] = {
                    name: _text(value) for name, value in data.items() if name in ("by", "reason", "digest")
                }
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
                raise InvalidInput("not a reply") from None
            if verb not in ("approve", "reject", "decide"):
                raise InvalidInput("not a reply")
            answers = events_of(Reply(verb=verb, steps=steps, skip=skip, **rest), state, self._clock.stamp())
            if self._refuse_secrets:
                self._refuse_secrets({event.step: event.answer for event in answers})
        except PlanrunError as error:
            client.send({"error": str(error), "exit_code": error.exit_code})
            return []
        client.send({"answers": [vars(event) for event in answers]})
        return answers


class Connection:
    """One connection and the data received on it."""

    def __init__(self, connection: socket.socket, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._until = clock.monotonic() + PATIENCE
        self._data = b""

    @property
    def is_late(self) -> bool:
        """Whether its line should have arrived."""
        return self._clock.monotonic() > self._until

    def line(self) -> bytes | None:
        """Return the line, b"" when none will arrive, None when it may still arrive. Raises OSError."""
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
        """Return process and user of the client, from the kernel."""
        packed = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(packed)
        return pid, user

    def send(self, response: dict[str, Any]) -> None:
        """Send the response, without waiting until the client reads it. Raises OSError."""
        self._connection.send(f"{dumps(response)}\n".encode())

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def notify(rundir: str, reply: Reply) -> tuple[GateAnswered, ...]:
    """Send a reply to the run in a folder; returns its answers once they are in the ledger.

    Raises ControlSocketUnavailable when no process listens, InvalidInput and Denied when the run refuses.
    """
    size = os.path.getsize(_ledger(rundir))
    fields = vars(reply).items()
    response = exchange(
        rundir, {name: list(value) if isinstance(value, tuple) else value for name, value in fields}
    )
    if "error" in response:
        kind = Denied if response.get("exit_code") == Denied.exit_code else InvalidInput
        raise kind(str(response["error"]))
    answers = tuple([ev.GateAnswered(**fields) for fields in response["answers"]])
    limit = time.monotonic() + ANSWERED_BY
    while not all(_is_recorded(rundir, size, event) for event in answers):
        if time.monotonic() > limit:
            raise ControlSocketUnavailable(
                "the run received the answer and did not record it; `planrun status` shows its state"
            )
        time.sleep(_PAUSE)
    return answers


def remove(rundir: str, name: str = NAME) -> None:
    """Remove the socket of a killed run."""
    try:
        os.unlink(os.path.join(rundir, name))
    except OSError:
        return


def exchange(rundir: str, asked: Mapping[str, Any], name: str = NAME) -> dict[str, Any]:
    """Send a request to the process of a run and return its response; raises ControlSocketUnavailable."""
    request = dumps(dict(asked))
    with _connected(rundir, name) as connection:
        connection.settimeout(ANSWERED_BY)
        try:
            connection.sendall(f"{request}\n".encode())
            data = b""
            while not data.endswith(b"\n") and (more := connection.recv(MAX_LINE)):
                data += more
            response: dict[str, Any] = json.loads(data)
        except (OSError, ValueError):
            raise ControlSocketUnavailable(_unavailable(rundir)) from None
    return response


def _connected(rundir: str, name: str) -> socket.socket:
    limit = time.monotonic() + _OPENED_BY
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            for path in _paths(rundir, name):
                connection.connect(path)
                return connection
        except OSError:
            pass
        connection.close()
        if time.monotonic() > limit:
            raise ControlSocketUnavailable(_unavailable(rundir))
        time.sleep(_PAUSE)


def _paths(rundir: str, name: str) -> Iterator[str]:
    """Yield the one form of the socket's path that is short enough, if there is one."""
    path = os.path.join(rundir, name)
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
        yield f"/proc/self/fd/{folder}/{name}"
    finally:
        os.close(folder)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _is_recorded(rundir: str, size: int, event: GateAnswered) -> bool:
    with open(open_record(_ledger(rundir)), "rb") as file:
        file.seek(size)
        rows = file.read().splitlines(keepends=True)
    whole = [json.loads(row) for row in rows if row.endswith(b"\n") and b'"gate_answered"' in row]
    return any(row["step"] == event.step and row["at"] == event.at for row in whole)


def _ledger(rundir: str) -> str:
    return os.path.join(rundir, LEDGER)


def _unavailable(rundir: str) -> str:
    run = os.path.basename(rundir)
    return (
        f"the process of the run {run} takes no answers now: answer when the run has stopped, "
        f"then continue it: planrun resume {run}"
    )
