"""Execute a plan: from the loaded plan to the exit code, with everything recorded and reported."""

from __future__ import annotations

import os

from planrun.app.session import Session
from planrun.approval.digest import named_plan, review
from planrun.engine import Options
from planrun.errors import InvalidInput
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.records import rundir as records
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from planrun.app.admission import Admission
    from planrun.app.secrets import RunSecrets
    from planrun.app.session import Planner, Result
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings

    Names = tuple[str, ...]
    Policies = Sequence[Mapping[str, Any]]


def secrets_of(plan: Plan, model: str = "") -> RunSecrets | None:
    """Return the secrets of a plan; None for most plans, at no cost.

    `model`: the one that the caller names; its credentials are secrets.
    """
    if not (plan.secrets or plan.llm or model) and plan.inherit_env != "all":
        return None
    from planrun.app.secrets import read_secrets

    return read_secrets(plan)


def with_ceilings(secrets: RunSecrets | None, plan: Plan, admission: Admission | None) -> RunSecrets | None:
    """Return the secrets of a run with those that notifications of its ceilings need."""
    names = admission.secret_names if admission else ()
    if not names:
        return secrets
    from planrun.app.secrets import read_secrets

    return read_secrets(plan, more=names)


def _check_secrets(
    secrets: RunSecrets, plan: Plan, params: dict[str, Any], selected: frozenset[str] | None
) -> None:
    """Raise InvalidInput for a secret that would be recorded, InvalidPlan for one that has no value and is needed."""
    secrets.refuse(plan, params)
    if secrets.absent:
        from planrun.app.secrets import require_secrets  # rarely needed

        require_secrets(plan, params, secrets.absent, selected)


class RunRequest(Record):
    """What a caller hands to a new run besides its plan and settings.

    `planner` loads what asks a model; a run that needs none never calls it. `secrets`: the plan's secrets, when the
    caller has opened it. `workspace`: empty: the current folder.
    """

    planner: Callable[[], Planner]
    params: Mapping[str, Any] = {}
    workspace: str = ""
    secrets: RunSecrets | None = None


def execute(plan: Plan, settings: Settings, request: RunRequest) -> Result:
    """Run a plan in a new run directory; raises PlanrunError before anything runs when it cannot."""
    planner, params, secrets = request.planner, dict(request.params), request.secrets
    wanted, selected, abstract = selection_of(plan, settings)
    _require(planner, plan, settings, (abstract, selected))
    asks = settings.llm_model and (settings.expand or any(step.replan for step in plan.steps))
    model = settings.llm_model if asks else ""
    secrets = secrets or secrets_of(plan, model)
    if secrets:
        _check_secrets(secrets, plan, params, selected)
    admission = admission_of(plan, settings)
    secrets = with_ceilings(secrets, plan, admission)
    if admission and secrets:
        admission.refuse(secrets)
    options = admission.options() if admission else {}
    options |= replan_option(planner, admission, plan, settings)
    if plan.llm or model or has_agents(plan):
        options |= budget_option(planner, admission, plan, settings)
    with Session(settings, request.workspace or current_folder()) as session:
        mask_in_ci(settings, secrets)
        session.secrets, session.admission = secrets, admission
        session.confine(plan)
        run = settings.run or records.new_run_id()
        session.claim(run, plan)
        session.connect(plan, run)
        session.prepare_reports()
        reviewed = review(plan, params, session.workspace, recalls=not (admission or settings.locked))
        session.refuse_drift(plan, params, reviewed)
        rundir = records.create(records.home(session.workspace), run, plan.source)
        ledger = records.open_ledger(rundir, beside=_keep(rundir, plan, reviewed.contents, admission))
        state = RunState(secrets.masked(plan) if secrets else plan)
        opening = session.opening(plan, params, wanted, named_plan(plan, reviewed))
        if secrets:
            opening["options"]["secrets"] = {**secrets.notice(plan, selected), "missing": {}}
        opening["options"] |= options
        session.load_durations(state.plan, opening)
        session.record(state, ledger, ev.RunStarted(run=run, status=state.status, **opening))
        session.record(state, ledger, ev.PlanMoved(at=session.clock.stamp(), status="awaiting_approval"))
        steps = session.steps(state, rundir, opening)
        if abstract:
            from planrun.app.selection import with_expanded  # few plans have abstract steps

            session.not_started = planner().make_concrete(session, state, ledger, steps, opening)
            selected = with_expanded(state.plan, selected)
        gates = session.admit(state, ledger, steps, opening, selected)
        if gates and "replan" in opening["options"]:
            session.replanner = planner().replanner(session, state, steps, gates, opening)
        if has_agents(state.plan):
            session.agents = planner().agent_models(session, state, opening)
        if ledger.lost and not ledger.records:
            records.discard(rundir)
            raise ledger.lost
        # Not synced yet: the scheduler does it while the first steps run, and before one that is not idempotent.
        return session.drive(state, ledger, steps, scheduler_options(session, plan, selected), gates)


