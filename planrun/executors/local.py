"""The executor that runs attempts as processes of this machine, from one thread with one `poll`.

Its guardian is a process that survives planrun when planrun is killed, and then kills the steps.
"""

from __future__ import annotations

# `_signal` and not `signal`: see wait.py.
import _signal
import os
import time

from planrun.errors import InternalError, RecordsLost
from planrun.executors.attempt import CANCELLED, DEADLINE, NEVER, UNKILLABLE, Attempt, outcome
from planrun.executors.logs import Logs
from planrun.executors.mark import Marks
from planrun.executors.spawn import Launcher, SpawnFailed, is_passing
from planrun.executors.tree import ProcessTree, Scans, SpawnedPids
from planrun.executors.wait import ChildSignalWatch, PidfdWatch, SignalInbox
from planrun.model.job import Outcome
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Self

    from planrun.executors.logs import Output, Outputs
    from planrun.executors.mark import Owner
    from planrun.executors.sandbox.launcher import Sandboxes
    from planrun.executors.sandbox.view import Site
    from planrun.executors.scriptcopies import ScriptCopies
    from planrun.executors.wait import Watch
    from planrun.model.job import Job
    from planrun.ports import Masks

    WatchKind = Literal["best", "pidfd", "sigchld"]


class ExecutorOptions(Record):
    """How an executor waits for its processes; `grace`: seconds between SIGTERM and SIGKILL.

    `always_shell`: bash starts also where one plain command needs none. `site`: where steps with a sandbox stand.
    """

    watch: WatchKind = "best"
    grace: float = 5.0
    always_shell: bool = False
    site: Site | None = None


