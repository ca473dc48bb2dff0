"""Read runs from their records, whole or damaged, and drop the broken end of a ledger."""

from __future__ import annotations

import json
import os

from planrun.app.copies import state_of
from planrun.app.run import secrets_of
from planrun.app.summaries import Row, resting_status, summarized
from planrun.errors import InternalError, InvalidInput, RecordsLost
from planrun.executors.logs import HASHED, recover
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.opening import open_record
from planrun.records import rundir as finding
from planrun.records.ledger import sync_path
from planrun.records.lock import holder
from planrun.records.reading import cut, read_ledger
from planrun.records.rundir import HOME, LEDGER
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.records.reading import Reading

# Errors that an invalid ledger causes in code that trusts it; the user gets one message for all.
_MISFITS = (InternalError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class Inspected(Record):
    """A run read from its records: folder, condition of the ledger, and state."""

    rundir: str
    reading: Reading
    state: RunState
    is_active: bool  # a process executes it

    @property
    def run(self) -> str:
        """The id of the run."""
        return os.path.basename(self.rundir)


def is_plan(name: str) -> bool:
    """Return whether a word names a plan and not a run: a path, a YAML file, or an existing file."""
    return "/" in name or name.endswith((".yml", ".yaml")) or os.path.exists(name)


def find(run: str, workspace: str = "") -> str:
    """Return the folder of a run in a workspace, default: this folder; raises InvalidInput."""
    try:
        return finding.find(workspace or os.getcwd(), run)
    except OSError as error:
        raise InvalidInput(f"cannot read the runs of this folder: {error.strerror}") from None
    except InvalidInput:
        folder = os.path.join(workspace, HOME, "runs")
        known = known_runs(folder)
        meant = known[:1] if run == "last" else [name for name in known if run and name.startswith(run)]
        bare = [name for name in meant if not os.path.exists(os.path.join(folder, name, LEDGER))]
        if bare and bare == meant:
            raise InvalidInput(
                f"the run {bare[0]} has no {LEDGER}: it ended before it started, or the ledger was removed"
            ) from None
        raise


def known_runs(folder: str = os.path.join(HOME, "runs")) -> list[str]:
    """Return the names of all run folders in this workspace, newest first; raises InvalidInput."""
    try:
        return sorted(os.listdir(folder), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInput(f"cannot read the runs of this folder: {error.strerror}") from None


def read(run: str, head: str = "") -> tuple[str, Reading]:
    """Return folder and ledger of a run; raises InvalidInput."""
    rundir = find(run)
    return rundir, _beside_its_writer(rundir, head)[0]


def read_beside(run: str) -> tuple[Reading, bool]:
    """Return the ledger of a run and whether the run is active; raises InvalidInput."""
    return _beside_its_writer(find(run))


def _beside_its_writer(rundir: str, head: str = "") -> tuple[Reading, bool]:
    """Return a run's ledger and whether the run is active; raises InvalidInput.

    A partial last line of an active run is being written, so its ledger is not torn.
    """
    path = os.path.join(rundir, LEDGER)
    reading = read_ledger(path, head)
    if reading.condition not in ("unfinished", "torn"):
        return reading, _is_active(os.path.basename(rundir), reading)
    if not _is_active(os.path.basename(rundir), reading):
        # It may have ended since the read; it wrote its end before it released the workspace.
        return read_ledger(path, head), False
    return reading.but(condition="unfinished", detail="the run has no end", line=0), True


def changed_logs(rundir: str, reading: Reading) -> list[str]:
    """Return a problem for each log of an ended attempt that is missing, or differs from the record."""
    logs: dict[tuple[str, int], str] = {}
    ends: dict[str, ev.AttemptEnded] = {}
    for event in reading.events:
        if isinstance(event, ev.AttemptStarted) and event.log:
            logs[event.step, event.n] = event.log
        elif isinstance(event, ev.AttemptEnded) and (event.step, event.n) in logs:
            ends[logs[event.step, event.n]] = event
    return [
        f"{log} {why}" for log, end in ends.items() if end.log_bytes and (why := _changed(rundir, log, end))
    ]


def _changed(rundir: str, log: str, end: ev.AttemptEnded) -> str:
    path = os.path.join(rundir, log)
    try:
        with open(open_record(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != end.log_bytes:
                return f"has {size:,} bytes; the ledger records {end.log_bytes:,}"
            if end.log_sha256 and sha256(file.read(HASHED)).hexdigest() != end.log_sha256:
                return "differs from the record of its attempt"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return ""


def inspect(run: str) -> Inspected:
    """Return a run with its state from the intact part of its ledger; raises InvalidInput, InvalidPlan.

    Recovers the logs of the last attempts of a killed run.
    """
    found = read_run(run, cache=True)
    if not found.is_active and found.reading.condition != "intact":
        _show_logs(found.rundir)
    return found


def read_run(run: str, *, cache: bool = False) -> Inspected:
    """Return a run like `inspect`, without any change on disk."""
    rundir = find(run)
    reading, is_active = _beside_its_writer(rundir)
    try:
        state = state_of(rundir, reading, _shown, cache=cache)
    except _MISFITS:
        raise InvalidInput(f"the ledger does not fit the run's plan: {rundir}") from None
    return Inspected(rundir=rundir, reading=reading, state=state, is_active=is_active)


def _shown(plan: Plan) -> Plan:
    """Return a plan with the known values of its secrets masked."""
    secrets = secrets_of(plan)
    return secrets.masked(plan) if secrets else plan


def _show_logs(rundir: str) -> None:
    """Recover the logs of a killed run's last attempts; a full disk is ignored."""
    try:
        recover(os.path.join(rundir, "logs"))
    except RecordsLost:
        return


def listing(names: Iterable[str]) -> list[Row]:
    """Return a row for each run; also for one that cannot be read."""
    return [_row(name) for name in names]


def _row(name: str) -> Row:
    rundir = os.path.join(HOME, "runs", name)
    try:
        reading, is_active = _beside_its_writer(rundir)
        condition = resting_status(reading) or reading.condition
        return summarized(name, reading, "running" if is_active else condition)
    except InvalidInput as error:
        return Row(run=name, status="unreadable", detail=str(error))
    except _MISFITS:
        return Row(run=name, status="unreadable", detail=f"not a ledger: {rundir}/{LEDGER}")


def _is_active(run: str, reading: Reading) -> bool:
    """Return whether a process executes a run now: it holds the workspace for this run."""
    if reading.condition == "intact":
        return False
    current = holder("")
    return current is not None and current.run == run


DISCARDED_FILE = "ledger.discarded.jsonl"
# Records whose loss repeats work at worst. Others hold answers, policies, plans, spending or rollbacks.
_DROPPABLE = frozenset(
    (
        "plan_moved",
        "attempt_started",
        "attempt_ended",
        "step_held",
        "step_moved",
        "step_opened",
        "step_restored",
        "run_ending",
        "run_ended",
    )
)


class Discarded(Record):
    """The broken end of a ledger: `records` are those of its whole lines, None for one that cannot be read."""

    path: str  # of the ledger
    reading: Reading  # of the part before it
    data: bytes
    records: tuple[dict[str, Any] | None, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps whose attempts are dropped."""
        started = [
            record["step"] for record in self.records if record and record["type"] == "attempt_started"
        ]
        return tuple(dict.fromkeys(started))

    def event(self) -> dict[str, Any]:
        """Return what `run_resumed` records."""
        digest = str(sha256(self.data).hexdigest())
        return {"line": self.reading.line, "bytes": len(self.data), "sha256": digest, "file": DISCARDED_FILE}

    def message(self) -> str:
        """Return a line that states what is dropped."""
        steps = f"; steps with dropped attempts: {', '.join(self.steps)}" if self.steps else ""
        size = f"{len(self.data)} bytes, kept in {DISCARDED_FILE}"
        return f"discarding the ledger from line {self.reading.line} on ({size}){steps}"

    def require_harmless(self, state: RunState) -> None:
        """Raise InvalidInput when records are dropped that a resumed run must obey."""
        for number, record in enumerate(self.records, len(self.reading.events) + 1):
            if record is None or record["seq"] != number:
                what = _needs_records(state)
                if what:
                    self._refuse(number, f"cannot be read or is missing, and {what}")
                break
            if record["type"] not in _DROPPABLE:
                self._refuse(number, f"is {record['type']}")
            if record["type"] == "attempt_started" and not _is_repeatable(state, record["step"]):
                self._refuse(number, f"is an attempt of {record['step']}, which has `idempotent: false`")

    def _refuse(self, number: int, why: str) -> None:
        raise InvalidInput(
            f"--discard cannot drop the end of the ledger: {self.path}:{number}: record {number} {why}; start a new run"
        )

    def drop(self) -> None:
        """Append the bytes to the file beside the ledger and cut them off; raises RecordsLost."""
        path = os.path.join(os.path.dirname(self.path), DISCARDED_FILE)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(path, flags, 0o600), "ab") as file:
                file.write(self.data)
                file.flush()
                os.fsync(file.fileno())
            sync_path(os.path.dirname(path))
        except OSError as error:
            raise RecordsLost(f"the records cannot be written: {path}: {error.strerror}") from None
        cut(self.path, self.reading.size)


def discarded(rundir: str) -> Discarded | None:
    """Return the broken end of a run's ledger, None when nothing is broken; raises InvalidInput."""
    path = os.path.join(rundir, LEDGER)
    reading = read_ledger(path)
    if reading.condition not in ("altered", "torn"):
        return None
    with open(open_record(path), "rb") as file:
        file.seek(reading.size)
        data = file.read()
    # A torn end never reached the disk: no step had started by it, and its bytes may be any.
    lines = data.split(b"\n")[:-1] if reading.condition == "altered" else []
    records = tuple([_record(line) for line in lines])
    return Discarded(path=path, reading=reading, data=data, records=records)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        return None
    has_step = isinstance(record.get("step"), str) or record["type"] != "attempt_started"
    return record if has_step and "seq" in record else None


def _is_repeatable(state: RunState, name: str) -> bool:
    found = state.steps.get(name)  # None: a member of a group that the ledger's intact part does not have
    return found.step.idempotent if found else all(step.idempotent for step in state.plan.everything())


def _needs_records(state: RunState) -> str:
    """Report why no record of a run may be dropped unread; "" when each of them may."""
    assert state.started is not None
    plan = state.plan
    options = [state.started.options, *[event.options for event in state.resumed]]
    if plan.policy or any(each.get("policy") for each in options):
        return "a policy may have asked for approvals"
    if plan.llm:
        return "a model may have written steps"
    for step in plan.everything():
        if step.action.asks or step.kind == "abstract" or step.on_failure == "ask":
            return f"step {step.id} may have been answered"
        if not step.idempotent:
            return f"step {step.id}, which has `idempotent: false`, may have started"
        if step.rollback:
            return f"step {step.id} may have been rolled back"
    return ""
