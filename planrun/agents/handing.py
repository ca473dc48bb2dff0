"""What an agent is handed over: a snapshot of what others found, from its own step or from those before it."""

from __future__ import annotations

from planrun.agents.snapshot import gathered
from planrun.model import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.agents.loop import AgentRun
    from planrun.model.state import RunState


def for_step(run: AgentRun) -> str:
    """Return the block for the agent of a step: what agents of the steps that it waits for left in the memory.

    Other steps may still run, so what they write would make the question depend on chance.
    """
    shared = run.shared
    before = steps_before(run.recorder.state, run.step.id)
    entries = [entry for entry in shared.memory.read_all() if entry.step in before]
    snapshot = gathered(entries)
    if not snapshot.is_empty:
        run.act()
        shared.snapshot(snapshot)
    return snapshot.block()


def for_child(run: AgentRun) -> str:
    """Return the block for an agent that this one asks: the memory, its own results, and its task."""
    snapshot = gathered(
        run.shared.memory.read_all(),
        errors=run.follow.errors.items(),
        results=run.follow.results,
        requirements=[text for text in (run.task,) if text],
    )
    run.act()
    run.shared.snapshot(snapshot)
    return snapshot.block()


def steps_before(state: RunState, name: str) -> set[str]:
    """Return the steps whose work is done when a step starts: those that it waits for, and other sections."""
    own = state.steps[name].step.section
    steps = [each.step for each in state.steps.values()]
    waits = graph.waits([step for step in steps if step.section == own])
    found = graph.ancestors(waits, [name]) - {name} if name in waits else set()
    return found | {step.id for step in steps if step.section != own}
