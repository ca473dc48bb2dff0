"""The queue of plans as the fold of its events: order, dependence, and what is blocked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planrun.model.queue import EntryAdded, EntryEnded, EntryQueued, Queue, QueuePaused, QueueResumed

AT = "2026-01-01T00:00:00.000Z"


def added(number: int, *after: int, priority: int = 0) -> EntryAdded:
    """Return the event of an entry."""
    return EntryAdded(at=AT, entry=number, plan="p.yml", folder=".", after=after, priority=priority)


def ended(number: int, status: str) -> EntryEnded:
    """Return the end of an entry."""
    return EntryEnded(at=AT, entry=number, status=status)


def next_of(queue: Queue) -> list[int]:
    """Return what may start, in order."""
    return [entry.number for entry in queue.startable()]


def test_the_highest_priority_is_first_and_then_the_oldest() -> None:
    """Priority counts downwards, age within it; a negative priority is behind everything."""
    queue = Queue([added(1), added(2, priority=5), added(3, priority=-1), added(4), added(5, priority=5)])
    assert next_of(queue) == [2, 5, 1, 4, 3]


def test_what_comes_after_another_starts_when_that_is_completed() -> None:
    """Priority does not help past an entry that has to be completed first."""
    queue = Queue([added(1), added(2, 1, priority=9), added(3, 1, 2)])
    assert next_of(queue) == [1]
    queue.apply(ended(1, "completed"))
    assert next_of(queue) == [2]
    queue.apply(ended(2, "waiting"))
    assert (next_of(queue), queue.statuses()[3]) == ([], "queued")


def test_blocking_goes_on_through_all_that_comes_after() -> None:
    """Behind a failed or cancelled entry all are blocked, and a retry brings all of them back."""
    for fault in ("failed", "cancelled"):
        queue = Queue([added(1), added(2, 1), added(3, 2), added(4), ended(1, fault)])
        assert queue.statuses() == {1: fault, 2: "blocked", 3: "blocked", 4: "queued"}
        assert next_of(queue) == [4]
        queue.apply(EntryQueued(at=AT, entry=1))
        assert set(queue.statuses().values()) == {"queued"}


def test_a_paused_queue_starts_nothing() -> None:
    """Between pause and resume nothing may start."""
    queue = Queue([added(1), QueuePaused(at=AT)])
    assert next_of(queue) == []
    queue.apply(QueueResumed(at=AT))
    assert next_of(queue) == [1]


@given(st.lists(st.tuples(st.integers(-3, 3), st.sets(st.integers(1, 12)), st.booleans()), max_size=12))
def test_every_queue_comes_to_its_end(rows: list[tuple[int, set[int], bool]]) -> None:
    """Whatever depends on whatever, and whatever fails: nothing waits for ever, and nothing starts before its turn."""
    queue = Queue()
    for number, (priority, after, _) in enumerate(rows, 1):
        queue.apply(added(number, *sorted(before for before in after if before < number), priority=priority))
    while found := next(queue.startable(), None):
        assert all(queue.entries[before].status == "completed" for before in found.added.after)
        queue.apply(ended(found.number, "completed" if rows[found.number - 1][2] else "failed"))
    assert set(queue.statuses().values()) <= {"completed", "failed", "blocked"}
