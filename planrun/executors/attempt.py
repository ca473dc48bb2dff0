"""One attempt from its start to the end of its last process: timers, signals, cleanup, outcome."""

from __future__ import annotations

import _signal
import os

from planrun.model.job import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.logs import Output
    from planrun.executors.tree import ProcessTree
    from planrun.model.job import Job

# `_signal` and not `signal`: see signals.py.


if TYPE_CHECKING:
    from typing import Any, Literal

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


# `_signal` and not `signal`: see signals.py.


NEVER = float("inf")
SHOW_LOG_AFTER = 1.0  # seconds until a running attempt's log has its name, for people who follow it
# After the main process ended, its others have these seconds; together less than the 2 that are promised.
LINGER = 0.3  # to end by themselves: in `exec > >(tee log)` tee has yet to write the last lines
ASKED = 0.6  # after SIGTERM
UNKILLABLE = 1.0  # after SIGKILL, when waiting is given up: somebody else's process (sudo), a dead disk
_IDLE_LOOKS, _IDLE_PAUSE = 4, 0.5  # looks per idle timeout; seconds between two at most
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05  # seconds between two looks at processes that are about to end

_RUNNING = 0  # the main process runs and nothing is wanted of it
_STOPPING = 1  # it was asked to end
_KILLED = 2  # SIGKILL was sent
_LEAVING = 3  # the main process ended, others of its tree have not


