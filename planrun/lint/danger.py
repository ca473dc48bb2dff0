"""Advice about dangerous steps: approval before them, and rollback after them."""

from __future__ import annotations

from planrun.approval.policies import static_decision
from planrun.approval.rules import Layers
from planrun.model import graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.model.plan import Step
    from planrun.plan.problems import Problem

LONG = 1800.0  # seconds that a step may run before anybody wants to know how far it is
_DONE = {
    "destroys": "destroys something",
    "publishes": "publishes something",
    "privilege": "acts as another user",
    "secrets": "reaches for credentials",
}
# Words of programs that planrun takes for dangerous as a whole, and that only look: `kubectl get`, `terraform plan`.
_LOOKING = frozenset(
    (
        *(
            "check",
            "describe",
            "diff",
            "explain",
            "fmt",
            "get",
            "help",
            "history",
            "init",
            "lint",
            "list",
            "logs",
        ),
        *(
            "ls",
            "plan",
            "preview",
            "search",
            "show",
            "status",
            "template",
            "validate",
            "version",
            "view",
            "whoami",
        ),
        *("--dry-run", "--help", "--version"),
    )
)


def unasked(subject: Subject) -> Iterator[Problem]:
    """L401: a command of class high, known to be dangerous, in a plan without a policy, and behind no gate."""
    if subject.plan.policy is not None:
        return
    gates = [step.id for step in subject.plan.main() if step.action.asks]
    gated = graph.descendants(subject.before, gates) if gates else set()
    for step in subject.steps():
        effect = _danger(subject, step)
        if not effect or step.section != "steps" or step.id in gated:
            continue
        yield subject.advice(
            "L401",
            f'step "{step.id}" {_DONE[effect]}, and starts without an approval: the plan has no policy',
            step,
            hint="add `policy: {auto_approve: medium}` to require an approval",
        )


def not_undone(subject: Subject) -> Iterator[Problem]:
    """L402: a command of class high that publishes or destroys, in a step that declares no rollback."""
    for step in subject.steps():
        effect = _danger(subject, step)
        if (
            effect in ("destroys", "publishes")
            and step.section == "steps"
            and step.rollback is None
            and step.reversible is None
        ):
            yield subject.advice(
                "L402",
                f'step "{step.id}" {_DONE[effect]} and declares no way to undo it',
                step,
                hint="add a `rollback`, or `reversible: false`",
            )


def asked_in_finally(subject: Subject) -> Iterator[Problem]:
    """L421: a `finally` step that waits for an approval or an answer, so that the run does not end."""
    layers = Layers(plan=subject.plan.policy, file=subject.plan.file)
    for step in subject.steps():
        if step.section != "finally":
            continue
        decision = static_decision(step, layers, {})
        if step.action.asks:
            why = "asks a question"
        elif decision.answer == "ask":
            why = f"needs an approval: {decision.reason}"
        else:
            continue
        yield subject.advice(
            "L421",
            f'step "{step.id}" is under `finally` and {why}; the run cannot end without an answer',
            step,
            hint="move it to `steps`, or allow it by a rule of the policy",
        )


def unknown_repetition(subject: Subject) -> Iterator[Problem]:
    """L422: a command that publishes or destroys, in a step without `idempotent`: a resume after a kill repeats it."""
    for step in subject.steps():
        effect = _danger(subject, step)
        if effect in ("destroys", "publishes") and not subject.says(step, "idempotent"):
            yield subject.advice(
                "L422",
                f'step "{step.id}" {_DONE[effect]}; after a kill `planrun resume` runs it again',
                step,
                hint="state `idempotent: false` to fail instead, or `idempotent: true`",
            )


def unverified(subject: Subject) -> Iterator[Problem]:
    """L423: a command that publishes or destroys, in a step without verification."""
    checked = {
        edge.on
        for other in subject.steps()
        if other.kind == "validate" or other.verify_steps
        for edge in other.edges
    }
    for step in subject.steps():
        if step.section != "steps" or step.verify_steps or step.expect or step.id in checked:
            continue
        effect = _danger(subject, step)
        if effect in ("destroys", "publishes"):
            yield subject.advice(
                "L423",
                f'step "{step.id}" {_DONE[effect]}, and nothing verifies that it worked',
                step,
                hint="add `verify` or `expect`, or a `validate` step after it",
            )


def unmonitored(subject: Subject) -> Iterator[Problem]:
    """L424: a step that may run for half an hour and more, without `idle_timeout` and progress."""
    for step in subject.actions:
        script = subject.script(step)
        is_long = step.timeout >= LONG and subject.says(step, "timeout") and not step.service
        if is_long and step.idle_timeout is None and "PLANRUN_PROGRESS" not in script:
            yield subject.advice(
                "L424",
                f'step "{step.id}" may run for {step.timeout / 60:.0f} minutes and reports no progress',
                step,
                "timeout",
                "set `idle_timeout` to end it when it prints nothing, or report progress in `$PLANRUN_PROGRESS`",
            )


def _danger(subject: Subject, step: Step) -> str:
    """Return the first effect of a step's commands that makes one of them high, where there is one."""
    for command in subject.commands(step):
        if command.level == "high" and _LOOKING.isdisjoint(command.words[1:]):
            for effect in _DONE:
                if effect in command.effects:
                    return effect
    return ""
