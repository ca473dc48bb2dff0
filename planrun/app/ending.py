"""The end of a run that no scheduler drives: it is cancelled before its first step, or while it is paused."""

from __future__ import annotations

from planrun.model import events as ev
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.state import RunState


class Recorder(Record):
    """How events of a run are recorded: `records` returns how many there are, `stamp` the time."""

    record: Callable[[ev.Event], None]
    records: Callable[[], int]
    stamp: Callable[[], str]


def record_end(
    state: RunState,
    recorder: Recorder,
    code: int | None = None,
    signum: int | None = None,
    message: str = "",
) -> int:
    """Record that a run is cancelled, as the engine does for an active one; returns its exit code.

    `code`: its exit code, where it is not that of its verdict. `signum`: the signal that cancels it.
    `message`: why it is cancelled, where no signal came.
    """
    at = recorder.stamp()
    ending = ev.RunEnding(at=at, why="cancel")
    if message:
        ending = ending.but(message=message)
    recorder.record(ending if signum is None else ending.but(signal=signum))
    for name, step in state.steps.items():
        if not step.ended:
            recorder.record(ev.StepMoved(at=at, step=name, status="cancelled", reason="cancelled"))
    verdict = state.verdict()
    code = state.exit_code(verdict, strict=False, fail_on_flaky=False) if code is None else code
    recorder.record(
        ev.RunEnded(
            at=at,
            status=verdict,
            verdict=verdict,
            exit_code=code,
            duration=0.0,
            summary=state.summary(),
            events=recorder.records() + 1,
        )
    )
    return code
