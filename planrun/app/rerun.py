"""Decide which steps of a resumed run rerun, each with the reason."""

from __future__ import annotations

from planrun.actions.containers import shared_name
from planrun.actions.render import parts_of
from planrun.engine.services import users
from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.model import events as ev
from planrun.model import graph
from planrun.model.groups import unrolled
from planrun.model.progress import LEFT_OUT, PATCH
from planrun.model.rollback import awaits_replan
from planrun.plan.compile.canonical import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

ASKED = "asked for"
CLEANUP = "it belongs to every end of a run"
# Reasons by part of a fingerprint.
_PARTS = {
    "argv": "its command changed",
    "checks": "its checks changed",
    "container": "its container changed",
    "image": "its image changed",
    "env": "its environment changed",
    "proofs": "what has to hold afterwards changed",
    "question": "its question changed",
    "scripts": "the scripts it runs changed",
    "workdir": "its folder changed",
}
_NAMED = 5  # names shown


def lost_attempts(state: RunState) -> list[str]:
    """Return the steps whose last attempt has no end."""
    states = [*state.steps.items(), *state.undoing.items()]
    return [name for name, step in states if step.attempts and step.attempts[-1].ended is None]


def given_up(run: str, name: str, at: str) -> ev.StepMoved:
    """Return the failure of a step with `idempotent: false` whose lost attempt may have had its effect.

    `run`: the one in which `retry` can rerun it; empty: none can.
    """
    message = "its last attempt has no end and it is not idempotent"
    if run:
        message += f"; `planrun retry {run} {name}` runs it again"
    return ev.StepMoved(at=at, step=name, status="failed", reason="lost", message=message)


def refusal(step_state: StepState) -> str:
    """Return who or what refused a step for good, as a clause about it; empty when it was not refused."""
    answered = step_state.gate.answered if step_state.gate else None
    by = f" by {answered.by}" if answered and answered.by else ""
    if step_state.status == "failed" and step_state.reason == "denied":
        rejected = answered is not None and answered.answer in ("rejected", False)
        said = f"was rejected{by}" if rejected else "was denied"
        reason = answered.reason if rejected and answered else step_state.message
        return said + (f": {reason}" if reason else "")
    if (
        step_state.status == "skipped"
        and step_state.reason == "approval"
        and answered
        and answered.answer == LEFT_OUT
    ):
        return f"was left out{by} when the run was approved"
    return ""


