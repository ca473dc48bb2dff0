"""Who is let in, in one run: what is in force, what a run keeps of it, and the gates that its steps come to."""

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

    `before`: what a run that goes on recorded of its policies, in `rundir`; all its ceilings stay in force, and so does
    the level that the command line gave, unless there is a new one. Raises InvalidInput, InvalidPlan for files and
    answers that are none.
    """

    def __init__(
        self, plan: Plan, settings: Settings, rundir: str = "", before: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        ceilings = ceilings_of(settings)
        for policy in before:
            restore(ceilings, rundir, policy["ceilings"])
        option = settings.auto_approve or next((told["option"] for told in reversed(before)), "")
        self._ceilings = ceilings
        self.layers = layers_of(plan, settings.but(auto_approve=option), ceilings)
        self._answers = answers_of(
            plan, settings.decide, settings.decisions, [ceiling.policy for ceiling in ceilings.known]
        )
        self._approvals = read_approvals(settings.approvals)
        self._without_effect = without_effect(settings.approvals)

    def recorded(self) -> dict[str, Any]:
        """What the first event of a run, and that of its resumption, record."""
        return {**recorded(self.layers), "told": in_force(self.layers)}

    def options(self) -> dict[str, Any]:
        """Return the policies and the given answers as the ledger records them."""
        found: dict[str, Any] = {"policy": self.recorded()}
        if given := self._answers.given:  # in the first event, so that no kill can separate the run from them
            found["answers"] = {name: {"value": said.value, "via": said.via} for name, said in given.items()}
        return found

    def refuse(self, secrets: RunSecrets) -> None:
        """Raise InvalidInput when an answer would have a secret recorded."""
        secrets.refuse_answers(self._answers.values())

    def keep(self, rundir: str) -> None:
        """Keep the ceilings in a run's folder; raises RecordsLost."""
        for digest, data in self._ceilings.files.items():
            add_policy(rundir, digest, data)

    def gates(
        self, opening: Mapping[str, Any], steps: Steps, clock: SystemClock, secrets: RunSecrets | None
    ) -> PolicyGates:
        """Return the gates for a run that starts, or goes on, with the event whose fields `opening` has."""
        place = steps.place
        context = GateContext(self.layers, opening["context"], opening["plan"]["digest"])
        context.approvals = approvals = Approvals(
            self._approvals,
            os.path.join(place.workspace, HOME),
            place.run,
            without_effect=self._without_effect,
        )

        def granted(step: str) -> tuple[str, str] | None:
            found = approvals.cover(step, context.digest)
            return (found, approvals.approver(found)) if found else None

        context.questions = Questions(self._answers, steps, clock, granted)
        context.control_socket = ControlSocket(
            place.rundir, clock, secrets.refuse_answers if secrets else None
        )
        return PolicyGates(context, clock, place)


def scheduler(
    state: RunState, rooms: Dependencies, options: Options, gates: PolicyGates, replanner: Replanner | None
) -> GatedScheduler:
    """Return the loop of a run with gates."""
    if replanner is not None:
        return ReplanningScheduler(state, rooms, options, gates, replanner)
    return GatedScheduler(state, rooms, options, gates)


def approve_or_ask(
    state: RunState,
    gates: PolicyGates,
    selected: frozenset[str] | None,
    record: Callable[[ev.Event], None],
    at: str,
) -> None:
    """Have a run be approved, or record what the whole plan waits for."""
    if state.status != "awaiting_approval":
        return
    if state.gate is None or state.gate.answered is None:
        for event in gates.before_all(state.plan, selected):
            if state.gate is None or isinstance(event, ev.GateAnswered):  # an earlier process may have asked
                record(event)
    if state.gate is None or state.gate.answered is not None:
        record(ev.PlanMoved(at=at, status="approved"))
