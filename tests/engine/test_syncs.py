"""When the scheduler makes the ledger survive a power cut."""

from __future__ import annotations

from planrun.engine.scheduler import SYNC_MAX_DELAY, SYNC_QUIET_PERIOD
from planrun.model import events as ev
from planrun.model.job import Outcome
from tests.engine.world import World, plan, step


class Journal(World):
    """A world that notes how many events each sync covers, and when it came."""

    def __init__(self, takes: dict[str, list[Outcome | float]]) -> None:
        super().__init__({**takes})
        self.synced: list[int] = []
        self.moments: list[float] = []

    def sync(self) -> None:
        super().sync()
        self.synced.append(len(self.events))
        self.moments.append(self.clock.now)


def test_short_steps_share_one_sync_with_the_verdict() -> None:
    """Steps that end right after each other cost one sync, which covers every event."""
    world = Journal({name: [0.001] for name in "abc"})
    world.run(plan([step("a"), step("b", ("a", "ok")), step("c", ("b", "ok"))]))
    assert world.synced == [len(world.events)]


def test_a_step_that_takes_longer_is_on_the_disk_while_it_runs() -> None:
    """The start of a step is synced a moment later, not at its end."""
    world = Journal({"a": [60.0]})
    began = world.clock.now
    world.run(plan([step("a")]))
    assert [type(event) for event in world.events[: world.synced[0]]].count(ev.AttemptStarted) == 1
    assert world.moments[0] - began <= SYNC_QUIET_PERIOD + 1e-6
    assert len(world.synced) == 2


def test_syncs_come_although_steps_never_cease_to_end() -> None:
    """No event waits longer for its sync than UNSYNCED seconds and the step that is running."""
    names = [f"s{number}" for number in range(100)]
    steps = [step(name, *([(names[at - 1], "ok")] if at else [])) for at, name in enumerate(names)]
    world = Journal({name: [0.002] for name in names})
    began = world.clock.now
    world.run(plan(steps))
    gaps = [after - before for before, after in zip([began, *world.moments], world.moments, strict=False)]
    assert max(gaps) <= SYNC_MAX_DELAY + 0.002 + 1e-6
    assert len(world.synced) < 10


def test_what_must_not_be_repeated_is_on_the_disk_before_it_starts() -> None:
    """The start of a step that is not idempotent is synced before its process exists."""
    world = Journal({"a": [0.001], "b": [0.001]})
    world.run(plan([step("a"), step("b", ("a", "ok"), idempotent=False)]))
    started = [
        number
        for number, event in enumerate(world.events, 1)
        if isinstance(event, ev.AttemptStarted) and event.step == "b"
    ]
    assert world.synced[0] == started[0]