class Attempt:
    """A running attempt; all times are monotonic seconds.

    `look` is to be called when `wake` has come, `main_ended` once; when `over` is true nothing of it is left.
    """

    __slots__ = (
        "_asked_by",
        "_deadline",
        "_idle_at",
        "_kill_at",
        "_last_growth",
        "_pause",
        "_show_at",
        "_size",
        "_stage",
        "_stopped",
        "_term_at",
        "ended",
        "held",
        "job",
        "log",
        "over",
        "started",
        "stuck",
        "swept",
        "swept_group",
        "tree",
        "verdict",
        "wait_status",
        "wake",
    )

    def __init__(self, job: Job, log: Output, tree: ProcessTree, started: float) -> None:
        self.job = job
        self.log = log
        self.tree = tree
        self.started = self.ended = started
        self.over = False
        self.verdict: Verdict | None = None  # decided by us; what the process does later changes nothing
        self.wait_status: int | None = None
        self.swept: set[int] = set()  # process ids that had to be ended after the main process
        self.swept_group = False  # likewise, where single processes cannot be told
        self.stuck: tuple[int, ...] = ()  # process ids that did not end
        self.held = False  # somebody who was not found kept the output open
        self._stage = _RUNNING
        self._stopped = False
        self._asked_by = 0
        self._deadline = started + job.timeout
        self._show_at = NEVER if log.shown else started + SHOW_LOG_AFTER
        self._size = 0
        self._last_growth = started
        self._idle_at = NEVER if job.idle_timeout is None else started + self._idle_pause(job.idle_timeout)
        self._term_at = self._kill_at = NEVER
        self._pause = _FIRST_PAUSE
        self.wake = min(self._deadline, self._show_at, self._idle_at)

    def look(self, now: float, grace: float) -> None:
        """Do what is due at this time; `grace`: seconds between asking and killing."""
        if self._stage == _LEAVING:
            self._sweep(now)
        elif self._stage == _STOPPING:
            self.kill(now)
        elif self._stage == _KILLED:
            self.ended = now
            self.stuck = (self.tree.leader, *self.tree.members())
            self.over = True
        else:
            self._look_at_timers(now, grace)

    def stop(self, verdict: Verdict, now: float, grace: float) -> None:
        """Ask by SIGTERM; when it is called again, kill."""
        if self._stopped:
            self.kill(now)
        else:
            self._stopped = True
            self.ask(_signal.SIGTERM, verdict, now + grace)

    def ask(self, signum: int, verdict: Verdict, kill_at: float) -> None:
        """Decide the end and signal every process once; an attempt that was asked before is left in peace."""
        if self._stage != _RUNNING:
            return
        self._stage = _STOPPING
        self.verdict = verdict
        self._asked_by = signum
        self._kill_at = self.wake = kill_at
        self.tree.look()  # now, while the parent of a process still says whose it is
        self.tree.signal(signum)
        self.tree.signal(_signal.SIGCONT)  # one that is stopped gets no other signal

    def kill(self, now: float) -> None:
        """Kill every process; an end that was not decided before is `cancelled`."""
        if self._stage == _LEAVING:
            self._kill_at = min(self._kill_at, now)
            self.wake = now
        elif self._stage != _KILLED:
            self.verdict = self.verdict or CANCELLED
            self._stage = _KILLED
            self.wake = now + UNKILLABLE
            self.tree.look()
            self.tree.signal(_signal.SIGKILL)

    def main_ended(self, wait_status: int | None, now: float) -> None:
        """Take note that the main process was reaped, and see who is left of it."""
        self.wait_status = wait_status
        self.ended = now
        self.log.main_ended(failed=wait_status != 0)
        self.tree.leading = False
        if not self._suspicious():
            self.over = True
        elif not self.tree.may_look(now):
            self._leave(now)
            self.wake = self.tree.next_look
        elif self.tree.look(self.log.held_as()) or self.log.unfinished():
            self._leave(now)
        else:
            self.over = True

    def _suspicious(self) -> bool:
        """Whether anybody may be left; a step without children pays one system call for this."""
        if self.verdict is not None:
            return True
        tree = self.tree
        if tree.childless():
            return self.log.unfinished()  # it can be handed to somebody else's process all the same
        return tree.has_group() or self.log.held() or tree.suspected()

    def _leave(self, now: float) -> None:
        if self._stage == _RUNNING:
            self._term_at = now + LINGER
            self._kill_at = self._term_at + ASKED
        elif self._stage == _STOPPING and self._asked_by != _signal.SIGTERM:
            self._term_at = now + LINGER  # a shell lets its background processes ignore SIGINT
        elif self._stage == _KILLED:
            self._kill_at = now
        self._stage = _LEAVING
        self.wake = now + self._pause

    def _sweep(self, now: float) -> None:
        if not self.tree.may_look(now):
            self.wake = self.tree.next_look
            return
        if not self.tree.remaining() and not self.tree.look(self.log.held_as()):
            self._await_output(now)
            return
        if now >= self._kill_at + UNKILLABLE:
            self.stuck = self.tree.members()
            self.over = True
        elif now >= self._kill_at:
            self._sweep_with(_signal.SIGKILL)
        elif now >= self._term_at:
            self._term_at = NEVER
            self._sweep_with(_signal.SIGTERM)
            self.tree.signal(_signal.SIGCONT)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        self.wake = now + self._pause

    def _await_output(self, now: float) -> None:
        """Let somebody who is not to be found write to the end, as long as the others would have had to end."""
        self.held = self.log.unfinished()
        if not self.held or now >= min(self._kill_at, self.ended + LINGER + ASKED):
            self.over = True
            return
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        self.wake = now + self._pause

    def _sweep_with(self, signum: int) -> None:
        self.tree.look(self.log.held_as(), thorough=True)
        self.swept.update(self.tree.members())
        self.swept_group = True
        self.tree.signal(signum)

    def _look_at_timers(self, now: float, grace: float) -> None:
        if now >= self._show_at:
            self._show_at = NEVER
            self.log.show()
        if now >= self._deadline:
            self.ask(_signal.SIGTERM, timed_out(self.job.timeout), now + grace)
            return
        idle = self.job.idle_timeout
        if idle is not None and now >= self._idle_at:
            if self._silent_since(now) >= idle:
                self.ask(_signal.SIGTERM, fell_silent(idle), now + grace)
                return
            self._idle_at = min(now + self._idle_pause(idle), self._last_growth + idle)
        self.wake = min(self._deadline, self._show_at, self._idle_at)

    def _silent_since(self, now: float) -> float:
        size = self.log.size()
        if size != self._size:
            self._size = size
            self._last_growth = now
        return now - self._last_growth

    @staticmethod
    def _idle_pause(idle_timeout: float) -> float:
        return min(idle_timeout / _IDLE_LOOKS, _IDLE_PAUSE)
