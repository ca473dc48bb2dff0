"""`planrun resume RUN --discard`: drop the broken end of a ledger, and keep its bytes in a file beside it."""

from __future__ import annotations

import json
import os

from planrun.errors import InvalidInput, RecordsLost
from planrun.model.record import Record
from planrun.records.ledger import sync_path
from planrun.records.reading import cut, read_ledger
from planrun.records.rundir import LEDGER
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.state import RunState
    from planrun.records.reading import Reading

FILE = "ledger.discarded.jsonl"
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
    reading: Reading  # of what is before it
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
        """What `run_resumed` records."""
        digest = str(sha256(self.data).hexdigest())
        return {"line": self.reading.line, "bytes": len(self.data), "sha256": digest, "file": FILE}

    def told(self) -> str:
        """Say what is dropped."""
        steps = f"; steps with dropped attempts: {', '.join(self.steps)}" if self.steps else ""
        return f"discarding the ledger from line {self.reading.line} on ({len(self.data)} bytes, kept in {FILE}){steps}"

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
        path = os.path.join(os.path.dirname(self.path), FILE)
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
    with open(path, "rb") as file:
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
    """Say why no record of a run may be dropped unread; "" when each of them may."""
    assert state.started is not None
    plan = state.plan
    options = [state.started.options, *[event.options for event in state.resumed]]
    if plan.policy or any(each.get("policy") for each in options):
        return "a policy may have asked for approvals"
    if plan.llm:
        return "a model may have written steps"
    for step in plan.everything():
        if step.kind in ("ask", "decide", "abstract") or step.on_failure == "ask":
            return f"step {step.id} may have been answered"
        if not step.idempotent:
            return f"step {step.id}, which has `idempotent: false`, may have started"
        if step.rollback:
            return f"step {step.id} may have been rolled back"
    return ""
