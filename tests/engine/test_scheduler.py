"""What the one loop does: order, concurrency, retries, early ends and cleanup, without processes."""

from __future__ import annotations

import pytest

from planrun.engine.failures import middle
from planrun.errors import EvaluationError
from planrun.model.events import RunEnding
from planrun.model.job import Outcome
from planrun.model.plan import Limits, Retry
from planrun.model.state import RunState
from tests.engine.world import FAIL, PASS, World, plan, step


def ends(state: RunState) -> dict[str, str]:
    """Status and reason of every step."""
    return {name: f"{found.status}/{found.reason}" for name, found in state.steps.items()}


def test_ready_steps_overlap_and_a_join_waits_for_all() -> None:
    """Three steps run at once; the fourth starts when all of them have ended."""
    world = World({name: [1.0] for name in "123"})
    world.run(plan([step("1"), step("2"), step("3"), step("4", ("1", "ok"), ("2", "ok"), ("3", "ok"))]))
    assert world.together[2] == ("1", "2", "3")
    assert world.together[3] == ("4",)


def test_no_more_attempts_run_at_once_than_jobs() -> None:
    """`jobs` bounds the attempts with a process."""
    world = World({str(n): [1.0] for n in range(9)})
    world.run(plan([step(str(n)) for n in range(9)]), jobs=3)
    assert world.peak == 3


def test_dag_starts_the_longest_remaining_path_first() -> None:
    """A step with a long chain of dependents starts before one without, whatever the file order."""
    world = World()
    steps = [step("short"), step("long"), step("tail", ("long", "ok")), step("end", ("tail", "ok"))]
    world.run(plan(steps), jobs=1)
    assert world.started == ["long", "tail", "short", "end"]


def test_dag_uses_recorded_durations() -> None:
    """A step that is known to take long starts first."""
    world = World()
    world.run(plan([step("quick"), step("slow")]), jobs=1, seconds={"slow": 60.0, "quick": 1.0})
    assert world.started == ["slow", "quick"]


def test_levels_have_a_barrier_between_them() -> None:
    """Under `levels` nothing of the next level starts before everything of this one has ended."""
    steps = [step("a"), step("b"), step("c", ("a", "ok")), step("d", ("b", "ok"))]
    world = World({"a": [1.0], "b": [5.0]})
    world.run(plan(steps, schedule="levels"))
    assert world.started == ["a", "b", "c", "d"]
    assert ("b", "c") not in world.together
    free = World({"a": [1.0], "b": [5.0]})
    free.run(plan(steps))
    assert ("b", "c") in free.together


def test_batches_take_consecutive_parallel_steps_together_and_others_alone() -> None:
    """The seeds' order: a step without `parallel: true` runs alone, neighbours with it run together."""
    steps = [
        step("1"),
        step("2", parallel=True),
        step("3", parallel=True),
        step("4"),
        step("5", parallel=True),
    ]
    world = World({str(n): [1.0] for n in range(1, 6)})
    world.run(plan(steps, schedule="batches"))
    assert world.together == [("1",), ("2",), ("2", "3"), ("4",), ("5",)]


def test_sequential_runs_one_after_the_other_in_file_order() -> None:
    """One at a time, in file order, also while a step waits for its next attempt."""
    again = Retry(max=1, initial=5.0, jitter=0.0)
    world = World({"b": [FAIL, PASS]})
    world.run(plan([step("a"), step("b", retries=again), step("c")], schedule="sequential"))
    assert world.started == ["a", "b", "b", "c"]
    assert world.peak == 1


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_a_step_that_is_not_parallel_runs_alone(schedule: str) -> None:
    """`parallel: false` is exclusive in any schedule, and nothing overtakes it for ever."""
    steps = [step(str(n)) for n in range(4)]
    steps.insert(2, step("alone", parallel=False))
    world = World({**{str(n): [1.0] for n in range(4)}, "alone": [1.0]})
    world.run(plan(steps, schedule=schedule))
    assert ("alone",) in world.together
    assert not [names for names in world.together if "alone" in names and len(names) > 1]


def test_a_failed_attempt_is_repeated_after_its_backoff() -> None:
    """`retries: 3` gives four attempts, 1 s, 2 s and 4 s apart, and the last one counts."""
    world = World({"a": [FAIL, FAIL, FAIL, PASS]})
    state, code = world.run(plan([step("a", retries=Retry(max=3, jitter=0.0))]))
    assert (code, ends(state)) == (0, {"a": "completed/flaky"})
    delays = [event.delay for event in world.events if hasattr(event, "delay") and event.delay]
    assert delays == [1.0, 2.0, 4.0]
    assert [attempt.status for attempt in state.steps["a"].attempts] == ["failed"] * 3 + ["completed"]
    assert world.run(plan([step("a", retries=Retry(max=3, jitter=0.0))]), fail_on_flaky=True)[1] == 0
    flaky = World({"a": [FAIL, PASS]})
    assert flaky.run(plan([step("a", retries=Retry(max=1))]), fail_on_flaky=True)[1] == 1


