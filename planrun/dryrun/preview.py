"""The work of `execute --dry-run`: checks an invocation as a run does, and prints what the run would do."""

from __future__ import annotations

import os

from planrun.app.copies import state_of
from planrun.app.inspect import find
from planrun.app.resume import Resumption
from planrun.app.run import admission_of, secrets_of, selection_of
from planrun.app.secrets import require_secrets
from planrun.app.session import Session
from planrun.approval.digest import review
from planrun.approval.gates import asks_for_plan
from planrun.approval.lockfile import lock_of, require_locked
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.dryrun.foresee import Foresight, as_data
from planrun.errors import EXIT_DENIED, EXIT_OK, InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.records.lock import holder
from planrun.records.reading import REFUSED, read_ledger
from planrun.records.rundir import LEDGER
from planrun.reports.describe import edge
from planrun.reports.escape import line
from planrun.settings import current_folder, default_jobs
from planrun.values import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.app.admission import Admission
    from planrun.app.resume import ResumeRequest
    from planrun.app.secrets import RunSecrets
    from planrun.app.session import Planner
    from planrun.dryrun.foresee import Foreseen
    from planrun.model.plan import Plan
    from planrun.settings import Settings


def dry_resume(run: str, settings: Settings, request: ResumeRequest) -> int:
    """Print what a resume would do, and return the exit code 0; raises what a resume raises before its first step."""
    if settings.discard:
        raise InvalidInput(
            "--dry-run and --discard exclude each other: what would be dropped is not decided twice"
        )
    workspace = current_folder()
    rundir = find(run, workspace)
    name = os.path.basename(rundir)
    current = holder(workspace)
    if current is not None and current.run == name:
        raise InvalidInput(f"the run {name} is in progress, in process {current.pid} on {current.host}")
    reading = read_ledger(os.path.join(rundir, LEDGER))
    if reading.condition in REFUSED:
        raise InvalidInput(
            f"the ledger is {reading.condition}: {os.path.join(rundir, LEDGER)}: {reading.detail}"
        )
    session = Session(settings.but(quiet=True), workspace)  # only what differs in the plan is told on stderr
    state = state_of(rundir, reading, cache=False)
    if secrets := secrets_of(request.plan or state.plan, settings.llm_model):
        session.secrets = secrets
        state = state_of(rundir, reading, secrets.masked, cache=False)
    session.refuse_copy(state, name, f"resume {name}")
    resumption = Resumption(session, rundir, state, request)
    if resumption.is_over:
        _print(settings, name, {}, ["the run is finished; nothing would run"])
        return 0
    resumption.require_secrets()
    resumption.show(resumption.event())
    _print(settings, name, resumption.outlook(), list(_rows(resumption.outlook())))
    return 0


def _print(settings: Settings, run: str, outlook: Mapping[str, tuple[str, str]], rows: list[str]) -> None:
    if settings.json:
        steps = [{"id": step, "fate": fate, "why": why or None} for step, (fate, why) in outlook.items()]
        say_json({"dry_run": True, "run": run, "steps": steps})
    else:
        say("\n".join(rows))


