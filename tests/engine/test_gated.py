"""Steps at gates: other steps continue, an unanswered gate leaves the run waiting, and nothing passes unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.errors import EXIT_DENIED, EXIT_WAITING
from planrun.model import events as ev
from planrun.model.job import Passage
from planrun.model.state import RunState
from tests.engine.world import FAIL, PASS, World, plan, step

if TYPE_CHECKING:
    from planrun.model.job import Job
    from planrun.model.plan import Step

SIGTERM = 15


class Clerk:
    """Gates that hold the steps named in `asks` until the moment that it says, and deny those in `denies`."""

    def __init__(self, world: World, asks: dict[str, float | None], denies: tuple[str, ...] = ()) -> None:
        self.world = world
        self.asks = asks  # seconds that an answer is waited for
        self.denies = denies
        self.judged: list[str] = []
        self.choices: list[str] = []  # what becomes of failures, in order
        self.answers: list[tuple[float, str, str]] = []  # at, step, answer

    def judge(self, step: Step, state: RunState, _job: Job | None) -> Passage:
        self.judged.append(step.id)
        if step.id in self.denies:
            return Passage(answer="deny", rule="plan:rules.1", reason="no")
        gate = state.steps[step.id].gate
        if gate and gate.answered:
            said = gate.answered.answer == "approved"
            return Passage(answer="allow" if said else "deny", rule="approval:command", reason="rejected")
        if state.gate and state.gate.answered:
            return Passage(answer="allow", rule="approval:command")
        if step.id not in self.asks:
            return Passage(answer="allow", risk="low", rule="plan:auto_approve")
        seconds = self.asks[step.id]
        if gate and gate.opened and seconds is not None and self.world.clock.now >= 1000 + seconds:
            return Passage(answer="deny", is_late=True, reason="nobody answered")
        opened = ev.GateOpened(at="", step=step.id, kind="approval", reason="why")
        return Passage(answer="ask", opened=opened, seconds=seconds)

    def failed(self, step: Step, state: RunState) -> Passage:
        after = state.steps[step.id].after
        if after and after.opened and after.answered:
            return Passage(answer="allow")
        opened = ev.GateOpened(at="", step=step.id, kind="failure")
        if not self.choices:
            return Passage(answer="ask", opened=opened)
        answered = ev.GateAnswered(at="", step=step.id, answer=self.choices.pop(0), via="option")
        return Passage(answer="allow", opened=opened, answered=answered)

    def is_asking(self, _state: RunState) -> bool:
        return False

    def poll_replies(self, _state: RunState) -> list[ev.GateAnswered]:
        due = [entry for entry in self.answers if entry[0] <= self.world.clock.now]
        self.answers = [entry for entry in self.answers if entry not in due]
        return [ev.GateAnswered(at="", step=name, answer=what, via="command") for _, name, what in due]


def world_of(asks: dict[str, float | None], denies: tuple[str, ...] = (), **outcomes: object) -> World:
    """A world with a clerk."""
    world = World(outcomes)  # type: ignore[arg-type]
    world.gates = Clerk(world, asks, denies)
    return world


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_ungated_steps_go_on_and_then_the_run_rests(schedule: str) -> None:
    """Steps that do not depend on the gate run; then the run is paused with exit 5, and nothing else happened."""
    world = world_of({"publish": None}, test=[2.0])
    of = plan(
        [step("publish"), step("test"), step("announce", ("publish", "ok"))],
        schedule=schedule,
    )
    state, code = world.run(of)
    assert code == EXIT_WAITING
    assert world.started == ["test"]
    assert state.status == "paused"
    assert state.steps["publish"].at_gate
    assert state.steps["publish"].reason == "approval"
    assert state.steps["announce"].status == "pending"
    assert state.ended is None
    assert not state.steps["publish"].attempts


def test_cleanup_waits_with_the_run() -> None:
    """`finally` does not run while a gate waits: the run is not over."""
    world = world_of({"a": None})
    of = plan([step("a"), step("z", section="finally")])
    state, code = world.run(of)
    assert (code, world.started) == (EXIT_WAITING, [])
    assert state.steps["z"].status == "pending"


def test_an_answer_while_others_run_lets_the_step_start() -> None:
    """A live run hears answers, to steps and to the plan as a whole."""
    world = world_of({"a": None, "b": None}, busy=[3.0])
    assert isinstance(world.gates, Clerk)
    world.gates.answers = [(1001.0, "a", "approved"), (1002.0, "", "approved")]
    state, code = world.run(plan([step("a"), step("b"), step("busy")]))
    assert code == 0
    assert sorted(world.started) == ["a", "b", "busy"]
    assert all(found.status == "completed" for found in state.steps.values())


def test_a_rejected_step_is_denied_and_the_others_go_on() -> None:
    """Rejection is failed(denied): exit 3, dependents blocked, never tolerated."""
    world = world_of({"a": None}, busy=[3.0])
    assert isinstance(world.gates, Clerk)
    world.gates.answers = [(1001.0, "a", "rejected")]
    of = plan([step("a", on_failure="continue"), step("after", ("a", "ok")), step("busy")])
    state, code = world.run(of)
    assert code == EXIT_DENIED
    assert (state.steps["a"].status, state.steps["a"].reason) == ("failed", "denied")
    assert state.steps["after"].status == "blocked"
    assert world.started == ["busy"]


def test_a_denied_step_never_starts_and_may_abort() -> None:
    """A denial needs no answer; `on_failure: abort` holds for it as well."""
    world = world_of({}, ("a",), b=[5.0])
    of = plan([step("b"), step("a", on_failure="abort"), step("c", ("b", "ok"))])
    state, code = world.run(of, jobs=2)
    assert code == EXIT_DENIED
    assert world.started == ["b"]
    assert [state.steps[name].status for name in "bac"] == ["cancelled", "failed", "cancelled"]


def test_a_gate_with_a_time_of_its_own_keeps_the_run_waiting_so_long() -> None:
    """The run does not rest before; then the step is judged once more, and has failed by timeout."""
    world = world_of({"a": 60.0})
    state, code = world.run(plan([step("a"), step("b")]))
    assert code == 1
    assert (state.steps["a"].status, state.steps["a"].reason) == ("failed", "timeout")
    assert world.clock.now >= 1060
    assert world.started == ["b"]


def test_an_answer_in_time_counts_while_nothing_runs() -> None:
    """A run that only waits for a gate's time hears answers, and starts the step once."""
    world = world_of({"a": 60.0})
    assert isinstance(world.gates, Clerk)
    world.gates.answers = [(1010.0, "a", "approved")]
    state, code = world.run(plan([step("a"), step("b", ("a", "ok"))]))
    assert code == 0
    assert world.started == ["a", "b"]
    assert 1010 <= world.clock.now < 1060
    assert len(state.steps["a"].attempts) == 1


