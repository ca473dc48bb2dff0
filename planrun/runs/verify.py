"""The work of `planrun verify`: whether the ledger and the logs of a run are unchanged."""

from __future__ import annotations

import os

from planrun.app.inspect import changed_logs, read, resting_status
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.records.reading import Reading

# Exit codes of `verify`; above the codes of runs, so that they cannot be confused.
VERIFIED = {"intact": 0, "unfinished": 10, "torn": 11, "truncated": 12, "altered": 13}


def verify_run(run: str, head: str | None, *, as_json: bool) -> int:
    """Print whether a run's records are unchanged, and return the exit code; raises InvalidInput."""
    wanted = "" if head is None else _head(head)
    rundir, reading = read(run, wanted)
    name = os.path.basename(rundir)
    logs = changed_logs(rundir, reading)
    if as_json:
        say_json({"run": name, **_reading_data(reading), "logs_changed": logs})
    else:
        say("\n".join([f"{name}: {_verdict(reading)}", *[f"  {printable(log)}" for log in logs]]))
    return VERIFIED["altered"] if logs else VERIFIED[reading.condition]


def _head(text: str) -> str:
    """Return a head in the form of a ledger; refuse an empty one, which may be an unset variable."""
    head = text.strip().lower()
    if len(head) != 64 or head.strip("0123456789abcdef"):
        raise InvalidInput("--head needs the 64 hexadecimal digits that `execute` printed at its end")
    return head


def _verdict(reading: Reading) -> str:
    rests = resting_status(reading)
    events = f"{len(reading.events)} event{'' if len(reading.events) == 1 else 's'}"
    if reading.condition == "altered":
        return f"altered at line {reading.line}: {printable(reading.detail)}; the {events} before are valid"
    detail = f": {printable(reading.detail)}" if reading.detail else ""
    return {
        "intact": f"intact, {events}, head {reading.head}",
        "unfinished": f"unfinished, {events}, no end: the run is still running or was killed"
        if not rests
        else f"unfinished ({rests}), {events}; to continue: planrun resume",
        "torn": f"torn at line {reading.line}{detail}; the {events} before are valid; to continue: planrun resume",
        "truncated": f"truncated{detail}; the {events} that are left are valid",
    }[reading.condition]


def _reading_data(reading: Reading) -> dict[str, object]:
    rests = resting_status(reading)
    return {
        "condition": reading.condition,
        "intact": reading.condition == "intact",
        "paused": rests == "paused",
        "waiting": rests == "waiting",
        "events": len(reading.events),
        "head": reading.head,
        "line": reading.line or None,
        "detail": reading.detail,
    }
