"""Which steps have all their edges settled, by counters: nothing is ever scanned twice; and what their edges say."""

from __future__ import annotations

from planrun.model.lifecycle import judge, weigh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from planrun.model.lifecycle import Judgement
    from planrun.model.plan import Edge, Step
    from planrun.model.state import RunState


class Frontier:
    """The waiting relation of one section while it runs.

    A `failed` or `done` edge waits for the end of a step. An `ok` or `completed` edge waits until the step is
    resolved: it ended and, if it failed and nothing else tolerates that, every step that recovers it ended too.
    An `open` edge waits until the step was opened, or
    resolved. A group that is open becomes loose once more when all its
    members have ended. `held` are steps that ended, and whose end nobody is to look at yet.
    """

    def __init__(self, steps: Iterable[Step], state: RunState, held: Collection[str] = ()) -> None:
        self._state = state
        self._waits: dict[str, int] = {}
        self._on_end: dict[str, list[str]] = {}
        self._on_resolved: dict[str, list[str]] = {}
        self._on_open: dict[str, list[str]] = {}
        self._handlers: dict[str, int] = {}
        self._members: dict[str, int] = {}  # of each group, how many have not ended
        inside = {step.id: step for step in steps}
        self.open = len(inside)
        self.loose: list[str] = []  # settled edges, not looked at yet; file order
        for step in inside.values():
            self._enter(step, [edge for edge in step.edges if edge.on in inside])
        for name in inside:
            if state.steps[name].ended and name not in held:
                self.settle(name)
        for name in inside:
            if state.steps[name].opened and not state.steps[name].ended:
                self.release(name)

    def _enter(self, step: Step, edges: Sequence[Edge]) -> None:
        self._waits[step.id] = len(edges)
        for edge in edges:
            waiting = self._on_resolved if edge.kind in ("ok", "completed") else self._on_end
            if edge.kind in ("open", "same"):
                waiting = self._on_open
            waiting.setdefault(edge.on, []).append(step.id)
        for failed in step.recovers:
            self._handlers[failed] = self._handlers.get(failed, 0) + 1
        if step.group:
            self._members[step.group] = self._members.get(step.group, 0) + 1
        if not edges:
            self.loose.append(step.id)

    def join(self, group: str, members: Iterable[Step]) -> None:
        """Take up the members of a group that were not known before; it is not open yet."""
        self._members.setdefault(group, 0)
        for step in members:
            self.open += 1
            self._enter(step, [edge for edge in step.edges if edge.on == group or not self._is_past(edge)])

    def _is_past(self, edge: Edge) -> bool:
        """Whether nothing more is to come that an edge waits for."""
        found = self._state.steps[edge.on]
        if edge.kind in ("open", "same") and found.opened:
            return True
        return found.ended and (edge.kind in ("failed", "done") or not self._held(edge.on))

    def leave(self, member: Step) -> None:
        """Forget a member that its group, which is not open yet, does not have any more; the state has forgotten it."""
        self.open -= 1
        self._members[member.group] -= 1
        for waiting in (self._on_open, self._on_end, self._on_resolved):
            for edge in member.edges:
                if member.id in waiting.get(edge.on, ()):
                    waiting[edge.on].remove(member.id)

    def release(self, name: str) -> None:
        """Take note that a step was opened; a group all of whose members have ended already is loose again."""
        self._release(self._on_open.pop(name, ()))
        if self._state.steps[name].step.kind == "group" and not self._members.get(name, 0):
            self.loose.append(name)

    def settle(self, name: str) -> None:
        """Take note that a step ended; what waited for nothing else becomes loose."""
        self.open -= 1
        group = self._state.steps[name].step.group
        if group and group in self._members:
            self._members[group] -= 1
            if not self._members[group] and self._state.steps[group].opened:
                self.loose.append(group)
        self._release(self._on_end.pop(name, ()))
        if not self._held(name):
            self._release(self._on_open.pop(name, ()))
            self._release(self._on_resolved.pop(name, ()))
        for failed in self._state.steps[name].step.recovers:
            self._handlers[failed] -= 1
            if self._state.steps[failed].ended and not self._held(failed):
                self._release(self._on_open.pop(failed, ()))
                self._release(self._on_resolved.pop(failed, ()))

    def judge(self, step: Step) -> Judgement:
        """Say what the edges of a step, all of them settled, make of it."""
        return weigh([self._judgement(edge) for edge in step.edges])

    def waits_for(self, name: str, count: int) -> bool:
        """Say whether so many edges of a step are not settled yet."""
        return self._waits[name] == count

    def culprits(self, step: Step) -> str:
        """Name what an unsatisfied step was waiting for, and how that ended."""
        named = []
        for edge in step.edges:
            if self._judgement(edge) != "satisfied":
                found = self._state.steps[edge.on]
                named.append(f"{edge.on} {found.status}" + (f" ({found.reason})" if found.reason else ""))
        return ", ".join(named)

    def _judgement(self, edge: Edge) -> Judgement:
        found = self._state.steps[edge.on]
        return judge(edge.kind, found.status, found.reason, self._state.tolerance(edge.on))

    def _held(self, name: str) -> bool:
        """Whether a failure still has a handler that may recover it."""
        if not self._handlers.get(name, 0):
            return False
        found = self._state.steps[name]
        return found.status == "failed" and found.on_failure != "continue"

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            self._waits[name] -= 1
            if self._waits[name] == 0:
                self.loose.append(name)
