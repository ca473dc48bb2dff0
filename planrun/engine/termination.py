"""How a run ends early, pauses or rolls back: signals, deadlines, aborts, pending cleanup."""

from __future__ import annotations

from planrun.engine.queue import Frontier
from planrun.errors import EXIT_RECORDS, EXIT_WAITING
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from planrun.engine import RunContext
    from planrun.model.plan import Step

# Seconds from the first signal to the last cleanup step; with reports written it has to be under 7, since CI systems
# kill what is left soon after (GitHub's runner: 7.5 s after its SIGINT).
CANCEL_BUDGET = 6.2


def interrupt(run: RunContext, signum: int) -> None:
    """Cancel a run: with cleanup at the first signal, at once at the second one."""
    executor = run.dependencies.executor
    if run.given_up:
        executor.kill_all()
        return
    ending = run.state.ending
    if run.cleanup_until is not None or (ending and ending.why == "cancel"):
        executor.kill_all()
        run.cleanup_until = run.clock.monotonic()
        return
    run.cleanup_until = run.clock.monotonic() + CANCEL_BUDGET
    why = run.dependencies.why_interrupted
    message = {"message": text} if why and (text := why()) else {}
    run.emit(ev.RunEnding(at=run.clock.stamp(), why="cancel", signal=signum, **message))
    if run.section == "steps":
        executor.signal_all(signum)
    if run.section != "finally":
        cancel_pending(run, "cancelled")


def stop_all(run: RunContext, why: str, reason: Literal["cancelled", "timeout"], step: str = "") -> None:
    """Stop what runs and start nothing more; `step`: the one whose failure causes this."""
    run.emit(ev.RunEnding(at=run.clock.stamp(), why=why, step=step))
    for name in run.dependencies.executor.running:
        run.dependencies.executor.stop(name, reason)
    cancel_pending(run, why)


def enforce_deadline(run: RunContext) -> None:
    """Stop what runs when the time limit of the section has passed."""
    if run.section == "steps":
        stop_all(run, "deadline", "timeout")
        return
    run.section_start = None
    for name in run.dependencies.executor.running:
        run.dependencies.executor.stop(name, "timeout")
    cancel_pending(run, "cleanup")


def cancel_pending(run: RunContext, reason: str) -> None:
    """Cancel every step of this section that has not started or waits for its next attempt.

    A rollback that a signal interrupts stays pending.
    """
    run.queue.clear()
    run.timers.clear()
    if run.section == "rollback" and reason == "cancelled":
        running = [run.state.steps[name].step for name in run.dependencies.executor.running]
        run.frontier = Frontier(running, run.state)
        return
    for step in run.state.of_section(run.section):
        if run.state.steps[step.id].status in ("pending", "waiting", "paused"):
            run.move(step.id, "cancelled", reason)


def request_pause(run: RunContext, signum: int) -> None:
    """Start nothing more, and pause the run when all running attempts have ended, unless the run is ending already."""
    if run.state.ending is None and not run.state.pausing and not run.given_up:
        run.emit(ev.RunEnding(at=run.clock.stamp(), why="pause", signal=signum))


def pause_run(run: RunContext) -> int:
    """Record that the run is paused, and the steps that are between two attempts; return the exit code."""
    for name, state in run.state.steps.items():
        if state.status == "waiting" and not state.at_gate:
            run.emit(ev.StepMoved(at=run.clock.stamp(), step=name, status="paused", reason="paused"))
    code, options = EXIT_WAITING, run.options
    if run.state.paused_by == "gates":  # a pending approval must not hide a failure
        code = run.state.exit_code_at_gates(strict=options.strict, fail_on_flaky=options.fail_on_flaky)
    event = ev.PlanMoved(at=run.clock.stamp(), status="paused")
    run.emit(event if code == EXIT_WAITING else event.but(exit_code=code))
    run.sync()
    return code if run.lost is None else EXIT_RECORDS


def skip_replaced(run: RunContext, steps: Sequence[Step]) -> None:
    """Skip the steps that a replan replaced; what depended on them depends on the steps in their place."""
    for step in steps:
        if step.id in run.state.replaced and not run.state.steps[step.id].ended and not step.undoes:
            others = [other.id for other in steps if step.id in other.replaces]
            message = f"{', '.join(others)} {'takes' if len(others) == 1 else 'take'} its place"
            run.move(step.id, "skipped", "replaced_by_replan", message)


def roll_back(run: RunContext) -> None:
    """Roll back a failed run; a rollback that an earlier process began continues.

    After a signal there is no time for it: it stays pending until the run is resumed or finalized.
    """
    state = run.state
    if run.lost is not None or not run.options.rollback or state.pausing:
        return
    from planrun.model.rollback import is_due, undoable  # few plans have rollbacks

    due = is_due(state) if run.options.cleanup_only else state.verdict("steps") == "failed"
    if due and state.rollback is None and (names := undoable(state)):
        run.emit(ev.RollbackStarted(at=run.clock.stamp(), steps=tuple(names)))
    if run.cleanup_until is None:
        run.drive("rollback")


def close_steps(run: RunContext) -> None:
    """End every unfinished step under `steps:`, in a run that only finishes its pending cleanup.

    If nothing had failed when planrun was killed, the run ends as cancelled.
    """
    state = run.state
    steps = state.of_section("steps")
    left = not all(state.steps[step.id].ended for step in steps)
    if left and state.ending is None and state.verdict("steps") != "failed":
        run.emit(ev.RunEnding(at=run.clock.stamp(), why="cancel"))
    run.enter(steps)
    cancel_pending(run, "cancelled")
    for step in steps:
        if state.steps[step.id].status == "running" and step.kind != "group":
            run.move(step.id, "cancelled", "lost")  # how far it got is unknown
    run.evaluate_ready()  # groups end when their members have
