"""An executor whose attempts may be agents: their loops run beside the processes of another executor.

To the scheduler an agent is an attempt like any other: it starts, it can be stopped, it ends with an outcome. Each
process that a tool needs is a job of the executor below, so limits, masks, logs and the search for left processes hold.
"""

from __future__ import annotations

from planrun.agents.logs import AttemptLog
from planrun.agents.loop import AgentRun
from planrun.agents.memorysocket import POLL, MemorySocket
from planrun.agents.shared import Shared
from planrun.errors import RecordsLost
from planrun.model.collaboration import collaboration_of
from planrun.model.job import Outcome
from planrun.model.lifecycle import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from planrun.agents.context import AgentContext, Recorder
    from planrun.executors.local import LocalExecutor
    from planrun.llm.budget import Budget
    from planrun.model.job import Job


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
        self._desk = MemorySocket(context.place.rundir, context.clock, context.masks)
        self._saved = ""  # when an earlier process of the run ended it

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
        elif len(self._agents) >= self._most:
            self._waiting[job.step] = job
        else:
            self._begin(job)

    @property
    def _most(self) -> int:
        """How many agents of steps work at once; each has at most one agent at work below it, and waits meanwhile."""
        llm = self._context.models.llm
        return collaboration_of(llm).delegation.max_parallel_agents if llm.delegate_steps else 1

    def _share(self, recorder: Recorder) -> Shared:
        """Make what the agents share, with what earlier processes of the run left."""
        state, context = recorder.state, self._context
        settings = collaboration_of(context.models.llm)
        shared = Shared(settings, context.clock.stamp, recorder.emit, context.place.workspace)
        noted = state.noted
        shared.restore(noted)
        self._saved = max([at for status, at in state.moves if status in ENDED], default="")
        self._context = context.but(shared=shared)
        shared.end_lost(noted)
        return shared

    def _begin(self, job: Job) -> None:
        assert self._recorder is not None
        if self._context.shared is None:
            self._share(self._recorder)
        try:
            log = self._logs[job.step] = AttemptLog(job.log, self._context.masks)
        except OSError as error:
            self._lost = self._lost or RecordsLost(f"cannot write {job.log}: {error.strerror}")
            self._over.append((job, Outcome(status="cancelled", reason="records")))
            return
        if self._budget is None or not self._agents:  # nothing is reserved in it
            self._budget = self._context.models.budget(self._recorder.state)
        run = self._agents[job.step] = AgentRun(
            job, self._context, self._recorder, _Processes(self._base, self._owners, job.step), log
        )
        run.begin(self._budget)

    def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        """Return the attempts that ended; empty after `timeout` seconds, or when something else is to be done."""
        if self._recorder is not None:
            shared = self._context.shared or self._share(self._recorder)
            self._desk.poll(shared)
        timeout = POLL if timeout is None else min(timeout, POLL)
        self._advance()
        if self._over or self._lost:
            return self._take()
        if not (self._agents or self._waiting):
            return self._base.wait(timeout)
        now = self._context.clock.monotonic()
        due = min(run.wake() for run in self._agents.values()) if self._agents else now
        limit = max(0.0, due - now)
        ended = self._base.wait(min(limit, timeout))
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
        while self._waiting and len(self._agents) < self._most:
            name = next(iter(self._waiting))
            self._begin(self._waiting.pop(name))
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
        self._desk.close()
        self._base.close()
        shared = self._context.shared
        if shared is not None and self._recorder is not None and self._recorder.state.ended:
            try:
                shared.save(self._saved)
            except RecordsLost as lost:
                self._lost = self._lost or lost


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