def _rows(outlook: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the steps by what becomes of them."""
    for fate, title in (
        ("reused", "kept as they are"),
        ("rerun", "would run again"),
        ("pending", "would run for the first time"),
    ):
        names = [(line(step), why) for step, (each, why) in outlook.items() if each == fate]
        if names and fate == "rerun":
            yield f"{title}:"
            yield from [f"  {step}: {why}" for step, why in names]
        elif names:
            yield f"{title}: {', '.join([f'{step} ({why})' if why else step for step, why in names])}"
    yield "dry run: nothing was started, nothing was written"


_LINES = 20  # of an action
_BY_DEFAULT = "default:auto_approve"  # without any policy every step starts
_VALUE = 200  # characters of a parameter


def dry_run(plan: Plan, settings: Settings, params: dict[str, Any], planner: Callable[[], Planner]) -> int:
    """Print what `execute` would do, and return the exit code: 0, or 3 when a policy denies a step.

    Raises whatever a run raises before its first step: InvalidInput, InvalidPlan, Denied.
    """
    _, selected, abstract = selection_of(plan, settings)
    if abstract:
        planner().require_actions(plan, settings, abstract)
    secrets = secrets_of(plan)
    if secrets:
        secrets.refuse(plan, params)
    admission = admission_of(plan, settings)
    reviewed = review(plan, params, current_folder())
    if settings.locked:
        ceilings = admission.recorded()["ceilings"] if admission else ()
        require_locked(plan, lock_of(plan, params, reviewed), ceilings)
    checked = _Checked(
        plan=plan.but(digest=reviewed.digest),
        settings=settings,
        params=params,
        selected=selected,
        admission=admission,
        secrets=secrets,
    )
    return _Invocation(checked).show()


class _Checked(Record):
    """One command line that a run would accept."""

    plan: Plan
    settings: Settings
    params: dict[str, Any]
    selected: frozenset[str] | None  # steps that may run; None: all
    admission: Admission | None
    secrets: RunSecrets | None


class _Invocation:
    """What a command line would do."""

    def __init__(self, checked: _Checked) -> None:
        plan, settings, admission = checked.plan, checked.settings, checked.admission
        self._plan, self._settings, self._params = plan, settings, checked.params
        self._secrets = checked.secrets
        foresight = Foresight(plan, settings, checked.selected, admission)
        self._steps = foresight.steps()
        self._policy = foresight.policies.policy
        asks = asks_for_plan(foresight.policies.layers)
        is_covered = asks and admission and admission.covers("", plan.digest, foresight.home)
        self._plan_gate = asks[1] if asks and not is_covered else ""
        self._warnings = [*self._missing_secrets(checked.selected), *self._missing_programs()]

    def show(self) -> int:
        """Print it, and return the exit code."""
        denied = any(each.fate == "denied" for each in self._steps)
        code = EXIT_DENIED if denied else EXIT_OK
        if self._settings.json:
            plan = self._plan
            data = {
                "dry_run": True,
                "plan": {
                    "name": plan.name,
                    "file": plan.file,
                    "version": plan.version,
                    "digest": plan.digest,
                },
                "params": self._params,
                "jobs": self._jobs,
                "policy": self._policy,
                "plan_needs_approval": bool(self._plan_gate),
                "steps": [as_data(each) for each in self._steps],
                "warnings": self._warnings,
                "exit_code": code,
            }
            redactor = self._secrets.redactor if self._secrets else None
            say_json(redactor.mask_value(data) if redactor else data)
        else:
            say("\n".join([self._masked(row) for row in self._rows()]))
        return code

    def _masked(self, text: str) -> str:
        redactor = self._secrets.redactor if self._secrets else None
        return printable(redactor.mask_text(text) if redactor else text)

    @property
    def _jobs(self) -> int:
        if self._plan.schedule == "sequential":
            return 1
        return self._settings.jobs or self._plan.limits.max_parallel or default_jobs()

    def _rows(self) -> Iterator[str]:
        steps = self._steps
        yield (
            f"{self._plan.name}: dry run of {len(steps)} step{'' if len(steps) == 1 else 's'}, "
            f"{self._jobs} at a time; nothing starts, nothing is written"
        )
        yield f"  policy: {self._policy}"
        yield from [f"  {name}: {show(value)[:_VALUE]}" for name, value in self._params.items()]
        if self._plan_gate:
            yield f"  before the first step: an approval of the plan, since {self._plan_gate}"
        level = 0
        for each in filter(lambda one: one.starts, steps):
            if each.level != level:
                beside = sum(one.level == each.level and one.starts for one in steps)
                together = f": {beside} steps, {min(beside, self._jobs)} at a time" if beside > 1 else ""
                where = "finally, " if each.step.section == "finally" else ""
                yield f"\n{where}level {each.level}{together}"
                level = each.level
            yield from _step(each)
        place = {step.id: number for number, step in enumerate(self._plan.steps)}
        in_order = sorted(self._steps, key=lambda each: place[each.step.id])
        skipped = [each for each in in_order if each.fate == "skipped"]
        if skipped:
            yield "\nskipped"
            yield from [f"  {each.step.id}: {each.why}" for each in skipped]
        left_out = [each.step.id for each in in_order if each.fate == "left out"]
        if left_out:
            yield f"\nleft out by the selection: {', '.join(left_out)}"
        if self._warnings:
            yield "\nwarnings"
            yield from [f"  {warning}" for warning in self._warnings]
        yield f"\n{self._verdict()}"

    def _verdict(self) -> str:
        would = [each for each in self._steps if each.starts]
        may = sum(each.fate == "may run" for each in would)
        parts = [
            f"{len(would)} of {len(self._steps)} steps would run"
            + (f", {may} of them perhaps" if may else "")
        ]
        parts += [f"denied: {', '.join(names)}"] if (names := self._of_fate("denied")) else []
        parts += [f"waiting for an answer: {', '.join(names)}"] if (names := self._of_fate("waits")) else []
        return "; ".join(parts)

    def _of_fate(self, fate: str) -> list[str]:
        return [each.step.id for each in self._steps if each.fate == fate]

    def _missing_secrets(self, selected: frozenset[str] | None) -> Iterator[str]:
        if self._secrets and self._secrets.absent:
            try:
                require_secrets(self._plan, self._params, self._secrets.absent, selected)
            except InvalidPlan as error:
                for problem in error.problems:
                    yield f"{problem.file}:{problem.line}: {problem.message}; a run would be refused"

    def _missing_programs(self) -> Iterator[str]:
        for each in self._steps:
            yield from [f"{each.step.id}: {name} is not on PATH now" for name in each.absent]


def _step(each: Foreseen) -> Iterator[str]:
    """Yield what a step would do."""
    step = each.step
    notes = [step.risk, _decided(each)]
    if each.cached is not None:
        notes.append(_cached(each))
    yield f"  {step.id}: {', '.join(filter(None, notes))}"
    if each.fate == "may run":
        yield f"      {each.why}"
    after = [edge(each) for each in step.edges if each.on != step.group]
    if after:
        yield f"      after {', '.join(after)}"
    rows = each.action.rstrip("\n").split("\n") if each.action else []
    mark = "$" if step.action.is_script or step.action.is_command else "-"
    yield from [f"      {mark if not number else ' '} {row}" for number, row in enumerate(rows[:_LINES])]
    if len(rows) > _LINES:
        yield f"        … {len(rows) - _LINES} more lines"
    if step.kind == "group":
        yield "      its members are known when it runs"


def _decided(each: Foreseen) -> str:
    decision = each.decision
    if each.fate == "denied" and decision:
        return f"DENIED by {decision.rule}: {decision.reason}"
    if each.needs:
        rule = f" ({decision.rule}: {decision.reason})" if decision and decision.answer == "ask" else ""
        return f"waits for {each.needs}{rule}"
    if decision and decision.answer == "ask":
        return "approved by an approval file"
    if decision is None or decision.rule in ("group", _BY_DEFAULT):
        return ""
    return f"auto-approved ({decision.rule})"


def _cached(each: Foreseen) -> str:
    cached = each.cached
    assert cached is not None
    if cached.hit:
        return f"cached: the result of run {cached.source} is used"
    if cached.hit is None:
        return f"cache: known after {cached.depends_on}" if cached.depends_on else f"cache: {cached.why}"
    return f"not cached: {cached.why}"
