"""One attempt from its start to the end of its last process: timers, signals, cleanup, outcome."""

from __future__ import annotations

# `_signal` and not `signal`: see wait.py.
import _signal
import os

from planrun.model.job import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.executors.logs import Output
    from planrun.executors.tree import ProcessTree
    from planrun.model.job import Job

    Status = Literal["completed", "failed", "cancelled"]
    Verdict = tuple[Status, str, str]  # status, reason, message

CANCELLED: Verdict = ("cancelled", "cancelled", "cancelled")
DEADLINE: Verdict = ("failed", "timeout", "stopped by the deadline of the run")


def timed_out(timeout: float) -> Verdict:
    """The attempt exceeded its timeout."""
    return "failed", "timeout", f"timed out after {span(timeout)}"


def fell_silent(idle_timeout: float) -> Verdict:
    """The attempt wrote nothing for longer than its idle_timeout."""
    return "failed", "idle_timeout", f"no output for {span(idle_timeout)}"


def outcome(attempt: Attempt, log_bytes: int, errors: tuple[int, int] | None = None) -> Outcome:
    """Return the outcome of an attempt that is over; `errors`: where in its log the last of stderr is."""
    status = attempt.wait_status
    code = None if status is None else os.waitstatus_to_exitcode(status)
    verdict, reason, message = attempt.verdict or _verdict_of_exit(code)
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
    if attempt.program:
        fields["program"] = attempt.program
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


def _verdict_of_exit(code: int | None) -> Verdict:
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


NEVER = float("inf")
SHOW_LOG_AFTER = 1.0  # seconds until a running attempt's log gets its name, so that users can follow it
# Seconds for the other processes after the main process ended; together less than the promised 2.
LINGER = 0.3  # to end by themselves: in `exec > >(tee log)` tee has yet to write the last lines
TERM_GRACE = 0.6  # after SIGTERM
UNKILLABLE = 1.0  # after SIGKILL, then waiting ends: the process of another user (sudo), a dead disk
_IDLE_CHECKS, _IDLE_PAUSE = 4, 0.5  # checks per idle timeout; at most so many seconds between two
_LOOK_AGAIN = 0.001  # seconds until a log that another process holds open is looked at again
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05  # seconds between two checks of processes that are ending

_RUNNING = 0  # the main process runs and was not signalled
_STOPPING = 1  # the first signal was sent
_KILLED = 2  # SIGKILL was sent
_CLEANING_UP = 3  # the main process ended, others of its tree have not


