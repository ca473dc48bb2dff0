"""Steps that ask: where an answer is looked for, and what is asked when none is there.

In this order: what the caller gave, what somebody answered before, an approval file (for yes or no), the policies,
the criteria of options and, when the time is over, the default.
"""

from __future__ import annotations

from planrun.actions.ask import choice_of, question_of
from planrun.approval.answers import CHOICES, RETRY, Answer, answer_of_value
from planrun.clock import between, later
from planrun.errors import EvaluationError
from planrun.model import events as ev
from planrun.model.job import Passage
from planrun.model.plan import Ask, Decide
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.approval.answers import Answers
    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.gates import Gate
    from planrun.model.plan import Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Clock

    Approved = Callable[[str], tuple[str, str] | None]

MAX_QUESTION = 2000
"""Characters of a question: its values may come from anywhere."""


class Questions:
    """What answers `ask` and `decide` steps of one run.

    `approved` returns id and approver of an approval file that covers a step, and takes note of its use; None when none
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
        """Say whether an answer is there; otherwise what is asked, and how long an answer is waited for.

        A question or a criterion that has no value lets the step start, which then is refused with the reason.
        """
        scope = self._steps.scope(state, step, len(state.steps[step.id].attempts) + 1)
        found = state.steps[step.id]
        before = found.gate.opened if found.gate else None
        try:
            question = self._clean(question_of(step, scope))
            asked = before is not None and (found.at_gate or before.question == question)
            # The gate as it was opened first, its time included, as long as the same is asked.
            opened = before if before is not None and asked else self._opened(step, question)
            known = self._known(step, state, opened, scope)
        except EvaluationError:
            return Passage(answer="allow")
        if known is None:
            return self._waiting(step, opened, is_new=not found.at_gate)
        recorded = found.gate.answered if found.gate else None
        return Passage(
            answer="allow",
            rule="answer",
            opened=None if asked else opened,
            answered=None if known is recorded else known,
        )

    def failed(self, step: Step, state: RunState) -> Passage:
        """Say what is to become of a failed step that asks for it: an answer that was given, or the question.

        An answer that was given before holds for every failure; to try once more holds for the first.
        """
        found = state.steps[step.id]
        if found.after and found.after.answered:
            return Passage(answer="allow", rule="answer")
        known = next(filter(None, [self._before(name, state) for name in (step.id, step.group)]), None)
        if known and known.value == RETRY and len(found.tries) > 1:
            known = None
        opened = None if found.at_gate else self._failure(step, found)
        if known is None:
            return Passage(answer="ask", opened=opened)
        answered = self._answered(step.id, known.value, known.via).but(by=known.rule)
        return Passage(answer="allow", rule="answer", opened=opened, answered=answered)

    def _before(self, name: str, state: RunState) -> Answer | None:
        """Return what was answered about a step before the run; what is said of a group is said of its instances."""
        return self._answers.given.get(name) or _recorded(state, name) or self._answers.of_policies.get(name)

    def _failure(self, step: Step, found: StepState) -> GateOpened:
        error = found.error or {}
        why = self._clean(error.get("message") or found.reason)
        question = f"{step.label} failed ({why}). What is to become of it?"
        options = tuple(
            [{"label": word, "value": word, "description": told} for word, told in CHOICES.items()]
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
        """Return the first answer in the order of sources; None: it has to be asked. A recorded no is final."""
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
        if isinstance(step.action, Ask) and step.action.schema is None:
            approval = self._approved(step.id)
            if approval:
                return self._answered(step.id, True, "approval").but(approval=approval[0], by=approval[1])
        policy = self._answers.of_policies.get(step.id)
        if policy is not None:
            return self._answered(step.id, policy.value, "policy").but(by=policy.rule)
        chosen = choice_of(step, scope)
        return self._answered(step.id, chosen[0], "criteria") if chosen else None

    def _waiting(self, step: Step, opened: GateOpened, *, is_new: bool) -> Passage:
        """Wait for an answer or, when the time is over, take the default or fail."""
        seconds = between(self._clock.stamp(), opened.until) if opened.until else None
        if seconds is None or seconds > 0:
            return Passage(answer="ask", opened=opened if is_new else None, seconds=seconds)
        if opened.default:
            return Passage(
                answer="allow",
                rule="answer",
                answered=self._answered(step.id, opened.default[0], "timeout"),
            )
        return Passage(answer="deny", reason=f"nobody answered until {opened.until}", is_late=True)

    def _opened(self, step: Step, question: str) -> GateOpened:
        action, at = step.action, self._clock.stamp()
        assert isinstance(action, Ask | Decide)
        opened = ev.GateOpened(at=at, step=step.id, kind=step.kind, question=question)
        if action.header:
            opened = opened.but(header=line(action.header, 200))
        if action.default:
            opened = opened.but(default=(answer_of_value(step, action.default[0]),))
        if action.timeout is not None:
            opened = opened.but(until=later(at, action.timeout))
        if isinstance(action, Ask):
            return opened.but(schema=action.schema) if action.schema is not None else opened
        options = tuple(
            [
                {"label": option.label, "value": option.value, "description": option.description}
                for option in action.options
            ]
        )
        return opened.but(options=options, multi=action.multi_select)

    def _clean(self, question: str) -> str:
        """Return a question as one clean text that holds no secret; what it says is data."""
        masks = self._steps.place.masks
        return line(masks.mask_text(question) if masks else question, MAX_QUESTION)

    def _answered(self, step: str, value: Any, via: str) -> GateAnswered:
        return ev.GateAnswered(at=self._clock.stamp(), step=step, answer=value, via=via)


def _fits(step: Step, gate: Gate, opened: GateOpened) -> bool:
    """Whether a recorded answer answers what is asked now: the same question, and one of its answers."""
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
    """Return what the caller answered when the run began or went on, as it is on record."""
    said = state.answers.get(name)
    return Answer(value=said["value"], via=said["via"]) if said else None
