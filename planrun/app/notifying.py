"""Who is notified of a run: the targets of its plan and of its ceilings, each with what may refuse it."""

from __future__ import annotations

import os

from planrun.actions.render import Recipe
from planrun.actions.scripts import runs
from planrun.approval.notified import denial_of, step_of
from planrun.notify.notifier import Notifier, Recipient
from planrun.notify.orders import Place
from planrun.reports.escape import line
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from planrun.actions.prepare import Steps
    from planrun.app.secrets import RunSecrets
    from planrun.approval.rules import Layers
    from planrun.executors.wait import SignalInbox
    from planrun.model.notify import Target
    from planrun.model.plan import Plan
    from planrun.model.state import RunState


def notifier_of(
    state: RunState, steps: Steps, layers: Layers | None, secrets: RunSecrets | None, wake: SignalInbox
) -> Notifier | None:
    """Return what notifies the targets of a run; None where every target of its plan is ruled out."""
    place = steps.place

    def refusal_of(recipient: Recipient) -> Callable[[], str]:
        target = recipient.target
        judges = layers if recipient.of_plan or layers is None else layers.but(plan=None)

        def refusal() -> str:
            denied = denial_of(target, judges, place.context) if judges is not None else ""
            return denied or _altered(target, place.scripts, place.workspace)

        return refusal

    recipients = [
        each.but(refusal=refusal_of(each)) if each.target.argv else each
        for each in recipients_of(state.plan, layers)
    ]
    if not recipients:
        return None
    values = secrets.values if secrets else {}
    return Notifier(
        recipients,
        place.rundir,
        Place(workspace=place.workspace, env=place.env, secrets=values),
        masks=secrets.redactor if secrets else None,
        wake=wake,
    )


def recipients_of(plan: Plan, layers: Layers | None) -> list[Recipient]:
    """Return the targets in force: those of the plan, unless a ceiling rules them out, then those of the ceilings."""
    ceilings = layers.ceilings if layers else ()
    found = []
    if all(ceiling.policy.plan_notify for ceiling in ceilings):
        found += [each.but(of_plan=True) for each in _named("plan", plan.notify)]
    for ceiling in ceilings:
        found += _named(line(ceiling.file, 200), ceiling.policy.notify)
    return found


def _named(owner: str, targets: Iterable[Target]) -> list[Recipient]:
    return [Recipient(name=f"{owner} {number}", target=target) for number, target in enumerate(targets, 1)]


def _altered(target: Target, known: Mapping[str, str], workspace: str) -> str:
    """Return which script of a command is not what was reviewed; empty when all are, or none was recorded."""
    recipe = Recipe(argv=tuple(map(str, target.argv)), env={}, workdir="")
    for path in [each.path for each in runs(step_of(target), recipe, workspace).scripts]:
        if path not in known:
            continue
        try:
            with open(os.path.join(workspace, path), "rb") as file:
                data = file.read()
        except OSError as error:
            return f"{path}: {error.strerror}"
        if sha256(data).hexdigest() != known[path]:
            return f"{path} is not what was reviewed"
    return ""
