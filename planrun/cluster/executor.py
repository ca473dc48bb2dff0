"""The executor whose attempts run on the workers of a cluster, over another one for what must run here.

Here run tool calls, agents, containers and steps in a sandbox: they need what only planrun's own machine has.
"""

from __future__ import annotations

import base64
import os
import time

from planrun.cluster import wire
from planrun.errors import RecordsLost
from planrun.folders import make_private
from planrun.model import events as ev
from planrun.model.job import Outcome
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Protocol

    from planrun.cluster.files.moving import Moving
    from planrun.cluster.process import ClientProcess
    from planrun.model.job import Job
    from planrun.model.state import RunState
    from planrun.ports import Executor, Masks

    class LocalPart(Executor, Protocol):
        """An executor on this machine, whose wait() also ends for a descriptor."""

        def listen(self, descriptor: int) -> None:
            """Let wait() return when a descriptor of the caller can be read."""

        def ignore(self, descriptor: int) -> None:
            """Stop listening to a descriptor of the caller."""

    class Recorder(Protocol):
        """The scheduler, as far as an executor knows it."""

        @property
        def state(self) -> RunState:
            """The state of the run."""

        def emit(self, event: ev.Event) -> None:
            """Record an event."""


HASHED = 1 << 24  # bytes of a log up to which it is hashed, as the local executor does


class RemoteLog:
    """Takes the output of one attempt in pieces; the file is made with the first one."""

    def __init__(self, path: str, masks: Masks | None) -> None:
        self.path = path
        self.size = 0
        self._stream = masks.stream() if masks else None
        self._digest = sha256()
        self._fd = -1

    def feed(self, data: bytes) -> None:
        """Append a piece; raises RecordsLost."""
        self._append(self._stream.feed(data) if self._stream else data)

    def finish(self) -> tuple[int, str]:
        """Close the log; returns its bytes and their hash. Raises RecordsLost."""
        if self._stream:
            self._append(self._stream.finish())
        self.close()
        return self.size, str(self._digest.hexdigest()) if 0 < self.size <= HASHED else ""

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, start: int, size: int) -> bytes:
        """Return what is in it from byte `start` on, at most `size` bytes."""
        return os.pread(self._fd, size, start) if self._fd >= 0 else b""

    def _append(self, data: bytes) -> None:
        if not data:
            return
        try:
            if self._fd < 0:
                self._open()
            while data:
                written = os.write(self._fd, data)
                if self.size <= HASHED:
                    self._digest.update(data[:written])
                self.size += written
                data = data[written:]
        except OSError as error:
            raise RecordsLost(f"cannot write {self.path}: {error.strerror}") from None

    def _open(self) -> None:
        make_private(os.path.dirname(self.path))
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)


_LONG = 3600.0
_BEHIND = 0.01  # seconds until what the pipe did not take is sent
_KILLING = 3.0  # seconds for workers to confirm that attempts were killed
_CLOSING = 4.0  # seconds for runners to end at the end of the run


class RemoteContext(Record):
    """What attempts on a cluster need to know of their run.

    `env`: the environment that all of them share. `secrets`: values by name. `labels_of`: the labels that the worker of
    a step must have. `stamp`: the time of day. `files`: None where workers share the workspace.
    """

    env: Mapping[str, str]
    secrets: Mapping[str, str]
    masks: Masks | None
    labels_of: Callable[[str], tuple[str, ...]]
    stamp: Callable[[], str]
    files: Moving | None = None


class _Remote:
    """An attempt on the cluster."""

    def __init__(self, job: Job, token: str, log: RemoteLog) -> None:
        self.job = job
        self.token = token
        self.log = log
        self.began = time.monotonic()
        self.verdict: Outcome | None = None  # how it ends once it was stopped


