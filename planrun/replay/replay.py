"""A run played again as it was: each of its processes by the real loop, held against what was recorded."""

from __future__ import annotations

from planrun.app.copies import added_by_models
from planrun.app.history import kept, weights
from planrun.app.selection import select, with_expanded
from planrun.engine import Dependencies, Options
from planrun.engine.gated import GatedScheduler, ReplanningScheduler
from planrun.engine.scheduler import Scheduler
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.replay.recorded import Holding, Planning, Player, Score, played

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.records.reading import Reading
    from planrun.replay.recorded import Difference


class Again(Record):
    """What a replay came to: how many of the ledger's events the loop played, and where it did something else.

    `outside`: events that came from elsewhere: beginnings, answers while no process was there, a kill's end. `missing`:
    what the order of steps went by and is gone.
    """

    played: int
    outside: int
    differences: tuple[Difference, ...] = ()
    missing: tuple[str, ...] = ()


class Process(Record):
    """What one process did in its loop; `whole`: whether it came to an end, or to rest."""

    before: int  # how many events of the ledger come before the loop's first
    events: tuple[ev.Event, ...]
    whole: bool


def play_again(rundir: str, reading: Reading, plans: Mapping[int, Plan]) -> Again:
    """Play every process of a run."""
    events = reading.events
    started = events[0]
    assert isinstance(started, ev.RunStarted)
    done, differences, missing = 0, [], []
    for process in processes(events):
        state = RunState(plans[started.plan["version"]], dict(plans)).replay(events[: process.before])
        score = Score(process.events, process.before + 1, whole=process.whole)
        seconds = kept(rundir, state.options)
        if seconds is None:
            missing.append("the durations that the order of steps went by are gone")
        player = Player(state, score, rundir)
        played(score, _loop(state, player, Holding(score), _options(state, process, seconds or {})).run)
        done += score.place
        if score.difference:
            differences.append(score.difference)
    return Again(
        played=done, outside=len(events) - done, differences=tuple(differences), missing=tuple(missing)
    )


def processes(events: Sequence[ev.Event]) -> list[Process]:
    """Part a ledger into what each process did in its loop; one that never came to it is left out."""
    begins = [place for place, event in enumerate(events) if isinstance(event, ev.RunStarted | ev.RunResumed)]
    found = []
    for begin, end in zip(begins, [*begins[1:], len(events)], strict=True):
        own = events[begin:end]
        first = next((place for place, event in enumerate(own) if _is(event, "executing")), None)
        if first is None or any(map(_failed, own[:first])):
            continue
        last = next(
            (
                place
                for place, event in enumerate(own[first:], first)
                if isinstance(event, ev.RunEnded) or _is(event, "paused")
            ),
            None,
        )
        until = len(own) if last is None else last + 1
        found.append(Process(before=begin + first, events=tuple(own[first:until]), whole=last is not None))
    return found


def _failed(event: ev.Event) -> bool:
    """Whether abstract steps could not be made concrete: then a run ends without its loop."""
    return isinstance(event, ev.PlanningEnded) and event.purpose == "expand" and event.outcome != "revised"


def _is(event: ev.Event, status: str) -> bool:
    return isinstance(event, ev.PlanMoved) and event.status == status


def _options(state: RunState, process: Process, seconds: Mapping[str, float]) -> Options:
    """What the command line and the plan said, as the run has it on record."""
    known = state.options
    return Options(
        jobs=int(known["jobs"]),
        schedule=known["schedule"],
        selected=_selected(state, known),
        strict=bool(known["strict"]),
        fail_on_flaky=bool(known["fail_on_flaky"]),
        rollback=not known.get("no_rollback"),
        cleanup_only=bool(state.resumed) and state.resumed[-1].finishes,
        replan=_to_plan(process),
        seconds=weights(seconds),
    )


def _selected(state: RunState, known: Mapping[str, Any]) -> frozenset[str] | None:
    chosen = select(state.plan, known["selection"])
    if chosen is None:
        return None
    asked = {name for event in state.resumed for name in event.retry}
    if not known.get("expand"):
        return chosen | asked | added_by_models(state)
    return with_expanded(state.plan, chosen | asked | added_by_models(state))


def _to_plan(process: Process) -> tuple[str, ...]:
    """The failures that were planned anew before anything else, because somebody asked for it."""
    first = process.events[1] if len(process.events) > 1 else None
    return first.steps if isinstance(first, ev.PlanningStarted) else ()


def _loop(state: RunState, player: Player, locks: Holding, options: Options) -> Scheduler:
    rooms = Dependencies(
        executor=player,
        steps=player,
        journal=player,
        sinks=(),
        clock=player,
        inbox=player,
        holds=player.holds,
        chance=player.chance,
        locks=locks,
        cache=player,
        due=player.due,
    )
    if "policy" not in state.options:
        return Scheduler(state, rooms, options)
    if "replan" in state.options:
        return ReplanningScheduler(state, rooms, options, player, Planning(player))
    return GatedScheduler(state, rooms, options, player)
