"""The process that calls a model, seen from planrun: started, asked, waited for, ended; see worker/ for its inside.

Only this process loads the libraries for it. It alone receives the credentials, through a pipe, once it has closed
itself to others. The pipe ends with planrun, however planrun ends, and the process ends with the pipe.
"""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
import _signal
import json
import os
import select
import sys
import time

from planrun import entry
from planrun.llm import wire
from planrun.llm.entries import masked, redacted, shown
from planrun.model.call import Answer, Repeat, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.llm.credentials import Endpoint
    from planrun.llm.entries import Mask
    from planrun.model.call import Ending, Request

_GRACE = 5.0  # seconds that the process may be late with an answer that is due, before it is ended
_STOP_GRACE = 2.0  # the same for the answer to a stop
_CHUNK = 1 << 16
_PIECES = 64  # of one line that are taken at once
BACKOFF = 2.0  # seconds before the first repeat (V-68); tests have less patience


class _Call:
    """The call that is under way, as far as planrun knows of it."""

    def __init__(self, request: Request, number: int) -> None:
        self.number = number
        self.began = time.monotonic()
        self.due = self.began + request.seconds + _GRACE
        self.overdue: Ending = "late"
        self.spent: dict[str, Any] = {}

    def answer(self, ending: Ending, message: str, rule: str) -> Answer:
        """Return an end that the process did not report itself, with the cost that it reported."""
        usage = Usage(**self.spent.get("usage", {}))
        return Answer(
            ending=ending,
            usage=usage,
            is_estimate=bool(self.spent.get("is_estimate")),
            attempts=self.spent.get("attempts", 0),
            message=message,
            rule=rule,
        )


