"""The rollback of a failed run, in order, and the pending cleanup of an interrupted one."""

from __future__ import annotations

from planrun.model import graph
from planrun.model.groups import folder_of, undo_id
from planrun.model.plan import Edge
from planrun.model.progress import StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any, Literal

    from planrun.model.plan import Step
    from planrun.model.state import RunState

    Status = Literal["none", "completed", "failed", "owed"]

MAX_EDGES = 200_000
"""Edges between undo steps; where there would be more, one is undone after the other, which is in order as well."""


def undo_ids(state: RunState, step: str) -> list[str]:
    """Return what everything is called that undoes a step, in the order in which it runs."""
    rollback = state.steps[step].step.rollback
    return [undo_id(step, number) for number in range(len(rollback.undos) if rollback else 1, 0, -1)]


def undoable(state: RunState) -> list[str]:
    """Return the steps that a run undoes when it fails, the last one that ended first.

    That is what completed by running, and what started and did not complete where its rollback is for that, too. What
    was restored did nothing, and what is undone already is not undone twice.
    """
    places = {name: place for place, name in enumerate(state.steps)}
    found = [(step.ended_at, places[name], name) for name, step in state.steps.items() if _is_undoable(step)]
    return [name for _, _, name in sorted(found, reverse=True)]


def _is_undoable(found: StepState) -> bool:
    rollback = found.step.rollback
    if rollback is None or found.undone or found.step.section != "steps":
        return False
    if found.status == "completed":
        return found.reason != "cached"
    return rollback.on_failed and found.status in ("failed", "cancelled") and bool(found.tries)


def undo_steps(state: RunState, names: Sequence[str]) -> list[Step]:
    """Return what undoes each of the named steps, in this order, waiting for all that was done after it.

    Whatever depends on a step, also through others that nothing undoes, is undone before it.
    """
    later = _later(graph.waits(state.plan.main()), frozenset(names))
    if later is None:
        later = {name: names[max(place - 1, 0) : place] for place, name in enumerate(names)}
    shared = {name: Edge(on=undo_id(name), kind="done") for name in names}
    found = []
    for name in names:
        rollback = state.steps[name].step.rollback
        assert rollback is not None
        edges = tuple([shared[other] for other in later[name]])
        for number in range(len(rollback.undos), 0, -1):
            called = undo_id(name, number)
            fields: dict[str, object] = {"id": called, "undoes": name, "folder": folder_of(called)}
            if edges:
                fields["edges"] = edges
            found.append(rollback.undos[number - 1].but(**fields))
            edges = (Edge(on=called, kind="done"),)  # whether it succeeds or not
    return found


def _later(waits: Mapping[str, Sequence[str]], wanted: Collection[str]) -> dict[str, Sequence[str]] | None:
    """Return for each wanted step the nearest wanted ones that depend on it; None where these are too many."""
    nearest: dict[str, dict[str, None]] = {}  # the nearest wanted steps that a step depends on
    found: dict[str, list[str]] = {name: [] for name in wanted}
    edges = 0
    for name in graph.order(waits):
        above: dict[str, None] = {}
        for other in waits[name]:
            if other in wanted:
                above[other] = None
            else:
                above.update(nearest[other])
        nearest[name] = above
        edges += len(above)
        if edges > MAX_EDGES:
            return None
        if name in wanted:
            for other in above:
                found[other].append(name)
    return dict(found)


