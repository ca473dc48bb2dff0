"""The end of an attempt, of a run, and of one that cannot be recorded any more.

Every run loads it, so that no disk is needed then.
"""

from __future__ import annotations

from planrun.engine.queue import push
from planrun.errors import EXIT_RECORDS
from planrun.model import events as ev
from planrun.model.job import as_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.engine.scheduler import Scheduler
    from planrun.errors import RecordsLost
    from planrun.model.job import Outcome
    from planrun.model.plan import Step


def conclude(run: Scheduler, step: Step, attempt: int, outcome: Outcome) -> None:
    """Record the end of an attempt and what it makes of its step."""
    ending = run.state.ending
    why = ending.why if ending and run._section == "steps" else ""
    if outcome.status == "cancelled" and why in ("abort", "records"):
        outcome = outcome.but(reason=why)  # as for the steps that had not started
    run._queue.release(step.id)
    found = run.state.steps[step.id]
    tries, fresh = len(found.tries), ending is None and found.opened is None
    failure, seconds = None, None
    if outcome.status == "failed":
        from planrun.engine.recovery import react

        failure, seconds = react(step, tries, outcome, repeat=fresh, draw=run.rooms.chance)
    fields = as_fields(outcome, failure)
    if seconds is not None:
        fields |= {"step_status": "waiting", "delay": round(seconds, 3)}
    else:
        fields["step_status"] = outcome.status
        if outcome.status == "completed":
            fields["step_reason"] = "flaky" if tries > 1 and outcome.reason == "ran" else outcome.reason
    run._emit(ev.AttemptEnded(at=run._clock.stamp(), step=step.id, n=attempt, **fields))
    if seconds is not None:
        push(run._waiting, (run._clock.monotonic() + seconds, step.id))
        return
    run._settle(step.id)
    if outcome.status == "failed":
        run._abort(step)


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
    more: dict[str, Any] = {}
    if state.plan.outputs and run.lost is None and verdict in ("completed", "partial"):
        outputs, message = run.rooms.steps.plan_outputs(state)
        if outputs:
            more["outputs"] = outputs
        # Outputs of steps that the caller left out are absent on purpose.
        if message and run.options.selected is None:
            more["message"], verdict = message, "failed"
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
            **more,
        )
    )
    run._sync()
    return code if run.lost is None else EXIT_RECORDS