class ClusterExecutor:
    """The port `Executor`; bind() comes before the first attempt starts."""

    def __init__(self, base: LocalPart, client: ClientProcess, context: RemoteContext) -> None:
        self._base = base
        self._client = client
        self._context = context
        self._recorder: Recorder | None = None
        self._remote: dict[str, _Remote] = {}  # by step
        self._by_token: dict[str, _Remote] = {}
        self._here: set[str] = set()  # steps whose last action ran on this machine
        self._over: list[tuple[Job, Outcome]] = []
        self._lost: RecordsLost | None = None
        self._gone = ""  # why the cluster cannot be used any more
        self._give_up_at: float | None = None
        self._started = 0
        self._closed = False
        base.listen(client.fd)

    def bind(self, recorder: Recorder) -> None:
        """Record by a scheduler from now on."""
        self._recorder = recorder

    @property
    def running(self) -> tuple[str, ...]:
        """The steps whose attempt has no outcome yet."""
        return (*self._base.running, *self._remote)

    @property
    def lost(self) -> RecordsLost | None:
        """Why a log cannot be written; None as long as all can."""
        return self._base.lost or self._lost

    def start(self, job: Job) -> None:
        """Start an attempt, on the cluster unless it must run here."""
        if self._is_for_here(job):
            self._here.add(job.step)
            self._base.start(job)
            return
        self._here.discard(job.step)
        if self._gone:
            self._over.append((job, _lost(self._gone)))
            return
        self._started += 1
        token = f"a{self._started}"
        remote = self._remote[job.step] = self._by_token[token] = _Remote(
            job, token, RemoteLog(job.log, self._context.masks)
        )
        files = self._files(job)
        if files is None:
            return
        secrets = {name: value for name, value in self._context.secrets.items() if job.env.get(name) == value}
        self._client.hold(
            {
                "start": remote.token,
                "name": f"{job.step}/{job.attempt}",
                "labels": list(self._context.labels_of(job.step)),
                "job": wire.job_data(job, self._context.env),
                "secrets": secrets,
                **files,
            }
        )

    def _files(self, job: Job) -> dict[str, Any] | None:
        """Return what an attempt needs that its worker does not share; None if it failed for that."""
        moving = self._context.files
        if moving is None:
            return {}
        try:
            tree, files = moving.begin(job)
        except OSError as error:
            message = f"the file {error.filename} cannot be sent to a worker: {error.strerror}"
            self._end(
                self._remote[job.step],
                Outcome(status="failed", reason="spawn", message=message, passing=True),
            )
            return None
        if tree:
            self._client.hold(tree)
        return {"files": files}

    def _is_for_here(self, job: Job) -> bool:
        if job.call or job.agent or job.container or job.sandbox is not None:
            return True
        return bool(job.part) and job.step in self._here

    def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
        """Return the attempts that ended; empty after `timeout` seconds, or when something else is to be done."""
        if not self._remote and not self._over:
            return self._noted(self._base.wait(timeout))
        self._client.flush()
        limit = _LONG if timeout is None else timeout
        if self._over or self._client.is_behind:
            limit = min(limit, 0.0 if self._over else _BEHIND)
        if self._give_up_at is not None:
            limit = max(0.0, min(limit, self._give_up_at - time.monotonic()))
        self._over += self._noted(self._base.wait(limit))
        self.attend()
        over, self._over = self._over, []
        return over

    def _noted(self, ended: list[tuple[Job, Outcome]]) -> list[tuple[Job, Outcome]]:
        """Return what ended on this machine; it may have changed any file."""
        if ended and self._context.files:
            self._context.files.is_stale = True
        return ended

    def attend(self) -> None:
        """Take what the workers said, without waiting; wait() returns ends."""
        self._base.attend()
        if self._closed or self._gone:
            return
        self._client.flush()
        for said in self._client.receive():
            self._take(said)
        if self._client.is_gone and not self._gone:
            self._take({"gone": "the process that speaks to the cluster ended"})
        if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
            self._give_up_at = None
            for remote in list(self._remote.values()):
                note = "its worker did not confirm its end; it ends there within some seconds"
                self._end(remote, _cancelled().but(notes=(note,)), has_started=True)

    def _take(self, said: dict[str, Any]) -> None:
        if "gone" in said or "unusable" in said:
            self._lose_cluster(said.get("gone") or said["unusable"])
            return
        remote = self._by_token.get(
            said.get("log")
            or said.get("end")
            or said.get("lost")
            or said.get("withdrawn")
            or said.get("unplaced", "")
        )
        if "log" in said:
            data = base64.b64decode(said["data"])
            self._client.send({"taken": len(data), "worker": said["worker"]})
            if remote is not None and not self._lost:
                try:
                    remote.log.feed(data)
                except RecordsLost as error:
                    self._lost = error
        elif remote is None:
            return
        elif "end" in said:
            outcome = wire.outcome_of(said["outcome"])
            if self._context.files:
                outcome = self._context.files.end(remote.job, outcome, said)
            self._end(remote, outcome, said["worker"])
        elif "lost" in said:
            why = f"the worker {said['worker']} was lost: {said['why']}"
            self._end(remote, remote.verdict or _lost(why), said["worker"], has_started=True)
        elif "withdrawn" in said:
            self._end(remote, remote.verdict or _cancelled())
        else:
            self._end(remote, remote.verdict or _lost(said["why"]))

    def _end(self, remote: _Remote, outcome: Outcome, worker: str = "", *, has_started: bool = False) -> None:
        """Keep an outcome for the next wait(), with the log that is here."""
        del self._by_token[remote.token]
        del self._remote[remote.job.step]
        if self._context.files:
            self._context.files.drop(remote.job.step)
        if has_started and not outcome.duration:
            outcome = outcome.but(duration=round(time.monotonic() - remote.began, 6))
        try:
            size, digest = remote.log.finish()
        except RecordsLost as error:
            self._lost = self._lost or error
            size, digest = 0, ""
        fields: dict[str, Any] = dict(vars(outcome))
        for name in ("log_bytes", "log_sha256"):
            fields.pop(name, None)
        if size:
            fields |= {"log_bytes": size}
        if digest:
            fields |= {"log_sha256": digest}
        if worker:
            fields |= {"worker": worker}
        self._over.append((remote.job, Outcome(**fields)))

    def _lose_cluster(self, why: str) -> None:
        """Pause the run, and leave its attempts without an end: a resume knows them as lost.

        A run that is ending already goes on to its end.
        """
        self._gone = why
        self._base.ignore(self._client.fd)
        recorder = self._recorder
        if recorder is not None and recorder.state.ending is None:
            for remote in self._remote.values():
                remote.log.close()
            self._remote.clear()
            self._by_token.clear()
            if not recorder.state.pausing:
                recorder.emit(ev.RunEnding(at=self._context.stamp(), why="pause", message=why))
            return
        for remote in list(self._remote.values()):
            self._end(remote, remote.verdict or _lost(why), has_started=True)

    def output(self, step: str, start: int, size: int) -> bytes | None:
        """Return what a running attempt has in its log from byte `start` on, at most `size` bytes."""
        remote = self._remote.get(step)
        if remote is None:
            return self._base.output(step, start, size)
        return None if remote.job.part else remote.log.read(start, size)

    def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
        """End an attempt."""
        remote = self._remote.get(step)
        if remote is None:
            self._base.stop(step, reason)
            return
        if remote.verdict is None:
            late = Outcome(status="failed", reason="timeout", message="stopped by the deadline of the run")
            remote.verdict = late if reason == "timeout" else _cancelled()
        self._client.send({"stop": remote.token, "reason": reason})

    def signal_all(self, signum: int) -> None:
        """Forward a signal once to each process."""
        self._base.signal_all(signum)
        self._cancel({"signal": signum})

    def kill_all(self) -> None:
        """End every attempt at once."""
        self._base.kill_all()
        self._cancel({"kill": True})
        if self._remote and self._give_up_at is None:
            self._give_up_at = time.monotonic() + _KILLING

    def _cancel(self, said: Mapping[str, Any]) -> None:
        if self._gone or not self._remote:
            return
        for remote in self._remote.values():
            remote.verdict = remote.verdict or _cancelled()
        self._client.send(said)

    def close(self) -> None:
        """Leave nothing running."""
        if self._closed:
            return
        self._closed = True
        if not self._gone:
            self._base.ignore(self._client.fd)
        for remote in self._remote.values():
            remote.log.close()
        self._client.end(_CLOSING)
        self._base.close()


def _lost(why: str) -> Outcome:
    return Outcome(status="failed", reason="lost", message=why)


def _cancelled() -> Outcome:
    return Outcome(status="cancelled", reason="cancelled", message="cancelled")