class LocalExecutor:
    """Starts jobs as processes and reports how they ended; belongs to one thread.

    `inbox`: an open SignalInbox whose signals end a wait(). `logs`: the folder under which the logs of all
    jobs lie; without it each attempt has a file from its start. An attempt without output leaves no file.
    `masks`: the masks for all logs; with them all output passes through this process.
    `owner`: the run of the jobs; without it there is no guardian that ends them when this process is killed.
    Use it as a context manager, or call close() at the end: no process survives it.
    """

    def __init__(
        self,
        *,
        inbox: SignalInbox | None = None,
        logs: str = "",
        masks: Masks | None = None,
        owner: Owner | None = None,
        options: ExecutorOptions | None = None,
    ) -> None:
        options = options or ExecutorOptions()
        self._grace = options.grace
        self._closed = False
        self._running: dict[str, Attempt] = {}
        self._by_pid: dict[int, Attempt] = {}
        self._by_source: dict[
            int, Attempt
        ] = {}  # attempts whose output passes through planrun, until it ends
        self._over: list[tuple[Job, Outcome]] = []
        self._container_engine = ""  # set when the first container started
        self._client_env: dict[str, str] = {}
        self._uncreated = 0  # containers that did not exist when their clients ended
        self._script_copies: dict[str, ScriptCopies] = {}  # by step
        self.lost: RecordsLost | None = None  # the first log that could not be written, and why
        self._logs = _outputs(logs, masks)
        self._owner = owner
        self._marks = Marks(owner.workspace if owner else "")
        self._spawned_pids = SpawnedPids()
        self._scans = Scans()
        self._first = 0  # the process id of the first child
        self._launcher = Launcher(self._marks, always_shell=options.always_shell)
        self._site = options.site
        self._sandboxes: Sandboxes | None = None  # None: no attempt had one yet
        self._guardian: Guardian | None = None
        self._own_inbox: SignalInbox | None = None
        self._watch: Watch
        if options.watch == "pidfd" or (options.watch == "best" and PidfdWatch.possible()):
            self._watch = PidfdWatch(inbox)
        else:
            if inbox is None:
                inbox = self._own_inbox = SignalInbox(())
                inbox.open()
            self._watch = ChildSignalWatch(inbox)

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of the steps that have a process, oldest first."""
        return tuple(self._running)

    def start(self, job: Job) -> None:
        """Start the job's process.

        If that fails, the next wait() returns the outcome: `failed(spawn)` with the reason as its message, or
        `cancelled(records)` when its log cannot be created; then `lost` is the reason.
        """
        if job.step in self._running:
            raise InternalError(f"step {job.step} is running already")
        if job.agent and "patch" not in job.agent:  # no process does its work
            self._fail(job, "an agent cannot work here: this run has no model for agents")
            return
        try:
            log = self._logs.open(job.log)
        except RecordsLost as error:
            self._give_up(job, error)
            return
        except OSError as error:
            self._fail(job, f"cannot start {job.argv[0]}: {error.strerror}", passing=is_passing(error))
            return
        self._guard()
        self._scans.expire()
        mark = self._marks.new()
        try:
            started, pid, program = self._launch(job, log, mark)
        except SpawnFailed as error:
            refusal = (
                log.refusal()
            )  # the child opens the log, so the error may be the log's and not the program's
            self._settle(log)
            if refusal:
                self._give_up(job, refusal)
            else:
                self._fail(job, str(error), passing=error.passing)
            return
        try:
            self._watch.add(pid)
        except OSError as error:
            os.killpg(pid, _signal.SIGKILL)
            os.waitpid(pid, 0)
            self._settle(log)
            self._fail(job, f"cannot watch {job.argv[0]}: {error.strerror}", passing=is_passing(error))
            return
        log.begin()
        tree = self._tree(pid, job, mark)
        self._running[job.step] = self._by_pid[pid] = attempt = Attempt(job, log, tree, started)
        attempt.program = program
        if log.source >= 0:
            self._watch.listen(log.source)
            self._by_source[log.source] = attempt

    def _launch(self, job: Job, log: Output, mark: int) -> tuple[float, int, str]:
        """Start the process, from copies of its scripts; returns when, and what Launcher.spawn does.

        Raises SpawnFailed.
        """
        if job.sandbox is not None and self._sandboxes is None:
            from planrun.executors.sandbox.launcher import Sandboxes  # few plans have any

            self._sandboxes = self._launcher.sandboxes = Sandboxes(self._site)
        if self._sandboxes is not None:
            self._sandboxes.note(job)
        if not job.scripts:
            return time.monotonic(), *self._launcher.spawn(job, log.opening, mark)
        from planrun.executors.scriptcopies import CopyFailed, ScriptCopies  # few steps run scripts

        try:
            copies = self._script_copies[job.step] = ScriptCopies(
                job, self._owner.listing if self._owner else ""
            )
        except CopyFailed as error:
            raise SpawnFailed(str(error)) from None
        return time.monotonic(), *self._launcher.spawn(job.but(argv=copies.argv), log.opening, mark)

    def wait(self, timeout: float | None = None) -> list[tuple[Job, Outcome]]:
        """Return the jobs that ended and how; blocks until there is one.

        The list is empty after `timeout` seconds (None: no limit), when a signal is in the inbox, when a record
        was lost, and when there is neither a process nor a timeout to wait for.
        """
        now = time.monotonic()
        lost = self.lost
        limit = NEVER if timeout is None else now + timeout
        while True:
            if not self._running and timeout is None:
                limit = now
            ended = self._watch.wait(self._delay(limit, now))
            self._scans.expire()
            asked = False  # a descriptor of the caller can be read
            for source in self._watch.readable:
                attempt = self._by_source.get(source)
                if attempt is None:
                    asked = True
                else:
                    # Read one piece of its output, so that an attempt with much output does not delay others
                    try:
                        if not attempt.log.receive():
                            self._stop_listening(attempt.log)
                    except RecordsLost as error:
                        self._lose(error)
            for pid, status in ended:
                attempt = self._by_pid.pop(pid)
                if not attempt.over:  # else it was given up as unkillable, and ended later
                    attempt.main_ended(status, time.monotonic())
                    self._collect(attempt)
            now = time.monotonic()
            self._update(now)
            if self._over or self._watch.woken or asked or now >= limit or self.lost is not lost:
                over, self._over = self._over, []
                return over

    def attend(self) -> None:
        """Do what is due of the running attempts without waiting: time limits and masks; wait() returns ends."""
        if self._running:
            self._over[:0] = self.wait(0)

    def output(self, step: str, start: int, size: int) -> bytes | None:
        """Return what a running attempt has in its log from byte `start` on, at most `size` bytes.

        None: it does not run, its post-checks run, or the log cannot be read.
        """
        attempt = self._running.get(step)
        if attempt is None or attempt.job.part:
            return None
        try:
            return attempt.log.read(start, size)
        except OSError:
            return None

    def listen(self, descriptor: int) -> None:
        """Let wait() return when a descriptor of the caller can be read; ignore() ends that."""
        self._watch.listen(descriptor)

    def ignore(self, descriptor: int) -> None:
        """Stop listening to a descriptor of the caller."""
        self._watch.ignore(descriptor)

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """Stop a step with SIGTERM, and SIGKILL after the grace time; the second call kills at once.

        It ends `cancelled`, or `failed(timeout)` when the reason is the run's deadline; a step whose main
        process has ended keeps its own outcome, and an unknown step is ignored.
        """
        attempt = self._running.get(step)
        if attempt is not None:
            attempt.stop(DEADLINE if reason == "timeout" else CANCELLED, time.monotonic(), self._grace)

    def signal_all(self, signum: int) -> None:
        """Forward a signal to every step once, and SIGKILL after the grace time; all end `cancelled`."""
        kill_at = time.monotonic() + self._grace
        for attempt in self._running.values():
            attempt.terminate(signum, CANCELLED, kill_at)

    def kill_all(self) -> None:
        """Kill every process at once; wait() returns the outcomes."""
        now = time.monotonic()
        for attempt in self._running.values():
            attempt.kill(now)

    def close(self) -> None:
        """Kill what is left and wait for its end; outcomes not yet returned are lost. May be called again."""
        if self._closed:
            return
        self._closed = True
        self.kill_all()
        limit = time.monotonic() + 2 * UNKILLABLE
        while self._running and time.monotonic() < limit:
            self.wait(0.1)
        if self._owner and self._first:
            pids = self._spawned_pids.since(self._first, 1)
            if self._marks.may_exist(self._marks.planrun, pids):
                self._kill_leftovers(self._owner, earlier=False)
        if self._guardian:
            self._guardian.dismiss()
        if self._container_engine and self._owner:
            from planrun.executors.containers import sweep

            sweep(self._container_engine, self._owner.run, self._client_env, self._uncreated)
        self._remove_script_copies()
        if self._sandboxes is not None:
            self._sandboxes.close()
        self._watch.close()
        self._logs.close()
        self._launcher.close()
        self._spawned_pids.close()
        if self._own_inbox:
            self._own_inbox.close()

    def clear(self) -> None:
        """Kill what an earlier planrun left in the owner's workspace, which must be locked."""
        if self._owner and self._marks.may_exist(self._marks.workspace):
            self._kill_leftovers(self._owner, earlier=True)
        if self._owner and self._owner.engine:
            from planrun.executors.containers import sweep_earlier

            sweep_earlier(self._owner.engine, self._owner.runs)
        self._remove_script_copies()

    def _remove_script_copies(self) -> None:
        """Remove the copies of scripts, also those of an earlier planrun that was killed."""
        for copies in self._script_copies.values():  # of attempts that could not be ended
            copies.remove()
        if self._owner and self._owner.listing and os.path.lexists(self._owner.listing):
            from planrun.executors.scriptcopies import clear  # few runs have scripts

            clear(self._owner.listing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _guard(self) -> None:
        """Start the guardian before the first process."""
        if self._guardian:
            self._guardian.reap()
        elif self._owner:
            self._marks.clear()  # else an outer planrun could end this guardian together with this process
            self._guardian = Guardian(self._owner.run, self._marks.prefix, self._owner.engine)
            self._marks.apply(0)

    def _tree(self, pid: int, job: Job, mark: int) -> ProcessTree:
        if not self._first:
            self._first = pid
            self._marks.check(pid, mark)
            if self._guardian and mark and not self._marks.works:
                self._guardian.dismiss()  # it would search for marks
                self._guardian = None
                self._guard()
        return ProcessTree(
            pid,
            job,
            mark=mark if self._marks.works else 0,
            spawned_pids=self._spawned_pids,
            scans=self._scans,
        )

    def _kill_leftovers(self, owner: Owner, *, earlier: bool) -> None:
        from planrun.executors.owners import kill_leftovers  # few runs have any

        kill_leftovers(self._marks, owner, earlier=earlier)

    def _give_up(self, job: Job, error: RecordsLost) -> None:
        self._lose(error)
        self._end(job, Outcome(status="cancelled", reason="records"))

    def _fail(self, job: Job, message: str, *, passing: bool = False) -> None:
        outcome = Outcome(status="failed", reason="spawn", message=message)
        self._end(job, outcome.but(passing=True) if passing else outcome)

    def _end(self, job: Job, outcome: Outcome) -> None:
        """Keep an outcome for the next wait(), and remove the script copies and the container of its attempt."""
        copies = self._script_copies.pop(job.step, None)
        if copies:
            outcome = copies.explained(outcome, job.log)
            copies.remove()
            if copies.notes:
                outcome = outcome.but(notes=(*copies.notes, *outcome.notes))
        if job.container and outcome.reason != "spawn":
            self._container_engine, self._client_env = job.container["engine"], job.env
            if outcome.signal is not None or outcome.reason not in ("ran", "exit"):
                from planrun.executors.containers import remove  # few steps run in one

                self._uncreated += not remove(job)
        if self._sandboxes is not None:
            outcome = self._sandboxes.ended(job, outcome, [each.job for each in self._running.values()])
        self._over.append((job, outcome))

    def _delay(self, limit: float, now: float) -> float | None:
        """Seconds until something is due; None when nothing ever is."""
        if self._over:
            return 0
        due = limit
        for attempt in self._running.values():
            due = min(due, attempt.wake)
        return None if due == NEVER else max(due - now, 0)

    def _update(self, now: float) -> None:
        due = [attempt for attempt in self._running.values() if attempt.wake <= now]
        for attempt in due:
            try:
                attempt.update(now, self._grace)
            except RecordsLost as error:  # its log cannot take its place
                self._lose(error)
            self._collect(attempt)

    def _stop_listening(self, log: Output) -> None:
        if self._by_source.pop(log.source, None):
            self._watch.ignore(log.source)

    def _collect(self, attempt: Attempt) -> None:
        """Record the outcome of an attempt that is over."""
        if attempt.over and self._running.get(attempt.job.step) is attempt:
            del self._running[attempt.job.step]
            self._stop_listening(attempt.log)
            errors = attempt.log.last_errors() if attempt.wait_status else None  # only failures need it
            size = self._settle(attempt.log)
            result = outcome(attempt, size, errors)
            if size:
                result = result.but(log_sha256=attempt.log.digest)
            self._end(attempt.job, result)

    def _settle(self, log: Output) -> int:
        """Close a log and return its size; when it cannot be kept, set `lost`."""
        try:
            return log.settle()
        except RecordsLost as error:
            self._lose(error)
            return 0

    def _lose(self, error: RecordsLost) -> None:
        self.lost = self.lost or error


def _outputs(folder: str, masks: Masks | None) -> Outputs:
    if masks is None:
        return Logs(folder)
    from planrun.executors.piped import PipedLogs  # most plans have no secrets

    return PipedLogs(masks, folder)


_SHELL = "/bin/sh"
_SCRIPT = os.path.join(os.path.dirname(__file__), "guardian.sh")
_DONE = b"done\n"
# The script ignores these signals; blocked from its start, they cannot end it before its first command.
_BLOCKED_SIGNALS = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


class Guardian:
    """A shell that waits on a pipe from this process; guardian.sh describes its actions when the pipe ends.

    It has its own session, parent and environment, so that signals to planrun's group, to its process tree or to all
    processes with a CI system's cookie do not reach it. Where it cannot start, the run has no guardian.
    """

    __slots__ = ("_pid", "_pipe")

    def __init__(self, run: str, prefix: str, engine: str = "") -> None:
        """Start it; `run`: the id of the run, `prefix`: how the marks of its attempts begin, or empty;
        `engine`: what runs its containers, or empty.
        """
        reading, self._pipe = os.pipe()  # closed on exec: only this process can keep it open
        try:
            self._pid = os.posix_spawn(
                _SHELL,
                ("sh", _SCRIPT, run, prefix, engine),
                {**_where(engine), "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigmask=_BLOCKED_SIGNALS,
            )
        except OSError:
            self._pid = 0
        os.close(reading)

    def reap(self, options: int = os.WNOHANG) -> None:
        """Reap the process we started; the waiting one is its child and has left this process tree."""
        if self._pid:
            try:
                self._pid = 0 if os.waitpid(self._pid, options)[0] else self._pid
            except ChildProcessError:  # the program around us waits for any child
                self._pid = 0

    def dismiss(self) -> None:
        """End it without killing anything."""
        try:
            os.write(self._pipe, _DONE)
        except OSError:  # it is gone
            pass
        os.close(self._pipe)
        self.reap(0)


def _where(engine: str) -> dict[str, str]:
    """Return the variables by which the client of a container engine finds the engine."""
    if not engine:
        return {}
    from planrun.executors.containers import VARIABLES  # few runs have containers

    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
