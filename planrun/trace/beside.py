"""The process that sends the spans of a run, seen from planrun: started before the first step, and never waited for.

OpenTelemetry is loaded there and not in planrun. At the end of a run it has one second to send the last spans, from
when it has loaded OpenTelemetry; a collector that is slower delays nothing more: the process goes on alone, and ends
within half a minute.
"""

from __future__ import annotations

import json
import os
import select
import time

from planrun import entry
from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.errors import InvalidInput
from planrun.trace.sending import ENDPOINTS, endpoint_of, require_otel

READY = b"ready\n"
"""What the process writes first, when steps cannot read its memory."""
LOADED = b"loaded\n"
"""What it writes when it has loaded OpenTelemetry."""
_START = 10.0  # seconds until it is ready, on a machine with much else to do
_WAIT = 1.0  # seconds at the end of a run
# What the process gets of planrun's environment when it starts, when steps can still read it.
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "requests_ca_bundle", "ssl_cert_file")


def require_exporter() -> None:
    """Raise InvalidInput when spans cannot be sent: OpenTelemetry or the address of a collector is missing."""
    require_otel()
    found = next((os.environ[name] for name in ENDPOINTS if os.environ.get(name)), "")
    if not found:
        raise InvalidInput(
            f"--otel needs the URL of a collector in {ENDPOINTS[1]}, e.g. http://localhost:4318"
        )
    endpoint_of(found)


class Exporter:
    """The process; `close` gives it a moment for the last spans and reports what was not sent."""

    def __init__(self, rundir: str) -> None:
        """Start it for the run in `rundir`."""
        self._in, self._out = _spawn()
        settings = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("OTEL_") or name.lower() in _PROXIES
        }
        order = {"rundir": os.path.abspath(rundir), "env": settings}
        if self._receive(_START) == READY:
            self._give(json.dumps(order).encode() + b"\n")
        else:
            _report("its process did not start")

    def close(self) -> None:
        """Let it send what is left, for one second."""
        os.close(self._in)
        data = self._receive(_START)
        if data == LOADED:
            data = self._receive(_WAIT)
            if data is None:
                _report("the collector does not answer, or is slow; they are still being sent")
        os.close(self._out)
        if data is None:
            return
        try:
            failure = json.loads(data)
        except ValueError:
            failure = "its process ended unexpectedly"
        if failure:
            _report(str(failure))

    def _receive(self, seconds: float) -> bytes | None:
        """Return the next line of the process, empty at its end; None when nothing comes in time."""
        data, until = b"", time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        while not data.endswith(b"\n"):
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                return None
            piece = os.read(self._out, 1)
            if not piece:
                break
            data += piece
        return data

    def _give(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._in, data) :]
        except OSError:  # it ended; `close` reports that
            return


def _report(why: str) -> None:
    write_stderr(f"planrun: warning: not all spans were sent: {printable(why)}\n")


def _spawn() -> tuple[int, int]:
    """Start the process in a session of its own, by a shell that is gone at once; return its input and output.

    So it is no child of planrun's: nothing waits for it, and it goes on when planrun has ended.
    """
    theirs_in, ours_in = os.pipe()  # closed on exec, as all that is not named below
    ours_out, theirs_out = os.pipe()
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            [
                "sh",
                "-c",
                '"$@" <&3 3<&- &',
                "sh",
                *entry.command("planrun.trace.exporter.work", flags=("-P",)),
            ],
            {name: value for name, value in os.environ.items() if name in _PASSED},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 1),
            ],
            setsid=True,
        )
        os.waitpid(pid, 0)
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return ours_in, ours_out
