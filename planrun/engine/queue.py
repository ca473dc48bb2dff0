"""Which steps are ready, and in which order they start under each of the four schedules."""

from __future__ import annotations

from planrun.model.lifecycle import judge, weigh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import TypeVar

    from planrun.engine.claims import Claims
    from planrun.model.lifecycle import Judgement
    from planrun.model.plan import Edge, Schedule, Step
    from planrun.model.state import RunState
    from planrun.ports import Locks

    Entry = TypeVar("Entry", bound=tuple[float, *tuple[object, ...]])


class Frontier:
    """The steps of one section whose edges are settled, by counters: no step is scanned twice.

    A `failed` or `done` edge is settled by the end of a step. An `ok` or `completed` edge is settled when the step is
    resolved: it ended and, if it failed and nothing else tolerates that, every step that recovers it ended too.
    An `open` edge is settled when the step opened or is resolved. A group that is open becomes ready again when all
    its members have ended. `unevaluated`: steps that ended and whose dependents must not be evaluated yet.
    """

    def __init__(self, steps: Iterable[Step], state: RunState, unevaluated: Collection[str] = ()) -> None:
        self._state = state
        self._waits: dict[str, int] = {}
        self._on_end: dict[str, list[str]] = {}
        self._on_resolved: dict[str, list[str]] = {}
        self._on_open: dict[str, list[str]] = {}
        self._handlers: dict[str, int] = {}
        self._members: dict[str, int] = {}  # of each group, how many have not ended
        inside = {step.id: step for step in steps}
        self.open = len(inside)  # steps that have not ended
        self.ready: list[str] = []  # all edges settled, not evaluated yet; file order
        for step in inside.values():
            self._enter(step, [edge for edge in step.edges if edge.on in inside])
        for name in inside:
            if state.steps[name].ended and name not in unevaluated:
                self.settle(name)
        for name in inside:
            if state.steps[name].opened and not state.steps[name].ended:
                self.mark_open(name)

    def _enter(self, step: Step, edges: Sequence[Edge]) -> None:
        self._await(step.id, edges)
        for failed in step.recovers:
            self._handlers[failed] = self._handlers.get(failed, 0) + 1
        if step.group:
            self._members[step.group] = self._members.get(step.group, 0) + 1
        if not edges:
            self.ready.append(step.id)

    def _await(self, name: str, edges: Sequence[Edge]) -> None:
        self._waits[name] = len(edges)
        for edge in edges:
            waiting = self._on_resolved if edge.kind in ("ok", "completed") else self._on_end
            if edge.kind in ("open", "same"):
                waiting = self._on_open
            waiting.setdefault(edge.on, []).append(name)

    def defer(self, step: Step, edges: Sequence[Edge]) -> bool:
        """Let a step whose own edges are settled wait for further ones; False when those are settled, too."""
        left = [edge for edge in edges if not self._is_settled(edge)]
        self._await(step.id, left)
        return bool(left)

    def join(self, group: str, members: Iterable[Step]) -> None:
        """Add members of a group that is not open yet."""
        self._members.setdefault(group, 0)
        for step in members:
            self.open += 1
            self._enter(step, [edge for edge in step.edges if edge.on == group or not self._is_settled(edge)])

    def _is_settled(self, edge: Edge) -> bool:
        """Whether an edge is settled already."""
        other = self._state.steps[edge.on]
        if edge.kind in ("open", "same") and other.opened:
            return True
        return other.ended and (edge.kind in ("failed", "done") or not self._is_recoverable(edge.on))

    def remove(self, member: Step) -> None:
        """Remove a member that its group, which is not open yet, no longer has; the state does not have it any more."""
        self.open -= 1
        self._members[member.group] -= 1
        for waiting in (self._on_open, self._on_end, self._on_resolved):
            for edge in member.edges:
                if member.id in waiting.get(edge.on, ()):
                    waiting[edge.on].remove(member.id)

    def mark_open(self, name: str) -> None:
        """Record that a step opened; a group whose members have all ended already is ready again."""
        self._release(self._on_open.pop(name, ()))
        if self._state.steps[name].step.kind == "group" and not self._members.get(name, 0):
            self.ready.append(name)

    def settle(self, name: str) -> None:
        """Record that a step ended; what waited for nothing else becomes ready."""
        self.open -= 1
        group = self._state.steps[name].step.group
        if group and group in self._members:
            self._members[group] -= 1
            if not self._members[group] and self._state.steps[group].opened:
                self.ready.append(group)
        self._release(self._on_end.pop(name, ()))
        if not self._is_recoverable(name):
            self._release(self._on_open.pop(name, ()))
            self._release(self._on_resolved.pop(name, ()))
        for failed in self._state.steps[name].step.recovers:
            self._handlers[failed] -= 1
            if self._state.steps[failed].ended and not self._is_recoverable(failed):
                self._release(self._on_open.pop(failed, ()))
                self._release(self._on_resolved.pop(failed, ()))

    def judge(self, edges: Iterable[Edge]) -> Judgement:
        """Return what the edges of a step, all of them settled, decide."""
        return weigh([self._judgement(edge) for edge in edges])

    def waits_for(self, name: str, count: int) -> bool:
        """Return whether exactly `count` edges of a step are not settled yet."""
        return self._waits[name] == count

    def unsatisfied(self, edges: Iterable[Edge]) -> str:
        """Name the steps whose edges are not satisfied, and how they ended."""
        named = []
        for edge in edges:
            if self._judgement(edge) != "satisfied":
                other = self._state.steps[edge.on]
                named.append(f"{edge.on} {other.status}" + (f" ({other.reason})" if other.reason else ""))
        return ", ".join(named)

    def _judgement(self, edge: Edge) -> Judgement:
        other = self._state.steps[edge.on]
        return judge(edge.kind, other.status, other.reason, self._state.tolerance(edge.on))

    def _is_recoverable(self, name: str) -> bool:
        """Whether a step failed and a handler may still recover it."""
        if not self._handlers.get(name, 0):
            return False
        step = self._state.steps[name]
        return step.status == "failed" and step.on_failure != "continue"

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            self._waits[name] -= 1
            if self._waits[name] == 0:
                self.ready.append(name)


