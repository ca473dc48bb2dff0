"""Groups in the loop: opened once their edges are settled, closed when all members ended, one status for all."""

from __future__ import annotations

from typing import Any

import pytest

from planrun.model.events import RunResumed, StepOpened
from planrun.model.graph import levels, order, waits
from planrun.model.groups import folder_of
from planrun.model.plan import Edge, Group, Step
from planrun.model.state import RunState
from tests.engine.world import FAIL, World, plan, step


def ends(state: RunState) -> dict[str, str]:
    """Status and reason of every step."""
    return {name: f"{found.status}/{found.reason}" for name, found in state.steps.items()}


def group(name: str, *members: str, edges: tuple[tuple[str, str], ...] = (), **fields: Any) -> list[Step]:
    """Make a group that is known before the run, and its members."""
    action = Group(form="matrix", members=tuple(f"{name}[{each}]" for each in members), **fields)
    found = [step(name, *edges).but(kind="group", action=action)]
    return found + [
        step(f"{name}[{each}]").but(group=name, instance=each, edges=(Edge(on=name, kind="open"),))
        for each in members
    ]


def dynamic(name: str, *edges: tuple[str, str], **fields: Any) -> Step:
    """Make a group whose members are made from a template during the run."""
    return step(name, *edges).but(
        kind="group", action=Group(form="foreach", template=step("template"), **fields)
    )


def items(*names: str) -> dict[str, Any]:
    """Return what a group is opened with."""
    return {"items": tuple({"instance": name, "item": name} for name in names)}


def test_members_start_when_the_group_opens_and_dependents_when_it_ends() -> None:
    """Dependencies of the written step precede every member, and all members precede its dependents."""
    world = World({"t[a]": [1.0], "t[b]": [2.0]})
    state, code = world.run(
        plan([step("before"), *group("t", "a", "b", edges=(("before", "ok"),)), step("after", ("t", "ok"))])
    )
    assert code == 0
    assert world.started == ["before", "t[a]", "t[b]", "after"]
    assert ends(state)["t"] == "completed/ran"
    assert state.summary()["total"] == 4


@pytest.mark.parametrize("edge", ["ok", "failed", "done"])
def test_one_failed_member_makes_the_group_failed(edge: str) -> None:
    """`ok` edges are blocked, `failed` and `done` edges satisfied; the others of the group go on."""
    world = World({"t[a]": [FAIL], "t[b]": [1.0]})
    state, code = world.run(plan([*group("t", "a", "b"), step("after", ("t", edge))]))
    assert code == 1
    assert ends(state)["t"] == "failed/members"
    assert ends(state)["t[b]"] == "completed/ran"
    assert state.steps["after"].status == ("blocked" if edge == "ok" else "completed")


def test_a_recovered_group_has_tolerated_members() -> None:
    """A step that recovers the group recovers what failed in it: the verdict is partial."""
    world = World({"t[a]": [FAIL]})
    state, code = world.run(
        plan([*group("t", "a"), step("fix", ("t", "failed"), recovers=("t",)), step("after", ("t", "ok"))])
    )
    assert (code, state.verdict()) == (0, "partial")
    assert state.tolerance("t[a]") == "continue"
    assert state.steps["after"].status == "completed"


def test_a_group_that_is_not_opened_takes_its_members_along() -> None:
    """Blocked, or skipped by its condition: no member starts."""
    world = World({"bad": [FAIL]})
    world.conditions["u"] = lambda _state: False
    unwanted = group("u", "x")
    unwanted[0] = unwanted[0].but(condition=("const", 0, 4, False))
    state, _ = world.run(
        plan([step("bad"), *group("t", "a", edges=(("bad", "ok"),)), *unwanted, step("after", ("u", "ok"))])
    )
    assert world.started == ["bad", "after"]
    assert ends(state)["t"] == ends(state)["t[a]"] == "blocked/upstream"
    assert ends(state)["u"] == ends(state)["u[x]"] == "skipped/condition"


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_members_may_be_found_during_the_run(schedule: str) -> None:
    """Under each schedule the members run between the group's opening and its end, and their state can be replayed."""
    world = World()
    world.openings["t"] = items("x", "y")
    of = plan([step("list"), dynamic("t", ("list", "ok")), step("after", ("t", "ok"))], schedule=schedule)
    state, code = world.run(of)
    assert code == 0
    assert world.started == ["list", "t[x]", "t[y]", "after"]
    again = RunState(of).replay(world.events)
    assert ends(again) == ends(state)
    assert [each.item for each in again.plan.steps if each.group] == [("x",), ("y",)]


def test_a_list_without_items_is_skipped_as_empty() -> None:
    """What depends on it by `ok` runs."""
    world = World()
    world.openings["t"] = items()
    state, code = world.run(plan([dynamic("t"), step("after", ("t", "ok"))]))
    assert (code, ends(state)["t"], world.started) == (0, "skipped/empty", ["after"])


def test_fail_fast_cancels_the_other_members() -> None:
    """Running members are stopped, waiting ones do not start; the group failed; the rest of the plan continues."""
    world = World({"t[a]": [FAIL], "t[b]": [9.0]})
    state, code = world.run(plan([*group("t", "a", "b", "c", fail_fast=True), step("other")]), jobs=2)
    assert code == 1
    assert ends(state)["t"] == "failed/members"
    assert ends(state)["t[b]"].startswith("cancelled/")
    assert ends(state)["t[c]"] == "cancelled/fail_fast"
    assert state.steps["other"].status == "completed"


def test_a_resumed_group_opens_again_and_runs_only_what_is_left() -> None:
    """Members that completed stay as they are; the group ends anew."""
    world = World({"t[b]": [FAIL, 1.0]})
    of = plan([*group("t", "a", "b"), step("after", ("t", "ok"))])
    state, code = world.run(of)
    assert code == 1
    event = RunResumed(
        at=world.clock.stamp(), planrun="0", plan={}, params={}, context={}, options={}, pid=1, host="h",
        rerun=("t", "t[b]", "after"), lost=(),
    )  # fmt: skip
    world.append(event)
    state.apply(event)
    assert world.go_on(state) == 0
    assert world.started == ["t[a]", "t[b]", "t[b]", "after"]
    assert sum(isinstance(event, StepOpened) for event in world.events) == 2


def test_order_levels_and_cycles_know_members() -> None:
    """A group comes after its members, and its members after the dependencies of the group."""
    steps = [step("before"), *group("t", "a", "b", edges=(("before", "ok"),)), step("after", ("t", "ok"))]
    assert order(waits(steps)) == ["before", "t[a]", "t[b]", "t", "after"]
    assert levels(waits(steps)) == [["before"], ["t[a]", "t[b]"], ["t"], ["after"]]


@pytest.mark.parametrize("name", ["t[a]", "a/b", "x" * 200, "ü", "a b"])
def test_records_of_any_id_have_a_folder_of_their_own(name: str) -> None:
    """The folder is a plain word below the limits of file systems, and another one for each id."""
    folder = folder_of(name)
    assert folder.replace("-", "").replace("_", "").replace(".", "").isalnum()
    assert len(folder) <= 100
    assert folder != folder_of(name + "x")
    assert folder_of("plain-id.1") == "plain-id.1"
