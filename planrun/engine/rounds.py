"""Rounds: a run whose steps failed for passing reasons waits a while and repeats them, as `planrun resume` would.

A round comes after all steps and before rollback and `finally`, so nothing is undone that is about to be tried again.
"""

from __future__ import annotations

from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.engine import RunContext


def run_rounds(run: RunContext) -> None:
    """Repeat what failed for passing reasons, as often as the plan allows and while its deadline is not reached."""
    settings = run.state.plan.resume
    most, pause = int(settings.get("rounds", 0)), float(settings.get("pause", 0.0))
    while len(run.state.rounds) < most and _may_repeat(run, pause):
        assert run.dependencies.again is not None
        why = dict(run.dependencies.again(run.state))
        failed = tuple([name for name in why if run.state.steps[name].status == "failed"])
        if not why:
            return
        run.emit(
            ev.RoundStarted(
                at=run.clock.stamp(),
                n=len(run.state.rounds) + 1,
                most=most,
                delay=pause,
                steps=failed,
                rerun=tuple(why),
                why=why,
            )
        )
        run.enter(run.state.of_section("steps"))
        run.sync()
        run.rest(pause)
        run.go_on()


def _may_repeat(run: RunContext, pause: float) -> bool:
    """Whether nothing but failures ended the steps, and the deadline leaves time for the pause."""
    state, limits = run.state, run.state.plan.limits
    if run.lost is not None or state.pausing or run.cleanup_until is not None or run.section != "steps":
        return False
    if state.ending is not None and state.ending.why != "abort":
        return False
    if limits.deadline is None or run.section_start is None:
        return limits.deadline is None
    return run.clock.monotonic() + pause < run.section_start + limits.deadline
