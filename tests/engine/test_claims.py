"""What only so many steps may have at a time: locks, places in a group, files of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.engine.claims import Claims
from planrun.model.events import StepHeld
from planrun.model.plan import Limits, Retry
from planrun.model.state import RunState
from tests.engine.test_groups import group
from tests.engine.world import FAIL, World, plan, step

if TYPE_CHECKING:
    from planrun.model.plan import Schedule


class Host:
    """Locks of a host on which others have some of them until they are asked so many times."""

    def __init__(self, **busy: int) -> None:
        self.busy = busy
        self.mine: dict[str, tuple[str, ...]] = {}
        self.calls: list[str] = []
        self.retry_after = 0.25

    def claim(self, step: str, names: tuple[str, ...]) -> str:
        self.calls.append(step)
        for name in names:
            if self.busy.get(name, 0):
                self.busy[name] -= 1
                return f'waiting for lock "{name}", held by run r, process 1'
        self.mine[step] = names
        return ""

    def release(self, step: str) -> None:
        self.mine.pop(step, None)

    def close(self) -> None:
        self.mine.clear()


def rivals(world: World, *names: str) -> int:
    """How many of these steps ran at once at most."""
    return max(len(set(found) & set(names)) for found in world.together)


def test_steps_with_the_same_lock_run_one_after_the_other() -> None:
    """They do so in the order of the schedule, and others pass them."""
    steps = [step("a", lock=("l",)), step("b", lock=("l",)), step("c"), step("d", lock=("l", "m"))]
    world = World({name: [1.0] for name in "abcd"})
    assert world.run(plan(steps))[1] == 0
    assert world.started == ["a", "c", "b", "d"]
    assert rivals(world, "a", "b", "d") == 1


def test_the_limits_set_the_slots_of_a_lock() -> None:
    """With two slots two run at once."""
    steps = [step(name, lock=("l",)) for name in "abcd"]
    world = World({name: [1.0] for name in "abcd"})
    assert world.run(plan(steps, limits=Limits(locks={"l": 2})))[1] == 0
    assert world.peak == 2


def test_a_step_has_its_lock_while_it_runs_and_not_between_two_attempts() -> None:
    """Another one runs while the failed one waits for its next attempt."""
    steps = [step("a", lock=("l",), retries=Retry(max=1)), step("b", lock=("l",))]
    world = World({"a": [FAIL, 1.0], "b": [0.5]})
    assert world.run(plan(steps))[1] == 0
    assert world.started == ["a", "b", "a"]


def test_steps_in_conflict_never_run_together() -> None:
    """One side naming the other is enough, and a third one passes both."""
    steps = [step("a"), step("b", conflicts=("a",)), step("c")]
    world = World({name: [1.0] for name in "abc"})
    assert world.run(plan(steps))[1] == 0
    assert world.started == ["a", "c", "b"]
    assert rivals(world, "a", "b") == 1


def test_only_so_many_members_of_a_group_run_at_once() -> None:
    """`max_parallel` of a group limits only its members."""
    steps = [*group("t", *"abcd", max_parallel=2), step("x"), step("y")]
    names = [f"t[{each}]" for each in "abcd"]
    world = World({name: [1.0] for name in [*names, "x", "y"]})
    assert world.run(plan(steps), jobs=8)[1] == 0
    assert (rivals(world, *names), world.peak) == (2, 4)


def test_groups_within_a_group_count_as_its_members() -> None:
    """With `max_parallel: 1` the second inner group opens when the first has ended, and it does open."""
    outer = group("o", "a", "b", max_parallel=1)
    steps = [outer[0]]
    for inner in outer[1:]:
        made = group(inner.id, "1", "2")
        steps += [made[0].but(group="o", edges=inner.edges), *made[1:]]
    world = World({f"o[{each}][{n}]": [1.0] for each in "ab" for n in "12"})
    assert world.run(plan(steps))[1] == 0
    assert world.together[-1] == ("o[b][1]", "o[b][2]")
    assert not any("o[a]" in name for found in world.together[2:] for name in found)


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_every_schedule_ends_with_locks(schedule: Schedule) -> None:
    """Exclusive steps, locks and slots in one plan: all are released, and no claim overlaps illegally."""
    steps = [step(f"s{n}", lock=(f"l{n % 2}",), parallel=(True, None, False)[n % 3]) for n in range(9)]
    world = World({f"s{n}": [1.0] for n in range(9)})
    assert world.run(plan(steps, schedule=schedule))[1] == 0
    assert len(world.started) == 9
    assert rivals(world, *[f"s{n}" for n in range(0, 9, 2)]) == 1
    if schedule == "sequential":
        assert world.started == [f"s{n}" for n in range(9)]


def run(world: World, host: Host, state: RunState, **options: int) -> int:
    """Run a plan on a host on which others have locks."""
    world.replay_into(state)
    return world.go_on(state, locks=host, **options)


def test_a_step_that_waits_for_others_on_the_host_lets_the_rest_go_on() -> None:
    """It takes no slot, its wait is recorded once, and it starts when the lock is free."""
    world, host = World({"a": [1.0], "b": [1.0]}), Host(l=3)
    state = RunState(plan([step("a", lock=("l",)), step("b")]))
    assert run(world, host, state, jobs=1) == 0
    assert world.started == ["b", "a"]
    held = [event for event in world.events if isinstance(event, StepHeld)]
    assert [(event.step, event.lock, event.message) for event in held] == [
        ("a", "l", 'waiting for lock "l", held by run r, process 1')
    ]
    assert host.mine == {}


def test_a_waiting_step_ends_with_the_deadline_and_leaves_the_queue() -> None:
    """A lock that is never free does not keep a run beyond its deadline; no ticket is left."""
    world, host = World(), Host(l=10**6)
    state = RunState(plan([step("a", lock=("l",))], limits=Limits(deadline=5.0)))
    assert run(world, host, state) == 124
    assert (state.steps["a"].status, world.started) == ("cancelled", [])


def test_a_waiting_step_ends_with_a_signal() -> None:
    """Cancelled while it waits, it never starts."""
    world, host = World(), Host(l=10**6)
    world.signals = [(1002.0, 15)]
    state = RunState(plan([step("a", lock=("l",))]))
    assert run(world, host, state) == 143
    assert (state.steps["a"].status, world.started) == ("cancelled", [])


def test_what_is_claimed_is_given_back_in_full() -> None:
    """A step that cannot get all its claims holds none of them, so that other steps can run."""
    claims = Claims({}, None)
    claims.join([step("a", lock=("l",)), step("b", lock=("l", "m")), step("c", lock=("m",))])
    assert (claims.take("a"), claims.take("b"), claims.take("c")) == (True, False, True)
    claims.give("a")
    assert not claims.take("b")
    claims.give("c")
    assert claims.take("b")


def test_a_group_and_a_step_in_conflict_do_not_overlap() -> None:
    """A group that may not be beside a step opens when that has ended, and the other way round."""
    for first in (True, False):
        made = group("t", "1", "2")
        made[0] = made[0].but(conflicts=("s",))
        alone = step("s")
        steps = [alone, *made] if first else [*made, alone]
        world = World({"s": [1.0], "t[1]": [1.0], "t[2]": [2.0]})
        assert world.run(plan(steps))[1] == 0
        assert len(world.started) == 3
        assert not any("s" in found and len(found) > 1 for found in world.together)
