"""A run that is going on takes over another version of its plan: kept, reviewed with its scripts, judged anew.

What a run had reviewed when it began stays so: scripts that it keeps copies of are not read again, since an earlier
step may have changed them, and what was not covered before is not covered now. Only what the new version names for the
first time is read.
"""

from __future__ import annotations

from planrun.approval.digest import digest_of, named_plan, review
from planrun.plan.compile.canonical import plain
from planrun.plan.load import load_bytes
from planrun.plan.readers import copies
from planrun.records import inputs
from planrun.records.ledger import sync_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from planrun.actions.prepare import Steps
    from planrun.app.session import Session
    from planrun.approval.digest import Reviewed
    from planrun.approval.gates import PolicyGates
    from planrun.model.plan import Plan
    from planrun.model.policy import Origin
    from planrun.model.state import RunState


class Adoption:
    """How the run of a session goes over to other versions of its plan; `gates`: None for a run without any."""

    def __init__(self, session: Session, steps: Steps, gates: PolicyGates | None) -> None:
        self._session = session
        self._steps = steps
        self._gates = gates

    def next_version(
        self, data: bytes, state: RunState, origin: Origin, rewritten: Collection[str] = ()
    ) -> Plan:
        """Return the plan in `data` as the next version of the run's plan; raises InvalidPlan.

        A step that says what it said before, or whose place is taken, keeps its origin; all others, and those in
        `rewritten`, have `origin`.
        """
        plan = load_bytes(data, state.plan.file, cache=False, read=copies(state.plan.files))
        version = int(state.named.get("version", state.plan.version)) + 1
        vault = self._session.vault
        before = {step.id: step for step in state.plan.steps}  # as it may be shown
        shown = {step.id: step for step in (vault.masked(plan) if vault else plan).steps}
        gone = {name for step in plan.steps for name in step.replaces}
        origins = {
            name: known.origin
            for name, known in before.items()
            if name in shown
            and name not in rewritten
            and (name in gone or plain(known) == plain(shown[name].but(origin=known.origin)))
        }
        return plan.but(
            version=version,
            steps=tuple([step.but(origin=origins.get(step.id, origin)) for step in plan.steps]),
        )

    def adopt(self, plan: Plan, state: RunState) -> dict[str, Any]:
        """Have everything ready for a version that `next_version` made; returns the `plan` of PlanningEnded.

        The copies are on disk when this returns; only the event itself has the state go over. Nothing may run
        meanwhile. Raises RecordsLost, InvalidInput for a script that is none and for a secret in a name.
        """
        vault = self._session.vault
        if vault:
            vault.refuse(plan, state.params)
        reviewed = self._review(plan, state)
        place = self._steps.place
        if reviewed.contents:
            for path in inputs.add_scripts(place.rundir, reviewed.contents):
                sync_path(path)
        inputs.add_plan(
            place.rundir, plan.version, plan.source
        )  # it uses no file that the one before did not
        shown = vault.masked(plan) if vault else plan
        state.versions = {**state.versions, plan.version: shown}
        self._steps.place = place.but(scripts=reviewed.scripts)
        if self._gates:
            self._gates.judge_for(reviewed.digest)
        return named_plan(plan, reviewed)

    def _review(self, plan: Plan, state: RunState) -> Reviewed:
        found = review(plan, state.params, self._steps.place.workspace)
        kept = dict(state.named.get("scripts", {}))
        open_before = dict(state.named.get("uncovered", {}))
        scripts = {
            path: kept.get(path, digest) for path, digest in found.scripts.items() if path not in open_before
        }
        # What a step took away since is no less reviewed: its copy is what runs.
        scripts |= {path: digest for path, digest in kept.items() if path in found.uncovered}
        uncovered = {path: why for path, why in found.uncovered.items() if path not in scripts}
        uncovered |= {path: why for path, why in open_before.items() if path in found.scripts}
        fresh = {scripts[path] for path in scripts if path not in kept}
        return found.but(
            digest=digest_of(plan.digest, state.params, scripts),
            scripts=scripts,
            uncovered=uncovered,
            contents={digest: data for digest, data in found.contents.items() if digest in fresh},
        )
