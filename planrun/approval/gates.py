"""The gates of a run: each step that wants to start is judged by policies, approvals and answers."""

from __future__ import annotations

from planrun.actions.environment import credentials_in
from planrun.approval.assess import as_started, as_surrounded, as_written
from planrun.approval.policies import facts_of
from planrun.approval.rules import decide
from planrun.model import events as ev
from planrun.model.gates import LEFT_OUT
from planrun.model.groups import chain
from planrun.model.job import Passage
from planrun.model.plan import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from planrun.actions.prepare import Place
    from planrun.approval.control import Door
    from planrun.approval.questions import Questions
    from planrun.approval.rules import Decision, Layers
    from planrun.clock import SystemClock
    from planrun.model.gates import Gate
    from planrun.model.job import Job
    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState
    from planrun.risk.classifier import Risk

    class Approvals(Protocol):
        """The approval files that the caller named."""

        def covers(self, step: str, digest: str) -> bool:
            """Say whether one of them covers a step."""

        def cover(self, step: str, digest: str) -> str:
            """Return the id of an approval that covers a step and take note of its use; "" when none does."""

        def approver(self, approval: str) -> str:
            """Return whose word an approval is."""

        def why_not(self, step: str, digest: str) -> str:
            """Say in words why none of them covers a step; "" when there are none."""


class Judges:
    """Who has a say about the steps of one run."""

    def __init__(self, layers: Layers, context: Mapping[str, Any], digest: str) -> None:
        self.layers = layers
        self.context = context
        self.digest = digest
        self.questions: Questions | None = None
        self.approvals: Approvals | None = None
        self.door: Door | None = None


