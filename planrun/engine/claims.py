"""What only so many steps may have at a time: locks, places in a group, files of others. Loaded when a plan has any.

A claim is a name with a capacity. A step gets all that it claims or nothing, in one go, so nobody holds one thing while
it waits for another. Locks count on this host, too: there a step has a ticket once there is room for it in this run,
and tickets are served in their order. A step that waits takes no job slot, no time of its timeout, and lets others
pass.
"""

from __future__ import annotations

from planrun.model.plan import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planrun.model.plan import Step
    from planrun.ports import Locks

_ALONE = 1  # how many have a lock at once of which the plan says nothing


def claims_of(steps: Sequence[Step], slots: Mapping[str, int], locks: Locks | None) -> Claims | None:
    """Return the claims of these steps; None when there are none."""
    templates = [step.action.template for step in steps if isinstance(step.action, Group)]
    bounded = any(isinstance(step.action, Group) and step.action.max_parallel for step in steps)
    if not bounded and not any(step.lock or step.conflicts for step in (*steps, *filter(None, templates))):
        return None
    claims = Claims(slots, locks)
    claims.join(steps)
    return claims


class Claims:
    """Who has what of the steps of one section; `slots`: how many have a lock at once, where it is not one."""

    def __init__(self, slots: Mapping[str, int], locks: Locks | None) -> None:
        self._slots = slots
        self._host = locks
        self._capacity: dict[str, int] = {}
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._locks: dict[str, tuple[str, ...]] = {}
        self._rivals: dict[str, set[str]] = {}
        self._taken: dict[str, int] = {}
        self._having: dict[str, tuple[str, ...]] = {}  # steps with a place of all they claim, in this run
        self._around: dict[str, tuple[str, ...]] = {}  # of groups and members, the groups that these are in
        self._running: dict[str, int] = {}  # steps, and groups with how many of their members
        self._notices: list[tuple[str, str, str]] = []
        self._postponed: list[str] = []
        self._plans: set[str] = set()  # groups that are other plans, within which every process counts
        self.held: dict[str, str] = {}  # steps that wait for their turn on this host, and what was said of it

    def join(self, steps: Iterable[Step]) -> None:
        """Take up steps."""
        for step in steps:
            action = step.action
            if isinstance(action, Group) and action.max_parallel:
                self._capacity[f"group {step.id}"] = action.max_parallel
            if step.lock:
                self._locks[step.id] = step.lock
            if isinstance(action, Group) and action.form == "uses":
                self._plans.add(step.id)
            names = [f"lock {name}" for name in dict.fromkeys(step.lock)]
            if step.group:
                self._around[step.id] = (step.group, *self._around.get(step.group, ()))
                names += [f"group {name}" for name in self._places(step)]
            if names:
                self._wanted[step.id] = tuple(names)
            for other in step.conflicts:
                self._rivals.setdefault(step.id, set()).add(other)
                self._rivals.setdefault(other, set()).add(step.id)

    def _places(self, step: Step) -> list[str]:
        """Return the groups in which a step takes a place: each instance takes one, and in a plan each process."""
        is_group = isinstance(step.action, Group)
        return [
            name
            for number, name in enumerate(self._around[step.id])
            if (not is_group if name in self._plans else number == 0)
        ]

    def open(self, group: str) -> bool:
        """Give a group its place in the one around it, when there is one; otherwise keep it for `recall`."""
        if any(self._taken.get(claim, 0) >= self._room(claim) for claim in self._wanted.get(group, ())):
            self._postponed.append(group)
            return False
        self._reserve(group)
        return True

    def recall(self) -> list[str]:
        """Return the groups that were kept, to be looked at again."""
        found, self._postponed = self._postponed, []
        return found

    def take(self, name: str) -> bool:
        """Give a step all that it claims, when that can be had now."""
        if not self.is_free(name):
            return False
        self._reserve(name)
        locks = self._locks.get(name)
        if locks and self._host is not None:
            told = self._host.claim(name, locks)
            if told:
                if self.held.get(name) != told:
                    self._notices.append((name, ", ".join(locks), told))
                self.held[name] = told
                return False
            self.held.pop(name, None)
        for each in (name, *self._around.get(name, ())):
            self._running[each] = self._running.get(each, 0) + 1
        return True

    def is_free(self, name: str) -> bool:
        """Say whether nothing of this run keeps a step from what it claims; a group is its members that run."""
        if any(self._running.get(other, 0) for other in self._rivals.get(name, ())):
            return False
        return name in self._having or all(
            self._taken.get(claim, 0) < self._room(claim) for claim in self._wanted.get(name, ())
        )

    def _reserve(self, name: str) -> None:
        if name in self._having:
            return
        wanted = self._having[name] = self._wanted.get(name, ())
        for claim in wanted:
            self._taken[claim] = self._taken.get(claim, 0) + 1

    def _room(self, claim: str) -> float:
        kind, _, name = claim.partition(" ")
        return self._slots.get(name, _ALONE) if kind == "lock" else self._capacity.get(claim, float("inf"))

    def give(self, name: str) -> None:
        """Take back what a step has; nothing when it has nothing."""
        for each in (name, *self._around.get(name, ())) if self._running.get(name, 0) else ():
            self._running[each] -= 1
        self.held.pop(name, None)
        for claim in self._having.pop(name, ()):
            self._taken[claim] -= 1
        if name in self._locks and self._host is not None:
            self._host.release(name)

    def forget(self) -> None:
        """Give up every place in a line: nothing more is to start."""
        for name in list(self.held):
            self.give(name)

    def notices(self) -> list[tuple[str, str, str]]:
        """Return who began to wait since the last call, or waits for somebody else: step, locks, what is said of it."""
        found, self._notices = self._notices, []
        return found

    @property
    def patience(self) -> float:
        """Seconds after which to try again, for who waits for others on this host."""
        return self._host.patience if self._host is not None else 0.0
