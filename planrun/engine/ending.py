"""The end of a run, and of one that cannot be recorded any more; every run loads it, so that no disk is needed then."""

from __future__ import annotations

from planrun.errors import EXIT_RECORDS
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.engine.scheduler import Scheduler
    from planrun.errors import RecordsLost


def give_up(run: Scheduler, lost: RecordsLost) -> None:
    """Have the run end because it cannot be recorded.

    What has not started stays as it is, for a resume: to say so of each step takes room that is not there. It is
    here because a disk that cannot be written may be one that cannot be read.
    """
    if run._given_up:
        return
    run._given_up = True
    run._emit(ev.RunEnding(at=run._clock.stamp(), why="records", message=str(lost)))
    run._queue.clear()
    run._waiting.clear()
    for name in run.rooms.executor.running:
        run.rooms.executor.stop(name, "cancelled")


def end(run: Scheduler) -> int:
    """Record the end of a run: verdict, exit code and what became of its steps; returns the exit code."""
    if run.lost is not None:
        give_up(run, run.lost)
    state = run.state
    verdict = state.verdict()
    code = EXIT_RECORDS
    if run.lost is None:
        wishes = run.options
        code = state.exit_code(verdict, strict=wishes.strict, fail_on_flaky=wishes.fail_on_flaky)
    run._emit(
        ev.RunEnded(
            at=run._clock.stamp(),
            status="completed" if verdict == "partial" else verdict,
            verdict=verdict,
            exit_code=code,
            duration=round(run._clock.monotonic() - run._began, 3),
            summary=state.summary(),
            events=run.rooms.journal.records + 1,
        )
    )
    run._sync()
    return code if run.lost is None else EXIT_RECORDS
