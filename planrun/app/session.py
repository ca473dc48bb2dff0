"""The session of a run, new or resumed: workspace, lock, ledger, dependencies of the scheduler, reports."""

from __future__ import annotations

import os
import sys

from planrun import __version__
from planrun.actions.command import shell_on
from planrun.actions.environment import (
    MODEL_CREDENTIALS,
    RunEnvironment,
    caller_environment,
    trace_of,
    withheld,
)
from planrun.actions.prepare import Steps
from planrun.clock import SystemClock
from planrun.engine import Dependencies, Options
from planrun.engine.scheduler import Scheduler
from planrun.errors import EXIT_WAITING, InvalidInput, RecordsLost
from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.executors.mark import Owner
from planrun.executors.wait import SignalInbox
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.records import rundir as records
from planrun.records.lock import WorkspaceHeld, WorkspaceLock
from planrun.reports.console import console
from planrun.reports.write import make_folder, write_reports
from planrun.settings import ci_context, default_jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol, Self

    from planrun.agents.context import AgentModels
    from planrun.agents.executor import AgentExecutor
    from planrun.app.admission import Admission
    from planrun.app.caching import StepCache
    from planrun.app.clusters import Cluster
    from planrun.app.history import KnownDurations
    from planrun.app.publishing import Publisher
    from planrun.app.sandboxing import Sandboxing
    from planrun.app.secrets import RunSecrets
    from planrun.approval.digest import Reviewed
    from planrun.approval.gates import PolicyGates
    from planrun.approval.prompt import Prompt
    from planrun.approval.rules import Layers
    from planrun.cluster.executor import ClusterExecutor
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.notify.notifier import Notifier
    from planrun.ports import Executor, Masks, Replanner, Sink
    from planrun.records.hostlocks import HostLocks
    from planrun.records.ledger import Ledger
    from planrun.reports.console import Console
    from planrun.reports.progress import Estimates
    from planrun.reports.stream import Lines
    from planrun.settings import Beside, Settings
    from planrun.store.entries import AnyStore

    Chosen = frozenset[str] | None  # steps that may run; None: all

    class RunReplanner(Replanner, Protocol):
        """The engine's port, which the session closes."""

        def close(self) -> None:
            """Leave no process running."""

    class Planner(Protocol):
        """The interface of a run to models that plan. The caller provides a factory, so other runs do not load it."""

        def require_actions(self, plan: Plan, settings: Settings, names: Collection[str]) -> None:
            """Raise InvalidInput for abstract steps, by `names`, that nothing makes concrete before the run."""

        def require_model(self, plan: Plan, settings: Settings) -> None:
            """Raise InvalidInput when the agents of a plan have no model to ask."""

        def make_concrete(
            self, session: Session, state: RunState, ledger: Ledger, steps: Steps, opening: dict[str, Any]
        ) -> NotStarted | None:
            """Have a model write the actions of abstract steps; None when the run can start."""

        def limits_on_record(
            self,
            plan: Plan,
            settings: Settings,
            ceilings: Collection[object],
            before: Sequence[Mapping[str, Any]] = (),
        ) -> dict[str, Any]:
            """Return the option `budget` of the ledger; empty when no model may be called."""

        def replan_option(
            self, plan: Plan, settings: Settings, layers: Layers, failed: tuple[str, ...] = ()
        ) -> dict[str, Any]:
            """Return the option `replan` of the ledger; empty when no failure asks for a replan."""

        def failures_to_replan(
            self, state: RunState, wanted: tuple[str, ...], settings: Settings
        ) -> tuple[str, ...]:
            """Return the failed steps to replan; raises InvalidInput, Denied."""

        def replanner(
            self,
            session: Session,
            state: RunState,
            steps: Steps,
            gates: PolicyGates | None,
            opening: Mapping[str, Any],
        ) -> RunReplanner | None:
            """Return what replans failures during the run; None when the ledger allows no model."""

        def agent_models(self, session: Session, state: RunState, opening: Mapping[str, Any]) -> AgentModels:
            """Return the models that the agents of a run ask."""