class PolicyGates:
    """The port `Gates` of the engine."""

    def __init__(self, judges: Judges, clock: SystemClock, place: Place) -> None:
        self._judges = judges
        self._clock = clock
        self._place = place
        self._known: dict[tuple[object, ...], Risk] = {}
        self._inherited = credentials_in(place.env)

    def judge(self, step: Step, state: RunState, job: Job | None) -> Passage:
        """Say whether a step may start as `job` says; None: it starts no process."""
        judges = self._judges
        told = self._about_this(state.steps[step.id].gate)
        # The digest, which no answer to a question has, tells it from an option of the same name.
        if told is not None and told.answer == LEFT_OUT:
            by = f" by {told.by}" if told.by else ""
            return Passage(answer="skip", reason=f"left out{by}")
        if job is None:
            found = as_written(step)
            decision = self._decide(step, found)
        else:
            found, risk = as_started(step, job, self._place, self._known)
            decision = self._decide(step, found)
            if self._is_for_class(step, found, decision):
                around, job = as_surrounded(found, risk, job, self._place.workspace)
                decision = decision if around is found else self._decide(step, around)
                found = around
        level = str(found["risk"])
        if step.kind in ("ask", "decide") and decision.answer == "ask":  # it asks somebody anyway
            decision = decision.but(answer="allow")
        if decision.answer == "deny":
            return Passage(answer="deny", risk=level, rule=decision.rule, reason=decision.reason)
        if decision.answer == "ask":
            return self._approval(step, state, decision, level)
        if step.kind in ("ask", "decide") and judges.questions is not None:
            return judges.questions.judge(step, state)
        passage = Passage(answer="allow", risk=level, rule=decision.rule)
        return passage if job is None else passage.but(job=job)

    def _decide(self, step: Step, found: dict[str, Any]) -> Decision:
        if step.undoes:  # a rule about a step is about undoing it, too
            step = step.but(id=step.undoes)
        facts = facts_of(step, self._judges.context, {**found, "inherited": self._inherited})
        return decide(facts, self._judges.layers)

    def _is_for_class(self, step: Step, found: dict[str, Any], decision: Decision) -> bool:
        """Whether a step may start, and might not if its class were the highest."""
        return decision.answer == "allow" and self._decide(step, {**found, "risk": "high"}).answer != "allow"

    def _approval(self, step: Step, state: RunState, decision: Decision, level: str) -> Passage:
        """Look for an approval, or ask for one."""
        gate = state.steps[step.undoes or step.id].gate  # who approved a step approved its undoing
        answered = self._about_this(gate) or self._about_this(state.gate)
        if answered is not None and answered.answer == "approved":
            rule = f"approval:{answered.approval}" if answered.approval else f"approval:{answered.via}"
            return Passage(answer="allow", risk=level, rule=rule)
        if answered is not None:
            by = f" by {answered.by}" if answered.by else ""
            why = f": {answered.reason}" if answered.reason else ""
            return Passage(answer="deny", risk=level, rule=decision.rule, reason=f"rejected{by}{why}")
        names = (step.undoes or step.id, *chain(state, step.undoes or step.id))
        return self._new_approval(step, decision, level, names)

    def _about_this(self, gate: Gate | None) -> ev.GateAnswered | None:
        """Return what was said about exactly what would run; what was said about another plan says nothing."""
        answered = gate.answered if gate else None
        return answered if answered is not None and answered.digest == self._judges.digest else None

    def _new_approval(self, step: Step, decision: Decision, level: str, names: tuple[str, ...]) -> Passage:
        """Look for an approval of one of these, the step and the groups around it, or ask."""
        at, judges = self._clock.stamp(), self._judges
        approvals = judges.approvals
        found = (approvals.cover(name, judges.digest) for name in names) if approvals else ()
        used = next(filter(None, found), "")
        reason = decision.reason
        if approvals and not used and (why := approvals.why_not(names[0], judges.digest)):
            reason = f"{reason}; {why}"
        opened = ev.GateOpened(
            at=at, step=step.id, kind="approval", risk=level, rule=decision.rule, reason=reason
        )
        if not used:
            return Passage(answer="ask", risk=level, rule=decision.rule, reason=reason, opened=opened)
        answered = self._granted(step.id, used, at)
        return Passage(answer="allow", risk=level, rule=f"approval:{used}", opened=opened, answered=answered)

    def heard(self, state: RunState) -> list[ev.GateAnswered]:
        """Return what people answered since the last call, checked."""
        return self._judges.door.heard(state) if self._judges.door else []

    def judge_for(self, digest: str) -> None:
        """Judge for another version of the plan from now on: what was approved of an earlier one says nothing."""
        self._judges.digest = digest

    def failed(self, step: Step, state: RunState) -> Passage:
        """Say what is to become of a failed step that asks for it."""
        assert self._judges.questions is not None
        return self._judges.questions.failed(step, state)

    def close(self) -> None:
        """Let nobody answer any more."""
        if self._judges.door:
            self._judges.door.close()

    def before_all(self, plan: Plan, selected: frozenset[str] | None) -> tuple[ev.Event, ...]:
        """Return the gate of the whole plan, and its answer where an approval file has it; nothing without a gate.

        A policy with `ask_for: plan` asks for the plan whatever its steps are; no other policy does.
        """
        judges = self._judges
        if (asks := _asks_for_plan(judges.layers)) is None:
            return ()
        steps = [step for step in plan.main() if selected is None or step.id in selected]
        groups = {step.id: step.group for step in plan.steps if step.group}
        asked = {step.id: decision for step in steps if (decision := self._asked(step, groups))}
        rule, reason = asks
        if asked:
            named = ", ".join(list(asked)[:8]) + (f" and {len(asked) - 8} more" if len(asked) > 8 else "")
            first = next(iter(asked.values()))
            rule, reason = first.rule, f"{named}: {first.reason}"
        at, approvals = self._clock.stamp(), judges.approvals
        used = approvals.cover("", judges.digest) if approvals else ""
        if approvals and not used and (why := approvals.why_not("", judges.digest)):
            reason = f"{reason}; {why}"
        opened = ev.GateOpened(at=at, step="", kind="approval", rule=rule, reason=reason)
        return (opened, self._granted("", used, at)) if used else (opened,)

    def _granted(self, step: str, used: str, at: str) -> ev.GateAnswered:
        """Return the answer of an approval file, by its id."""
        approvals = self._judges.approvals
        return ev.GateAnswered(
            at=at,
            step=step,
            answer="approved",
            via="approval",
            by=approvals.approver(used) if approvals else "",
            approval=used,
            digest=self._judges.digest,
        )

    def _asked(self, step: Step, groups: Mapping[str, str]) -> Decision | None:
        """Return why a step would be asked for, as far as its text tells and no approval covers it.

        `groups`: which group each member is in.
        """
        judges = self._judges
        if step.kind in ("ask", "decide"):
            return None
        if isinstance(step.action, Group):
            if step.action.template is None:
                return None
            step = step.action.template.but(
                id=step.id, group=""
            )  # members are judged once more, with their values
        decision = decide(facts_of(step, judges.context, as_written(step, judges.layers)), judges.layers)
        if decision.answer != "ask":
            return None
        names = [step.id]
        while names[-1] in groups:  # who approves a group approves its members
            names.append(groups[names[-1]])
        approvals = judges.approvals
        covered = approvals is not None and any(approvals.covers(name, judges.digest) for name in names)
        return None if covered else decision


def _asks_for_plan(layers: Layers) -> tuple[str, str] | None:
    """Return rule and reason where a policy asks for one approval of the plan; None where none does."""
    policies = [("ceiling", ceiling.file, ceiling.policy) for ceiling in layers.ceilings]
    if layers.plan:
        policies.append(("plan", layers.file, layers.plan))
    for name, file, policy in policies:
        if policy.ask_for == "plan":
            line = f":{policy.line}" if policy.line else ""
            return f"{name}:ask_for", f"its policy asks for one approval of the plan ({file}{line})"
    return None
