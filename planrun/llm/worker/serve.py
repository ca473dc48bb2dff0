"""The process that calls a model: reads requests from planrun, and keeps the deadline of each call.

One thread listens; the other one, the main thread, loads the library and makes the calls. What has to end at once
(no time left, a stop, planrun gone) ends the process, since nothing else ends a thread that waits for a network. Before
it receives credentials the process closes itself to all others of its user.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import queue
import resource
import select
import sys
import threading

from planrun.llm import wire
from planrun.llm.worker.call import Call, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4  # prctl(2)
_STATUS = "/proc/self/status"


def deny_inspection() -> str:
    """Make memory, environment and descriptors of this process unreadable; returns what became of it.

    hidden: the system granted it. open: it has no such thing (macOS). traced: another process came first, and sees all.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file has the credentials
    if sys.platform != "linux":
        return "open"
    library = ctypes.CDLL(None)
    library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if library.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0):
        return "open"
    return "traced" if _tracer() else "hidden"


def _tracer() -> int:
    """Return the id of a process that has this one under its control since before; 0: there is none."""
    with open(_STATUS, encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("TracerPid:"):
                return int(line.split()[1])
    return 0


_CHUNK = 1 << 16


class Listener:
    """What planrun says, read as it comes, also while the library is being loaded."""

    def __init__(self, line: Line) -> None:
        self.opened: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._line = line
        self._call: Call | None = None

    def listen(self) -> None:
        """Read until planrun is gone, and end the process then."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        unread = b""
        while True:
            if not poll.poll(None if self._call is None else max(0.0, self._call.left) * 1000 + 1):
                if self._call is not None and self._call.left <= 0:
                    call, self._call = self._call, None
                    call.cut("late", f"the model did not answer within {call.request.seconds:.3g} s")
                continue
            data = os.read(0, _CHUNK)
            if not data:
                os._exit(0)
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))

    def _hear(self, said: dict[str, Any]) -> None:
        if said["word"] == "open":
            self.opened.put(said)
        elif said["word"] == "ask":
            self._call = Call(said["number"], wire.as_request(said["request"]), self._line)
            self.calls.put(self._call)
        elif self._call is not None:
            self._call.cut("stopped", "stopped")


def main(_words: Sequence[str]) -> None:
    """Be the process: shelter, then listen, then load the library, then answer one call after the other."""
    shelter = deny_inspection()
    line = Line()
    listener = Listener(line)
    threading.Thread(target=listener.listen, daemon=True).start()
    line.say("ready", shelter=shelter)
    try:
        _answer_all(listener)
    except ImportError as error:
        text = f"the anthropic package cannot be loaded: {error.msg}; reinstall it by pip"
        listener.calls.get().cut("unavailable", text)
    sys.exit(0)


def _answer_all(listener: Listener) -> None:
    gc.disable()  # the library makes thousands of classes and no garbage; to look for some takes a fifth of its import
    from planrun.llm.worker.caller import Caller

    gc.freeze()
    gc.enable()
    caller = Caller(listener.opened.get())
    while True:
        call = listener.calls.get()
        call.end(caller.answer(call))