# By whoever continues the run, and where they are given.
_KEPT = ("strict", "fail_on_flaky", "no_rollback", "always_shell", "propose", "html")
_SIGNALLED = 128  # exit codes from here on: a signal ended the run
_RECORDED = ("locked", "expand", "no_rollback", "always_shell", "propose", "html")


class Result(Record):
    """How a run ended and where its records are."""

    state: RunState
    exit_code: int
    rundir: str
    head: str  # hash of the ledger's last line
    reports: Mapping[str, str]  # format to path
    lost: RecordsLost | None = None  # what could not be written; the caller raises it after all else is done
    notes: tuple[str, ...] = ()  # warnings about what is shared with other machines


class NotStarted(Record):
    """Return why no step started: the planning before the run failed, was stopped or is paused."""

    exit_code: int
    console: Console  # it showed the planning, and shows the end


class Session:
    """One run, new or resumed: it holds the workspace and what the run needs, and closes all of it at the end."""

    def __init__(self, settings: Settings, workspace: str) -> None:
        self.settings = settings
        self.workspace = workspace
        self.clock = SystemClock()
        self.inbox = SignalInbox()
        self.lock = WorkspaceLock(records.home(workspace))
        self.secrets: RunSecrets | None = None  # None: the run has no secrets
        self.admission: Admission | None = None  # None: the run has no policies and no gates
        self.replanner: RunReplanner | None = None  # None: no failure is replanned
        self.agents: AgentModels | None = None  # None: the run has no agents
        self._agents: AgentExecutor | None = None  # the same
        self.cluster: Cluster | None = None  # None: all steps run on this machine
        self._remote: ClusterExecutor | None = None  # the same
        self.locks: HostLocks | None = None  # of steps; None: no step has a lock
        self.group: HostLocks | None = None  # the run's concurrency group; None: it has none
        self._prompt: Prompt | None = None  # None: no one is asked here
        self._beside: Beside | None = None  # None: nothing works beside the run
        self._lines: Lines | None = None  # None: no events are written
        self.not_started: NotStarted | None = None  # None: the run can start
        self._results: StepCache | None = None  # None: no step is cached
        self._store: AnyStore | None = None  # the cache at a URL; None: there is none
        self._publisher: Publisher | None = None  # None: the run is not published
        self.known: KnownDurations | None = None  # None: not needed
        self._environment: tuple[dict[str, str], tuple[str, ...]] | None = None
        self.trace: Mapping[str, Any] = {}  # of the run that is resumed; empty: it is new
        self._sandboxing: Sandboxing | None = None  # None: no step has a sandbox

    @property
    def masks(self) -> Masks | None:
        """What redacts everything that is written."""
        return self.secrets.redactor if self.secrets else None

    def __enter__(self) -> Self:
        self.inbox.open()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self.replanner:
            self.replanner.close()
        if self.cluster:
            self.cluster.close()
        self.inbox.close()
        self.lock.release()
        for held in filter(None, (self.locks, self.group)):
            held.close()
        if self._store:
            self._store.close()
        if self._publisher:
            self._publisher.close()
        if self._beside:  # last: it may take a moment, and no one waits for the folder meanwhile
            self._beside.close()
        self._mask(error)

    @property
    def _layers(self) -> Layers | None:
        return self.admission.layers if self.admission else None

    def confine(self, plan: Plan) -> None:
        """Find what enforces the sandboxes of the plan and of policies; raises InvalidInput when nothing does."""
        if self.admission is None and not any([step.sandbox or step.kind == "group" for step in plan.steps]):  # noqa: C419 - half the time
            return
        from planrun.app.sandboxing import sandboxing_of  # few plans have sandboxes

        self._sandboxing = sandboxing_of(plan, self._layers, self.workspace, self.settings)

    def connect(self, plan: Plan, run: str, before: Mapping[str, Any] | None = None) -> None:
        """Connect to the cluster that the caller named; raises InvalidInput, Interrupted.

        Waits first until nothing runs on workers for an earlier planrun. `before`: the options of a run that continues,
        whose cluster is taken where the caller names none.
        """
        if self.lock.used_before and os.path.lexists(os.path.join(self.workspace, records.HOME, "cluster")):
            from planrun.cluster.folder import clear  # few runs used a cluster

            clear(records.home(self.workspace), self.inbox.drain)
        if "://" in self.settings.cache_store:
            from planrun.app.caching import shared_store, signature_key  # few caches are at a URL

            signature_key()
            self._store = shared_store(self.settings.cache_store, self.inbox.drain)
        if self.settings.publish:
            from planrun.app.publishing import publisher_of  # few runs are published

            self._publisher = publisher_of(self.settings.publish, self.inbox.drain)
        known = (before or {}).get("executor", {})
        address = self.settings.executor or known.get("address", "")
        if address not in ("", "local"):
            from planrun.app.clusters import cluster_of  # few runs use a cluster

            store = self.settings.cluster_store or known.get("store", "")
            self.settings = self.settings.but(executor=address, cluster_store=store)
            self.cluster = cluster_of(plan, self, run)

    def record(self, state: RunState, ledger: Ledger, event: ev.Event) -> None:
        """Apply and record an event outside of the scheduler."""
        if self.masks:
            event = self.masks.mask_event(event)
        state.apply(event)
        ledger.append(event)

    def claim(self, run: str, plan: Plan | None = None) -> None:
        """Claim the workspace for a run; waits for another run as long as --wait-lock allows.

        `plan`: of a new run, which waits for its concurrency group first.

        Raises InvalidInput that names the holder, Interrupted, RecordsLost.
        """
        if plan is not None and plan.concurrency:
            from planrun.app.concurrency import claim_group  # few plans have one

            self.group = claim_group(plan, run, self.settings.wait_lock, self.inbox)
        try:
            self._take(run)
        except WorkspaceHeld as held:
            from planrun.app.concurrency import wait, ways  # few runs wait

            if not self.settings.wait_lock:
                raise WorkspaceHeld(held.holder, ways(held.holder)) from None
            wait(lambda: self._take(run), held, self.settings.wait_lock, self.inbox)

    def _take(self, run: str) -> None:
        self.lock.acquire(
            f"run {run}, process {os.getpid()} on {os.uname().nodename}, since {self.clock.stamp()}"
        )

    def take_over(self, options: Mapping[str, Any]) -> None:
        """Keep the options with which the run was started."""
        kept = {name: True for name in _KEPT if options.get(name)}
        self.settings = self.settings.but(**kept)

    def refuse_copy(self, state: RunState, run: str, verb: str) -> None:
        """Raise InvalidInput for a run of another folder, unless the caller adopts it.

        The results of the run are in that folder. A run of a version that did not record the folder may continue.
        """
        before, here = state.options.get("workspace", ""), os.path.realpath(self.workspace)
        if before in ("", here) or self.settings.adopt:
            return
        raise InvalidInput(
            f"the run {run} belongs to the folder {before}, not to {here}; if the run was moved or copied here: "
            f"planrun {verb} --adopt"
        )

    def refuse_drift(self, plan: Plan, params: dict[str, Any], reviewed: Reviewed) -> None:
        """Raise Denied when the plan differs from its lockfile under --locked, InvalidInput without a lockfile."""
        if not self.settings.locked:
            return
        from planrun.approval.lockfile import lock_of, require_locked  # few runs are locked

        ceilings = self.admission.recorded()["ceilings"] if self.admission else ()
        require_locked(plan, lock_of(plan, params, reviewed), ceilings)

    def prepare_reports(self) -> None:
        """Make the report folder; raises RecordsLost before anything runs when it cannot be written.

        Raises InvalidInput when the target of --events cannot be written.
        """
        if self.settings.events:
            from planrun.reports.stream import Lines  # few runs are read by programs

            self._lines = Lines(self.settings.events)
        folder = os.path.join(self.workspace, self.settings.report_dir)
        make_folder(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RecordsLost(f"cannot write to the report folder {folder}")

    def report(self, state: RunState, rundir: str, head: str) -> tuple[dict[str, str], RecordsLost | None]:
        """Write the reports of a run; returns the paths of those written, and what could not be written."""
        folder = os.path.join(self.workspace, self.settings.report_dir)
        paths, lost = write_reports(state, rundir, folder, head=head, dialect=self.settings.junit_dialect)
        if paths and (self.settings.html or state.options.get("html")):
            from planrun.app.pages import write_page_of  # few runs ask for it

            lost = write_page_of(state, rundir, head, paths) or lost
        return paths, lost

    def opening(
        self, plan: Plan, params: dict[str, Any], selection: Mapping[str, Any], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the fields that RunStarted and RunResumed share; `named`: their `plan`."""
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
                **{name: True for name in _RECORDED if getattr(self.settings, name)},
                **({"generation": self.settings.generation} if self.settings.generation else {}),
                "fail_on_flaky": self.settings.fail_on_flaky,
                "inherit_env": plan.inherit_env,
                "env_left_out": left_out,
                **self._refused_store(plan),
                **(self._sandboxing.options if self._sandboxing else {}),
                **(self.cluster.recorded() if self.cluster else {}),
                "workspace": os.path.realpath(self.workspace),
                "given": sorted({word.partition("=")[0] for word in self.settings.params}),
                "memory": self._hide(plan),
                "trace": trace_of(environ, self.trace),
            },
            "pid": os.getpid(),
            "host": os.uname().nodename,
        }

    def load_durations(self, plan: Plan, opening: dict[str, Any]) -> None:
        """Load the known durations of a plan's steps, and record those that are used in the first event."""
        if len(plan.steps) > 1:
            from planrun.app.history import known_durations  # a plan of one step starts a little faster

            home = os.path.join(self.workspace, records.HOME)
            self.known = known_durations(
                home, plan, self.jobs(plan), shown=sys.stderr is not None and sys.stderr.isatty()
            )
            opening["options"] |= self.known.recorded()

    def jobs(self, plan: Plan) -> int:
        """Return how many attempts run at once: the option, the plan's limit, or the number of processors or places.

        Under --locked or a ceiling the option can only lower the plan's limit.
        """
        asked, most = self.settings.jobs, plan.limits.max_parallel
        if asked and most and (self.settings.locked or self._has_ceiling):
            return min(asked, most)
        return asked or most or (self.cluster.slots if self.cluster else default_jobs())

    @property
    def _has_ceiling(self) -> bool:
        ceilings = self.admission.recorded()["ceilings"] if self.admission else ()
        return bool(self.settings.policy or ceilings)

    def steps(self, state: RunState, rundir: str, opening: Mapping[str, Any]) -> Steps:
        """Return the step runner of this run; `opening` has the fields of the event that starts or resumes it."""
        plan = state.plan
        env, _ = self._caller_environment(plan)
        trace = opening["options"]["trace"]
        if "TRACEPARENT" in env or "TRACESTATE" in env or "state" in trace:
            from planrun.actions.tracing import carried  # few runs are part of a larger trace

            env = carried(env, trace)
        place = RunEnvironment(
            run=os.path.basename(rundir),
            workspace=self.workspace,
            rundir=rundir,
            env=env,
            shell=shell_on(env.get("PATH", os.defpath)),
            context=opening["context"],
            scripts=opening["plan"].get("scripts", {}),
            hidden=self._hidden,
            trace=trace,
        )
        if self.secrets:
            secrets = self.secrets
            place = place.but(secrets=secrets.declared, absent=secrets.absent, masks=secrets.redactor)
        if self._sandboxing:
            place = place.but(confinement=self._sandboxing.confinement)
        return Steps(place)

    @property
    def _hidden(self) -> tuple[str, ...]:
        """The report folder, when it is in the workspace: its files are no inputs or outputs of steps."""
        folder = self.settings.report_dir
        if folder.startswith(("/", "..")) or folder in ("", "."):
            return ()
        return (os.path.normpath(folder),)

    def inherited(self, plan: Plan) -> dict[str, str]:
        """Return the environment that steps inherit."""
        return self._caller_environment(plan)[0]

    def _caller_environment(self, plan: Plan) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return what steps inherit, and the names that were left out; computed once."""
        if self._environment is None:
            asks = plan.inherit_env == "all" and (plan.llm or self.settings.llm_model)
            declared = (*plan.secrets, *(self.admission.secret_names if self.admission else ()))
            secrets = (*declared, *MODEL_CREDENTIALS) if asks else declared
            self._environment = caller_environment(plan.inherit_env, os.environ, secrets)
        return self._environment

    def _hide(self, plan: Plan) -> str:
        """Hide from later steps the values that only some or none of them get; return how far the system allows it."""
        declared = (*plan.secrets, *(self.admission.secret_names if self.admission else ()))
        names = withheld(os.environ, self._caller_environment(plan)[0], declared)
        if not names:
            return "nothing to hide"
        from planrun.executors.hardening import harden  # loads a library

        return harden(names)

    def drive(
        self,
        state: RunState,
        ledger: Ledger,
        steps: Steps,
        options: Options,
        gates: PolicyGates | None = None,
    ) -> Result:
        """Run the pending steps and write the reports; returns how the run ended and what could not be written.

        A run that awaits its approval starts no step, nor does one whose abstract steps were not made concrete.
        """
        rundir = steps.place.rundir
        if self.known:
            self.known.keep(rundir)
        screen = (
            self.not_started.console
            if self.not_started
            else console(state, rundir, self.settings, self._eta(state, rundir), self.masks)
        )
        self._prompt = self._prompt_of(gates, steps, screen)
        self._start_beside(rundir)
        if self._publisher:
            ledger.flush()
            self._publisher.started(rundir)
        code: int | None = None
        notifiers = self.notifiers(state, steps)
        if self.not_started:
            code = self.not_started.exit_code
        elif state.status == "awaiting_approval":
            code = self._await_approval(state, ledger, screen, gates)
        lost = ledger.lost
        if code is None:
            sinks = (screen, *self._streams(state), *notifiers)
            dependencies = self._dependencies(ledger, steps, sinks, state)
            screen.follow(dependencies.executor, self.inbox.drain)
            scheduler = self._scheduler(state, dependencies, options, gates)
            code, lost = scheduler.run(), scheduler.lost
        if gates:
            gates.close()
        ledger.close()
        if self._lines:
            self._lines.close()
        unused = self._results.finish(sends=code < _SIGNALLED) if self._results else ""
        self.remember(state, rundir)
        paths, unwritten = self.report(state, rundir, ledger.head)
        lost = lost or unwritten
        try:
            screen.close(state, paths, ledger.head)
        except RecordsLost as error:
            lost = lost or error
        for notifier in notifiers:
            notifier.finish(state, code, paths)
        self._mask(lost)
        notes = (*([f"shared cache: {unused}"] if unused else []), *self._publish(rundir))
        return Result(
            state=state,
            exit_code=code,
            rundir=rundir,
            head=ledger.head,
            reports=paths,
            lost=lost,
            notes=notes,
        )

    def _publish(self, rundir: str) -> tuple[str, ...]:
        """Publish a run that ended or waits, where the caller wants it; returns a warning about what was not sent."""
        if self._publisher is None:
            return ()
        self._publisher.rests(rundir)
        problem = self._publisher.problem
        run = os.path.basename(rundir)
        return (f"not published: {problem}; to send it: planrun publish {run} --to URL",) if problem else ()

    def _start_beside(self, rundir: str) -> None:
        if self.settings.beside:
            self._beside = self.settings.beside(rundir)

    def _mask(self, error: BaseException | None) -> None:
        if error is not None and self.secrets and self.secrets.redactor:
            self.secrets.redactor.mask_error(error)

    def notifiers(self, state: RunState, steps: Steps) -> tuple[Notifier, ...]:
        """Return what notifies of the run: nothing for most runs."""
        if not (state.plan.notify or (self.admission and self.admission.notifies)):
            return ()
        from planrun.app.notifying import notifier_of  # few runs notify

        notifier = notifier_of(state, steps, self._layers, self.secrets, self.inbox)
        return (notifier,) if notifier else ()

    def _prompt_of(self, gates: PolicyGates | None, steps: Steps, screen: Console) -> Prompt | None:
        """Return what asks the person at the terminal; None where no one is asked: then open gates wait."""
        if gates is None or self.not_started or self.settings.no_input or self.settings.json:
            return None
        if sys.stdin is None or not sys.stdin.isatty():
            return None
        from planrun.app.asking import prompt_of  # only on a terminal

        refuse = self.secrets.refuse_answers if self.secrets else None
        prompt = prompt_of(gates, steps.place, screen, self.clock, refuse)
        screen.asks = prompt is not None
        return prompt

    def _await_approval(
        self, state: RunState, ledger: Ledger, screen: Console, gates: PolicyGates | None
    ) -> int | None:
        """Ask for the approval of the whole plan, where a person can answer; None once it may run."""
        if state.gate and state.gate.opened:
            screen.on_event(state.gate.opened, state)
        ledger.sync()
        if gates is None or gates.prompt is None:
            return EXIT_WAITING
        from planrun.app.asking import ask_for_plan
        from planrun.app.ending import Recorder

        def record(event: ev.Event) -> None:
            self.record(state, ledger, event)
            screen.on_event(event, state)

        recorder = Recorder(record=record, records=lambda: ledger.records, stamp=self.clock.stamp)
        code = ask_for_plan(state, gates, recorder, self.inbox, screen.tick)
        ledger.sync()
        return code

    def _streams(self, state: RunState) -> list[Sink]:
        """Return the sinks that programs read: the stream of `--events`, and the caller's function."""
        receivers = (self._lines.send if self._lines else None, self.settings.on_event)
        sends: list[Callable[[dict[str, Any]], None]] = [send for send in receivers if send]
        if not sends:
            return []
        from planrun.reports.stream import EventStream  # few runs are read by programs

        return [EventStream(send, state) for send in sends]

    def _eta(self, state: RunState, rundir: str) -> Estimates | None:
        """Return the ETA for the status line; None without a terminal."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        from planrun.app.history import progress_forecast

        mask = self.masks.mask_text if self.masks else None
        return progress_forecast(state, rundir, self.known.seconds if self.known else {}, mask)

    def remember(self, state: RunState, rundir: str) -> None:
        """Add an ended run to the history of its plan; a plan of one step has none."""
        if self.settings.remember_plans and not self.settings.no_persist:
            from planrun.app.planmemory import remember_plan  # few projects ask for it

            mask = self.masks.mask_text if self.masks else str
            remember_plan(state, os.path.basename(rundir), self.workspace, mask)
        if len(state.plan.steps) > 1 and not self.settings.no_persist:
            from planrun.app.history import remember

            remember(os.path.dirname(os.path.dirname(rundir)), os.path.basename(rundir), state)

    def _scheduler(
        self, state: RunState, dependencies: Dependencies, options: Options, gates: PolicyGates | None
    ) -> Scheduler:
        if state.plan.resume:
            from planrun.app.rounds import with_rounds  # few plans have rounds

            dependencies = with_rounds(dependencies, options)
        if gates is None:
            found = Scheduler(state, dependencies, options)
        else:
            from planrun.app.admission import scheduler  # few runs have gates

            found = scheduler(state, dependencies, options, gates, self.replanner)
        if self._agents:
            self._agents.bind(found)
        if self._remote:
            self._remote.bind(found)
        return found

    def _with_cluster(
        self, executor: AgentExecutor | LocalExecutor, steps: Steps, state: RunState
    ) -> Executor:
        if self.cluster:
            self._remote = self.cluster.executor(executor, steps, state, self)
        return self._remote or executor

    def _dependencies(
        self, ledger: Ledger, steps: Steps, sinks: tuple[Sink, ...], state: RunState
    ) -> Dependencies:
        rundir, engine, plan = steps.place.rundir, "", state.plan
        if any([step.container or step.kind == "group" for step in plan.steps]):  # noqa: C419 - half the time
            from planrun.app.engines import engine_of

            engine = engine_of(plan)
        owner = Owner(
            run=steps.place.run,
            workspace=self.workspace,
            listing=os.path.join(self.workspace, records.HOME, records.PLACED),
            engine=engine,
            runs=os.path.dirname(rundir),
        )
        logs = os.path.join(rundir, "logs")
        options = ExecutorOptions(always_shell=self.settings.always_shell)
        if self._sandboxing:
            options = options.but(site=self._sandboxing.site)
        executor = LocalExecutor(inbox=self.inbox, logs=logs, masks=self.masks, owner=owner, options=options)
        if self.lock.used_before:
            executor.clear()
        if self._prompt:
            self._prompt.attach(executor)
            sinks = (self._prompt, *sinks)
        if self.agents and self.admission:
            from planrun.app.agents import executor_of  # few runs have agents

            self._agents = executor_of(self.agents, self.admission.layers, executor, steps)
        return Dependencies(
            executor=self._with_cluster(self._agents or executor, steps, state),
            steps=steps,
            journal=ledger,
            sinks=sinks,
            clock=self.clock,
            inbox=self.inbox,
            holds=steps.holds,
            masks=self.masks,
            locks=self._locks(steps, plan),
            cache=self._cache(steps, plan),
            why_interrupted=lambda: _why_cancelled(steps.place.rundir),
        )

    def _locks(self, steps: Steps, plan: Plan) -> HostLocks | None:
        """Return the host locks, where a step has any; raises RecordsLost when their folder cannot be used."""
        if not any([step.lock or step.kind == "group" for step in plan.steps]):  # noqa: C419 - half the time
            return None
        from planrun.records.hostlocks import HostLocks  # few plans have locks

        self.locks = HostLocks(steps.place.run, plan.limits.locks)
        return self.locks

    def _cache(self, steps: Steps, plan: Plan) -> StepCache | None:
        """Return the cache of step results; None where no step is cached."""
        if not any([step.cache or step.kind == "group" for step in plan.steps]):  # noqa: C419 - half the time
            return None
        from planrun.app.caching import cache_of  # few plans have such steps

        self._results = cache_of(steps, self.settings, self.clock, self._store)
        return self._results

    def _refused_store(self, plan: Plan) -> dict[str, str]:
        """Return, as a recorded option, why this user's store cannot be used by a plan with cached steps."""
        if not any([step.cache for step in plan.steps]):  # noqa: C419 - half the time
            return {}
        from planrun.app.caching import refused_store  # few plans have such steps

        why = refused_store()
        return {"store_refused": why} if why else {}

    def admit(
        self, state: RunState, ledger: Ledger, steps: Steps, opening: Mapping[str, Any], selected: Chosen
    ) -> PolicyGates | None:
        """Return the gates of a run; record its approval, or the gate of the whole plan."""

        def record(event: ev.Event) -> None:
            self.record(state, ledger, event)

        if self.admission is None or self.not_started:
            if state.status == "awaiting_approval":
                record(ev.PlanMoved(at=self.clock.stamp(), status="approved"))
            return None
        from planrun.app.admission import approve_or_ask

        gates = self.admission.gates(opening, steps, self.clock, self.secrets)
        self.admission.keep(steps.place.rundir)
        approve_or_ask(state, gates, selected, record, opening["at"])
        return gates


def _why_cancelled(rundir: str) -> str:
    """Return whether `planrun cancel` interrupts this run, or why the watch that started it does; else empty."""
    try:
        with open(os.path.join(rundir, records.CANCEL), encoding="ascii", errors="replace") as file:
            if file.read(20) == str(os.getpid()):
                return ev.BY_COMMAND
    except OSError:
        pass
    if "PLANRUN_WATCHED" not in os.environ:
        return ""
    try:
        with open(os.environ["PLANRUN_WATCHED"], encoding="utf-8", errors="replace") as file:
            return file.read(500)
    except OSError:
        return ""
