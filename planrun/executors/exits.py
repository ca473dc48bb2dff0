"""How an attempt's end is told: statuses, reasons and sentences."""

from __future__ import annotations

# `_signal` and not `signal`: see signals.py.
import _signal
import os

from planrun.model.job import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.executors.attempt import Attempt

    Status = Literal["completed", "failed", "cancelled"]
    Verdict = tuple[Status, str, str]  # status, reason, message

CANCELLED: Verdict = ("cancelled", "cancelled", "cancelled")
DEADLINE: Verdict = ("failed", "timeout", "stopped by the deadline of the run")


def timed_out(timeout: float) -> Verdict:
    """The attempt took longer than it may."""
    return "failed", "timeout", f"timed out after {span(timeout)}"


def fell_silent(idle_timeout: float) -> Verdict:
    """The attempt wrote nothing for longer than it may."""
    return "failed", "idle_timeout", f"no output for {span(idle_timeout)}"


def outcome(attempt: Attempt, log_bytes: int, errors: tuple[int, int] | None = None) -> Outcome:
    """What an attempt that is over came to; `errors`: where in its log the last of stderr stands."""
    status = attempt.wait_status
    code = None if status is None else os.waitstatus_to_exitcode(status)
    verdict, reason, message = attempt.verdict or _own_end(code)
    fields: dict[str, Any] = {
        "status": verdict,
        "reason": reason,
        "duration": round(attempt.ended - attempt.started, 6),
    }
    if code is not None:
        fields["exit_code"] = code if code >= 0 else 128 - code
        if code < 0:
            fields["signal"] = -code
    if message:
        fields["message"] = message
    if log_bytes:
        fields["log_bytes"] = log_bytes
        if errors and verdict == "failed":
            fields["stderr"] = errors
    if notes := _notes(attempt):
        fields["notes"] = notes
    return Outcome(**fields)


def span(seconds: float) -> str:
    """A duration as plans write it: 500ms, 30s, 5m, 1h30m."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    if seconds % 60:
        return f"{seconds:g}s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours}h" * bool(hours) + f"{minutes}m" * bool(minutes)


def signal_name(signum: int) -> str:
    """SIGKILL for 9; "signal 40" for one without a name."""
    names = [
        name
        for name, value in vars(_signal).items()
        if value == signum and name.startswith("SIG") and not name.startswith("SIG_")
    ]
    return min(names, default=f"signal {signum}")  # of two names the older: SIGABRT, not SIGIOT


def _own_end(code: int | None) -> Verdict:
    if code == 0:
        return "completed", "ran", ""
    if code is None:
        return "failed", "exit", "its exit status was taken by another part of this program"
    if code > 0:
        return "failed", "exit", f"exit code {code}"
    return "failed", "exit", f"killed by {signal_name(-code)}"


def _notes(attempt: Attempt) -> tuple[str, ...]:
    notes = []
    ended = len(attempt.swept.difference(attempt.stuck))
    if ended:
        notes.append(f"{ended} background process{'' if ended == 1 else 'es'} ended")
    elif attempt.swept_group and not attempt.swept:
        notes.append("background processes ended")
    if attempt.stuck:
        notes.append(f"not ended even by SIGKILL: process {', '.join(map(str, attempt.stuck))}")
    if attempt.held:
        notes.append("output held open by a process that could not be found; what it writes later is lost")
    return tuple(notes)
