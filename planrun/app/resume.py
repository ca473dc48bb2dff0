"""Resume a run: reuse finished steps that would do the same again, and rerun the others."""

from __future__ import annotations

import os

from planrun.actions.outputs import forget_all_outputs
from planrun.app.admission import Admission
from planrun.app.concurrency import claim_group
from planrun.app.copies import added_by_models, read_last, state_of, state_under
from planrun.app.inspect import discarded, find
from planrun.app.rerun import CLEANUP, RerunPlan, given_up, lost_attempts, refusal
from planrun.app.run import (
    admission_of,
    budget_option,
    has_agents,
    mask_in_ci,
    replan_option,
    scheduler_options,
    secrets_of,
    with_ceilings,
)
from planrun.app.secrets import require_secrets
from planrun.app.selection import select, with_expanded, with_groups
from planrun.app.session import Session
from planrun.approval.digest import files_of, named_plan, review
from planrun.errors import Denied, InvalidInput
from planrun.executors.logs import recover
from planrun.model import events as ev
from planrun.model.record import Record
from planrun.model.rollback import is_past_steps, unended
from planrun.plan.keys.params import keep_params
from planrun.plan.problems import name_hint
from planrun.records import inputs
from planrun.records import rundir as records
from planrun.records.reading import read_ledger, repair
from planrun.reports import facts
from planrun.settings import current_folder
from planrun.sha256 import sha256
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from planrun.app.inspect import Discarded
    from planrun.app.session import Planner, Result
    from planrun.approval.digest import Reviewed
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.records.reading import Reading
    from planrun.settings import Settings

    Report = Callable[[str], object]

_SHOWN = 20  # steps to rerun, one a line
_LASTING = frozenset(("destroys", "publishes"))


class ResumeRequest(Record):
    """The request for a resumed run, and the functions that `app` gets from the caller.

    `report` shows a line to the user before anything runs. `changes` describes what differs between two plans.
    `plan` replaces the run's newest copy. `replan` names failed steps to replan, empty: all; None: none.
    `steps` names steps to rerun with their dependents; empty: all steps that need it.
    """

    report: Report
    planner: Callable[[], Planner]
    changes: Callable[[Plan, Plan], Iterable[str]]
    plan: Plan | None = None
    replan: tuple[str, ...] | None = None
    steps: tuple[str, ...] = ()
    workspace: str = ""


def resume(run: str, settings: Settings, request: ResumeRequest) -> Result | None:
    """Resume a run; None when it is finished and only its reports are written again.

    The run keeps its parameters, its selection, --strict, --fail-on-flaky, --no-rollback and --always-shell.
    Raises InvalidInput for an unknown run, an altered ledger or a workspace that another run holds.
    """
    with Session(settings, request.workspace or current_folder()) as session:
        if inputs.may_say(rundir := find(run, session.workspace), b"concurrency", request.plan):
            _claim_group(session, rundir, request.plan)
        rundir, reading, state = reopen(session, run, request.plan)
        name = os.path.basename(rundir)
        verb = " ".join(["retry", name, *request.steps] if request.steps else ["resume", name])
        session.refuse_copy(state, name, verb)
        broken = _broken(session, rundir, state)
        resumption = Resumption(session, rundir, state, request)
        session.prepare_reports()
        if resumption.is_over:
            if broken:
                request.report(broken.message())
                broken.drop()
            # A kill may have come before planrun wrote them.
            session.remember(state, rundir)
            _, unwritten = session.report(state, rundir, reading.head)
            if unwritten:
                raise unwritten
            return None
        resumption.require_secrets()
        event = resumption.event()
        if broken:
            request.report(broken.message())
            broken.drop()
            event = event.but(discarded=broken.event())
        resumption.show(event)
        resumption.keep_plan()
        contents = resumption.reviewed.contents if resumption.reviewed else {}
        kept = inputs.add_scripts(rundir, contents) if contents else ()
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head, beside=kept)
        session.record(state, ledger, event)
        for name in resumption.given_up():
            run = "" if name in state.undoing else os.path.basename(rundir)
            session.record(state, ledger, given_up(run, name, event.at))
        selected = resumption.selected
        steps, opening = resumption.steps, resumption.opening
        if resumption.is_abstract:
            session.not_started = request.planner().make_concrete(session, state, ledger, steps, opening)
            selected = with_expanded(state.plan, selected)
        gates = session.admit(state, ledger, steps, opening, selected)
        if gates and "replan" in opening["options"]:
            session.replanner = request.planner().replanner(session, state, steps, gates, opening)
        if has_agents(state.plan):
            session.agents = request.planner().agent_models(session, state, opening)
        ledger.sync()
        return session.drive(state, ledger, steps, resumption.options.but(selected=selected), gates)