def names_of_undo(state: RunState, undo: Step, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names that expressions of what undoes a step can read: those of the step, and what that wrote.

    What undoes an instance reads that one by the id of the step as it is written.
    """
    step = state.steps[undo.undoes].step
    names = state.scope(fixed, step)
    if step.instance:
        group = step.group.rpartition("/")
        values = names["steps"]
        values[group[2]] = values[step.id.removeprefix(f"{group[0]}/" if group[0] else "")]
    return names


def take_up(state: RunState, names: Sequence[str]) -> None:
    """Have a run know what undoes the named steps; earlier attempts at undoing the same stay as evidence."""
    for step in undo_steps(state, names):
        found = state.undoing.pop(step.id, None) or StepState(step)
        found.step = step
        found.reset()
        state.undoing[step.id] = found


def status(state: RunState) -> Status:
    """Return the status of the rollback: none (nothing to undo), completed, failed, or owed (pending)."""
    if owes_rollback(state):
        return "owed"
    if state.rollback is None or not state.rollback.steps:
        return "none"
    ends = {state.undoing[each].status for name in state.rollback.steps for each in undo_ids(state, name)}
    return "completed" if ends == {"completed"} else "failed"


def is_due(state: RunState) -> bool:
    """Whether a run must be rolled back: a step counts as failed, or did not end."""
    left = any(not found.ended for found in state.steps.values() if found.step.section == "steps")
    return left or state.verdict("steps") == "failed" or _is_broken_off(state)


def _is_broken_off(state: RunState) -> bool:
    """Whether a signal kept a step from its end; one that came when all had ended undoes nothing."""
    return state.cut_short and any(
        found.status in ("cancelled", "blocked")
        or (found.status == "failed" and state.tolerance(name) is None)
        for name, found in state.steps.items()
        if found.step.section == "steps"
    )


def owes(state: RunState) -> bool:
    """Whether a run without a process has pending work, if only the record of its end."""
    killed = state.began and state.ended is None and not _rests(state)
    return killed or owes_rollback(state) or bool(owed_cleanup(state))


def owes_rollback(state: RunState) -> bool:
    """Whether a run that ended early and has no process has a pending rollback."""
    if state.options.get("no_rollback"):
        return False
    if state.rollback is not None:
        return bool(owed_undoing(state))
    return _was_cut_short(state) and is_due(state) and bool(undoable(state))


def owed_undoing(state: RunState) -> list[str]:
    """Return the undo steps of the rollback that have not ended."""
    steps = state.rollback.steps if state.rollback else ()
    names = [each for name in steps for each in undo_ids(state, name)]
    return [name for name in names if _is_owed(state.undoing[name])]


def unended(state: RunState) -> list[str]:
    """Return the undo and `finally` steps whose attempt has no end."""
    states = [*state.undoing.items(), *state.steps.items()]
    return [name for name, found in states if found.status == "running" and found.step.section != "steps"]


def owed_cleanup(state: RunState) -> list[str]:
    """Return the pending `finally` steps: those without an end, and those that a signal cut off."""
    if not _was_cut_short(state):
        return []
    steps = [found for found in state.steps.values() if found.step.section == "finally"]
    cut = any(_is_owed(found) for found in steps)
    return [found.step.id for found in steps if _is_owed(found) or (cut and found.status == "blocked")]


def is_past_steps(state: RunState) -> bool:
    """Whether a run without an end has only its rollback and its `finally` steps left.

    A run that was cancelled and then killed is not such a run, since a CI system does that and a resume continues it;
    nor is one with a failure that a model may replan.
    """
    if not state.began or state.ended is not None:
        return False
    why = state.ending.why if state.ending else ""
    if why in ("abort", "deadline"):
        return True
    if why and state.status != "paused":
        return False
    main = [found for found in state.steps.values() if found.step.section == "steps"]
    return all(found.ended and not awaits_replan(state, found) for found in main)


def awaits_replan(state: RunState, found: StepState) -> bool:
    """Whether a step failed and the model that replans has not been asked to the end."""
    replan = state.options.get("replan")
    if found.status != "failed" or not found.step.replan or not (replan and replan["model"]):
        return False
    ended = state.planning.ended if state.planning else ()
    done = (event.steps for event in ended if event.outcome not in ("budget", "stopped"))
    return not any(found.step.id in names for names in done)


def _rests(state: RunState) -> bool:
    """Whether a run is paused that no signal cancelled."""
    return state.status == "paused" and not state.cut_short


def _was_cut_short(state: RunState) -> bool:
    """Whether a run started steps and was then cancelled, lost its records or has no end."""
    if not state.began or _rests(state):
        return False
    lost = state.ending is not None and state.ending.why == "records"
    return state.ended is None or state.cut_short or lost


def _is_owed(found: StepState) -> bool:
    """Whether a step has no end, or a signal ended it; where it must not be repeated, only if it never started."""
    if not found.ended:
        return True
    cut = found.status == "cancelled" and found.reason == "cancelled"
    return cut and (found.step.idempotent or not found.tries)
