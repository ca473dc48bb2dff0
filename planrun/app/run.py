"""Execute a plan: from the loaded plan to the exit code, with everything recorded and reported."""

from __future__ import annotations

from planrun.app.session import Session
from planrun.approval.digest import named_plan, review
from planrun.engine.scheduler import Options
from planrun.model import events as ev
from planrun.model.state import RunState
from planrun.records import rundir as records
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.app.admission import Admission
    from planrun.app.secrets import Vault
    from planrun.app.session import Result
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings

    Policies = Sequence[Mapping[str, Any]]


def vault_of(plan: Plan, model: str = "") -> Vault | None:
    """Return what has to be kept secret; None for most plans, which then pay nothing for it.

    `model`: the one that the caller names; whoever may ask one has credentials for it.
    """
    if not (plan.secrets or plan.llm or model) and plan.inherit_env != "all":
        return None
    from planrun.app.secrets import open_vault

    return open_vault(plan)


def _model_asked(plan: Plan, settings: Settings) -> str:
    """The model that the caller names, where this run may ask it: a variable is often set for a whole job."""
    asks = settings.llm_model and (settings.expand or any(step.replan for step in plan.steps))
    return settings.llm_model if asks else ""


def _check_secrets(vault: Vault, plan: Plan, params: dict[str, Any], selected: frozenset[str] | None) -> None:
    """Raise InvalidInput for a secret that would be recorded, InvalidPlan for one that has no value and is needed."""
    vault.refuse(plan, params)
    if vault.absent:
        from planrun.app.required import require_secrets  # only where one has no value

        require_secrets(plan, params, vault.absent, selected)


def execute(  # noqa: PLR0915 - goes with the planner port
    plan: Plan,
    settings: Settings,
    params: dict[str, Any],
    workspace: str = "",
    *,
    vault: Vault | None = None,
) -> Result:
    """Run a plan in a new run directory; raises PlanrunError before anything runs when it cannot.

    `vault`: the plan's secrets, where the caller knows them already.
    """
    wanted = settings.selection()
    unfinished = [step.id for step in plan.steps if step.kind == "abstract"]
    if unfinished and settings.skip_abstract:
        wanted["skip"] = [*wanted.get("skip", ()), *unfinished]
    selected = None
    if wanted:
        from planrun.app.selection import select  # few runs are about a part of their plan

        selected = select(plan, wanted)
        unfinished = [name for name in unfinished if selected is None or name in selected]
    if unfinished:
        from planrun.planner.readiness import require_actions

        require_actions(plan, settings, unfinished)
    model = _model_asked(plan, settings)
    vault = vault or vault_of(plan, model)
    if vault:
        _check_secrets(vault, plan, params, selected)
    admission = admission_of(plan, settings)
    if admission and vault:
        admission.refuse(vault)
    limited: dict[str, Any] = {}
    if plan.llm or model:
        from planrun.planner.readiness import limits_on_record  # few runs may ask a model

        limited = limits_on_record(plan, settings, admission)
    with Session(settings, workspace or current_folder()) as session:
        session.vault, session.admission = vault, admission
        run = settings.run or records.new_run_id()
        session.claim(run, plan)
        session.prepare_reports()
        reviewed = review(plan, params, session.workspace)
        session.refuse_drift(plan, params, reviewed)
        rundir = records.create(records.home(session.workspace), run, plan.source)
        ledger = records.open_ledger(rundir, beside=_keep(rundir, plan, reviewed.contents, admission))
        state = RunState(vault.masked(plan) if vault else plan)
        opening = session.opening(plan, params, wanted, named_plan(plan, reviewed))
        if vault:
            opening["options"]["secrets"] = {**vault.notice(plan, selected), "missing": {}}
        opening["options"] |= (admission.options(plan, settings) if admission else {}) | limited
        session.recall(state.plan, opening)
        session.record(state, ledger, ev.RunStarted(run=run, status=state.status, **opening))
        session.record(state, ledger, ev.PlanMoved(at=session.clock.stamp(), status="awaiting_approval"))
        steps = session.steps(state, rundir, opening)
        if unfinished:
            from planrun.app.selection import with_pieces
            from planrun.planner.prepare import make_concrete  # few plans have such steps

            make_concrete(session, state, ledger, steps, opening)
            selected = with_pieces(state.plan, selected)
        gates = session.admit(state, ledger, steps, opening, selected)
        if ledger.lost and not ledger.records:
            records.discard(rundir)
            raise ledger.lost
        # Not synced yet: the scheduler does it while the first steps run, and before one that is not idempotent.
        return session.drive(state, ledger, steps, scheduler_options(session, plan, selected), gates)


def _keep(
    rundir: str, plan: Plan, scripts: Mapping[str, bytes], admission: Admission | None
) -> tuple[str, ...]:
    """Keep what the first event names: scripts, files that the plan uses, policies.

    Returns the names that have to survive a power cut.
    """
    if admission:
        admission.keep(rundir)
    if not scripts and not plan.files:
        return ()
    from planrun.records.inputs import add_files, add_scripts  # few plans have any

    kept = add_scripts(rundir, scripts) if scripts else ()
    return kept + (add_files(rundir, plan.files) if plan.files else ())


def admission_of(plan: Plan, settings: Settings, rundir: str = "", before: Policies = ()) -> Admission | None:
    """Return who is to be let in, None where all are, at no cost; `before`: what a run in `rundir` recorded."""
    if not (plan.policy or plan.llm or settings.gates or before) and not any(map(_asks, plan.steps)):
        return None
    from planrun.app.admission import Admission

    return Admission(plan, settings, rundir, before)


def _asks(step: Step) -> bool:
    wants = step.kind in ("ask", "decide", "abstract") or step.on_failure in ("ask", "replan")
    return wants or step.origin != "file"


def scheduler_options(session: Session, plan: Plan, selected: frozenset[str] | None) -> Options:
    """What the command line and the plan say about the order of things."""
    return Options(
        jobs=session.jobs(plan),
        schedule=plan.schedule,
        selected=selected,
        strict=session.settings.strict,
        fail_on_flaky=session.settings.fail_on_flaky,
        rollback=not session.settings.no_rollback,
        seconds=session.known.weights if session.known else {},
    )