def _claim_group(session: Session, rundir: str, plan: Plan | None) -> None:
    """Wait for the concurrency group of the plan that the run continues with: a new one, or its newest copy."""
    plan = plan or state_of(rundir, read_ledger(os.path.join(rundir, records.LEDGER))).plan
    if plan.concurrency:
        session.group = claim_group(plan, os.path.basename(rundir), session.settings.wait_lock, session.inbox)


def reopen(session: Session, run: str, plan: Plan | None = None) -> tuple[str, Reading, RunState]:
    """Claim the workspace for an existing run; returns its folder, its ledger and its state.

    `plan`: the one to continue with, whose secrets then count. Raises InvalidInput for an unknown run, an altered
    ledger or a workspace that another run holds.
    """
    rundir = find(run, session.workspace)
    session.claim(os.path.basename(rundir))
    recover(os.path.join(rundir, "logs"))
    reading = repair(os.path.join(rundir, records.LEDGER), discard=session.settings.discard)
    state = state_of(rundir, reading)
    if secrets := secrets_of(plan or state.plan, session.settings.llm_model):
        session.secrets = secrets
        mask_in_ci(session.settings, secrets)
        state = state_of(rundir, reading, secrets.masked)
        forget_all_outputs(os.path.join(rundir, records.OUTPUTS))
    return rundir, reading, state


def _broken(session: Session, rundir: str, state: RunState) -> Discarded | None:
    """Return the end of the ledger to drop on request; raises InvalidInput when it must be kept."""
    if not session.settings.discard:
        return None
    broken = discarded(rundir)
    if broken:
        broken.require_harmless(state)
    return broken


