"""What can be done about the four common troubles of a step: a decision, no parallelism, a context limit, no resume."""

from __future__ import annotations

from planrun.reports import gates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.plan import Step
    from planrun.model.state import RunState


def advice(state: RunState, step: Step, *, going: bool) -> Iterator[str]:
    """Yield what can be done, in sentences with the commands or keys to use; nothing where nothing is wrong."""
    yield from _on_decision(state, step)
    yield from _on_parallelism(state, step)
    yield from _on_context(state, step)
    if not going:
        yield from _on_resume(state, step)


def _on_decision(state: RunState, step: Step) -> Iterator[str]:
    opened = state.steps[step.id].asked
    if opened is not None:
        commands = gates.commands(state, opened)
        yield f"needs a decision: {' or '.join(commands)}" if commands else "needs a decision"


def _on_parallelism(state: RunState, step: Step) -> Iterator[str]:
    if len(state.plan.main()) < 2:
        return
    if step.parallel is False:
        yield "no step runs beside it: it has `parallel: false`"
    elif state.plan.schedule == "sequential":
        yield "no step runs beside it: the plan has `schedule: sequential`; `schedule: dag` runs all that is ready"
    elif state.plan.limits.max_parallel == 1:
        yield "no step runs beside it: `limits.max_parallel` is 1"
    if step.lock:
        yield f"steps with the same lock never run beside it: {', '.join(step.lock)}"


def _on_context(state: RunState, step: Step) -> Iterator[str]:
    for call in state.planning.calls if state.planning else ():
        about = call.planning.steps if call.planning else ()
        if step.id in about and call.answered and call.answered.rule.startswith("stop_reason:m"):
            yield (
                f"context limit: {call.answered.message}; raise `llm.plan_max_tokens`, name a model with a larger "
                "context, or divide the step"
            )
            return
    for event in state.planning.ended if state.planning else ():
        if step.id in event.steps and event.outcome == "budget":
            yield f"budget used up: {event.message}; `planrun resume --max-tokens N` continues with more"
            return


def _on_resume(state: RunState, step: Step) -> Iterator[str]:
    found = state.steps[step.id]
    run = state.started.run if state.started else "RUN"
    if found.status == "failed" and not step.idempotent:
        yield (
            "a resume does not run it again (`idempotent: false`); check its effects, then: "
            f"planrun retry {run} {step.id}"
        )
    elif found.status == "failed" and found.reason == "denied":
        yield "a denial stays when the run is resumed: change the plan or the policy, and start a new run"
    elif found.status in ("pending", "paused", "running", "waiting") and found.asked is None:
        yield f"the run has stopped; to continue: planrun resume {run}"