def test_others_go_on_while_a_step_waits_for_its_next_attempt() -> None:
    """A backoff holds no job slot."""
    world = World({"a": [FAIL, PASS]})
    world.run(plan([step("a", retries=Retry(max=1)), step("b")]), jobs=1)
    assert world.started == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("rule", "outcome", "tries"),
    [
        (("any",), FAIL, 2),
        (("timeout",), FAIL, 1),
        (("timeout",), FAIL.but(reason="timeout"), 2),
        (("exit", (75,)), FAIL.but(exit_code=75), 2),
        (("exit", (75,)), FAIL, 1),
        (("match", "reset by peer"), FAIL.but(tail="read: connection reset by peer\n"), 2),
        (("match", "reset by peer"), FAIL, 1),
        (("class", "transient"), FAIL.but(errors="HTTP 503\n"), 2),
        (("class", "transient"), FAIL.but(errors="no such file\n"), 1),
        (("any",), FAIL.but(reason="denied"), 1),
        (("any",), FAIL.but(reason="refused"), 1),
    ],
)
def test_retry_filters(rule: tuple[object, ...], outcome: Outcome, tries: int) -> None:
    """Only failures that a filter names are repeated; what was denied or refused never is."""
    world = World({"a": [outcome]})
    world.run(plan([step("a", retries=Retry(max=1, on=(rule,)))]))
    assert len(world.started) == tries


def test_abort_cancels_what_runs_and_starts_nothing() -> None:
    """Under `on_failure: abort` running steps and everything pending end cancelled; the run failed."""
    world = World({"slow": [60.0], "bad": [FAIL]})
    steps = [
        step("slow"),
        step("bad", on_failure="abort"),
        step("next", ("bad", "ok")),
        step("far", ("slow", "ok")),
    ]
    state, code = world.run(plan(steps))
    assert code == 1
    assert ends(state) == {
        "slow": "cancelled/abort",
        "bad": "failed/exit",
        "next": "cancelled/abort",
        "far": "cancelled/abort",
    }
    assert state.verdict() == "failed"


def test_a_deadline_fails_what_runs_and_cancels_the_rest() -> None:
    """`limits.deadline`: running steps fail by timeout, pending ones are cancelled, exit 124."""
    world = World({"slow": [60.0]})
    state, code = world.run(
        plan([step("slow", on_failure="continue"), step("next", ("slow", "ok"))], limits=Limits(deadline=5.0))
    )
    assert code == 124
    assert ends(state) == {"slow": "failed/timeout", "next": "cancelled/deadline"}
    assert state.verdict() == "failed"


def test_the_deadline_is_over_when_cleanup_starts() -> None:
    """`finally` is not cut short by a deadline that passes while it runs."""
    world = World({"a": [3.0], "tidy": [60.0]})
    steps = [step("a"), step("tidy", section="finally")]
    state, code = world.run(plan(steps, limits=Limits(deadline=5.0)))
    assert (code, ends(state)["tidy"]) == (0, "completed/ran")


def test_a_signal_cancels_the_run() -> None:
    """SIGTERM: running and pending steps end cancelled, exit 143, and `finally` still runs."""
    world = World({"slow": [60.0], "tidy": [1.0]})
    world.signals = [(1001.0, 15)]
    state, code = world.run(
        plan([step("slow"), step("next", ("slow", "ok")), step("tidy", section="finally")])
    )
    assert code == 143
    assert ends(state)["slow"] == "cancelled/cancelled"
    assert ends(state)["next"] == "cancelled/cancelled"
    assert ends(state)["tidy"] == "completed/ran"
    assert state.verdict() == "cancelled"


def test_a_second_signal_ends_cleanup_at_once() -> None:
    """The second signal kills the cleanup and starts nothing more."""
    world = World({"slow": [60.0], "tidy": [60.0]})
    world.signals = [(1001.0, 2), (1002.0, 2)]
    state, code = world.run(
        plan(
            [step("slow"), step("tidy", section="finally"), step("last", ("tidy", "done"), section="finally")]
        )
    )
    assert code == 130
    assert ends(state)["tidy"] == "cancelled/cancelled"
    assert ends(state)["last"] == "cancelled/cancelled"
    assert world.clock.now < 1003


def test_cleanup_after_a_signal_has_little_time() -> None:
    """`finally` gets what is left of the seconds that CI systems give after a signal."""
    world = World({"slow": [60.0], "tidy": [60.0]})
    world.signals = [(1001.0, 15)]
    state, _ = world.run(plan([step("slow"), step("tidy", section="finally")]))
    assert ends(state)["tidy"] == "cancelled/cancelled"
    assert world.clock.now < 1001 + 7


