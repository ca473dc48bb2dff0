"""The gates of a run: policies, approvals and answers decide whether a step may start.

The answer to an `ask` or `decide` step comes from the first of these: the caller, an earlier answer, an approval file
(for yes or no), the policies, the criteria of options and, after the timeout, the default.
"""

from __future__ import annotations

from planrun.actions.environment import credentials_in
from planrun.actions.question import choice_of, rendered_question
from planrun.approval.answers import CHOICES, RETRY, Answer, answer_of_value
from planrun.approval.assess import as_started, as_surrounded, as_written
from planrun.approval.policies import facts_of
from planrun.approval.rules import decide
from planrun.clock import between, later
from planrun.errors import EvaluationError
from planrun.model import events as ev
from planrun.model.groups import chain
from planrun.model.job import Passage
from planrun.model.policy import REVIEWED
from planrun.model.progress import LEFT_OUT
from planrun.plan.kinds.question import question_of
from planrun.reports.escape import line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.approval.answers import Answers
    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.plan import Step
    from planrun.model.progress import Gate, StepState
    from planrun.model.state import RunState
    from planrun.ports import Clock

    Approved = Callable[[str], tuple[str, str] | None]

_FILES = 5  # of a patch in a reason
_PLAN = 400  # characters of the plan of an agent in a reason
MAX_QUESTION = 2000
"""Characters of a question: its values may come from anywhere."""


