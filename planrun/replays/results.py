"""Recorded attempts as outcomes for the scheduler.

Conditions of a replayed run, evaluated from recorded values.
"""

from __future__ import annotations

import os

from planrun.actions.prepare import last_errors
from planrun.engine.failures import RESOURCES, middle
from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.evaluate import evaluate
from planrun.model.job import Outcome
from planrun.opening import open_record
from planrun.records.rundir import LEDGER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model import events as ev
    from planrun.model.plan import Retry, Step
    from planrun.model.state import RunState

TAIL_BYTES = 8192  # of a failed attempt's log: what an error is classified by
# Fields that differ in each run: moments and durations.
_PASSING = frozenset({"at", "duration", "delay", "until"})
_SAME = (
    "reason",
    "exit_code",
    "log_bytes",
    "log_sha256",
    "outputs",
    "checks",
    "hooks",
    "notes",
    "files",
    "cache",
    "reports",
    "tools",
    "resources",
    "stderr",
    "program",
    "patch",
    "proposed",
)


def same(one: ev.Event, other: ev.Event) -> bool:
    """Whether two events are equal except for moments and durations."""
    return type(one) is type(other) and comparable(one) == comparable(other)


def comparable(event: ev.Event) -> dict[str, Any]:
    """Return the fields of an event without moments, durations and defaults."""
    return {
        name: value
        for name, value in vars(event).items()
        if name not in _PASSING and value != getattr(type(event), name, None)
    }


def outcome_of(ended: ev.AttemptEnded, rundir: str, log: str) -> Outcome:
    """Return the outcome of a recorded attempt; the end of its log is read from the run."""
    known = vars(ended)
    fields: dict[str, Any] = {
        name: known[name] for name in _SAME if name in known and name in Outcome.__annotations__
    }
    if ended.status == "failed":
        fields["message"] = (ended.error or {}).get("message", "")
        if log:
            fields["tail"] = _tail(rundir, log)
            fields["errors"] = last_errors(os.path.join(rundir, log), tuple(ended.stderr))
        fields["passing"] = (ended.error or {}).get("rule") == RESOURCES
    status: Any = ended.status if ended.status in ("completed", "failed") else "cancelled"
    return Outcome(**{"reason": "", **fields, "status": status, "duration": ended.duration})


def _tail(rundir: str, log: str) -> str:
    """Return the last bytes of a log as text; empty when there is none, or something else in its place."""
    try:
        fd = open_record(os.path.join(rundir, log))
    except OSError:
        return ""
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def chance_of(retry: Retry, tries: int, delay: float) -> float:
    """Return the random number that made the pause after failed attempt `tries` so long: the inverse of the delay."""
    usual = middle(retry, tries)
    if not usual or not retry.jitter:
        return 0.5
    return min(1.0, max(0.0, (delay / usual - 1) / (2 * retry.jitter) + 0.5))


def ledger_of(rundir: str) -> str:
    """Return the ledger of a run's folder."""
    return os.path.join(rundir, LEDGER)


_RECORDED = frozenset({"params", "steps", "run", "matrix", "item"})


def reads_only_recorded(step: Step) -> bool:
    """Whether a condition reads only values in the ledger: no environment, no files."""
    assert step.condition is not None
    reads = references(step.condition)
    return all(reference.path[0] in _RECORDED for reference in reads) and "hash_files" not in set(
        calls(step.condition)
    )


def holds(step: Step, state: RunState, context: Mapping[str, Any]) -> bool:
    """Evaluate the condition of a step; `context`: the names below `run`. Raises EvaluationError."""
    assert step.condition is not None
    value = evaluate(step.condition, state.scope({"env": {}, "run": dict(context)}, step))
    if not isinstance(value, bool):
        raise EvaluationError(f"{step.condition_text} is not boolean")
    return value


def calls(tree: Any) -> Iterator[str]:
    """Yield the names of the functions that an expression calls."""
    if isinstance(tree, tuple):
        if len(tree) > 3 and tree[0] == "call":
            yield str(tree[3])
        for part in tree:
            yield from calls(part)