@pytest.mark.parametrize("bad", [FAIL, FAIL.but(reason="timeout")])
def test_finally_runs_after_a_failure_and_can_fail_the_run(bad: Outcome) -> None:
    """`finally` always runs; its own failure fails the run unless it is tolerated."""
    world = World({"a": [bad]})
    state, code = world.run(plan([step("a"), step("tidy", section="finally")]))
    assert (code, ends(state)["tidy"]) == (1, "completed/ran")
    world = World({"tidy": [FAIL]})
    assert world.run(plan([step("a"), step("tidy", section="finally")]))[1] == 1
    world = World({"tidy": [FAIL]})
    state, code = world.run(plan([step("a"), step("tidy", section="finally", on_failure="continue")]))
    assert (code, state.verdict()) == (0, "partial")


@pytest.mark.parametrize("fails", [True, False])
def test_a_condition_is_looked_at_when_all_edges_are_settled(*, fails: bool) -> None:
    """The seeds' example: tests, then fix if they failed, deploy if they passed."""
    steps = [
        step("3"),
        step("4", ("3", "done"), condition=("x",), condition_text="step_3_failed"),
        step("5", ("3", "done"), condition=("x",), condition_text="step_3_succeeded"),
    ]
    world = World({"3": [FAIL if fails else PASS]})
    world.conditions = {
        "4": lambda state: state.steps["3"].status == "failed",
        "5": lambda state: state.steps["3"].status == "completed",
    }
    state, code = world.run(plan(steps))
    assert code == (1 if fails else 0)
    ran, skipped = ("4", "5") if fails else ("5", "4")
    assert ends(state)[ran] == "completed/ran"
    assert ends(state)[skipped] == "skipped/condition"


def test_a_condition_without_a_value_fails_its_step() -> None:
    """What cannot be evaluated never counts as true or false."""

    def broken(_state: RunState) -> bool:
        raise EvaluationError("steps.a.outputs.x has no value")

    world = World()
    world.conditions = {"a": broken}
    state, code = world.run(plan([step("a", condition=("x",))]))
    assert (code, ends(state)) == (1, {"a": "failed/refused"})
    assert "no value" in state.steps["a"].message


def test_what_is_not_selected_is_skipped_and_benign() -> None:
    """Dependents of a step that was left out still run; `completed` edges do not take it for done."""
    steps = [step("a"), step("b", ("a", "ok")), step("c", ("a", "completed"))]
    state, code = World().run(plan(steps), selected=frozenset({"b", "c"}))
    assert code == 0
    assert ends(state) == {"a": "skipped/not_selected", "b": "completed/ran", "c": "skipped/upstream"}


def test_strict_makes_tolerated_failures_count() -> None:
    """A tolerated failure gives `partial` and exit 0, or 1 under --strict."""
    assert World({"a": [FAIL]}).run(plan([step("a", on_failure="continue")]))[1] == 0
    assert World({"a": [FAIL]}).run(plan([step("a", on_failure="continue")]), strict=True)[1] == 1


def test_what_was_denied_is_never_tolerated() -> None:
    """A denied step ends the run with exit 3."""
    denied = FAIL.but(reason="denied")
    state, code = World({"a": [denied]}).run(plan([step("a", on_failure="continue")]))
    assert (code, state.verdict()) == (3, "failed")


def test_replaying_the_events_gives_the_same_state() -> None:
    """The state is the fold of its events, and the counts add up."""
    of = plan([step("a", retries=Retry(max=1)), step("b", ("a", "ok")), step("c", ("b", "failed"))])
    world = World({"a": [FAIL, PASS], "b": [FAIL]})
    state, _ = world.run(of)
    again = RunState(of).replay(world.events)
    assert ends(again) == ends(state)
    summary = again.summary()
    assert summary["total"] == sum(count for name, count in summary.items() if name != "total")


def test_the_pause_before_a_late_attempt_is_bounded() -> None:
    """However often a step was tried, its factor does not grow beyond what a number can hold."""
    assert middle(Retry(max=5000, initial=1.0, factor=10.0, cap=60.0), 5000) == 60.0


def test_a_signal_while_clean_up_runs_cancels_no_clean_up() -> None:
    """The first one leaves it the time that it has."""
    world = World({"tidy": [2.0]})
    world.signals = [(1001.0, 15)]
    cleanup = [step("tidy", section="finally"), step("last", ("tidy", "ok"), section="finally")]
    state, code = world.run(plan([step("a"), *cleanup]))
    assert code == 143
    assert world.started == ["a", "tidy", "last"]
    assert state.steps["last"].status == "completed"


def test_a_second_cause_does_not_replace_the_first() -> None:
    """A signal that comes while a run is aborted leaves the abort as why it ended."""
    world = World({"a": [FAIL], "tidy": [2.0]})
    world.signals = [(1001.0, 15)]
    state, _ = world.run(plan([step("a", on_failure="abort"), step("tidy", section="finally")]))
    assert [event.why for event in world.events if isinstance(event, RunEnding)] == ["abort", "cancel"]
    assert state.ending is not None
    assert state.ending.why == "abort"