@pytest.mark.parametrize(
    "answers", [[(1001.0, "", "approved"), (1001.0, "a", "approved")], [(1005.0, "a", "approved")]]
)
def test_a_step_that_is_answered_twice_starts_once(answers: list[tuple[float, str, str]]) -> None:
    """An answer for the plan and one for the step at the same moment let it in once; so does one as its time ends."""
    world = world_of({"a": 5.0}, slow=[20.0])
    assert isinstance(world.gates, Clerk)
    world.gates.answers = answers
    state, code = world.run(plan([step("a"), step("slow")]))
    assert code == 0
    assert sorted(world.started) == ["a", "slow"]
    assert len(state.steps["a"].attempts) == 1


def test_a_signal_and_a_deadline_end_a_waiting_run() -> None:
    """Nothing at a gate outlives a cancellation or the deadline."""
    world = world_of({"a": 600.0})
    world.signals = [(1005.0, SIGTERM)]
    state, code = world.run(plan([step("a")]))
    assert (code, state.steps["a"].status) == (143, "cancelled")
    from planrun.model.plan import Limits

    world = world_of({"a": 600.0})
    state, code = world.run(plan([step("a")], limits=Limits(deadline=30.0)))
    assert (code, state.steps["a"].status) == (124, "cancelled")


def test_a_pause_and_a_gate_are_both_rest() -> None:
    """A step between two attempts keeps that state, beside a step that waits at a gate."""
    world = world_of({"a": None}, b=[FAIL])
    from planrun.model.plan import Retry

    of = plan([step("a"), step("b", retries=Retry(max=1, initial=100.0, cap=100.0))])
    world.signals = [(1001.0, 10)]
    state, code = world.run(of)
    assert code == EXIT_WAITING
    assert state.steps["b"].status == "paused"
    assert state.steps["a"].at_gate


