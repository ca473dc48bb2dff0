"""How a run ends early, pauses or rolls back: signals, deadlines, aborts, pending cleanup. Loaded when needed."""

from __future__ import annotations

from planrun.engine.queue import Frontier
from planrun.errors import EXIT_RECORDS, EXIT_WAITING
from planrun.model import events as ev
from planrun.model.rollback import is_due, undoable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from planrun.engine.scheduler import Scheduler
    from planrun.model.plan import Step

# Seconds from the first signal to the last cleanup step; with reports written it has to be under 7, since CI systems
# kill what is left soon after (GitHub's runner: 7.5 s after its SIGINT).
CANCEL_BUDGET = 6.2


def interrupt(run: Scheduler, signum: int) -> None:
    """Cancel a run with grace at the first signal, at once at a second one."""
    executor = run.rooms.executor
    if run._given_up:
        executor.kill_all()
        return
    ending = run.state.ending
    if run._cleanup_until is not None or (ending and ending.why == "cancel"):
        executor.kill_all()
        run._cleanup_until = run._clock.monotonic()
        return
    run._cleanup_until = run._clock.monotonic() + CANCEL_BUDGET
    run._emit(ev.RunEnding(at=run._clock.stamp(), why="cancel", signal=signum))
    if run._section == "steps":
        executor.signal_all(signum)
    if run._section != "finally":
        cancel_pending(run, "cancelled")


def stop_all(run: Scheduler, why: str, reason: Literal["cancelled", "timeout"], step: str = "") -> None:
    """Stop what runs and start nothing more; `step` is the one whose failure does that."""
    run._emit(ev.RunEnding(at=run._clock.stamp(), why=why, step=step))
    for name in run.rooms.executor.running:
        run.rooms.executor.stop(name, reason)
    cancel_pending(run, why)


def overdue(run: Scheduler) -> None:
    """Stop what runs when the time is over: that of the steps, or that of undoing or of cleaning up."""
    if run._section == "steps":
        stop_all(run, "deadline", "timeout")
        return
    run._entered = None
    for name in run.rooms.executor.running:
        run.rooms.executor.stop(name, "timeout")
    cancel_pending(run, "cleanup")


def cancel_pending(run: Scheduler, reason: str) -> None:
    """End every step of this section that has not started or waits for its next attempt.

    What a signal leaves no time to undo stays as it is, and is owed.
    """
    run._queue.clear()
    run._waiting.clear()
    if run._section == "rollback" and reason == "cancelled":
        running = [run.state.steps[name].step for name in run.rooms.executor.running]
        run._frontier = Frontier(running, run.state)
        return
    for step in run.state.of_section(run._section):
        if run.state.steps[step.id].status in ("pending", "waiting", "paused"):
            run._move(step.id, "cancelled", reason)


def pause(run: Scheduler, signum: int) -> None:
    """Start nothing more and come to rest when what runs has ended, unless the run is being ended anyway."""
    if run.state.ending is None and not run.state.pausing and not run._given_up:
        run._emit(ev.RunEnding(at=run._clock.stamp(), why="pause", signal=signum))


def rest(run: Scheduler) -> int:
    """Record that the run is paused; steps between two attempts keep their place. Returns the exit code."""
    for name, state in run.state.steps.items():
        if state.status == "waiting" and not state.at_gate:
            run._emit(ev.StepMoved(at=run._clock.stamp(), step=name, status="paused", reason="paused"))
    code, wishes = EXIT_WAITING, run.options
    if run.state.paused_by == "gates":  # a failure is not hidden by what waits
        code = run.state.exit_code_at_gates(strict=wishes.strict, fail_on_flaky=wishes.fail_on_flaky)
    event = ev.PlanMoved(at=run._clock.stamp(), status="paused")
    run._emit(event if code == EXIT_WAITING else event.but(exit_code=code))
    run._sync()
    return code if run.lost is None else EXIT_RECORDS


def leave_out(run: Scheduler, steps: Sequence[Step]) -> None:
    """Skip what others take the place of, and what nobody selected."""
    replaced, selected = run.state.replaced, run.options.selected
    for step in steps:
        if run.state.steps[step.id].ended or step.undoes:
            continue
        if step.id in replaced:
            others = [other.id for other in steps if step.id in other.replaces]
            told = f"{', '.join(others)} {'takes' if len(others) == 1 else 'take'} its place"
            run._move(step.id, "skipped", "replaced_by_replan", told)
        elif selected is not None and step.id not in selected:
            run._move(step.id, "skipped", step.left_out)


def roll_back(run: Scheduler) -> None:
    """Undo what a run did, if it failed and there is anything; what was begun before goes on.

    After a signal there is no time for that: it stays owed, and whoever catches up with the run does it.
    """
    state = run.state
    if run.lost is not None or not run.options.rollback or state.pausing:
        return
    due = is_due(state) if run.options.catches_up else state.verdict("steps") == "failed"
    if due and state.rollback is None and (names := undoable(state)):
        run._emit(ev.RollbackStarted(at=run._clock.stamp(), steps=tuple(names)))
    if run._cleanup_until is None:
        run._drive("rollback")


def close_steps(run: Scheduler) -> None:
    """End every step under `steps:` that has no end, in a run that is only to do what it still owes.

    Where nothing had failed when planrun was killed, that is a cancellation.
    """
    state = run.state
    steps = state.of_section("steps")
    left = not all(state.steps[step.id].ended for step in steps)
    if left and state.ending is None and state.verdict("steps") != "failed":
        run._emit(ev.RunEnding(at=run._clock.stamp(), why="cancel"))
    run._enter(steps)
    cancel_pending(run, "cancelled")
    for step in steps:
        if state.steps[step.id].status == "running" and step.kind != "group":
            run._move(step.id, "cancelled", "lost")  # nobody knows how far it came
    run._look()  # groups end when their members have
