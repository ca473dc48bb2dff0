"""An executor whose attempts may be agents: their loops run beside the processes of another executor.

To the scheduler an agent is an attempt like any other: it starts, it can be stopped, it ends with an outcome. Each
process that a tool needs is a job of the executor below, so limits, masks, logs and the search for left processes hold.
"""

from __future__ import annotations

import os

from planrun.agents.loop import AgentRun
from planrun.errors import RecordsLost
from planrun.folders import make_private
from planrun.model.agenttypes import MAX_PARALLEL
from planrun.model.job import Outcome
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from planrun.agents.context import AgentContext, Recorder
    from planrun.executors.local import LocalExecutor
    from planrun.llm.budget import Budget
    from planrun.model.job import Job
    from planrun.ports import Masks


class AttemptLog:
    """The log of an attempt of an agent: what it called and reported, a line each."""

    def __init__(self, path: str, masks: Masks | None) -> None:
        self._path = path
        self._masks = masks
        self._digest = sha256()
        self._size = 0
        make_private(os.path.dirname(path))
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def write(self, text: str) -> None:
        """Write a line, and the lines of a longer text."""
        if self._fd < 0:
            return
        masked = self._masks.mask_text(text) if self._masks else text
        data = f"{masked}\n".encode("utf-8", "backslashreplace")
        self._digest.update(data)
        self._size += len(data)
        while data:
            data = data[os.write(self._fd, data) :]

    def read(self, start: int, size: int) -> bytes:
        """Return what is in it from byte `start` on."""
        return os.pread(self._fd, size, start) if self._fd >= 0 else b""

    def close(self) -> tuple[int, str]:
        """Close it; returns its bytes and their hash."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return self._size, str(self._digest.hexdigest())


class AgentExecutor:
    """The port `Executor` over another one; bind() comes before the first agent starts."""

    def __init__(self, base: LocalExecutor, context: AgentContext) -> None:
        self._base = base
        self._context = context
        self._recorder: Recorder | None = None
        self._agents: dict[str, AgentRun] = {}  # by step, those that work
        self._waiting: dict[str, Job] = {}  # agents for which there is no place yet
        self._owners: dict[str, str] = {}  # the step of the agent that a process belongs to
        self._logs: dict[str, AttemptLog] = {}
        self._over: list[tuple[Job, Outcome]] = []
        self._heard: set[int] = set()
        self._budget: Budget | None = None
        self._lost: RecordsLost | None = None

    def bind(self, recorder: Recorder) -> None:
        """Record by a scheduler from now on."""
        self._recorder = recorder

    @property
    def running(self) -> tuple[str, ...]:
        """The steps whose attempt has no outcome yet."""
        own = [name for name in self._base.running if name not in self._owners]
        return (*own, *self._agents, *self._waiting)

    @property
    def lost(self) -> RecordsLost | None:
        """Why a log cannot be written; None as long as all can."""
        return self._base.lost or self._lost

    def start(self, job: Job) -> None:
        """Start an attempt."""
        if not job.agent or "patch" in job.agent:
            self._base.start(job)
        elif len(self._agents) >= MAX_PARALLEL:
            self._waiting[job.step] = job
        else:
            self._begin(job)

    def _begin(self, job: Job) -> None:
        assert self._recorder is not None
        try:
            log = self._logs[job.step] = AttemptLog(job.log, self._context.masks)
        except OSError as error:
            self._lost = self._lost or RecordsLost(f"cannot write {job.log}: {error.strerror}")
            self._over.append((job, Outcome(status="cancelled", reason="records")))
            return
        if self._budget is None or not self._agents:  # nothing is reserved in it
            self._budget = self._context.models.budget(self._recorder.state)
        run = self._agents[job.step] = AgentRun(job, self._context, self._recorder, self._processes(job), log)
        run.begin(self._budget)

    def _processes(self, job: Job) -> _Processes:
        return _Processes(self._base, self._owners, job.step)

    def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        """Return the attempts that ended; empty after `timeout` seconds, or when something else is to be done."""
        self._advance()
        if self._over or self._lost:
            return self._take()
        if not (self._agents or self._waiting):
            return self._base.wait(timeout)
        now = self._context.clock.monotonic()
        due = min(run.wake() for run in self._agents.values()) if self._agents else now
        limit = max(0.0, due - now)
        ended = self._base.wait(limit if timeout is None else min(limit, timeout))
        for job, outcome in ended:
            owner = self._owners.pop(job.step, "")
            if not owner:
                self._over.append((job, outcome))
            elif owner in self._agents:
                self._agents[owner].job_ended(job, outcome)
        self._advance()
        return self._take()

    def _take(self) -> list[tuple[Job, Outcome]]:
        over, self._over = self._over, []
        return over

    def _advance(self) -> None:
        """Let every agent do what it can, take the outcomes, and start those that wait for a place."""
        self._stop_listening()  # a model may close its descriptor, and a process get the same number
        for name, run in list(self._agents.items()):
            try:
                run.advance()
            except OSError as error:  # the folder of the run cannot be written
                self._lost = self._lost or RecordsLost(
                    f"cannot write the records of {name}: {error.strerror}"
                )
                run.close()
                run.outcome = Outcome(status="cancelled", reason="records")
            if run.outcome is not None:
                del self._agents[name]
                self._logs.pop(name).close()
                self._over.append((run.job, run.outcome))
        while self._waiting and len(self._agents) < MAX_PARALLEL:
            name = next(iter(self._waiting))
            self._begin(self._waiting.pop(name))
        self._listen()

    def _listen(self) -> None:
        """Let a wait end when a model has answered."""
        self._heard = {run.fd for run in self._agents.values() if run.fd >= 0}
        for descriptor in self._heard:
            self._base.listen(descriptor)

    def _stop_listening(self) -> None:
        for descriptor in self._heard:
            self._base.ignore(descriptor)
        self._heard = set()

    def attend(self) -> None:
        """Do what is due of the running attempts without waiting; wait() returns ends."""
        if self._agents or self._waiting:
            self._over[:0] = self.wait(0)
        else:
            self._base.attend()

    def output(self, step: str, start: int, size: int) -> bytes | None:
        """Return what a running attempt has in its log from byte `start` on, at most `size` bytes."""
        log = self._logs.get(step)
        return log.read(start, size) if log is not None else self._base.output(step, start, size)

    def listen(self, descriptor: int) -> None:
        """Let wait() return when a descriptor of the caller can be read."""
        self._base.listen(descriptor)

    def ignore(self, descriptor: int) -> None:
        """Stop listening to a descriptor of the caller."""
        self._base.ignore(descriptor)

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """End an attempt."""
        if step in self._agents:
            self._agents[step].stop(reason)
        elif step in self._waiting:
            job = self._waiting.pop(step)
            status: Literal["failed", "cancelled"] = "failed" if reason == "timeout" else "cancelled"
            self._over.append((job, Outcome(status=status, reason=reason)))
        else:
            self._base.stop(step, reason)

    def signal_all(self, signum: int) -> None:
        """Forward a signal once to each process, and end the agents."""
        self._base.signal_all(signum)
        for name in [*self._agents, *self._waiting]:
            self.stop(name, "cancelled")

    def kill_all(self) -> None:
        """End every attempt at once."""
        self._base.kill_all()
        self._stop_listening()
        for name, run in list(self._agents.items()):
            run.stop("cancelled")
            run.close()
            self._logs[name].write("killed")
        for name in list(self._waiting):
            self.stop(name, "cancelled")

    def close(self) -> None:
        """Leave nothing running."""
        self._stop_listening()
        for run in self._agents.values():
            run.close()
        for log in self._logs.values():
            log.close()
        self._agents.clear()
        self._waiting.clear()
        self._base.close()


class _Processes:
    """Starts and stops the processes of one agent."""

    def __init__(self, base: LocalExecutor, owners: dict[str, str], step: str) -> None:
        self._base = base
        self._owners = owners
        self._step = step

    def start(self, job: Job) -> None:
        """Start a process."""
        self._owners[job.step] = self._step
        self._base.start(job)

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """End a process."""
        self._base.stop(step, reason)