class Questions:
    """Finds the answers to `ask` and `decide` steps of one run.

    `approved` returns id and approver of an approval file that covers a step, and records its use; None when none
    does.
    """

    def __init__(
        self, answers: Answers, steps: Steps, clock: Clock, approved: Approved = lambda _step: None
    ) -> None:
        self._answers = answers
        self._steps = steps
        self._clock = clock
        self._approved = approved

    def judge(self, step: Step, state: RunState) -> Passage:
        """Return whether an answer exists; otherwise the question, and how long to wait.

        A question or a criterion that has no value lets the step start, which then is refused with the reason.
        """
        scope = self._steps.scope(state, step, len(state.steps[step.id].attempts) + 1)
        step_state = state.steps[step.id]
        before = step_state.gate.opened if step_state.gate else None
        try:
            question = self._clean(rendered_question(step, scope))
            asked = before is not None and (step_state.at_gate or before.question == question)
            # The gate as it was opened first, its time included, as long as the same is asked.
            opened = before if before is not None and asked else self._opened(step, question)
            known = self._known(step, state, opened, scope)
        except EvaluationError:
            return Passage(answer="allow")
        if known is None:
            return self._waiting(step, opened, is_new=not step_state.at_gate)
        recorded = step_state.gate.answered if step_state.gate else None
        return Passage(
            answer="allow",
            rule="answer",
            opened=None if asked else opened,
            answered=None if known is recorded else known,
        )

    def failed(self, step: Step, state: RunState) -> Passage:
        """Return the decision about a failed step with `on_failure: ask`: a given answer, or the question.

        A given answer is valid for every failure; `retry` only for the first.
        """
        step_state = state.steps[step.id]
        if step_state.after and step_state.after.answered:
            return Passage(answer="allow", rule="answer")
        known = next(filter(None, [self._before(name, state) for name in (step.id, step.group)]), None)
        if known and known.value == RETRY and len(step_state.tries) > 1:
            known = None
        opened = None if step_state.at_gate else self._failure(step, step_state)
        if known is None:
            return Passage(answer="ask", opened=opened)
        answered = self._answered(step.id, known.value, known.via).but(by=known.rule)
        return Passage(answer="allow", rule="answer", opened=opened, answered=answered)

    def _before(self, name: str, state: RunState) -> Answer | None:
        """Return the answer that was given before the run; an answer for a group is valid for its instances."""
        return self._answers.given.get(name) or _recorded(state, name) or self._answers.of_policies.get(name)

    def _failure(self, step: Step, step_state: StepState) -> GateOpened:
        error = step_state.error or {}
        why = self._clean(error.get("message") or step_state.reason)
        question = f"{step.label} failed ({why}). What should planrun do?"
        options = tuple(
            [{"label": word, "value": word, "description": text} for word, text in CHOICES.items()]
        )
        return ev.GateOpened(
            at=self._clock.stamp(),
            step=step.id,
            kind="failure",
            question=line(question, MAX_QUESTION),
            options=options,
        )

    def _known(
        self, step: Step, state: RunState, opened: GateOpened, scope: dict[str, Any]
    ) -> GateAnswered | None:
        """Return the first answer in the order of sources; None: ask. A recorded no is final."""
        gate = state.steps[step.id].gate
        given = self._answers.given.get(step.id)
        recorded = gate.answered if gate and gate.answered and _fits(step, gate, opened) else None
        if recorded is not None and recorded.answer is False and opened.schema is None:
            return recorded
        if given is not None and (recorded is None or recorded.answer != given.value):
            return self._answered(step.id, given.value, given.via)
        if recorded is not None:
            return recorded
        if (early := _recorded(state, step.id)) and _is_answer(step, early.value):
            return self._answered(step.id, early.value, early.via)
        if not step.action.options and step.action.schema is None:
            approval = self._approved(step.id)
            if approval:
                return self._answered(step.id, True, "approval").but(approval=approval[0], by=approval[1])
        policy = self._answers.of_policies.get(step.id)
        if policy is not None:
            return self._answered(step.id, policy.value, "policy").but(by=policy.rule)
        chosen = choice_of(step, scope)
        return self._answered(step.id, chosen[0], "criteria") if chosen else None

    def _waiting(self, step: Step, opened: GateOpened, *, is_new: bool) -> Passage:
        seconds = between(self._clock.stamp(), opened.until) if opened.until else None
        if seconds is None or seconds > 0:
            return Passage(answer="ask", opened=opened if is_new else None, seconds=seconds)
        if opened.default:
            return Passage(
                answer="allow",
                rule="answer",
                answered=self._answered(step.id, opened.default[0], "timeout"),
            )
        return Passage(answer="deny", reason=f"no answer until {opened.until}", is_late=True)

    def _opened(self, step: Step, question: str) -> GateOpened:
        action, at = question_of(step), self._clock.stamp()
        opened = ev.GateOpened(at=at, step=step.id, kind=step.kind, question=question)
        if action.header:
            opened = opened.but(header=line(action.header, 200))
        if action.default:
            opened = opened.but(default=(answer_of_value(step, action.default[0]),))
        if action.timeout is not None:
            opened = opened.but(until=later(at, action.timeout))
        if not action.options:
            return opened.but(schema=action.schema) if action.schema is not None else opened
        options = tuple(
            [
                {"label": option.label, "value": option.value, "description": option.description}
                for option in action.options
            ]
        )
        return opened.but(options=options, multi=action.multi_select)

    def _clean(self, question: str) -> str:
        """Return a question as one printable line without secrets; its content is data."""
        masks = self._steps.place.masks
        return line(masks.mask_text(question) if masks else question, MAX_QUESTION)

    def _answered(self, step: str, value: Any, via: str) -> GateAnswered:
        return ev.GateAnswered(at=self._clock.stamp(), step=step, answer=value, via=via)


def _fits(step: Step, gate: Gate, opened: GateOpened) -> bool:
    assert gate.answered is not None
    if gate.opened is not None and gate.opened.question != opened.question:
        return False
    return _is_answer(step, gate.answered.answer)


def _is_answer(step: Step, value: Any) -> bool:
    try:
        return bool(answer_of_value(step, value) == value)
    except ValueError:
        return False


def _recorded(state: RunState, name: str) -> Answer | None:
    """Return the answer of the caller that the run recorded when it started or resumed."""
    said = state.answers.get(name)
    return Answer(value=said["value"], via=said["via"]) if said else None