class Resumption:
    """What a resumed run will do: computed, checked and shown before anything is recorded."""

    def __init__(self, session: Session, rundir: str, state: RunState, request: ResumeRequest) -> None:
        assert state.started is not None
        self._session = session
        self._rundir = rundir
        self._before = state
        self._request = request
        self._named = state.named
        self._spent: dict[str, str] = {}
        is_asked = bool(request.plan or request.steps or request.replan is not None)
        self.finishes = is_past_steps(state) and not is_asked
        self._keeps_failures = state.ended is None and state.ending is None and request.plan is None
        self.reviewed: Reviewed | None = None  # None: the scripts that the run recorded remain in force
        self.plan = self._revised(request.plan) if request.plan else state.plan
        _refuse_rejected(state, self.plan)
        if state.started.options.get("expand"):
            session.settings = session.settings.but(expand=True)
        self.failed = self._failed()
        admission = session.admission = self._admission(rundir)
        session.secrets = with_ceilings(session.secrets, self.plan, admission)
        session.confine(self.plan)
        session.connect(self.plan, os.path.basename(rundir), state.options)
        self.opening = self._new_opening(state.started)
        self._refuse_drift()
        if admission:
            self.opening["options"] |= admission.options()
            if session.secrets:
                admission.refuse(session.secrets)
        options, planner = self.opening["options"], request.planner
        options |= replan_option(planner, admission, self.plan, session.settings, self.failed)
        if self.plan.llm or session.settings.llm_model or has_agents(self.plan):
            options |= budget_option(planner, admission, self.plan, session.settings, _options(state))
        self._after = self._under_the_plan()
        asked = {name for event in state.resumed for name in event.retry} | set(request.steps)
        asked |= added_by_models(state)
        chosen = select(self.plan, self.opening["options"]["selection"])
        self.selected = None if chosen is None else with_groups(self.plan, chosen | asked)
        unfinished = [
            step.id
            for step in self.plan.steps
            if step.kind == "abstract" and (self.selected is None or step.id in self.selected)
        ]
        self.is_abstract = bool(unfinished)
        if unfinished:
            request.planner().require_actions(self.plan, session.settings, unfinished)
        if session.secrets:
            notice = session.secrets.notice(self.plan, self.selected)
            self.opening["options"]["secrets"] = {**notice, "missing": {}}  # none is missing
        session.load_durations(self.plan, self.opening)
        options = scheduler_options(session, self.plan, self.selected)
        self.options = options.but(replan=self.failed, cleanup_only=self.finishes)
        self.steps = session.steps(self._after, rundir, self.opening)
        self._again = self._repetition()

    @property
    def is_over(self) -> bool:
        """Whether the run completed and only its cleanup would run again, which was not requested."""
        if self._before.status != "completed" or self._request.steps or self.failed:
            return False
        main = self._after.plan.main()
        return all(step.id not in self._again and self._after.steps[step.id].ended for step in main)

    def event(self) -> ev.RunResumed:
        """Return the event that resumes the run."""
        lost = lost_attempts(self._before)
        steps = self._request.steps
        event = ev.RunResumed(
            rerun=tuple(self._again),
            lost=tuple(lost),
            why=self._again,
            retry=steps,
            **self.opening,
        )
        return event.but(finishes=True) if self.finishes else event

    def require_secrets(self) -> None:
        """Raise InvalidPlan when a step that is about to run lists a secret without a value."""
        secrets = self._session.secrets
        if not secrets or not secrets.absent:
            return
        steps = self._after.steps.items()
        names = {name for name, found in steps if name in self._again or not found.ended}
        if self.finishes:
            names = {name for name in names if self._after.steps[name].step.section == "finally"}
        selected = names if self.selected is None else names & self.selected
        require_secrets(self._after.plan, self._after.params, secrets.absent, selected)

    def outlook(self) -> dict[str, tuple[str, str]]:
        """Return what becomes of each step, and why: `rerun`, `pending` (it never ran), `reused`, `left out`.

        Of a step that is kept although it did not complete, its status stands for the reason.
        """
        found: dict[str, tuple[str, str]] = {}
        for name, known in self._after.steps.items():
            if known.step.kind == "group":
                continue
            if name in self._again:
                found[name] = "rerun", self._again[name]
            elif self.selected is not None and name not in self.selected:
                found[name] = "left out", ""
            else:
                status = "" if known.status == "completed" else known.status
                found[name] = ("reused", status) if known.ended else ("pending", "")
        return found

    def keep_plan(self) -> None:
        """Keep a copy of a plan that is new to the run."""
        if self.plan.version != self._named["version"]:
            if self.plan.files:
                inputs.add_files(self._rundir, self.plan.files)
            inputs.add_plan(self._rundir, self.plan.version, self.plan.source)

    def given_up(self) -> list[str]:
        """Return the steps with `idempotent: false` whose lost attempt may have had its effect.

        Call it after the event is applied: the current plan counts. A killed resume may have recorded the loss, and
        not this.
        """
        before = self._before
        return [
            name
            for name, step_state in [*before.steps.items(), *before.undoing.items()]
            if step_state.status == "pending"
            and step_state.attempts
            and step_state.attempts[-1].status == "lost"
            and not step_state.step.idempotent
            and not self._is_asked_for(name)
        ]

    def _is_asked_for(self, name: str) -> bool:
        """Whether a step was requested since its last attempt was lost."""
        for event in reversed(self._before.resumed):
            if name in event.retry:
                return True
            if name in event.lost:
                return False
        return False

    def show(self, event: ev.RunResumed) -> None:
        """Report what differs and which steps rerun, before any starts."""
        masks = self._session.masks
        lines = [*self._about_the_plan()]
        if not self._session.settings.quiet:
            lines += self._summary(event)
        for line in lines:
            self._request.report(masks.mask_text(line) if masks else line)

    # The plan and its parameters.

    def _revised(self, plan: Plan) -> Plan:
        known = self._named
        is_same = sha256(plan.source).hexdigest() == known["sha256"] and files_of(plan) == known.get(
            "files", {}
        )
        if is_same and not known.get("origins"):
            return self._before.plan  # a caller who names the file has reviewed what a model wrote in it
        secrets = self._session.secrets
        revised = (secrets.masked(plan) if secrets else plan).but(version=int(known["version"]) + 1)
        self._before.versions = {**self._before.versions, revised.version: revised}
        return revised

    def _new_opening(self, started: ev.RunStarted) -> dict[str, Any]:
        state, session = self._before, self._session
        given: set[str] = set((state.resumed[-1] if state.resumed else started).options.get("given", ()))
        params = state.params
        if self._request.plan:
            if session.secrets:
                session.secrets.refuse_given(session.settings.params)
            params = keep_params(self.plan, params, given, session.settings.params)
            if session.secrets:
                session.secrets.refuse(self._request.plan, params)
        session.take_over(started.options)
        named = self._anew(self._request.plan, params) if self._request.plan else self._named
        session.trace = state.options.get("trace", {})
        opening = session.opening(self.plan, params, started.options["selection"], named)
        opening["context"] = started.context
        given |= set(opening["options"]["given"])
        opening["options"]["given"] = sorted(given & {param.name for param in self.plan.params})
        return opening

    def _anew(self, plan: Plan, params: dict[str, Any]) -> dict[str, Any]:
        """Read the scripts again, for a run that resumes with another plan or other parameters."""
        self.reviewed = review(plan, params, self._session.workspace)
        if self.plan is self._before.plan:
            plan = plan.but(version=self.plan.version, file=self._named["file"])
        return named_plan(plan.but(version=self.plan.version), self.reviewed)

    def _failed(self) -> tuple[str, ...]:
        """Return the failures to replan on request."""
        if self._request.replan is None:
            return ()
        planner = self._request.planner()
        return planner.failures_to_replan(self._before, self._request.replan, self._session.settings)

    def _admission(self, rundir: str) -> Admission | None:
        before, settings = policies_of(self._before), self._session.settings
        if not self.failed:
            return admission_of(self.plan, settings, rundir, before)
        return Admission(self.plan, settings, rundir, before)

    def _refuse_drift(self) -> None:
        if self.reviewed and self._request.plan:
            self._session.refuse_drift(self._request.plan, self.opening["params"], self.reviewed)

    def _under_the_plan(self) -> RunState:
        """Return the state under the plan to continue with, if nothing reran."""
        if self.plan is self._before.plan and self.opening["params"] == self._before.params:
            return self._before
        return state_under(self._before, self.plan, self.opening["params"])

    def _repetition(self) -> dict[str, str]:
        if self.finishes:
            return dict.fromkeys(unended(self._before), "lost")
        found = RerunPlan(
            self._before,
            self._after,
            self.steps,
            selected=self.selected,
            holds=self.steps.holds,
        )
        found.keeps_failures = self._keeps_failures
        found.held = self.failed
        self._spent = found.spent
        self._emptied = found.emptied
        if not self._request.steps:
            return found.of_changes()
        for name in self._request.steps:
            if name not in self._after.steps:
                hint = name_hint(name, self._after.steps, "steps")
                raise InvalidInput(f'no step "{name}" in {self.plan.file}' + (f"; {hint}" if hint else ""))
            if name in self._after.replaced:
                others = ", ".join([step.id for step in self.plan.steps if name in step.replaces])
                raise InvalidInput(f'the step "{name}" was replaced by {others}, and cannot run again')
            if why := refusal(self._after.steps[name]):
                raise InvalidInput(f'the step "{name}" {why}; it reruns only when it changes in the plan')
        return found.of_request(self._request.steps)

    # Reports.

    def _file_changed(self) -> bool:
        """Whether the plan file has changed; False when it is gone."""
        try:
            with open(os.path.join(self._session.workspace, self._named["file"]), "rb") as file:
                return sha256(file.read()).hexdigest() not in (self._named["sha256"], read_last(self._before))
        except OSError:
            return False

    def _about_the_plan(self) -> Iterator[str]:
        if self._request.plan:
            old, new = self._before, self._after
            if self.plan is old.plan:
                yield f"{self._requested_file} is already the plan of this run"
            else:
                yield f"{self.plan.file} becomes version {self.plan.version} of this run's plan"
            if self.plan.name != old.plan.name:
                yield f'warning: the plan is named "{self.plan.name}"; this run is one of "{old.plan.name}"'
            yield from [f"  {line}" for line in self._request.changes(old.plan, self.plan)]
            yield from [f"  {line}" for line in _values(old.params, new.params)]
            yield from [f"  {line}" for line in self._kept_defaults()]
        elif self._file_changed():
            file = self._named["file"]
            yield (
                f"{file} has changed; this run keeps its own copy; "
                f"to use the changed file: planrun resume {os.path.basename(self._rundir)} --plan {file}"
            )

    @property
    def _requested_file(self) -> str:
        return self._request.plan.file if self._request.plan else self.plan.file

    def _kept_defaults(self) -> Iterator[str]:
        """Yield a line for each recorded value that hides a changed default."""
        old = {param.name: param.schema.get("default") for param in self._before.plan.params}
        for param in self.plan.params:
            name, default = param.name, param.schema.get("default")
            value = self._after.params.get(name)
            if name in old and default not in (None, old[name], value):
                use = f"--param {name}={show(default)}"
                yield f"the parameter {name} stays {show(value)}; to use the new default: {use}"

    def _summary(self, event: ev.RunResumed) -> Iterator[str]:
        main = self.plan.main()
        if self.finishes:
            left = [step.id for step in self.plan.cleanup() if not self._after.steps[step.id].ended]
            yield f"resuming: no steps to rerun; under finally: {', '.join(left) or 'none'}"
            return
        counted = {found.step.id for found in self._after.counted()}  # as the end of the run counts
        steps = {step.id: self._after.steps[step.id] for step in main if step.id in counted}
        again = {name: why for name, why in self._again.items() if why != CLEANUP}
        # One that waits at a gate did not run either.
        to_come = sum(found.status in ("pending", "paused") or found.at_gate for found in steps.values())
        number = sum(name in counted for name in again)
        reused = len(steps) - number - to_come
        not_run = f", {to_come} not yet run" if to_come else ""
        yield f"resuming: {reused} reused, {number} to rerun{not_run}"
        for name, why in list(again.items())[:_SHOWN]:
            known = self._after.steps[name].step
            lost = name in event.lost and name not in event.retry
            note = ""
            if lost and not known.idempotent:
                note = ", and not idempotent, so it does not run"
            elif lost and not _LASTING.isdisjoint(known.effects):
                note = "; it may have had its effect already; `idempotent: false` fails such a step instead"
            yield f"  {name}: {why}{note}"
        if len(again) > _SHOWN:
            yield f"  and {len(again) - _SHOWN} more; `planrun explain` shows the reason of each"
        for name, why in self._spent.items():
            run = os.path.basename(self._rundir)
            yield f"  {name}: not idempotent, so it does not run again ({why}); planrun retry {run} {name} runs it"
        for name, lost_work in self._emptied.items():
            run = os.path.basename(self._rundir)
            yield (
                f'  the container "{name}" is new: changes that {", ".join(lost_work[:_SHOWN])} made in it are lost; '
                f"`planrun retry {run} STEP` repeats a step, `setup` in the plan does it on each resume"
            )