class RerunPlan:
    """The steps to rerun: `before` is the state when the run stopped, `after` the same under the plan to continue with.

    Both are one state when the plan is the same. `selected` are the steps that may run, None: all. `keeps_failures`:
    failed and blocked steps stay so. `held` are failures to replan. `holds` evaluates a condition, `steps` renders.
    """

    def __init__(
        self,
        before: RunState,
        after: RunState,
        steps: Steps,
        *,
        selected: frozenset[str] | None,
        holds: Callable[[Step, RunState], bool],
    ) -> None:
        self._before = before
        self._after = after
        self._steps = steps
        self._selected = selected
        self._holds = holds
        self.keeps_failures = False
        self.held: tuple[str, ...] = ()
        self.spent: dict[
            str, str
        ] = {}  # not idempotent, so they do not run again, with what would be the reason
        self.emptied: dict[
            str, list[str]
        ] = {}  # finished steps by the shared container that has lost their work
        self._lists: dict[
            str, dict[str, Any] | None
        ] = {}  # of groups whose members were listed during the run
        self._lost = frozenset(lost_attempts(before))
        self._again: dict[str, str] = {}
        self._restarted: set[str] = set()  # services that restart for others, and cause no rerun
        self._before_each = graph.waits(after.plan.main())
        self._links = _links(after.plan.main())

    def of_changes(self) -> dict[str, str]:
        """Return the steps that a resumed run must rerun, in file order, each with the reason.

        A step is reused when it completed, was skipped, or failed and was tolerated or recovered, as long as it would
        do the same again and depends on no step that reruns. `finally` steps always rerun.
        """
        return self._walk(
            lambda step_state: (
                self._unfinished(step_state)
                or self._dependence(step_state.step)
                or self._revalued(step_state.step)
                or self._change(step_state)
            )
        )

    def of_request(self, wanted: Iterable[str]) -> dict[str, str]:
        """Return the `wanted` steps, their dependents, and the unfinished steps; each with the reason."""
        asked = frozenset([each for name in wanted for each in (name, *self._members(name))])
        again = self._walk(
            lambda step_state: (
                ASKED
                if step_state.step.id in asked
                else self._interruption(step_state) or self._dependence(step_state.step)
            )
        )
        return {name: ASKED if name in asked else why for name, why in again.items()}

    def _members(self, name: str) -> tuple[str, ...]:
        step = self._after.steps[name].step
        return step.grouping.members if step.kind == "group" else ()

    def _walk(self, why: Callable[[StepState], str]) -> dict[str, str]:
        self._walk_once(why)
        if gone := self._gone():
            groups = {self._after.steps[name].step.group for name in gone}
            self._restarted |= {
                *gone,
                *groups - self._again.keys(),
            }  # they cause no other rerun
            self._again.clear()
            self._walk_once(lambda step_state: why(step_state) or gone.get(step_state.step.id, ""))
        self._again |= self._needed()
        self._again.update((step.id, CLEANUP) for step in self._after.plan.cleanup())
        return {
            name: self._again[name]
            for name, step_state in self._after.steps.items()
            if name in self._again and step_state.status != "pending" and not step_state.at_gate
        }

    def _walk_once(self, why: Callable[[StepState], str]) -> None:
        after = self._after
        for name in graph.order(self._before_each):
            step_state = after.steps[name]
            if name in self.held or (name in after.replaced and step_state.ended):
                # Other steps replace it. A blocked one is skipped instead, as if it had not ended.
                if step_state.status in ("blocked", "cancelled"):
                    self._again[name] = "others take its place"
                continue
            if step_state.step.kind == "group":
                reason = self._renewal(step_state)
            else:
                reason = self._changed_refusal(step_state) if refusal(step_state) else why(step_state)
                if reason not in ("", ASKED) and name not in self._lost and step_state.is_spent:
                    self.spent[name] = reason
                    continue
            if reason and step_state.step.service is not None and self._is_same(step_state, reason):
                self._restarted.add(name)
            if reason:
                self._again[name] = reason

    def _gone(self) -> dict[str, str]:
        """Return the finished setup steps of shared containers in which steps are left to run, with the reason.

        Where a container has no setup step, its finished steps go to `emptied`: the new container lacks their changes.
        """
        self.emptied.clear()
        shared = {
            step.id: step.container
            for step in self._after.plan.main()
            if step.container is not None and step.container.shared
        }
        if not shared:
            return {}
        states = self._after.steps
        containers = {name: shared_name(states[name].step) for name in shared}
        due = {containers[name] for name in shared if name in self._again or not states[name].ended}
        result = {}
        for name, container in shared.items():
            if containers[name] in due and states[name].status == "completed" and name not in self._again:
                if container.setup:
                    result[name] = f'the container "{container.shared}" is new'
                else:
                    self.emptied.setdefault(container.shared, []).append(name)
        for container in shared.values():
            if container.setup:
                self.emptied.pop(container.shared, None)
        return result

    def _renewal(self, step_state: StepState) -> str:
        """Return why a group opens again: a dependency or a member reruns, or it never was open.

        Its members precede it in the order, and its list counts as a dependency.
        """
        action = step_state.step.grouping
        if changed := self._relisted(step_state.step):
            return changed
        members = [name for name in action.members if name in self._again]
        if members or (step_state.status not in ("completed", "skipped", "failed")):
            return (
                f"{members[0]} runs again" if members else self._interruption(step_state) or step_state.status
            )
        dependence = self._dependence(step_state.step)
        if dependence or step_state.status == "completed":
            return dependence
        if step_state.status == "skipped":
            return self._decision(step_state)
        return "" if step_state.reason == "members" else self._unfinished(step_state)

    def _relisted(self, group: Step) -> str:
        """Return why a group gets other members than those listed when it opened."""
        opened = self._after.steps[group.id].opened
        if opened is None or self._after is self._before or group.grouping.template is None:
            return ""
        items = self._items(group)
        if items is None:
            return "its list has no value any more"
        return "" if list(items.values()) == list(opened.items) else "its list changed"

    def _items(self, group: Step) -> dict[str, Any] | None:
        """Return the current items of a group, by instance; None when they cannot be evaluated."""
        if group.id not in self._lists:
            try:
                items = self._steps.opening(group, self._after).get("items", ())
                self._lists[group.id] = {each["instance"]: each for each in items}
            except EvaluationError:
                self._lists[group.id] = None
        return self._lists[group.id]

    def _revalued(self, step: Step) -> str:
        """Return why a member has another value under the same name."""
        group = self._after.steps[step.group].step if step.group else None
        if group is None or self._after is self._before or group.kind != "group":
            return ""
        if group.grouping.template is None or self._after.steps[group.id].opened is None:
            return ""
        items = self._items(group)
        made = items.get(step.instance) if items else None
        own = {"matrix": step.matrix} if step.matrix else {"item": step.item[0]} if step.item else {}
        return "" if made is None or {"instance": step.instance, **own} == made else "its values changed"

    def _changed_refusal(self, step_state: StepState) -> str:
        """Return why a refused step is judged again: only when it changed."""
        if self._after is self._before or plain(step_state.step) == plain(
            self._before.steps[step_state.step.id].step
        ):
            return ""
        return "it changed since it was refused"

    def _interruption(self, step_state: StepState) -> str:
        """Return why an unfinished step reruns; a paused one continues with its next attempt instead."""
        if step_state.step.id in self._lost:
            return "lost"
        if step_state.undone:
            return "it was undone" if step_state.undone == "completed" else "undoing it was begun"
        return "interrupted" if step_state.status in ("pending", "running", "waiting") else ""

    def _unfinished(self, step_state: StepState) -> str:
        interrupted = self._interruption(step_state)
        if interrupted or step_state.status in ("completed", "skipped", "paused"):
            return interrupted
        if self.keeps_failures and not awaits_replan(self._before, step_state):
            return ""
        if step_state.status != "failed":
            return step_state.status
        if step_state.reason == "denied":
            return ""
        if step_state.reason == "lost" and not step_state.step.idempotent:
            return ""  # only the user can know whether it may run again
        ending = self._before.ending
        cut_short = ending is not None and ending.why == "deadline" and step_state.reason == "timeout"
        return "failed" if cut_short or self._after.tolerance(step_state.step.id) is None else ""

    def _is_same(self, step_state: StepState, reason: str) -> bool:
        """Whether a service restarts unchanged, so that its users need not rerun."""
        if reason == ASKED or self._dependence(step_state.step):
            return False
        return not step_state.attempts or not self._change(step_state)

    def _needed(self) -> dict[str, str]:
        """Return the services that pending or rerun steps need: a service is never finished."""
        services = [step for step in self._after.plan.main() if step.service is not None]
        if not services:
            return {}
        result = {}
        for step in services:
            if step.id in self._again or self._after.steps[step.id].status not in ("completed", "failed"):
                continue
            for name in users(self._after.plan.main(), step.id):
                if name in self._again or not self._after.steps[name].ended:
                    result[step.id] = f"{name} needs it"
                    break
        return result

    def _dependence(self, step: Step) -> str:
        on = next(
            (name for name in self._links[step.id] if name in self._again and name not in self._restarted), ""
        )
        if not on:
            return ""
        verb = "has yet to run" if self._after.steps[on].status == "pending" else "runs again"
        return f"depends on {on}, which {verb}"

    def _change(self, step_state: StepState) -> str:
        """Return why a finished step would end differently now; empty when it would not."""
        if step_state.status == "skipped":
            return self._decision(step_state) if self._after is not self._before else ""
        reasons = [*self._parts(step_state), *self._inputs(step_state)]
        if self._after is not self._before:
            step = step_state.step
            old = self._before.steps[step.id].step
            result = []
            if _changed(step, old, "outputs"):
                result.append("its outputs changed")
            if step.action.guards:
                read = {
                    str(reference.path[1])
                    for formula in step.formulas()
                    for reference in references(formula)
                    if reference.path[0] == "params" and len(reference.path) > 1
                }
                before, after = self._before.params, self._after.params
                other = sorted(name for name in read if before.get(name) != after.get(name))
                if other:
                    result.append(f"the parameters it reads changed: {_names(other)}")
            reasons += result
        return ", ".join(reasons)

    def _decision(self, step_state: StepState) -> str:
        """Return why a skipped step must be decided again."""
        step = step_state.step
        old = self._before.steps[step.id].step
        if _changed(step, old, "edges"):
            return "its dependencies changed"
        if _changed(step, old, "condition"):
            return "its condition changed"
        if step_state.reason == "replaced_by_replan":
            return "nothing takes its place any more"
        if step_state.reason == "not_selected":
            return "now selected" if self._selected is None or step.id in self._selected else ""
        if step_state.reason != "condition":
            return ""
        try:
            return "its condition is true now" if self._holds(step, self._after) else ""
        except EvaluationError:
            return "its condition has no value now"

    def _parts(self, step_state: StepState) -> list[str]:
        """Return which parts of the fingerprint changed."""
        if not step_state.attempts:
            return []
        works = [each for each in step_state.attempts if not each.started.fingerprint.startswith(PATCH)]
        last = (works or step_state.attempts)[-1]
        old = parts_of(last.started.fingerprint)
        new = parts_of(self._steps.fingerprint(step_state.step, last.n, self._after))
        if old and not new:
            return ["its values cannot be filled in any more"]
        return [
            _PARTS.get(name, f"its {name} changed") + (self._variables(step_state) if name == "env" else "")
            for name in {**old, **new}
            if old.get(name) != new.get(name) and (name != "image" or name in old)  # it was unknown
        ]

    def _inputs(self, step_state: StepState) -> list[str]:
        """Return which recorded input files changed."""
        ended = step_state.attempts[-1].ended if step_state.attempts and step_state.restored is None else None
        if ended is None or not step_state.step.reads_files:
            return []
        before = {row["path"]: row["sha256"] for row in ended.files if row["op"] == "read"}
        is_whole = all(row["op"] != "more" for row in ended.files)
        try:
            now = self._steps.read_now(step_state.step, self._after)
        except EvaluationError as error:
            return [str(error)]
        gone = [f"{path} is gone" for path in before if path not in now]
        changed = [f"{path} changed" for path, digest in now.items() if before.get(path, digest) != digest]
        new = [f"{path} is new" for path in now if path not in before and is_whole]
        differences = [*changed, *gone, *new]
        return [f"its input {_names(differences)}"] if differences else []

    def _variables(self, step_state: StepState) -> str:
        """Return `: NAME, …`, the changed variables of the plan; the caller's old ones are not recorded."""
        if self._after is self._before:
            return ""
        attempt = step_state.attempts[-1].n
        old = self._steps.added(self._before.steps[step_state.step.id].step, attempt, self._before)
        new = self._steps.added(step_state.step, attempt, self._after)
        names = sorted(name for name in {**old, **new} if old.get(name) != new.get(name))
        return f": {_names(names)}" if names else ""


def _links(steps: Sequence[Step]) -> dict[str, list[str]]:
    """Return the dependencies of each step: a member has those of its group, a group does not depend on its members."""
    if not any(step.group for step in steps):
        return {step.id: [edge.on for edge in step.edges] for step in steps}
    found = unrolled(steps)
    members = {step.id: step.grouping.members for step in steps if step.kind == "group"}
    return {name: [on for on, _ in pairs if on not in members.get(name, ())] for name, pairs in found.items()}


def _changed(step: Step, old: Step, field: str) -> bool:
    """Whether the canonical form of a field changed."""
    return bool(plain(step).get(field) != plain(old).get(field))


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