class ModelProcess:
    """A model that is asked by a process of its own, which is started when it is needed and stays for several calls.

    `wake`: a descriptor that ends a wait when it can be read, such as that of a SignalInbox. `backoff`: seconds before
    the first repeat of a call. `mask` hides known secrets, credentials among them, in what is asked and answered.
    """

    def __init__(
        self, endpoint: Endpoint, *, wake: int = -1, backoff: float = BACKOFF, mask: Mask = str
    ) -> None:
        self._endpoint = endpoint
        self._mask = mask
        self._wake = wake
        self._backoff = backoff
        self._pid = 0
        self._in = self._out = -1
        self._unsent = b""
        self._unread = bytearray()
        self._open = False  # the process has its address and reads requests
        self._asked = 0
        self._call: _Call | None = None
        self._answer: Answer | None = None
        self._repeats: list[Repeat] = []

    @property
    def pid(self) -> int:
        """The id of the process; 0 when there is none."""
        return self._pid

    @property
    def fd(self) -> int:
        """A descriptor that can be read when something came; -1 while there is no process."""
        return self._out

    def start(self) -> None:
        """Start the process ahead of the first question, so that it loads what it needs meanwhile."""
        if self._pid == 0 and self._endpoint.credentials is not None:
            try:
                self._spawn()
            except OSError:  # `ask` tries again, and reports it
                self._end()

    def ask(self, request: Request) -> None:
        """Begin a call; what goes wrong comes back as its answer."""
        self._asked += 1
        self._answer = None
        self._call = _Call(request, self._asked)
        if self._endpoint.credentials is None:
            self._settle(self._call.answer("unauthorized", self._endpoint.lacking, "credentials:none"))
            return
        try:
            if self._pid == 0:
                self._spawn()
        except OSError as error:
            self._end()
            message = f"the process that calls the model cannot be started: {error.strerror or error}"
            self._settle(self._call.answer("unavailable", message, "process:not_started"))
            return
        self._send(wire.line("ask", number=self._asked, request=wire.as_data(masked(request, self._mask))))

    def wait(self, timeout: float | None) -> Answer | None:
        """Return the answer; None after `timeout` seconds, when `wake` can be read, or when nothing was asked."""
        until = None if timeout is None else time.monotonic() + timeout
        while self._call is not None:
            now = time.monotonic()
            if now >= self._call.due:
                self._overdue()
                break
            limit = self._call.due if until is None else min(until, self._call.due)
            woken = self._exchange(max(0.0, limit - now))
            if woken or (until is not None and time.monotonic() >= until):
                break
        answer, self._answer = self._answer, None
        return answer

    def repeats(self) -> list[Repeat]:
        """Return which attempts were in vain since this was asked last; see `planrun.ports.Model`."""
        repeats, self._repeats = self._repeats, []
        return repeats

    def stop(self) -> None:
        """End the call that is under way; its answer says what it cost so far."""
        if self._call is not None:
            self._call.due = min(self._call.due, time.monotonic() + _STOP_GRACE)
            self._call.overdue = "stopped"
            self._send(wire.line("stop"))

    def close(self) -> None:
        """Leave nothing running."""
        self._call = None
        self._end()

    def _spawn(self) -> None:
        """Start the process with an environment made from scratch, in a session of its own; raises OSError."""
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:  # so that none of the pipes lands there
            pass
        os.close(null)
        theirs_in, self._in = os.pipe()  # closed on exec, as all that is not named below
        self._out, theirs_out = os.pipe()
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                entry.command("planrun.llm.worker.serve"),
                dict(self._endpoint.environ),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs_in, 0),
                    (os.POSIX_SPAWN_DUP2, theirs_out, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,  # a Ctrl-C is for planrun, which then ends the call
                setsigmask=(),
                setsigdef=[number for number in _signal.valid_signals() if _ignored(number)],
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    def _exchange(self, seconds: float) -> bool:
        """Wait for the process, send what is left to send, take what came; whether `wake` ended it."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if self._unsent and self._open:
            poll.register(self._in, select.POLLOUT)
        if self._wake >= 0:
            poll.register(self._wake, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(seconds * 1000)]
        if self._out in ready:
            self._receive()
        if self._in in ready and self._pid:
            self._send(b"")
        return self._wake in ready

    def _send(self, data: bytes) -> None:
        self._unsent += data
        try:
            while self._unsent and self._open:
                self._unsent = self._unsent[os.write(self._in, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it has ended; what it said before is still to be read
            self._unsent = b""

    def _receive(self) -> None:
        """Take what came; of a long line, which comes in pieces, as many as follow each other closely."""
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        for _ in range(_PIECES):
            try:
                data = os.read(self._out, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._lost()
                return
            self._unread += data  # in place: a line may come in thousands of pieces
            lines: list[bytearray] = []
            if b"\n" in data:
                *lines, self._unread = self._unread.split(b"\n")
            for line in lines:
                self._take(json.loads(line))
            if lines or not poll.poll(1):  # the caller has other things to do
                return

    def _take(self, said: dict[str, Any]) -> None:
        if said["word"] == "ready":
            if said["shelter"] == "traced":
                if self._call:
                    message = (
                        "another process controls the one that calls the model; no credentials are sent to it"
                    )
                    self._settle(self._call.answer("unavailable", message, "process:traced"))
                self._end()
                return
            service = {"base_url": self._endpoint.base_url, "backoff": self._backoff}
            credentials = self._endpoint.credentials
            assert credentials is not None
            known = {"kind": credentials.kind, "fields": dict(credentials.fields)}
            # Ahead of everything else that waits to be sent; the process is closed to others from now on.
            self._unsent = wire.line("open", service=service, credentials=known) + self._unsent
            self._open = True
            self._send(b"")
        elif self._call is None or said["number"] != self._call.number:
            return
        elif said["word"] == "spent":
            self._call.spent = said
        elif said["word"] == "repeat":
            self._repeats.append(
                Repeat(
                    attempt=said["attempt"], message=shown(said["message"], self._mask), delay=said["delay"]
                )
            )
        else:
            self._settle(wire.as_answer(said["answer"]))
            if said["last"]:
                self._end()

    def _settle(self, answer: Answer) -> None:
        assert self._call is not None
        self._answer = redacted(answer, self._mask).but(duration=time.monotonic() - self._call.began)
        self._call = None

    def _overdue(self) -> None:
        assert self._call is not None
        ending = self._call.overdue
        message = "stopped" if ending == "stopped" else "the process that calls the model did not end in time"
        self._settle(self._call.answer(ending, message, "process:overdue"))
        self._end()

    def _lost(self) -> None:
        """Answer for a process that ended unasked."""
        status = self._end(patience=_STOP_GRACE)
        if self._call is None:
            return
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        message = f"the process that calls the model ended unexpectedly ({how})"
        self._settle(self._call.answer("unavailable", message, "process:lost"))

    def _end(self, patience: float = 0.0) -> int:
        """Leave no process and no descriptor, after `patience` seconds by force.

        Returns the exit code, negative for a signal.
        """
        pid, self._pid = self._pid, 0
        for descriptor in (self._in, self._out):
            if descriptor >= 0:
                os.close(descriptor)
        self._in = self._out = -1
        self._unsent, self._unread = b"", bytearray()
        self._open = False
        return _reap(pid, time.monotonic() + patience) if pid else 0


def _reap(pid: int, until: float) -> int:
    try:
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= until:
                os.kill(pid, _signal.SIGKILL)
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            time.sleep(0.01)
    except ChildProcessError:  # the program around us waits for any child
        return 0


def _ignored(number: int) -> bool:
    return _signal.getsignal(number) == _signal.SIG_IGN
