"""Replay a run: each of its processes with the real scheduler, compared with the record."""

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
from planrun.replays.recorded import Planning, Player, RecordedEvents, RecordedLocks, played

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.records.reading import Reading
    from planrun.replays.recorded import Difference


class ReplayResult(Record):
    """The result of a replay: how many events the scheduler repeated, and where it differed.

    `outside`: events from outside of the scheduler, such as starts and answers without a process. `missing`: inputs of
    the order of steps that are not on record any more.
    """

    played: int
    outside: int
    differences: tuple[Difference, ...] = ()
    missing: tuple[str, ...] = ()


class Process(Record):
    """The events of one process; `whole`: whether it ended, or paused."""

    before: int  # number of events before the scheduler's first one
    events: tuple[ev.Event, ...]
    whole: bool


def replay_run(rundir: str, reading: Reading, plans: Mapping[int, Plan]) -> ReplayResult:
    """Replay every process of a run."""
    events = reading.events
    started = events[0]
    assert isinstance(started, ev.RunStarted)
    done, differences, missing = 0, [], []
    for process in processes(events):
        state = RunState(plans[started.plan["version"]], dict(plans)).replay(events[: process.before])
        recorded = RecordedEvents(process.events, process.before + 1, whole=process.whole)
        seconds = kept(rundir, state.options)
        if seconds is None:
            missing.append("the durations that ordered the steps are not on record any more")
        player = Player(state, recorded, rundir)
        played(
            recorded,
            _loop(state, player, RecordedLocks(recorded), _options(state, process, seconds or {})).run,
        )
        done += recorded.place
        if recorded.difference:
            differences.append(recorded.difference)
    return ReplayResult(
        played=done, outside=len(events) - done, differences=tuple(differences), missing=tuple(missing)
    )


def processes(events: Sequence[ev.Event]) -> list[Process]:
    """Split a ledger into the events of each process; a process that never started its scheduler is skipped."""
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
    """Whether abstract steps could not be expanded: then a run ends without its scheduler."""
    return isinstance(event, ev.PlanningEnded) and event.purpose == "expand" and event.outcome != "revised"


def _is(event: ev.Event, status: str) -> bool:
    return isinstance(event, ev.PlanMoved) and event.status == status


def _options(state: RunState, process: Process, seconds: Mapping[str, float]) -> Options:
    """The recorded options of the command line and the plan."""
    known = state.options
    first = process.events[1] if len(process.events) > 1 else None
    return Options(
        jobs=int(known["jobs"]),
        schedule=known["schedule"],
        selected=_selected(state, known),
        strict=bool(known["strict"]),
        fail_on_flaky=bool(known["fail_on_flaky"]),
        rollback=not known.get("no_rollback"),
        proposes=bool(known.get("propose")),
        cleanup_only=bool(state.resumed) and state.resumed[-1].finishes,
        replan=first.steps if isinstance(first, ev.PlanningStarted) else (),
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


def _loop(state: RunState, player: Player, locks: RecordedLocks, options: Options) -> Scheduler:
    dependencies = Dependencies(
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
        why_interrupted=player.why_interrupted,
        again=player.again if state.plan.resume else None,
    )
    if "policy" not in state.options:
        return Scheduler(state, dependencies, options)
    if "replan" in state.options:
        return ReplanningScheduler(state, dependencies, options, player, Planning(player))
    return GatedScheduler(state, dependencies, options, player)
