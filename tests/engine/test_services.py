"""Services in the loop: opened by their probe, kept for all that reach them, stopped, and what their end means."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from planrun.model import events as ev
from planrun.model.plan import Edge, Group, Serving, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run
from tests.engine.world import FAIL, PASS, World, plan, step

LONG = 1e6  # seconds of a process that has to be stopped


def service(name: str, *edges: tuple[str, str], probed: bool = True, **fields: Any) -> Step:
    """Make a service with a probe or without."""
    known: dict[str, Any] = {"service": Serving(), **fields}
    if probed:
        known["verify"] = (Run(script="true"),)
    return step(name, *edges, **known)


def ends(state: RunState) -> dict[str, str]:
    """Status and reason of every step."""
    return {name: f"{found.status}/{found.reason}" for name, found in state.steps.items()}


def told(state: RunState, name: str) -> str:
    """Message of the last attempt of a step."""
    ended = state.steps[name].attempts[-1].ended
    return str(ended and ended.error)


def test_dependents_wait_for_the_probe_and_the_service_for_all_that_reach_it() -> None:
    """It is probed until that passes twice, and is stopped when the last step that reaches it has ended."""
    world = World({"db": [LONG], "db:ready": [FAIL, FAIL, PASS], "use": [1.0], "behind": [1.0]})
    of = plan([service("db"), step("use", ("db", "open")), step("behind", ("use", "ok"))])
    state, code = world.run(of)
    assert code == 0
    assert world.started == ["db:before", "db", *["db:ready"] * 4, "use", "behind"]
    assert ends(state)["db"] == "completed/stopped"
    assert [type(event).__name__ for event in world.events if getattr(event, "step", "") == "db"] == [
        "AttemptStarted", "StepOpened", "AttemptEnded",
    ]  # fmt: skip
    assert ends(RunState(of).replay(world.events)) == ends(state)


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_a_service_that_is_ready_takes_no_place(schedule: str) -> None:
    """With one place at a time its dependents run beside it, under each schedule."""
    world = World({"a": [LONG], "b": [LONG], "use": [1.0]})
    state, code = world.run(
        plan(
            [service("a"), service("b", ("a", "open")), step("use", ("a", "open"), ("b", "open"))],
            schedule=schedule,
        ),
        jobs=1,
    )
    assert code == 0
    assert ends(state) == {"a": "completed/stopped", "b": "completed/stopped", "use": "completed/ran"}


def test_without_a_probe_it_is_ready_once_it_has_started() -> None:
    """A service that no step needs is stopped when everything else has ended."""
    world = World({"db": [LONG], "alone": [LONG], "use": [2.0], "other": [5.0]})
    state, code = world.run(
        plan([service("db", probed=False), service("alone"), step("use", ("db", "open")), step("other")])
    )
    assert code == 0
    stops = [event.step for event in world.events if isinstance(event, ev.AttemptEnded)]
    assert stops == ["use", "db", "other", "alone"]
    assert ends(state)["alone"] == "completed/stopped"


def test_one_that_is_never_ready_fails() -> None:
    """After its own time, and with it what waits for it is blocked."""
    world = World({"db": [LONG], "db:ready": [FAIL]})
    state, code = world.run(plan([service("db", service=Serving(timeout=5.0)), step("use", ("db", "open"))]))
    assert code == 1
    assert ends(state) == {"db": "failed/not_ready", "use": "blocked/upstream"}


def test_one_whose_probe_passes_before_the_start_fails() -> None:
    """Something else answers; a retry may find the place free."""
    from planrun.model.plan import Retry

    world = World({"db": [LONG], "db:before": [PASS]})
    state, code = world.run(plan([service("db"), step("use", ("db", "open"))]))
    assert code == 1
    assert ends(state) == {"db": "failed/not_ready", "use": "blocked/upstream"}
    assert world.started == ["db:before"]
    assert "passed before the service started" in told(state, "db")
    world = World({"db": [LONG], "db:before": [PASS, FAIL]})
    state, code = world.run(
        plan([service("db", retries=Retry(max=1, initial=0.0)), step("use", ("db", "open"))])
    )
    assert (code, ends(state)) == (0, {"db": "completed/stopped", "use": "completed/ran"})


def test_one_that_ends_after_its_probe_passed_once_was_never_ready() -> None:
    """Another server answered while this one failed to start; and a probe that fails again starts over."""
    world = World({"db": [0.1]})
    state, _ = world.run(plan([service("db"), step("use", ("db", "open"))]))
    assert ends(state) == {"db": "failed/exit", "use": "blocked/upstream"}
    assert "before it was ready" in told(state, "db")
    world = World({"db": [LONG], "db:ready": [PASS, FAIL, PASS]})
    state, _ = world.run(plan([service("db"), step("use", ("db", "open"))]))
    assert ends(state)["use"] == "completed/ran"
    assert world.started.count("db:ready") == 4


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_start_starts_nothing(signum: int) -> None:
    """The probe is stopped, and the service is cancelled."""
    world = World({"db": [LONG], "db:before": [LONG]})
    world.signals = [(1001.0, signum)]
    state, code = world.run(plan([service("db"), step("use", ("db", "open"))]))
    assert code == 128 + signum
    assert ends(state) == dict.fromkeys(("db", "use"), "cancelled/cancelled")
    assert world.started == ["db:before"]


def test_retries_repeat_it_only_before_it_was_ready() -> None:
    """Afterwards its end is final: what has not started is blocked, what runs continues."""
    from planrun.model.plan import Retry

    again = Retry(max=1, initial=0.0)
    world = World({"a": [FAIL, LONG], "a:ready": [9.0, PASS], "b": [3.0], "slow": [9.0], "use": [1.0]})
    state, _ = world.run(
        plan(
            [
                service("a", retries=again),
                step("use", ("a", "open")),
                service("b", retries=again),
                step("slow", ("b", "open")),
                step("late", ("b", "open"), ("use", "ok"), ("slow", "ok")),
            ]
        )
    )
    assert ends(state) == {
        "a": "completed/stopped",
        "use": "completed/ran",
        "b": "failed/exit",
        "slow": "completed/ran",
        "late": "blocked/upstream",
    }
    assert (len(state.steps["a"].attempts), len(state.steps["b"].attempts)) == (2, 1)


def test_what_waits_for_a_place_is_blocked_when_the_service_dies() -> None:
    """A step that could have started, and had not, does not start without what it needs."""
    world = World({"db": [1.0], "first": [5.0]})
    state, _ = world.run(
        plan([service("db"), step("first", ("db", "open")), step("second", ("db", "open"))]), jobs=1
    )
    assert ends(state) == {"db": "failed/exit", "first": "completed/ran", "second": "blocked/upstream"}


def test_a_service_that_depends_on_another_ends_before_it() -> None:
    """The one that is used last is stopped first."""
    world = World({"db": [LONG], "web": [LONG], "use": [1.0]})
    state, code = world.run(
        plan([service("db"), service("web", ("db", "open")), step("use", ("web", "open"))])
    )
    assert code == 0
    assert [event.step for event in world.events if isinstance(event, ev.AttemptEnded)] == [
        "use",
        "web",
        "db",
    ]
    assert state.steps["web"].reason == "stopped"


def test_edges_on_its_end_wait_for_it() -> None:
    """`done` is satisfied by its end, and keeps nothing going."""
    world = World({"db": [LONG], "use": [1.0]})
    state, code = world.run(plan([service("db"), step("use", ("db", "open")), step("after", ("db", "done"))]))
    assert code == 0
    assert world.started[-1] == "after"
    assert ends(state)["after"] == "completed/ran"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_cancelled_run_cancels_its_services(signum: int) -> None:
    """Ready or not."""
    world = World({"db": [LONG], "slow": [LONG], "slow:ready": [FAIL], "use": [LONG]})
    world.signals = [(1010.0, signum)]
    state, code = world.run(plan([service("db"), service("slow"), step("use", ("db", "open"))]))
    assert code == 128 + signum
    assert ends(state) == dict.fromkeys(("db", "slow", "use"), "cancelled/cancelled")


def test_a_paused_run_stops_its_services_and_starts_them_again() -> None:
    """They keep their place, and start again before the steps that need them continue."""
    world = World({"db": [LONG], "use": [5.0], "more": [1.0]})
    world.signals = [(1001.0, signal.SIGUSR1)]
    of = plan([service("db"), step("use", ("db", "open")), step("more", ("use", "ok"))])
    state, code = world.run(of)
    assert (code, state.status) == (5, "paused")
    assert ends(state) == {"db": "paused/paused", "use": "completed/ran", "more": "pending/"}
    before = len(world.started)
    named: Any = {
        "planrun": "1",
        "plan": {},
        "params": {},
        "context": {},
        "options": {},
        "pid": 1,
        "host": "h",
    }
    event = ev.RunResumed(at=world.clock.stamp(), rerun=(), lost=(), **named)
    state.apply(event)
    world.append(event)
    assert world.go_on(state) == 0
    assert world.started[before:] == ["db:before", "db", "db:ready", "db:ready", "more"]
    assert ends(state)["db"] == "completed/stopped"
    assert not state.steps["db"].flaky


def test_members_of_a_group_may_be_services() -> None:
    """What needs the group waits for all of them to be ready; the group completes when they were stopped."""
    action = Group(form="matrix", members=("db[a]", "db[b]"))
    made = [
        service(f"db[{name}]").but(group="db", instance=name, edges=(Edge(on="db", kind="open"),))
        for name in ("a", "b")
    ]
    group = step("db").but(kind="group", action=action)
    world = World({"db[a]": [LONG], "db[b]": [LONG], "db[b]:ready": [FAIL, FAIL, PASS]})
    state, code = world.run(
        plan([group, *made, step("use", ("db[a]", "open"), ("db[b]", "open")), step("last", ("db", "done"))])
    )
    assert code == 0
    assert ends(state)["db"] == "completed/ran"
    assert world.started[-2:] == ["use", "last"]


def test_groups_of_unneeded_services_end_with_the_rest() -> None:
    """Neither do they wait for each other, nor the section for them."""
    action = Group(form="matrix", members=("db[a]",))
    member = service("db[a]").but(group="db", instance="a", edges=(Edge(on="db", kind="open"),))
    world = World({"db[a]": [LONG], "alone": [LONG], "work": [3.0]})
    state, code = world.run(
        plan([step("db").but(kind="group", action=action), member, service("alone"), step("work")])
    )
    assert code == 0
    assert ends(state)["db[a]"] == ends(state)["alone"] == "completed/stopped"
