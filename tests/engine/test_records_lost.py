"""What the scheduler does when the records cannot be written any more."""

from __future__ import annotations

import pytest

from planrun.errors import RecordsLost
from planrun.model import events as ev
from planrun.model.job import Outcome
from planrun.model.progress import AttemptState, StepState
from tests.engine.world import World, plan, step


class Disk(World):
    """A world whose journal fails at its `capacity`-th event; later events are written only to `after`."""

    def __init__(self, takes: dict[str, list[Outcome | float]], capacity: int) -> None:
        super().__init__({**takes})
        self.capacity = capacity
        self.started_before: int | None = None  # how many steps had started when it failed
        self.sync_fails = False

    def flush(self) -> None:
        super().flush()
        if len(self.events) >= self.capacity:
            if self.lost is None:
                self.started_before = len(self.started)
            self.lost = self.lost or RecordsLost("disk full: ledger")

    def sync(self) -> None:
        super().sync()
        if self.sync_fails:
            self.lost = self.lost or RecordsLost("no sync: ledger")


class IgnoringStop(Disk):
    """A disk in a world whose steps end by a second signal only."""

    def stop(self, step: str, reason: str) -> None:
        """Ignore the first signal."""

    def kill_all(self) -> None:
        for name in self.running:
            super().stop(name, "cancelled")


EVENTS = 12  # of an undisturbed run
STEPS = (step("a"), step("b", ("a", "ok")), step("c"), step("z", section="finally"))


@pytest.mark.parametrize("capacity", range(1, 16))
def test_nothing_starts_once_something_is_lost(capacity: int) -> None:
    """Wherever the journal fails: nothing starts after that, what runs ends, the rest stays pending, exit code 74."""
    world = Disk({"a": [0.5], "b": [0.5], "c": [60.0]}, capacity)
    state, code = world.run(plan(STEPS))
    if capacity > EVENTS:
        assert (code, state.status) == (0, "completed")
        return
    assert code == 74
    assert len(world.started) == world.started_before
    assert all(found.status != "running" for found in state.steps.values())
    if capacity < EVENTS:
        assert (state.verdict(), state.status) == ("failed", "failed")
        assert state.ended is not None
        assert state.ended.exit_code == 74
        assert [event.why for event in world.events if isinstance(event, ev.RunEnding)] == ["records"]
    assert {found.reason for found in state.steps.values() if found.status == "cancelled"} <= {"records"}


def test_what_had_not_started_stays_pending() -> None:
    """A thousand steps that never start cost no records, but for one that was about to."""
    steps = [step("a"), *(step(f"s{number}", ("a", "ok")) for number in range(1000))]
    world = Disk({"a": [1.0]}, 5)
    state, code = world.run(plan(steps))
    assert world.started == ["a"]
    assert (code, state.steps["s7"].status, len(world.events)) == (74, "pending", 9)


def test_a_step_that_must_not_be_repeated_needs_its_sync() -> None:
    """When its start cannot be synced it is not started."""
    world = Disk({}, 1000)
    world.sync_fails = True
    state, code = world.run(plan([step("a", idempotent=False)]))
    assert (code, world.started, state.steps["a"].reason) == (74, [], "records")
    assert not state.steps["a"].is_spent


def test_what_ran_when_records_were_lost_has_started() -> None:
    """A step that must not be repeated is not, though its attempt ended for the same reason as those that waited."""
    found = StepState(step("a", idempotent=False))
    attempt = AttemptState(ev.AttemptStarted(at="", step="a", n=1, fingerprint="", log="logs/a/1.log"))
    attempt.ended = ev.AttemptEnded(
        at="",
        step="a",
        n=1,
        status="cancelled",
        reason="records",
        duration=0.2,
        exit_code=143,
        step_status="cancelled",
    )
    found.attempts.append(attempt)
    assert found.is_spent


def test_a_log_that_is_lost_ends_the_run() -> None:
    """The executor may lose something as well, in the middle of a run and with others running."""
    world = World({"a": [1.0], "b": [50.0]})
    began = world.clock.now
    steps = [step("a"), step("b"), step("c", ("a", "ok"))]
    conclude = world.conclude

    def losing(of: object, job: object, outcome: Outcome) -> Outcome:
        world.lost = RecordsLost("cannot write a.log")
        return conclude(of, job, outcome)  # type: ignore[arg-type]

    world.conclude = losing  # type: ignore[method-assign, assignment]
    state, code = world.run(plan(steps))
    assert code == 74
    assert world.clock.now - began < 2
    assert [found.status for found in state.steps.values()] == ["completed", "cancelled", "pending"]
    (ending,) = [event for event in world.events if isinstance(event, ev.RunEnding)]
    assert ending.message == "cannot write a.log"


def test_a_signal_while_it_ends_kills() -> None:
    """Who cannot wait for the grace time of a run without records sends a signal; pending steps stay pending."""
    world = IgnoringStop({"a": [1.0], "b": [50.0]}, 5)
    world.signals = [(world.clock.now + 3, 15)]
    state, code = world.run(plan([step("a"), step("b"), step("c", ("b", "ok"))]))
    assert (code, state.steps["c"].status, state.steps["b"].status) == (74, "pending", "cancelled")