if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from planrun.actions.environment import RunEnvironment
    from planrun.approval.control import ControlSocket
    from planrun.approval.prompt import Prompt
    from planrun.approval.rules import Decision, Layers
    from planrun.approval.subjects import Subjects
    from planrun.clock import SystemClock
    from planrun.model.job import Job
    from planrun.model.plan import Plan, Step
    from planrun.model.progress import Gate
    from planrun.model.state import RunState
    from planrun.risk.classifier import Risk

    class Approvals(Protocol):
        """The approval files that the caller named."""

        def covers(self, step: str, digest: str) -> bool:
            """Return whether one of them covers a step."""

        def cover(self, step: str, digest: str) -> str:
            """Return the id of an approval that covers a step, and record its use; "" when none does."""

        def approver(self, approval: str) -> str:
            """Return the approver of an approval."""

        def why_not(self, step: str, digest: str) -> str:
            """Return why none of them covers a step; "" when there are none."""


class GateContext:
    """What decides about the steps of one run."""

    def __init__(self, layers: Layers, run: Mapping[str, Any], digest: str) -> None:
        self.layers = layers
        self.run = run
        self.digest = digest
        self.questions: Questions | None = None
        self.approvals: Approvals | None = None
        self.control_socket: ControlSocket | None = None


class PolicyGates:
    """The port `Gates` of the engine."""

    def __init__(self, context: GateContext, clock: SystemClock, place: RunEnvironment) -> None:
        self._context = context
        self._clock = clock
        self._place = place
        self._known: dict[tuple[object, ...], Risk] = {}
        self._inherited = credentials_in(place.env)
        self.prompt: Prompt | None = None  # None: no one is asked here
        self.subjects: Subjects | None = None  # of the prompt

    def judge(self, step: Step, state: RunState, job: Job | None) -> Passage:
        """Return whether a step may start `job`; None: it starts no process."""
        passage = self._judged(step, state, job)
        if (
            step.origin in REVIEWED
            or job is None
            or passage.answer != "allow"
            or self._place.confinement is None
        ):
            return passage
        from planrun.approval.confining import confined  # few steps are written by a model

        return confined(passage, step, passage.job or job, self._place.confinement)

    def _judged(self, step: Step, state: RunState, job: Job | None) -> Passage:
        context = self._context
        answered = self._about_this(state.steps[step.id].gate)
        # Answers to questions have no digest, so an option of this name is not taken for it.
        if answered is not None and answered.answer == LEFT_OUT:
            by = f" by {answered.by}" if answered.by else ""
            return Passage(answer="skip", reason=f"left out{by}")
        if job is not None and ("patch" in job.agent or "proposed" in job.agent):
            return self._judge_patch(step, state, job, answered)
        if job is None:
            found = as_written(step)
            decision = self._decide(step, found)
        else:
            found, risk = as_started(step, job, self._place, self._known)
            decision = self._decide(step, found)
            if decision.answer == "allow" and self._decide(step, {**found, "risk": "high"}).answer != "allow":
                is_reviewed = step.origin in REVIEWED
                around, job = as_surrounded(found, risk, job, self._place.workspace, is_reviewed=is_reviewed)
                decision = decision if around is found else self._decide(step, around)
                found = around
        level = str(found["risk"])
        if step.action.asks and decision.answer == "ask":  # it has a gate anyway
            decision = decision.but(answer="allow")
        if decision.answer == "deny":
            return Passage(answer="deny", risk=level, rule=decision.rule, reason=decision.reason)
        if decision.answer == "ask":
            if self.subjects is not None:
                self.subjects.keep(step.id, found, job)
            return self._approval(step, state, decision, level)
        if step.action.asks and context.questions is not None:
            return context.questions.judge(step, state)
        passage = Passage(answer="allow", risk=level, rule=decision.rule)
        return passage if job is None else passage.but(job=job)

    def _judge_patch(
        self, step: Step, state: RunState, job: Job, answered: ev.GateAnswered | None
    ) -> Passage:
        """Return whether the patch of an agent may be applied, or its plan carried out.

        Only an answer to its own gate approves it.
        """
        found, _ = as_started(step, job, self._place, self._known)
        decision = self._decide(step.but(origin="agent"), found)
        level = str(found["risk"])
        if decision.answer == "allow" and step.action.apply == "ask" and "patch" in job.agent:
            reason = "its `apply` is `ask`"
            decision = decision.but(answer="ask", rule="agent:apply", reason=reason)
        if decision.answer == "deny":
            return Passage(answer="deny", risk=level, rule=decision.rule, reason=decision.reason)
        if decision.answer == "allow":
            return Passage(answer="allow", risk=level, rule=decision.rule)
        if answered is not None:
            return self._approval(step, state, decision, level)
        reason = f"{decision.reason}; {_subject_of(job.agent)}"
        if self.subjects is not None:
            self.subjects.keep(step.id, found, job)
        opened = ev.GateOpened(
            at=self._clock.stamp(),
            step=step.id,
            kind="approval",
            risk=level,
            rule=decision.rule,
            reason=reason,
        )
        return Passage(answer="ask", risk=level, rule=decision.rule, reason=reason, opened=opened)

    def _decide(self, step: Step, found: dict[str, Any]) -> Decision:
        if step.undoes:  # a rule about a step is about undoing it, too
            step = step.but(id=step.undoes)
        facts = facts_of(step, self._context.run, {**found, "inherited": self._inherited})
        return decide(facts, self._context.layers)

    def _approval(self, step: Step, state: RunState, decision: Decision, level: str) -> Passage:
        gate = state.steps[step.undoes or step.id].gate  # the approval of a step covers its rollback
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
        """Return the answer about the current digest; answers about another plan are not valid."""
        answered = gate.answered if gate else None
        return answered if answered is not None and answered.digest == self._context.digest else None

    def _new_approval(self, step: Step, decision: Decision, level: str, names: tuple[str, ...]) -> Passage:
        """Look for an approval of the step or of a group around it, or ask."""
        at, context = self._clock.stamp(), self._context
        approvals = context.approvals
        found = (approvals.cover(name, context.digest) for name in names) if approvals else ()
        used = next(filter(None, found), "")
        reason = decision.reason
        if approvals and not used and (why := approvals.why_not(names[0], context.digest)):
            reason = f"{reason}; {why}"
        opened = ev.GateOpened(
            at=at, step=step.id, kind="approval", risk=level, rule=decision.rule, reason=reason
        )
        if not used:
            return Passage(answer="ask", risk=level, rule=decision.rule, reason=reason, opened=opened)
        answered = self._granted(step.id, used, at)
        return Passage(answer="allow", risk=level, rule=f"approval:{used}", opened=opened, answered=answered)

    def poll_replies(self, state: RunState) -> list[ev.GateAnswered]:
        """Return the checked answers since the last call."""
        control = self._context.control_socket
        found = control.poll_replies(state) if control else []
        if not found and self.prompt is not None:
            return self.prompt.poll(state)
        return found

    def is_asking(self, state: RunState) -> bool:
        """Return whether a person at the terminal of this process may still answer an open gate."""
        return self.prompt is not None and self.prompt.is_asking(state)

    def use_digest(self, digest: str) -> None:
        """Use the digest of a new version of the plan; approvals of earlier versions are not valid for it."""
        self._context.digest = digest

    def failed(self, step: Step, state: RunState) -> Passage:
        """Return the decision about a failed step with `on_failure: ask`."""
        assert self._context.questions is not None
        return self._context.questions.failed(step, state)

    def close(self) -> None:
        """Accept no more answers."""
        if self.prompt is not None:
            self.prompt.close()
        if self._context.control_socket:
            self._context.control_socket.close()

    def before_all(self, plan: Plan, selected: frozenset[str] | None) -> tuple[ev.Event, ...]:
        """Return the gate of the whole plan, and its answer where an approval file has it; nothing without a gate.

        Only a policy with `ask_for: plan` asks for the whole plan, whatever its steps are.
        """
        context = self._context
        if (asks := asks_for_plan(context.layers)) is None:
            return ()
        steps = [step for step in plan.main() if selected is None or step.id in selected]
        groups = {step.id: step.group for step in plan.steps if step.group}
        asked = {step.id: decision for step in steps if (decision := self._asked(step, groups))}
        rule, reason = asks
        if asked:
            named = ", ".join(list(asked)[:8]) + (f" and {len(asked) - 8} more" if len(asked) > 8 else "")
            first = next(iter(asked.values()))
            rule, reason = first.rule, f"{named}: {first.reason}"
        at, approvals = self._clock.stamp(), context.approvals
        used = approvals.cover("", context.digest) if approvals else ""
        if approvals and not used and (why := approvals.why_not("", context.digest)):
            reason = f"{reason}; {why}"
        opened = ev.GateOpened(at=at, step="", kind="approval", rule=rule, reason=reason)
        return (opened, self._granted("", used, at)) if used else (opened,)

    def _granted(self, step: str, used: str, at: str) -> ev.GateAnswered:
        approvals = self._context.approvals
        return ev.GateAnswered(
            at=at,
            step=step,
            answer="approved",
            via="approval",
            by=approvals.approver(used) if approvals else "",
            approval=used,
            digest=self._context.digest,
        )

    def _asked(self, step: Step, groups: Mapping[str, str]) -> Decision | None:
        """Return why a step would need an approval, from its text; None when it needs none or has one.

        `groups`: which group each member is in.
        """
        context = self._context
        if step.action.asks:
            return None
        if step.kind == "group":
            if step.grouping.template is None:
                return None
            step = step.grouping.template.but(
                id=step.id, group=""
            )  # its members are checked again, with their values
        decision = decide(facts_of(step, context.run, as_written(step, context.layers)), context.layers)
        if decision.answer != "ask":
            return None
        names = [step.id]
        while names[-1] in groups:  # the approval of a group covers its members
            names.append(groups[names[-1]])
        approvals = context.approvals
        covered = approvals is not None and any(approvals.covers(name, context.digest) for name in names)
        return None if covered else decision


