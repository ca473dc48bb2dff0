"""A run that is replanned: what it waits for, how it continues, and what it does when it must end meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.errors import RecordsLost
from planrun.model import events as ev
from planrun.model.job import Passage
from planrun.model.plan import Limits, Retry
from planrun.model.state import RunState
from tests.engine.test_pausing import resumed
from tests.engine.world import FAIL, PASS, World, plan, step

if TYPE_CHECKING:
    from planrun.model.job import Job
    from planrun.model.plan import Plan, Step

INT, PAUSE = 2, 10


class OpenGates:
    """Gates that let everything in but what `asked` names."""

    def __init__(self, asked: set[str] | None = None) -> None:
        self.asked = asked or set()
        self.seen: list[str] = []

    def judge(self, step: Step, state: RunState, job: Job | None) -> Passage:
        self.seen.append(step.id)
        if step.id in self.asked:
            opened = ev.GateOpened(at="", step=step.id, kind="approval")
            return Passage(answer="ask", opened=opened)
        return Passage(answer="allow")

    def failed(self, step: Step, state: RunState) -> Passage:
        raise AssertionError(step.id)

    def is_asking(self, _state: RunState) -> bool:
        return False

    def poll_replies(self, state: RunState) -> list[ev.GateAnswered]:
        return []


class Thinker:
    """A planner that thinks for `seconds` and then gives its prepared answers, one for each planning.

    A plan stands for `revised`, a text for another outcome.
    """

    def __init__(self, world: World, *answers: Plan | str, seconds: float = 5.0) -> None:
        self.world = world
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[tuple[str, ...]] = []
        self.seen: list[dict[str, str]] = []  # statuses when it was asked
        self.stopped = 0
        self.ignores_stop = False
        self._until: float | None = None
        self._new: list[ev.Event] = []

    def wants(self, step: Step, state: RunState) -> bool:
        return step.on_failure == "replan" and bool(self.answers)

    def begin(self, steps: tuple[str, ...], state: RunState) -> None:
        self.asked.append(steps)
        self.seen.append({name: found.status for name, found in state.steps.items()})
        self._new = [ev.PlanningStarted(at="", purpose="replan", steps=steps, model="m", n=len(self.asked))]
        self._until = self.world.clock.now + self.seconds

    def events(self, state: RunState) -> list[ev.Event]:
        found, self._new = self._new, []
        if found or self._until is None or self.world.clock.now < self._until or self.ignores_stop:
            return found
        self._until = None
        answer = self.answers.pop(0) if not self.stopped else "stopped"
        outcome, named = (answer, {}) if isinstance(answer, str) else ("revised", {"version": answer.version})
        if not isinstance(answer, str):
            state.versions = {**state.versions, answer.version: answer}
        return [ev.PlanningEnded(at="", purpose="replan", steps=self.asked[-1], outcome=outcome, plan=named)]

    def stop(self) -> None:
        self.stopped += 1
        self._until = self.world.clock.now


def thinking(world: World, *answers: Plan | str, asked: set[str] | None = None) -> Thinker:
    """Give a world open gates and a planner with these answers."""
    world.gates = OpenGates(asked)
    found = Thinker(world, *answers)
    world.planner = found
    return found


def statuses(state: RunState) -> dict[str, str]:
    """Status and reason of every step."""
    return {
        name: f"{found.status}({found.reason})" if found.reason else found.status
        for name, found in state.steps.items()
    }


BROKEN = step("3", ("2", "ok"), on_failure="replan")
FIRST = plan([step("1"), step("2"), BROKEN, step("4", ("3", "ok")), step("5", ("2", "ok"))])
SECOND = FIRST.but(
    version=2,
    steps=(
        *FIRST.steps[:3],
        step("4", ("6", "ok")),
        step("5", ("2", "ok")),
        step("6", replaces=("3",)),
        step("7", ("6", "ok"), replaces=("4",)),
    ),
)
DONE = {
    "1": "completed(ran)",
    "2": "completed(ran)",
    "3": "failed(exit)",
    "4": "skipped(replaced_by_replan)",
    "5": "completed(ran)",
    "6": "completed(ran)",
    "7": "completed(ran)",
}


def test_a_failure_is_replanned() -> None:
    """Finished steps stay, replaced ones are skipped, the new steps run, and the verdict is partial."""
    world = World({"3": [FAIL]})
    planner = thinking(world, SECOND)
    state, code = world.run(FIRST)
    assert (state.verdict(), code) == ("partial", 0)
    assert statuses(state) == DONE
    assert planner.asked == [("3",)]
    assert sorted(world.started) == ["1", "2", "3", "5", "6", "7"]
    assert world.started[-2:] == ["6", "7"]
    moved = [event for event in world.events if isinstance(event, ev.StepMoved)]
    assert [(event.step, event.message) for event in moved] == [("4", "7 takes its place")]


def test_a_partial_verdict_fails_a_strict_run() -> None:
    """--strict counts the failure whose place was taken."""
    world = World({"3": [FAIL]})
    thinking(world, SECOND)
    assert world.run(FIRST, strict=True)[1] == 1


def test_running_steps_end_before_the_planning() -> None:
    """A running step and one between two attempts go on to their end; what is ready does not start."""
    slow = plan(
        [
            BROKEN.but(edges=()),
            step("long"),
            step("again", retries=Retry(max=1, initial=5.0, jitter=0.0)),
            step("ready", ("long", "ok")),
        ],
    )
    world = World({"3": [FAIL], "long": [30.0], "again": [FAIL, PASS]})
    planner = thinking(world, "invalid")
    state, code = world.run(slow)
    assert planner.seen == [
        {"3": "failed", "long": "completed", "again": "completed", "ready": "pending"},
    ]
    assert statuses(state)["ready"] == "completed(ran)"
    assert code == 1


def test_one_planning_for_all_failures_that_want_it() -> None:
    """Failures that end while others run are planned together, in the order of the file, whichever ended first."""
    two = plan([BROKEN.but(edges=()), step("b", on_failure="replan"), step("c", ("b", "ok"))])
    world = World({"3": [FAIL], "b": [FAIL]})
    planner = thinking(world, "invalid")
    state, code = world.run(two)
    assert planner.asked[0] == ("3", "b")
    assert statuses(state)["c"] == "blocked(upstream)"
    assert code == 1


@pytest.mark.parametrize("outcome", ["invalid", "infeasible", "failed"])
def test_a_planning_without_a_plan_leaves_a_failure(outcome: str) -> None:
    """Dependents are blocked and everything else continues, as after any failure."""
    world = World({"3": [FAIL]})
    thinking(world, outcome)
    state, code = world.run(FIRST)
    assert (state.verdict(), code) == ("failed", 1)
    assert statuses(state)["4"] == "blocked(upstream)"
    assert statuses(state)["5"] == "completed(ran)"


def test_what_a_ceiling_forbids_ends_with_three() -> None:
    """The run continues without the plan and exits with 3."""
    world = World({"3": [FAIL]})
    thinking(world, "denied")
    state, code = world.run(FIRST)
    assert (statuses(state)["5"], code) == ("completed(ran)", 3)


def test_a_signal_ends_a_planning() -> None:
    """The planner gets a stop request, its end is recorded, and pending steps are cancelled."""
    world = World({"3": [FAIL]})
    planner = thinking(world, SECOND)
    world.signals = [(1003.0, INT)]
    state, code = world.run(FIRST)
    assert planner.stopped == 1
    assert code == 130
    assert statuses(state)["4"] == "cancelled(cancelled)"
    assert state.planning is not None
    assert state.planning.ended[-1].outcome == "stopped"


def test_a_planner_that_ignores_the_stop_does_not_block_the_run() -> None:
    """Three seconds after it was stopped the run ends without it, and the planning has an end on record."""
    world = World({"3": [FAIL]})
    thinking(world, SECOND).ignores_stop = True
    world.signals = [(1003.0, INT)]
    state, code = world.run(FIRST)
    assert code == 130
    assert state.planning is not None
    assert state.planning.going is None
    assert world.clock.now < 1007.0


def test_a_second_signal_ends_a_planning_at_once() -> None:
    """The run no longer waits for the end of the planning."""
    world = World({"3": [FAIL]})
    thinking(world, SECOND).ignores_stop = True
    world.signals = [(1003.0, INT), (1003.5, INT)]
    _, code = world.run(FIRST)
    assert code == 130
    assert world.clock.now < 1004.0


def test_a_deadline_ends_a_planning() -> None:
    """A passed deadline stops the model and ends the run with 124."""
    world = World({"3": [FAIL]})
    planner = thinking(world, SECOND)
    planner.seconds = 100.0
    _, code = world.run(FIRST.but(limits=Limits(deadline=20.0)))
    assert (planner.stopped, code) == (1, 124)
    assert world.clock.now < 1025.0


def test_a_run_is_paused_after_its_planning() -> None:
    """The pause request lets the planning end; a resume continues with the new plan."""
    world = World({"3": [FAIL]})
    planner = thinking(world, SECOND)
    world.signals = [(1002.0, PAUSE)]
    state, code = world.run(FIRST)
    assert (state.status, code, planner.stopped) == ("paused", 5, 0)
    assert statuses(state)["6"] == "pending"
    assert statuses(state)["4"] == "skipped(replaced_by_replan)"
    state.apply(resumed(world))
    assert world.go_on(state) == 0
    assert statuses(state) == DONE


def test_a_failure_waits_for_its_planning_over_a_pause() -> None:
    """Paused before the planning began, a run whose last step failed is no ended one."""
    world = World({"3": [FAIL], "5": [60.0]})
    planner = thinking(world, SECOND)
    world.signals = [(1030.0, PAUSE)]
    state, code = world.run(FIRST)
    assert (state.status, code, planner.asked) == ("paused", 5, [])
    assert statuses(state)["4"] == "pending"


def test_a_used_up_budget_pauses_the_run() -> None:
    """The run rests with its dependents pending, also when the failed step was the last one."""
    world = World({"3": [FAIL]})
    thinking(world, "budget")
    state, code = world.run(plan([BROKEN.but(edges=())]))
    assert (state.status, code) == ("paused", 5)
    assert statuses(state) == {"3": "failed(exit)"}


def test_lost_records_end_a_planning() -> None:
    """The model is stopped, nothing starts, and unstarted steps stay as they are."""
    world = World({"3": [FAIL]})
    planner = thinking(world, SECOND)
    begin = planner.begin

    def lose(steps: tuple[str, ...], state: RunState) -> None:
        begin(steps, state)
        world.lost = RecordsLost("no space")

    planner.begin = lose  # type: ignore[method-assign]
    state, code = world.run(FIRST)
    assert (planner.stopped, code) == (1, 74)
    assert statuses(state)["4"] == "pending"


def test_what_waits_at_a_gate_is_asked_again_under_the_new_plan() -> None:
    """An approval of the old plan is not valid for the new one; without a new plan no question is repeated."""
    for answer, times in ((SECOND, 2), ("invalid", 1)):
        world = World({"3": [FAIL]})
        thinking(world, answer, asked={"5"})
        state, code = world.run(FIRST)
        opened = [event for event in world.events if isinstance(event, ev.GateOpened)]
        assert len(opened) == times
        assert (state.status, code) == ("paused", 5 if answer is SECOND else 1)  # the failure stays


def test_a_replaced_step_does_not_wait_at_its_gate() -> None:
    """A step that waits for an approval is skipped when another takes its place."""
    world = World({"3": [FAIL]})
    second = SECOND.but(steps=(*SECOND.steps[:6], SECOND.steps[6].but(replaces=("4", "5"))))
    thinking(world, second, asked={"5"})
    state, code = world.run(FIRST)
    assert statuses(state)["5"] == "skipped(replaced_by_replan)"
    assert code == 0


def test_new_steps_are_selected() -> None:
    """A replacement of a selected step runs, although the user could not select it."""
    world = World({"3": [FAIL]})
    thinking(world, SECOND)
    state, code = world.run(FIRST, selected=frozenset({"1", "2", "3"}))
    assert statuses(state)["6"] == "completed(ran)"
    assert statuses(state)["5"] == "skipped(not_selected)"
    assert code == 0


def test_several_plannings_one_after_the_other() -> None:
    """The step that took a place may fail, and another takes it."""
    third = SECOND.but(
        version=3,
        steps=(
            *SECOND.steps[:5],
            SECOND.steps[5].but(on_failure="replan"),
            step("7", ("8", "ok"), replaces=("4",)),
            step("8", replaces=("6",)),
        ),
    )
    second = SECOND.but(steps=(*SECOND.steps[:5], SECOND.steps[5].but(on_failure="replan"), SECOND.steps[6]))
    world = World({"3": [FAIL], "6": [FAIL]})
    planner = thinking(world, second, third)
    state, code = world.run(FIRST)
    assert planner.asked == [("3",), ("6",)]
    assert [state.tolerance(name) for name in ("3", "6")] == ["continue", "continue"]
    assert (state.verdict(), code) == ("partial", 0)  # 8 replaces what 6 stood in for
    assert statuses(state)["7"] == "completed(ran)"


def test_an_unreplaced_replacement_leaves_both_failures() -> None:
    """A step replaces another, fails and is not replanned: both failures count."""
    world = World({"3": [FAIL], "6": [FAIL]})
    thinking(world, SECOND)
    state, code = world.run(FIRST)
    assert [state.tolerance(name) for name in ("3", "6")] == [None, None]
    assert (state.verdict(), code) == ("failed", 1)


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_every_schedule_can_be_replanned(schedule: str) -> None:
    """The new steps run under each of the four schedules."""
    world = World({"3": [FAIL]})
    thinking(world, SECOND)
    state, code = world.run(FIRST, schedule=schedule)
    assert (statuses(state), code) == (DONE, 0)


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_a_replaced_step_never_starts_in_any_run(schedule: str) -> None:
    """A plan with `replaces` that is executed from its start leaves out the steps whose place is taken."""
    world = World()
    state, code = world.run(SECOND, schedule=schedule)
    assert statuses(state) == {**DONE, "3": "skipped(replaced_by_replan)"}
    assert (state.verdict(), code) == ("completed", 0)


def test_a_failure_that_the_planner_declines_stays_a_failure() -> None:
    """The planner is not asked, and dependents are blocked as usual."""
    world = World({"3": [FAIL]})
    planner = thinking(world)
    state, code = world.run(FIRST)
    assert (planner.asked, code) == ([], 1)
    assert statuses(state)["4"] == "blocked(upstream)"


def test_a_denial_counts_until_what_it_was_for_is_done() -> None:
    """A resume in which the failed step completes ends with 0."""
    world = World({"3": [FAIL, PASS]})
    thinking(world, "denied")
    state, code = world.run(FIRST)
    assert code == 3
    state.apply(resumed(world).but(rerun=("3", "4")))
    assert world.go_on(state) == 0