def _require(
    planner: Callable[[], Planner],
    plan: Plan,
    settings: Settings,
    chosen: tuple[list[str], frozenset[str] | None],
) -> None:
    """Raise InvalidInput where steps need a model and have none; `chosen`: abstract steps, and those that may run."""
    abstract, selected = chosen
    if abstract:
        planner().require_actions(plan, settings, abstract)
    if has_agents(plan, selected):
        planner().require_model(plan, settings)
        if plan.mcp:
            from planrun.app.servers import require_client  # few plans have servers

            require_client(plan)


def selection_of(
    plan: Plan, settings: Settings
) -> tuple[dict[str, list[str]], frozenset[str] | None, list[str]]:
    """Return the selection as it is recorded, the steps that may run (None: all), and the abstract ones of those."""
    wanted = settings.selection()
    abstract = [step.id for step in plan.steps if step.kind == "abstract"]
    if abstract and settings.skip_abstract:
        wanted["skip"] = [*wanted.get("skip", ()), *abstract]
    if settings.shard:
        wanted |= _shard_of(plan, settings)
    if not wanted:
        return wanted, None, abstract
    from planrun.app.selection import select  # few runs select steps

    selected = select(plan, wanted)
    return wanted, selected, [name for name in abstract if selected is None or name in selected]


def _shard_of(plan: Plan, settings: Settings) -> dict[str, list[str]]:
    """Return a shard as a selection; `--skip` leaves steps out of every shard."""
    from planrun.app.sharding import request, selection  # few runs are one of several

    if settings.only or settings.start or settings.until or settings.tag:
        raise InvalidInput("--shard selects the steps itself: without --only, --from, --until and --tag")
    wanted = request(settings.shard, settings.legs, settings.timings, os.environ)
    return selection(plan, wanted, os.path.join(current_folder(), records.HOME))


def replan_option(
    planner: Callable[[], Planner],
    admission: Admission | None,
    plan: Plan,
    settings: Settings,
    failed: Names = (),
) -> dict[str, Any]:
    """Return the option `replan` of the ledger, where the plan or `failed`, steps to replan on request, may need it."""
    if not admission:
        return {}
    if not (plan.llm or plan.search or failed or any([step.on_failure == "replan" for step in plan.steps])):  # noqa: C419 - half the time
        return {}
    return planner().replan_option(plan, settings, admission.layers, failed)


def budget_option(
    planner: Callable[[], Planner],
    admission: Admission | None,
    plan: Plan,
    settings: Settings,
    before: Policies = (),
) -> dict[str, Any]:
    """Return the option `budget` of the ledger; `before`: the options that the run recorded so far."""
    ceilings = admission.recorded()["ceilings"] if admission else ()
    return planner().limits_on_record(plan, settings, ceilings, before)


def _keep(
    rundir: str, plan: Plan, scripts: Mapping[str, bytes], admission: Admission | None
) -> tuple[str, ...]:
    """Keep the files that the first event names: scripts, included files, policies.

    Returns the names that must survive a power cut.
    """
    if admission:
        admission.keep(rundir)
    if not scripts and not plan.files:
        return ()
    from planrun.records.inputs import add_files, add_scripts  # few plans have any

    kept = add_scripts(rundir, scripts) if scripts else ()
    return kept + (add_files(rundir, plan.files) if plan.files else ())


def mask_in_ci(settings: Settings, secrets: RunSecrets | None) -> None:
    """Have the CI system mask the secrets of a run where the caller wants it, before anything is printed."""
    if settings.ci_masks:
        from planrun.app.cimasks import announce  # few callers want it

        announce(secrets, on_stderr=settings.json or settings.in_program)


def admission_of(plan: Plan, settings: Settings, rundir: str = "", before: Policies = ()) -> Admission | None:
    """Return the admission of a run, None where every step may start; `before`: the policies recorded in `rundir`."""
    if not (plan.policy or plan.llm or plan.search or settings.gates or before) and not any(
        map(_asks, plan.steps)
    ):
        return None
    from planrun.app.admission import Admission

    return Admission(plan, settings, rundir, before)


def has_agents(plan: Plan, selected: frozenset[str] | None = None) -> bool:
    """Return whether an agent may work in a run of a plan; `selected`: the steps that may run, None: all.

    What a search may take is not selected, and may run whatever is.
    """
    left_out = () if selected is None else [step.id for step in plan.steps if step.id not in selected]
    for step in plan.reviewed():
        found = step.grouping.template if step.kind == "group" else step
        if step.id not in left_out and found is not None and found.action.is_agent:
            return True
    return False


def _asks(step: Step) -> bool:
    wants = (
        step.action.asks
        or step.action.is_agent
        or step.kind == "abstract"
        or step.on_failure in ("ask", "replan")
    )
    return wants or step.origin != "file"


def scheduler_options(session: Session, plan: Plan, selected: frozenset[str] | None) -> Options:
    """Return the scheduler's options from the command line and the plan."""
    return Options(
        jobs=session.jobs(plan),
        schedule=plan.schedule,
        selected=selected,
        strict=session.settings.strict,
        fail_on_flaky=session.settings.fail_on_flaky,
        rollback=not session.settings.no_rollback,
        proposes=session.settings.propose,
        seconds=session.known.weights if session.known else {},
    )