class Queue:
    """The ready steps of a section; `take` hands out the next one that may start now.

    dag: longest remaining path first, then file order. levels: file order within a level, and the next level
    when everything above has ended. batches: file order, consecutive `parallel: true` steps together, any
    other alone. sequential: one after the other in file order. A `parallel: false` step runs alone anywhere.
    With `claims`, steps behind a step that cannot get its claims may start first, as far as the schedule allows.
    """

    claims: Claims | None = None

    def __init__(
        self, steps: Sequence[Step], schedule: Schedule, jobs: int, seconds: Mapping[str, float]
    ) -> None:
        self.schedule = schedule
        self.jobs = 1 if schedule == "sequential" else jobs
        self._place: dict[str, float] = {step.id: place for place, step in enumerate(steps)}
        self._alone = {step.id for step in steps if step.parallel is False}
        self._together = {step.id for step in steps if step.parallel is True}
        self._ready: list[tuple[float, float, str]] = []
        self._returning: list[tuple[float, float, str]] = []
        self._exclusive = ""  # the step that runs alone now
        self._batch = 0  # steps of the current batch that have not started
        self._rank: Mapping[str, float] = {}
        self._level: dict[str, int] = {}
        self._unsettled: list[int] = []  # by level: steps that have not ended
        self._settled: set[str] = set()
        if schedule == "dag":
            self._rank = _weights(steps, seconds)
        elif schedule == "levels":
            from planrun.model import graph

            levels = graph.levels(graph.waits(steps))
            for number, names in enumerate(levels):
                self._unsettled.append(len(names))
                for name in names:
                    self._level[name] = number
            self._rank = {name: -level for name, level in self._level.items()}

    def bind(self, steps: Sequence[Step], slots: Mapping[str, int], locks: Locks | None) -> None:
        """Enforce locks, conflicts and `max_parallel`; `slots`: capacities of locks, where not 1."""
        if any([step.kind == "group" or step.lock or step.conflicts for step in steps]):  # noqa: C419 - half the time
            from planrun.engine.claims import claims_of  # few plans have any

            self.claims = claims_of(steps, slots, locks)

    @property
    def held(self) -> bool:
        """Whether a step waits for a lock that another run on this host holds."""
        return self.claims is not None and bool(self.claims.held)

    @property
    def retry_after(self) -> float:
        """Seconds after which to try again to get such a lock."""
        return self.claims.retry_after if self.claims is not None else 0.0

    def postponed(self) -> Sequence[str]:
        """Return the groups that could not open so far, to be evaluated again."""
        return self.claims.recall() if self.claims is not None else ()

    def notices(self) -> Sequence[tuple[str, str, str]]:
        """Return steps that wait for locks, new or with another holder since the last call: step, locks, message."""
        return self.claims.notices() if self.claims is not None else ()

    def join(self, group: str, members: Sequence[Step]) -> None:
        """Add members of a group: their place is behind it, their level is its own."""
        place, rank = self._place[group], self._rank.get(group, 0.0)
        for number, step in enumerate(members, 1):
            self._place[step.id] = place + number / (len(members) + 1)
            if step.parallel is not None:
                (self._together if step.parallel else self._alone).add(step.id)
            if self._level:
                self._level[step.id] = self._level[group]
                self._unsettled[self._level[group]] += 1
        if self.claims is not None:
            self.claims.join(members)
        if self._rank:
            self._rank = {**self._rank, **dict.fromkeys([step.id for step in members], rank)}

    def add(self, name: str) -> None:
        """Put a step whose edges and condition are satisfied into the queue."""
        push(self._ready, (-self._rank.get(name, 0.0), self._place[name], name))

    def put_back(self, name: str) -> None:
        """Put a step back whose next attempt is due; it goes before the others."""
        push(self._returning, (0.0, self._place[name], name))

    def settle(self, name: str) -> None:
        """Record that a step ended or that a service is ready; only the first call counts."""
        if name in self._level and name not in self._settled:
            self._settled.add(name)
            self._unsettled[self._level[name]] -= 1

    def is_above(self, name: str, other: str) -> bool:
        """Whether a step stands in an earlier level than another one; without levels never."""
        return self._level.get(name, 0) < self._level.get(other, 0)

    def release(self, name: str) -> None:
        """Record that an attempt of a step ended."""
        if self._exclusive == name:
            self._exclusive = ""
        if self.claims is not None:
            self.claims.give(name)

    def drop(self, name: str) -> None:
        """Remove a step that must not start any more; that is rare, so the queue is sorted again."""
        self._ready[:] = sorted([entry for entry in self._ready if entry[2] != name])
        self._returning[:] = sorted([entry for entry in self._returning if entry[2] != name])
        self.release(name)

    def clear(self) -> None:
        """Remove every step that has not started."""
        self._ready.clear()
        self._returning.clear()
        if self.claims is not None:
            self.claims.forget()

    def take(self, running: int, waiting: int) -> str | None:
        """Return the next step to start, or None.

        `running` attempts have a process, `waiting` steps are between two attempts.
        """
        if running >= self.jobs or self._exclusive:
            return None
        queue = self._returning or self._ready
        if not queue or (queue is self._ready and not self._may_go_on(running + waiting)):
            return None
        if self.claims is not None:
            claims = self.claims
            for queue in (self._returning, self._ready):
                fresh = queue is self._ready
                if fresh and (not queue or not self._may_go_on(running + waiting)):
                    return None
                entries = sorted(queue)
                if fresh and self.schedule in ("batches", "sequential"):
                    del entries[self._batch if self.schedule == "batches" else 1 :]
                for entry in entries:
                    name = entry[2]
                    if name in self._alone and running:
                        return None  # others must not start before it, or it would never start
                    if not claims.take(name):
                        continue
                    if name in self._alone:
                        self._exclusive = name
                    if fresh and self.schedule == "batches":
                        self._batch -= 1
                    queue[:] = sorted([other for other in queue if other is not entry])
                    return name
            return None
        name = queue[0][2]
        if name in self._alone:
            if running:
                return None  # others must not start before it, or it would never start
            self._exclusive = name
        if queue is self._ready and self.schedule == "batches":
            self._batch -= 1
        pop(queue)
        return name

    def _may_go_on(self, active: int) -> bool:
        if self.schedule == "dag":
            return True
        if self.schedule == "levels":
            current = next((level for level, count in enumerate(self._unsettled) if count), 0)
            return self._level[self._ready[0][2]] == current
        if self.schedule == "sequential":
            return active == 0
        if active == 0:
            ordered = sorted(self._ready)
            count = 0
            while count < len(ordered) and ordered[count][2] in self._together:
                count += 1
            self._batch = max(count, 1)
        return self._batch > 0


def _weights(steps: Sequence[Step], seconds: Mapping[str, float]) -> Mapping[str, float]:
    """Return the longest remaining path of each step; empty when all are equal.

    A step without history counts as the median of the others.
    """
    if not seconds and not any(step.edges for step in steps):
        return {}
    from planrun.model import graph  # only plans with edges need it

    known = sorted(seconds.values())
    default = known[(len(known) - 1) // 2] if known else 1.0
    if known and any([step.kind == "group" for step in steps]):  # noqa: C419 - half the time
        # A group takes no time of its own; members without history count as the median.
        seconds = {**dict.fromkeys([step.id for step in steps if step.kind == "group"], 0.0), **seconds}
    return graph.weights(graph.waits(steps), seconds, default)


def push(heap: list[Entry], entry: Entry) -> None:
    """Push an entry onto a heap; an empty one needs no `heapq`, which takes 0.4 ms to import."""
    if heap:
        from heapq import heappush

        heappush(heap, entry)
    else:
        heap.append(entry)


def pop(heap: list[Entry]) -> Entry:
    """Pop the smallest entry of a heap that is not empty."""
    if len(heap) == 1:
        return heap.pop()
    from heapq import heappop

    return heappop(heap)