def test_a_step_that_runs_alone_does_not_block_the_others_at_its_gate() -> None:
    """`parallel: false` gives its place up while it waits."""
    world = world_of({"a": None})
    of = plan([step("a", parallel=False), step("b"), step("c", parallel=False)])
    _, code = world.run(of)
    assert code == EXIT_WAITING
    assert world.started == ["b", "c"]


def test_the_record_shows_what_allowed_a_step() -> None:
    """Risk and rule stand in the event that starts it, and replaying the events gives the same state."""
    world = world_of({"a": None}, ("d",))
    of = plan([step("b"), step("a"), step("d")])
    state, _ = world.run(of)
    started = next(event for event in world.events if isinstance(event, ev.AttemptStarted))
    assert (started.risk, started.rule) == ("low", "plan:auto_approve")
    moved = next(event for event in world.events if isinstance(event, ev.StepMoved))
    assert (moved.step, moved.rule) == ("d", "plan:rules.1")
    again = RunState(of).replay(world.events)
    assert {name: found.status for name, found in again.steps.items()} == {
        name: found.status for name, found in state.steps.items()
    }
    assert again.steps["a"].at_gate


def test_a_resumed_run_asks_again_only_what_is_open() -> None:
    """The open gate stays; an answer that arrived meanwhile lets its step start."""
    world = world_of({"a": None, "b": None})
    of = plan([step("a"), step("b")])
    state, code = world.run(of)
    assert code == EXIT_WAITING
    for event in (
        ev.GateAnswered(at="", step="a", answer="approved", via="command"),
        ev.RunResumed(
            at="", planrun="", plan={}, params={}, context={}, options={}, rerun=(), lost=(), pid=1, host=""
        ),
    ):
        state.apply(event)
        world.append(event)
    assert state.steps["a"].status == "pending"
    assert world.go_on(state) == EXIT_WAITING
    assert world.started == ["a"]
    assert state.steps["b"].at_gate


@pytest.mark.parametrize(
    ("choices", "status", "dependent", "code", "attempts"),
    [
        (["retry"], "completed", "completed", 0, 2),
        (["retry", "retry", "skip"], "failed", "skipped", 0, 3),
        (["skip"], "failed", "skipped", 0, 1),
        (["continue"], "failed", "completed", 0, 1),
        (["block"], "failed", "blocked", 1, 1),
        (["abort"], "failed", "cancelled", 1, 1),
    ],
)
def test_the_reviewer_decides_what_a_failure_means(
    choices: list[str], status: str, dependent: str, code: int, attempts: int
) -> None:
    """`on_failure: ask` offers retry, skip, continue, block and abort, and the run does what was chosen."""
    ends = [FAIL, *([FAIL, FAIL] if len(choices) > 1 else [PASS])]
    world = world_of({}, a=ends)
    assert isinstance(world.gates, Clerk)
    world.gates.choices = list(choices)
    of = plan([step("a", on_failure="ask"), step("b", ("a", "ok"))])
    state, found = world.run(of)
    assert (state.steps["a"].status, state.steps["b"].status, found) == (status, dependent, code)
    assert len(state.steps["a"].attempts) == attempts


def test_an_undecided_failure_leaves_the_run_waiting() -> None:
    """The run waits with the attempt on record; a later answer is followed when the run is resumed."""
    world = world_of({}, a=[FAIL, PASS])
    of = plan([step("a", on_failure="ask"), step("b", ("a", "ok")), step("c")])
    state, code = world.run(of)
    assert code == EXIT_WAITING
    assert sorted(world.started) == ["a", "c"]
    assert state.steps["a"].at_gate
    for event in (
        ev.GateAnswered(at="", step="a", answer="retry", via="command"),
        ev.RunResumed(
            at="", planrun="", plan={}, params={}, context={}, options={}, rerun=(), lost=(), pid=1, host=""
        ),
    ):
        state.apply(event)
        world.append(event)
    assert world.go_on(state) == 0
    assert world.started[-2:] == ["a", "b"]
    again = RunState(of).replay(world.events)
    assert again.steps["b"].status == "completed"