class Attempt:
    """A running attempt; all times are monotonic seconds.

    Call `update` at the time `wake`, and `main_ended` once; when `over` is true, no process of it is left.
    """

    __slots__ = (
        "_deadline",
        "_first_signal",
        "_idle_at",
        "_is_log_held",
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
        "program",
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
        self.program = ""  # the path of what started in place of the shell
        self.verdict: Verdict | None = (
            None  # decided by planrun; what the process does later does not change it
        )
        self.wait_status: int | None = None
        self.swept: set[int] = set()  # process ids that were signalled after the main process ended
        self.swept_group = False  # the same, where only the group can be signalled
        self.stuck: tuple[int, ...] = ()  # process ids that did not end
        self.held = False  # a process that was not found kept the output open
        self._stage = _RUNNING
        self._stopped = False
        self._first_signal = 0
        self._deadline = started + job.timeout
        self._show_at = NEVER if log.shown else started + SHOW_LOG_AFTER
        self._size = 0
        self._last_growth = started
        self._idle_at = NEVER if job.idle_timeout is None else started + self._idle_pause(job.idle_timeout)
        self._term_at = self._kill_at = NEVER
        self._pause = _FIRST_PAUSE
        self._is_log_held = False  # and nothing else suggests that processes are left
        self.wake = min(self._deadline, self._show_at, self._idle_at)

    def update(self, now: float, grace: float) -> None:
        """Do the actions due at this time; `grace`: seconds between SIGTERM and SIGKILL."""
        if self._stage == _CLEANING_UP:
            self._sweep(now)
        elif self._stage == _STOPPING:
            self.kill(now)
        elif self._stage == _KILLED:
            self.ended = now
            self.stuck = (self.tree.leader, *self.tree.members())
            self.over = True
        else:
            self._check_timers(now, grace)

    def stop(self, verdict: Verdict, now: float, grace: float) -> None:
        """Send SIGTERM; a second call kills."""
        if self._stopped:
            self.kill(now)
        else:
            self._stopped = True
            self.terminate(_signal.SIGTERM, verdict, now + grace)

    def terminate(self, signum: int, verdict: Verdict, kill_at: float) -> None:
        """Decide the verdict and signal every process once; later calls do nothing."""
        if self._stage != _RUNNING:
            return
        self._stage = _STOPPING
        self.verdict = verdict
        self._first_signal = signum
        self._kill_at = self.wake = kill_at
        self.tree.search()  # now, while parents still identify their children
        self.tree.signal(signum)
        self.tree.signal(_signal.SIGCONT)  # a stopped process receives no other signal

    def kill(self, now: float) -> None:
        """Kill every process; the verdict is `cancelled` unless it was decided before."""
        if self._stage == _CLEANING_UP:
            self._kill_at = min(self._kill_at, now)
            self.wake = now
        elif self._stage != _KILLED:
            self.verdict = self.verdict or CANCELLED
            self._stage = _KILLED
            self.wake = now + UNKILLABLE
            self.tree.search()
            self.tree.signal(_signal.SIGKILL)

    def main_ended(self, wait_status: int | None, now: float) -> None:
        """Record that the main process was reaped, and search for processes it left."""
        self.wait_status = wait_status
        self.ended = now
        self.log.main_ended(failed=wait_status != 0)
        self.tree.leading = False
        if not self._may_have_left_processes():
            self.over = True
        elif not self.tree.may_search(now):
            self._begin_cleanup(now)
            self.wake = self.tree.next_search
        elif self._is_log_held:
            self._begin_cleanup(now)
            self.wake = now + _LOOK_AGAIN
        elif self.tree.search(self.log.held_as()) or self.log.unfinished():
            self._begin_cleanup(now)
        else:
            self.over = True

    def _may_have_left_processes(self) -> bool:
        """Whether processes may be left; costs one system call for a step without children."""
        if self.verdict is not None:
            return True
        tree = self.tree
        if tree.childless():
            return self.log.unfinished()  # the pipe can have been passed to a process of another tree
        if tree.has_group() or tree.suspected():
            return True
        # A process that is being started has copies of planrun's descriptors until it executes its program.
        self._is_log_held = self.log.held()
        return self._is_log_held

    def _begin_cleanup(self, now: float) -> None:
        if self._stage == _RUNNING:
            self._term_at = now + LINGER
            self._kill_at = self._term_at + TERM_GRACE
        elif self._stage == _STOPPING and self._first_signal != _signal.SIGTERM:
            self._term_at = now + LINGER  # a shell lets its background processes ignore SIGINT
        elif self._stage == _KILLED:
            self._kill_at = now
        self._stage = _CLEANING_UP
        self.wake = now + self._pause

    def _sweep(self, now: float) -> None:
        if self._is_log_held:
            self._is_log_held = False
            if not self.log.held():
                self._await_output(now)
                return
        if not self.tree.may_search(now):
            self.wake = self.tree.next_search
            return
        if not self.tree.remaining() and not self.tree.search(self.log.held_as()):
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
        """Wait for a writer that cannot be found, as long as for processes that can."""
        self.held = self.log.unfinished()
        if not self.held or now >= min(self._kill_at, self.ended + LINGER + TERM_GRACE):
            self.over = True
            return
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        self.wake = now + self._pause

    def _sweep_with(self, signum: int) -> None:
        self.tree.search(self.log.held_as(), thorough=True)
        self.swept.update(self.tree.members())
        self.swept_group = True
        self.tree.signal(signum)

    def _check_timers(self, now: float, grace: float) -> None:
        if now >= self._show_at:
            self._show_at = NEVER
            self.log.show()
        if now >= self._deadline:
            self.terminate(_signal.SIGTERM, timed_out(self.job.timeout), now + grace)
            return
        idle = self.job.idle_timeout
        if idle is not None and now >= self._idle_at:
            size = self.log.size()
            if size != self._size:
                self._size = size
                self._last_growth = now
            if now - self._last_growth >= idle:
                self.terminate(_signal.SIGTERM, fell_silent(idle), now + grace)
                return
            self._idle_at = min(now + self._idle_pause(idle), self._last_growth + idle)
        self.wake = min(self._deadline, self._show_at, self._idle_at)

    @staticmethod
    def _idle_pause(idle_timeout: float) -> float:
        return min(idle_timeout / _IDLE_CHECKS, _IDLE_PAUSE)
