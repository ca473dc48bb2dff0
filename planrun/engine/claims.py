"""Claims: locks, `conflicts` and `max_parallel`. Loaded when a plan has any.

A claim is a name with a capacity. A step gets all its claims at once or none, so no step holds one claim while it
waits for another. Locks are also shared by all runs on this host: a step takes a ticket when its run has a free place,
and tickets are served in order. A step that waits takes no job slot and no time of its timeout, and others may
start before it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planrun.model.plan import Step
    from planrun.ports import Locks

_DEFAULT_SLOTS = 1  # capacity of a lock for which the plan gives none


def claims_of(steps: Sequence[Step], slots: Mapping[str, int], locks: Locks | None) -> Claims | None:
    """Return the claims of these steps; None when they have none."""
    templates = [step.grouping.template for step in steps if step.kind == "group"]
    bounded = any(step.kind == "group" and step.grouping.max_parallel for step in steps)
    if not bounded and not any(step.lock or step.conflicts for step in (*steps, *filter(None, templates))):
        return None
    claims = Claims(slots, locks)
    claims.join(steps)
    return claims


class Claims:
    """The claims that the steps of one section hold; `slots`: capacities of locks, where not 1."""

    def __init__(self, slots: Mapping[str, int], locks: Locks | None) -> None:
        self._slots = slots
        self._host = locks
        self._capacity: dict[str, int] = {}
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._locks: dict[str, tuple[str, ...]] = {}
        self._conflicts: dict[str, set[str]] = {}
        self._taken: dict[str, int] = {}
        self._granted: dict[str, tuple[str, ...]] = {}  # steps that have all their claims, in this run
        self._parents: dict[str, tuple[str, ...]] = {}  # the groups around a group or member, innermost first
        self._running: dict[str, int] = {}  # steps, and groups with how many of their members
        self._notices: list[tuple[str, str, str]] = []
        self._postponed: list[str] = []
        self._plans: set[str] = set()  # groups that are included plans, in which every process counts
        self.held: dict[str, str] = {}  # steps that wait for a lock of this host, and the message about it

    def join(self, steps: Iterable[Step]) -> None:
        """Add steps."""
        for step in steps:
            group = step.grouping if step.kind == "group" else None
            if group and group.max_parallel:
                self._capacity[f"group {step.id}"] = group.max_parallel
            if step.lock:
                self._locks[step.id] = step.lock
            if group and group.form == "uses":
                self._plans.add(step.id)
            names = [f"lock {name}" for name in dict.fromkeys(step.lock)]
            if step.group:
                self._parents[step.id] = (step.group, *self._parents.get(step.group, ()))
                names += [f"group {name}" for name in self._places(step)]
            if names:
                self._wanted[step.id] = tuple(names)
            for other in step.conflicts:
                self._conflicts.setdefault(step.id, set()).add(other)
                self._conflicts.setdefault(other, set()).add(step.id)

    def _places(self, step: Step) -> list[str]:
        """Return the groups whose `max_parallel` counts a step: instances or, in an included plan, processes."""
        is_group = step.kind == "group"
        return [
            name
            for number, name in enumerate(self._parents[step.id])
            if (not is_group if name in self._plans else number == 0)
        ]

    def open(self, group: str) -> bool:
        """Give a group its claims; when it cannot have them, keep it for `recall`."""
        if any(
            self._taken.get(claim, 0) >= self._capacity_of(claim) for claim in self._wanted.get(group, ())
        ):
            self._postponed.append(group)
            return False
        self._reserve(group)
        return True

    def recall(self) -> list[str]:
        """Return and forget the groups that could not open, to be evaluated again."""
        postponed, self._postponed = self._postponed, []
        return postponed

    def take(self, name: str) -> bool:
        """Give a step all its claims; False when one of them is not free."""
        if not self.is_free(name):
            return False
        self._reserve(name)
        locks = self._locks.get(name)
        if locks and self._host is not None:
            message = self._host.claim(name, locks)
            if message:
                if self.held.get(name) != message:
                    self._notices.append((name, ", ".join(locks), message))
                self.held[name] = message
                return False
            self.held.pop(name, None)
        for each in (name, *self._parents.get(name, ())):
            self._running[each] = self._running.get(each, 0) + 1
        return True

    def is_free(self, name: str) -> bool:
        """Return whether this run leaves the claims of a step free; a group conflicts while a member of it runs."""
        if any(self._running.get(other, 0) for other in self._conflicts.get(name, ())):
            return False
        return name in self._granted or all(
            self._taken.get(claim, 0) < self._capacity_of(claim) for claim in self._wanted.get(name, ())
        )

    def _reserve(self, name: str) -> None:
        if name in self._granted:
            return
        wanted = self._granted[name] = self._wanted.get(name, ())
        for claim in wanted:
            self._taken[claim] = self._taken.get(claim, 0) + 1

    def _capacity_of(self, claim: str) -> float:
        kind, _, name = claim.partition(" ")
        return (
            self._slots.get(name, _DEFAULT_SLOTS)
            if kind == "lock"
            else self._capacity.get(claim, float("inf"))
        )

    def give(self, name: str) -> None:
        """Release the claims of a step; nothing happens when it has none."""
        for each in (name, *self._parents.get(name, ())) if self._running.get(name, 0) else ():
            self._running[each] -= 1
        self.held.pop(name, None)
        for claim in self._granted.pop(name, ()):
            self._taken[claim] -= 1
        if name in self._locks and self._host is not None:
            self._host.release(name)

    def forget(self) -> None:
        """Release every ticket: nothing more will start."""
        for name in list(self.held):
            self.give(name)

    def notices(self) -> list[tuple[str, str, str]]:
        """Return steps that wait for locks, new or with another holder since the last call: step, locks, message."""
        notices, self._notices = self._notices, []
        return notices

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again to get a lock of this host."""
        return self._host.retry_after if self._host is not None else 0.0