def asks_for_plan(layers: Layers) -> tuple[str, str] | None:
    """Return rule and reason where a policy asks for one approval of the plan; None where none does."""
    policies = [("ceiling", ceiling.file, ceiling.policy) for ceiling in layers.ceilings]
    if layers.plan:
        policies.append(("plan", layers.file, layers.plan))
    for name, file, policy in policies:
        if policy.ask_for == "plan":
            line = f":{policy.line}" if policy.line else ""
            return f"{name}:ask_for", f"its policy asks for one approval of the plan ({file}{line})"
    return None


def _subject_of(agent: dict[str, Any]) -> str:
    """Return what an agent asks an approval for, in one line: its patch, or its plan."""
    if "proposed" in agent:
        proposed = agent["proposed"]
        text = " ".join(proposed["text"].split())
        shown = text if len(text) <= _PLAN else f"{text[: _PLAN - 1]}…"
        return f"its plan, sha256 {proposed['sha256'][:12]}: {shown}"
    patch = agent["patch"]
    files = ", ".join([each["path"] for each in patch["files"][:_FILES]])
    more = f" and {len(patch['files']) - _FILES} more" if len(patch["files"]) > _FILES else ""
    counts = f"(+{patch['insertions']} -{patch['deletions']})"
    return f"a patch of {files}{more} {counts}, sha256 {patch['sha256'][:12]}"