def policies_of(state: RunState) -> list[Mapping[str, Any]]:
    """Return the policies that a run recorded, from its start to its last resumption."""
    return [known["policy"] for known in _options(state) if known.get("policy")]


def _options(state: RunState) -> list[Mapping[str, Any]]:
    """Return the recorded options of a run, from its start to its last resumption."""
    return [event.options for event in (state.started, *state.resumed) if event is not None]


def _refuse_rejected(state: RunState, plan: Plan) -> None:
    """Raise Denied for a rejected run, InvalidInput for one that a user cancelled; with another plan both go on."""
    answered = state.gate.answered if state.gate else None
    run = state.started.run if state.started else ""
    if state.ended and answered and answered.answer == "rejected" and plan is state.plan:
        reason = f": {answered.reason}" if answered.reason else ""
        raise Denied(f"the run {run} was rejected by {answered.by}{reason}; it stays cancelled")
    if state.ended and state.ending and state.ending.is_final and plan is state.plan:
        raise InvalidInput(
            f"the run {run} was cancelled {ev.BY_COMMAND}; it stays cancelled\n{facts.again(state)}"
        )


def _values(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            before, after = (show(values[name]) if name in values else "nothing" for values in (old, new))
            yield f"~ the parameter {name} was {before} and is {after}"
