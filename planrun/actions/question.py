"""The kinds `ask` and `decide` when their step starts: the question, the answer by criteria, and the outcome."""

from __future__ import annotations

from planrun.actions.render import Recipe
from planrun.errors import EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.expressions.render import render_text
from planrun.model.job import Outcome, Prepared
from planrun.plan.compile.canonical import plain
from planrun.plan.kinds.question import question_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.context import StepContext
    from planrun.model.events import GateAnswered
    from planrun.model.plan import Step
    from planrun.model.state import RunState

    Scope = dict[str, Any]

# The source of an answer in a message, by `via` of the event; `{by}` is its author.
_SOURCES = {
    "command": "by {by}",
    "option": "by an option of the command line",
    "file": "by the decisions file",
    "policy": "by the policy",
    "timeout": "by default, because no one answered in time",
    "approval": "by {by}",
}


def rendered_question(step: Step, scope: Scope) -> str:
    """Return the question of a step, with its values; raises EvaluationError."""
    question = question_of(step).question
    if isinstance(question, str):
        return question
    return render_text(question, scope)


def choice_of(step: Step, scope: Scope) -> tuple[Any, ...]:
    """Return the answer that the criteria of a decision's options give, in a tuple; empty if none applies.

    The first option whose criterion is true; for `multi_select` a list of all of them. Raises EvaluationError.
    """
    action = question_of(step)
    chosen = []
    for option in action.options:
        if option.when is None:
            continue
        holds = evaluate(option.when, scope)
        if not isinstance(holds, bool):
            raise EvaluationError(f'`when` of the option "{option.label}" is not boolean')
        if holds:
            chosen.append(option.value)
            if not action.multi_select:
                break
    if action.multi_select:
        return (chosen,) if chosen else ()
    return tuple(chosen)


def prepare(_steps: StepContext, step: Step, state: RunState, scope: Scope) -> Prepared:
    """Return the outcome of a question by its answer; an unanswered one never passes.

    Raises EvaluationError for a question or a criterion without a value.
    """
    question = rendered_question(step, scope)
    gate = state.steps[step.id].gate
    answered = gate.answered if gate else None
    if answered is None:
        choice_of(step, scope)  # its error is why the question was not opened
        raise EvaluationError("no one answered it")
    return Prepared(fingerprint=_marked(step, question), outcome=outcome_of(step, answered))


def fingerprint(_steps: StepContext, step: Step, _state: RunState, scope: Scope) -> str:
    """Return the fingerprint of the question with its values and possible answers; raises EvaluationError."""
    return _marked(step, rendered_question(step, scope))


def outcome_of(step: Step, answered: GateAnswered) -> Outcome:
    """Return the outcome of a step with an answer: no denies it, any other completes it."""
    action = step.action
    if not action.options and action.schema is None and answered.answer is not True:
        return Outcome(status="failed", reason="denied", message=f"answered no {_source(answered)}")
    return Outcome(status="completed", reason="ran", outputs={"answer": answered.answer})


def _source(answered: GateAnswered) -> str:
    source = _SOURCES.get(answered.via, "by {by}").format(by=answered.by or "an unknown user")
    return f"{source}: {answered.reason}" if answered.reason else source


def _marked(step: Step, question: str) -> str:
    meant = {**plain(step.action), "question": question}
    for name in ("default", "timeout"):  # they matter only without an answer
        meant.pop(name, None)
    return Recipe(argv=(repr(meant),), env={}, workdir="").fingerprint("question")
