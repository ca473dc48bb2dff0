"""The admission of a run's steps: policies in force, known answers, approvals, and the gates made of them."""

from __future__ import annotations

import os

from planrun.approval.answers import answers_of
from planrun.approval.approvals import Approvals, read_approvals, without_effect
from planrun.approval.control import ControlSocket
from planrun.approval.gates import GateContext, PolicyGates, Questions
from planrun.approval.policies import ceilings_of, layers_of, recorded, restore
from planrun.approval.rules import in_force
from planrun.engine.gated import GatedScheduler, ReplanningScheduler
from planrun.model import events as ev
from planrun.model.notify import secrets_of
from planrun.records.inputs import add_policy
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.secrets import RunSecrets
    from planrun.clock import SystemClock
    from planrun.engine import Dependencies, Options
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.ports import Replanner
    from planrun.settings import Settings


class Admission:
    """The policies of a run, the answers that are known, and its gates.

    `before`: the policies that a resumed run recorded in `rundir`; all its ceilings stay in force, and so does the
    level of the command line, unless there is a new one. Raises InvalidInput, InvalidPlan for invalid files and
    answers.
    """

    def __init__(
        self, plan: Plan, settings: Settings, rundir: str = "", before: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        ceilings = ceilings_of(settings)
        for policy in before:
            restore(ceilings, rundir, policy["ceilings"])
        option = settings.auto_approve or next((policy["option"] for policy in reversed(before)), "")
        self._ceilings = ceilings
        self.layers = layers_of(plan, settings.but(auto_approve=option), ceilings)
        self._answers = answers_of(
            plan, settings.decide, settings.decisions, [ceiling.policy for ceiling in ceilings.known]
        )
        self._approvals = read_approvals(settings.approvals)
        self._without_effect = without_effect(settings.approvals)

    def recorded(self) -> dict[str, Any]:
        """Return the policies as RunStarted and RunResumed record them."""
        return {**recorded(self.layers), "told": in_force(self.layers)}

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The secrets that the targets of ceilings need; a plan need not declare them."""
        return tuple([name for ceiling in self.layers.ceilings for name in secrets_of(ceiling.policy.notify)])

    @property
    def notifies(self) -> bool:
        """Whether a ceiling has targets of notifications."""
        return any(ceiling.policy.notify for ceiling in self.layers.ceilings)

    def options(self) -> dict[str, Any]:
        """Return the policies and the given answers as the ledger records them."""
        options: dict[str, Any] = {"policy": self.recorded()}
        if given := self._answers.given:  # in the first event, so that no kill can separate the run from them
            options["answers"] = {
                name: {"value": answer.value, "via": answer.via} for name, answer in given.items()
            }
        return options

    def refuse(self, secrets: RunSecrets) -> None:
        """Raise InvalidInput when an answer contains a secret, since answers are recorded."""
        secrets.refuse_answers(self._answers.values())

    def answers(self) -> dict[str, Any]:
        """Return the caller's answers to questions, by step."""
        return self._answers.values()

    def covers(self, step: str, digest: str, home: str) -> bool:
        """Whether an approval file covers a step ("": the whole plan) of a new run; records no use."""
        return Approvals(self._approvals, home, "", without_effect=self._without_effect).covers(step, digest)

    def keep(self, rundir: str) -> None:
        """Keep the ceilings in a run's folder; raises RecordsLost."""
        for digest, data in self._ceilings.files.items():
            add_policy(rundir, digest, data)

    def gates(
        self, opening: Mapping[str, Any], steps: Steps, clock: SystemClock, secrets: RunSecrets | None
    ) -> PolicyGates:
        """Return the gates of a run; `opening` has the fields of the event that starts or resumes it."""
        place = steps.place
        context = GateContext(self.layers, opening["context"], opening["plan"]["digest"])
        context.approvals = approvals = Approvals(
            self._approvals,
            os.path.join(place.workspace, HOME),
            place.run,
            without_effect=self._without_effect,
        )

        def granted(step: str) -> tuple[str, str] | None:
            approval = approvals.cover(step, context.digest)
            return (approval, approvals.approver(approval)) if approval else None

        context.questions = Questions(self._answers, steps, clock, granted)
        context.control_socket = ControlSocket(
            place.rundir, clock, secrets.refuse_answers if secrets else None
        )
        return PolicyGates(context, clock, place)


def scheduler(
    state: RunState,
    dependencies: Dependencies,
    options: Options,
    gates: PolicyGates,
    replanner: Replanner | None,
) -> GatedScheduler:
    """Return the scheduler of a run with gates."""
    if replanner is not None:
        return ReplanningScheduler(state, dependencies, options, gates, replanner)
    return GatedScheduler(state, dependencies, options, gates)


def approve_or_ask(
    state: RunState,
    gates: PolicyGates,
    selected: frozenset[str] | None,
    record: Callable[[ev.Event], None],
    at: str,
) -> None:
    """Record that a run is approved, or the gate of the whole plan."""
    if state.status != "awaiting_approval":
        return
    if state.gate is None or state.gate.answered is None:
        for event in gates.before_all(state.plan, selected):
            if state.gate is None or isinstance(
                event, ev.GateAnswered
            ):  # an earlier process may have opened it
                record(event)
    if state.gate is None or state.gate.answered is not None:
        record(ev.PlanMoved(at=at, status="approved"))
