"""Execute a plan: from the loaded plan to the exit code, with everything recorded and reported."""

from __future__ import annotations

import os

from planrun import __version__
from planrun.app.reviewed import named_plan, review
from planrun.app.settings import ci_context, current_folder, default_jobs
from planrun.clock import SystemClock
from planrun.engine.scheduler import Options, Rooms, Scheduler
from planrun.errors import EXIT_WAITING, RecordsLost
from planrun.executors.local import LocalExecutor
from planrun.executors.mark import Owner
from planrun.executors.signals import SignalInbox
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.records import rundir as records
from planrun.records.lock import WorkspaceHeld, WorkspaceLock
from planrun.reports.console import console
from planrun.reports.write import write_reports
from planrun.steps.environment import MODEL_CREDENTIALS, caller_environment, withheld
from planrun.steps.render import shell_on
from planrun.steps.runner import Place, Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self

    from planrun.app.admission import Admission
    from planrun.app.gates import PolicyGates
    from planrun.app.planning.preparing import Preparation
    from planrun.app.planning.replanning import Replanner
    from planrun.app.reviewed import Reviewed
    from planrun.app.secrets import Vault
    from planrun.app.settings import Settings
    from planrun.model.plan import Plan, Step
    from planrun.ports import Masks, Sink

    Policies = Sequence[Mapping[str, Any]]
    Chosen = frozenset[str] | None  # steps that may run; None: all
    from planrun.records.ledger import Ledger


class Result(Record):
    """How a run ended and where its records are."""

    state: RunState
    exit_code: int
    rundir: str
    head: str  # hash of the ledger's last line
    reports: Mapping[str, str]  # format to path
    lost: RecordsLost | None = None  # what could not be written; to be raised when all else was done


class Session:
    """What a run and a resumed run have in common: workspace, lock, ledger, rooms and reports."""

    def __init__(self, settings: Settings, workspace: str) -> None:
        self.settings = settings
        self.workspace = workspace
        self.clock = SystemClock()
        self.inbox = SignalInbox()
        self.lock = WorkspaceLock(records.home(workspace))
        self.vault: Vault | None = None  # None: there is nothing to keep secret
        self.admission: Admission | None = None  # None: every step may start
        self.replanner: Replanner | None = None  # None: no failure is planned anew
        self.halted: Preparation | None = None  # what kept the run from starting; None: nothing did
        self._environment: tuple[dict[str, str], tuple[str, ...]] | None = None

    @property
    def masks(self) -> Masks | None:
        """What lies over everything that is written."""
        return self.vault.veil if self.vault else None

    def __enter__(self) -> Self:
        self.inbox.open()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self.replanner:
            self.replanner.close()
        self.inbox.close()
        self.lock.release()
        if error is not None and self.vault and self.vault.veil:
            self.vault.veil.mask_error(error)

    def record(self, state: RunState, ledger: Ledger, event: ev.Event) -> None:
        """Apply and record an event that happens outside of the scheduler."""
        if self.masks:
            event = self.masks.mask_event(event)
        state.apply(event)
        ledger.append(event)

    def claim(self, run: str) -> None:
        """Take the workspace for a run, when another one has it as soon as --wait-lock allows.

        Raises InvalidInput that names the holder, Interrupted, RecordsLost.
        """
        try:
            self._take(run)
        except WorkspaceHeld as held:
            if not self.settings.wait_lock:
                raise
            from planrun.app.waiting import wait  # few runs wait

            wait(lambda: self._take(run), held, self.settings.wait_lock, self.inbox)

    def _take(self, run: str) -> None:
        self.lock.acquire(
            f"run {run}, process {os.getpid()} on {os.uname().nodename}, since {self.clock.stamp()}"
        )

    def take_over(self, options: Mapping[str, Any]) -> None:
        """Keep what the run was started with in force when it is resumed."""
        kept = {name: True for name in ("strict", "fail_on_flaky") if options.get(name)}
        self.settings = self.settings.but(**kept)

    def refuse_drift(self, plan: Plan, params: dict[str, Any], reviewed: Reviewed) -> None:
        """Raise Denied when a run has to be what is locked and is not, InvalidInput when there is no lock."""
        if not self.settings.locked:
            return
        from planrun.app.locking import lock_of, require_locked  # few runs are

        ceilings = self.admission.recorded()["ceilings"] if self.admission else ()
        require_locked(plan, lock_of(plan, params, reviewed), ceilings)

    def prepare_reports(self) -> None:
        """Make the report folder; raises RecordsLost now, and not after everything ran, when it cannot be written."""
        folder = os.path.join(self.workspace, self.settings.report_dir)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise RecordsLost(f"cannot make the report folder {folder}: {error.strerror}") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RecordsLost(f"cannot write to the report folder {folder}")

    def report(self, state: RunState, rundir: str, head: str) -> tuple[dict[str, str], RecordsLost | None]:
        """Write the reports of a run; returns the paths of those that are there, and what could not be written."""
        folder = os.path.join(self.workspace, self.settings.report_dir)
        return write_reports(state, rundir, folder, head=head, dialect=self.settings.junit_dialect)

    def opening(
        self, plan: Plan, params: dict[str, Any], selection: Mapping[str, Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The fields that the first event of a run and that of its resumption share; `named`: their `plan`."""
        environ = os.environ
        _, left_out = self._caller_environment(plan)
        return {
            "at": self.clock.stamp(),
            "planrun": __version__,
            "plan": dict(named),
            "params": params,
            "context": ci_context(environ),
            "options": {
                "jobs": self.jobs(plan),
                "schedule": plan.schedule,
                "selection": dict(selection),
                "strict": self.settings.strict,
                **{name: True for name in ("locked", "expand") if getattr(self.settings, name)},
                "fail_on_flaky": self.settings.fail_on_flaky,
                "inherit_env": plan.inherit_env,
                "env_left_out": left_out,
                "given": sorted({word.partition("=")[0] for word in self.settings.params}),
                "memory": self._hide(plan),
            },
            "pid": os.getpid(),
            "host": os.uname().nodename,
        }

    def jobs(self, plan: Plan) -> int:
        """How many attempts run at once: what was asked for, never more than the plan allows."""
        jobs = self.settings.jobs or default_jobs()
        most = plan.limits.max_parallel
        return min(jobs, most) if most else jobs

    def steps(self, state: RunState, rundir: str, opening: Mapping[str, Any]) -> Steps:
        """The step runner of this run, which starts or goes on with the event whose fields `opening` has."""
        plan = state.plan
        env, _ = self._caller_environment(plan)
        place = Place(
            run=os.path.basename(rundir),
            workspace=self.workspace,
            rundir=rundir,
            env=env,
            shell=shell_on(env.get("PATH", os.defpath)),
            context=opening["context"],
            scripts=opening["plan"].get("scripts", {}),
        )
        if self.vault:
            vault = self.vault
            place = place.but(secrets=vault.declared, absent=vault.absent, masks=vault.veil)
        return Steps(place)

    def _caller_environment(self, plan: Plan) -> tuple[dict[str, str], tuple[str, ...]]:
        """What steps inherit, and what was left out; sorted out once."""
        if self._environment is None:
            asks = plan.inherit_env == "all" and (plan.llm or self.settings.llm_model)
            secrets = (*plan.secrets, *MODEL_CREDENTIALS) if asks else plan.secrets
            self._environment = caller_environment(plan.inherit_env, os.environ, secrets)
        return self._environment

    def _hide(self, plan: Plan) -> str:
        """Hide from the steps to come what only some of them get, or none; returns how far the system lets us."""
        names = withheld(os.environ, self._caller_environment(plan)[0], plan.secrets)
        if not names:
            return "nothing to hide"
        from planrun.executors.shield import hide  # loads a library

        return hide(names)

    def drive(
        self,
        state: RunState,
        ledger: Ledger,
        steps: Steps,
        options: Options,
        gates: PolicyGates | None = None,
    ) -> Result:
        """Run what is pending, write the reports and say how it ended and what could not be written.

        A run that awaits its approval starts nothing, nor does one whose steps could not be made concrete.
        """
        rundir = steps.place.rundir
        screen = (
            self.halted.screen if self.halted else console(state, rundir, self.settings, masks=self.masks)
        )
        if self.halted:
            code, lost = self.halted.code, ledger.lost
        elif state.status == "awaiting_approval":
            if state.gate and state.gate.opened:
                screen.on_event(state.gate.opened, state)
            ledger.sync()
            code, lost = EXIT_WAITING, ledger.lost
        else:
            scheduler = self._scheduler(state, self._rooms(ledger, steps, screen), options, gates)
            code, lost = scheduler.run(), scheduler.lost
        if gates:
            gates.close()
        ledger.close()
        paths, unwritten = self.report(state, rundir, ledger.head)
        lost = lost or unwritten
        try:
            screen.close(state, paths, ledger.head)
        except RecordsLost as error:
            lost = lost or error
        if lost and self.vault and self.vault.veil:
            self.vault.veil.mask_error(lost)
        return Result(state=state, exit_code=code, rundir=rundir, head=ledger.head, reports=paths, lost=lost)

    def _scheduler(
        self, state: RunState, rooms: Rooms, options: Options, gates: PolicyGates | None
    ) -> Scheduler:
        if gates is None:
            return Scheduler(state, rooms, options)
        from planrun.app.admission import scheduler  # few runs have gates

        return scheduler(state, rooms, options, gates, self.replanner)

    def _rooms(self, ledger: Ledger, steps: Steps, screen: Sink) -> Rooms:
        rundir = steps.place.rundir
        listing = os.path.join(self.workspace, records.HOME, records.PLACED)
        owner = Owner(run=steps.place.run, workspace=self.workspace, listing=listing)
        logs = os.path.join(rundir, "logs")
        executor = LocalExecutor(inbox=self.inbox, logs=logs, masks=self.masks, owner=owner)
        if self.lock.used_before:
            executor.clear()
        return Rooms(
            executor=executor,
            steps=steps,
            journal=ledger,
            sinks=(screen,),
            clock=self.clock,
            inbox=self.inbox,
            holds=steps.holds,
            masks=self.masks,
        )

    def admit(
        self, state: RunState, ledger: Ledger, steps: Steps, opening: Mapping[str, Any], selected: Chosen
    ) -> PolicyGates | None:
        """Return the gates of a run, and have it be approved, or record what it waits for as a whole."""

        def record(event: ev.Event) -> None:
            self.record(state, ledger, event)

        if self.admission is None or self.halted:
            if state.status == "awaiting_approval":
                record(ev.PlanMoved(at=self.clock.stamp(), status="approved"))
            return None
        from planrun.app.admission import move_on

        gates = self.admission.gates(opening, steps, self.clock, self.vault)
        self.replanner = self.admission.replanner(self, state, steps, gates, opening)
        self.admission.keep(steps.place.rundir)
        move_on(state, gates, selected, record, opening["at"])
        return gates


def vault_of(plan: Plan, model: str = "") -> Vault | None:
    """Return what has to be kept secret; None for most plans, which then pay nothing for it.

    `model`: the one that the caller names; whoever may ask one has credentials for it.
    """
    if not (plan.secrets or plan.llm or model) and plan.inherit_env != "all":
        return None
    from planrun.app.secrets import open_vault

    return open_vault(plan)


def execute(
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
    if unfinished := any([step.kind == "abstract" for step in plan.steps]):  # noqa: C419 - half the time
        from planrun.app.planning.readiness import require_actions

        require_actions(plan, settings)
    vault = vault or vault_of(plan, settings.llm_model)
    if vault:
        vault.refuse(plan, params)
    wanted = settings.selection()
    selected = None
    if wanted:
        from planrun.app.selection import select  # few runs are about a part of their plan

        selected = select(plan, wanted)
    admission = admission_of(plan, settings)
    if admission and vault:
        admission.refuse(vault)
    limited: dict[str, Any] = {}
    if plan.llm or settings.llm_model:
        from planrun.app.planning.limiting import limits_on_record  # few runs may ask a model

        limited = limits_on_record(plan, settings, admission)
    with Session(settings, workspace or current_folder()) as session:
        session.vault, session.admission = vault, admission
        run = records.new_run_id()
        session.claim(run)
        session.prepare_reports()
        reviewed = review(plan, params, session.workspace)
        session.refuse_drift(plan, params, reviewed)
        rundir = records.create(records.home(session.workspace), run, plan.source)
        kept = records.add_scripts(rundir, reviewed.contents) if reviewed.contents else ()
        ledger = records.open_ledger(rundir, beside=kept)
        state = RunState(vault.masked(plan) if vault else plan)
        opening = session.opening(plan, params, wanted, named_plan(plan, reviewed))
        if vault:
            opening["options"]["secrets"] = vault.notice(plan, selected)
        opening["options"] |= (admission.options(plan, settings) if admission else {}) | limited
        session.record(state, ledger, ev.RunStarted(run=run, **opening))
        session.record(state, ledger, ev.PlanMoved(at=session.clock.stamp(), status="awaiting_approval"))
        steps = session.steps(state, rundir, opening)
        if unfinished:
            from planrun.app.planning.preparing import make_concrete, with_pieces  # few plans have such steps

            make_concrete(session, state, ledger, steps, opening)
            selected = with_pieces(state.plan, selected)
        gates = session.admit(state, ledger, steps, opening, selected)
        if ledger.lost and not ledger.records:
            records.discard(rundir)
            raise ledger.lost
        # Not synced yet: the scheduler does it while the first steps run, and before one that is not idempotent.
        return session.drive(state, ledger, steps, scheduler_options(session, plan, selected), gates)


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
    )
