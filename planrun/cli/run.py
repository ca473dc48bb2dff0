"""`planrun run` (= `execute`), `planrun resume` and `planrun retry`: the hot path, without click."""

from __future__ import annotations

# `_signal` and not `signal`, whose enums take 4 ms to import.
import _signal
import os

from planrun.app.run import RunRequest, execute, secrets_of
from planrun.cliutil import write_stderr
from planrun.cliutil.options import EXECUTE, RESUME, RETRY, WrongLine, parse_all
from planrun.errors import InvalidInput
from planrun.plan.load import PROJECT_FILE, load
from planrun.reports.write import render
from planrun.settings import settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.app.secrets import RunSecrets
    from planrun.app.session import Planner, Result
    from planrun.model.plan import Plan
    from planrun.plan.problems import Problem
    from planrun.settings import Settings


_USUAL = "plan.yml"  # the plan of most folders


def running(words: list[str]) -> int:
    """Run `run [PLAN]`, `resume RUN` or `retry RUN STEP…` with its options; `words` is the whole command line."""
    ignore_pauses()
    verb = {"execute": _execute, "run": _execute, "resume": _resume, "retry": _retry}[words[0]]
    try:
        return verb(words[1:])
    except WrongLine as error:
        raise InvalidInput(f"{error}\n  see: planrun {words[0]} --help") from None


def ignore_pauses() -> None:
    """Have SIGUSR1, which pauses a run, do nothing before there is a run and after it: it would end the process."""
    try:
        _signal.signal(_signal.SIGUSR1, _signal.SIG_IGN)
    except ValueError:  # called from a thread; then no run can be paused either
        return


def _execute(words: list[str]) -> int:
    operands, values = parse_all(words, EXECUTE)
    is_dry, is_watching = values.pop("dry_run", False), values.pop("watch", False)
    if (len(operands) == 1 and operands[0].endswith((".yml", ".yaml"))) or (
        not operands and not os.path.lexists(PROJECT_FILE) and os.path.isfile(_USUAL)
    ):
        named = None
    else:
        from planrun.cliutil.defaultplan import named_by  # costs 4 % of a start

        named = named_by(operands, values, EXECUTE)
    settings = settings_of(values)
    file = named.chosen.file if named else operands[0] if operands else _USUAL
    if is_watching and file == "-":
        raise InvalidInput("--watch needs the file of a plan, not standard input")
    if is_watching and is_dry:
        raise InvalidInput("--watch and --dry-run exclude each other")
    if is_watching and "PLANRUN_WATCHED" not in os.environ:
        from planrun.watch.supervisor import watch  # its runs do not get here

        return watch(["execute", *words], file, settings)
    settings = _of_project(settings)
    plan, warnings = _load(file, settings.but(cache=False) if is_dry else settings)
    if named:
        named.announce(plan)
    elif not operands and not settings.quiet:
        write_stderr(f"planrun: plan: {_USUAL}\n")
    if "PLANRUN_QUEUED" in os.environ:
        from planrun.queue.workers import as_queued  # only what a queue starts

        settings = as_queued(plan, settings)
    secrets = secrets_of(plan)
    try:
        return _start(plan, settings, secrets, warnings, is_dry=is_dry)
    except Exception as error:
        if secrets and secrets.redactor:
            secrets.redactor.mask_error(error)
        raise


def _start(
    plan: Plan, settings: Settings, secrets: RunSecrets | None, warnings: list[Problem], *, is_dry: bool
) -> int:
    if settings.log_level != "error":
        _warn(plan, warnings, secrets)
    params: dict[str, Any] = {}
    if plan.params or settings.params:
        from planrun.plan.keys.params import parse_params

        if secrets:
            secrets.refuse_given(settings.params)
        params = parse_params(plan, settings.params)
    if is_dry:
        from planrun.dryrun.preview import dry_run  # starts nothing

        return dry_run(plan, settings, params, planner)
    settings = traced(settings)
    return finish(
        execute(plan, settings, RunRequest(planner=planner, params=params, secrets=secrets)), settings
    )


def _of_project(settings: Settings) -> Settings:
    """Return settings with those of the project, where the current folder has any."""
    if not os.path.lexists(PROJECT_FILE):
        return settings
    from planrun.app.pruning import of_project  # few folders have settings

    return of_project(settings)


def _load(file: str, settings: Settings) -> tuple[Plan, list[Problem]]:
    """Return the plan in a file and what there is to warn of."""
    warnings: list[Problem] = []
    # A plan bound to a digest is compiled from the file itself: a cached plan brings its own digest.
    cache = settings.cache and not (settings.locked or settings.approvals)
    return load(file, cache=cache, warnings=warnings), warnings


def _warn(plan: Plan, warnings: list[Problem], secrets: RunSecrets | None) -> None:
    warnings = [
        each for each in warnings if each.code != "W305"
    ]  # what is executed without an action is an error
    if warnings:
        from planrun.plan.printing import render_text

        text = render_text(warnings, {plan.file: plan.source})
        write_stderr(secrets.redactor.mask_text(text) if secrets and secrets.redactor else text)


def _resume(words: list[str]) -> int:
    operands, values = parse_all(words, RESUME)
    if len(operands) > 1:
        raise WrongLine(f"takes one RUN id, `last` without one; got {len(operands)}: {' '.join(operands)}")
    run = operands[0] if operands else "last"
    file = values.pop("plan", "")
    if not file and "params" in values:
        raise InvalidInput("--param of resume needs --plan FILE; without it the run keeps its parameters")
    if not file and values.get("locked"):
        raise InvalidInput("--locked of resume needs --plan FILE; without it, the run keeps its plan")
    return _continue(run, values, file=file)


def _retry(words: list[str]) -> int:
    operands, values = parse_all(words, RETRY)
    from planrun.logs.attempts import run_and_steps

    run, steps = run_and_steps(operands)
    if not steps:
        raise WrongLine("needs the STEPs that are to run again, after a RUN id where it is not the last run")
    return _continue(run, values, steps=steps)


def planner() -> Planner:
    """Return what asks models to plan; most runs never call this."""
    from planrun.planner import readiness

    return readiness


def changes(old: Plan, new: Plan) -> Iterable[str]:
    """Return a line for each difference between two plans; `resume --plan` shows them."""
    from planrun.diff.plans import change_lines

    return change_lines(old, new)


def replan(run: str, values: dict[str, Any], steps: tuple[str, ...]) -> int:
    """Have a model plan anew for failed steps of a run, all where none is named, and go on."""
    ignore_pauses()
    return _continue(run, values, replan=steps)


def _continue(
    run: str,
    values: dict[str, Any],
    *,
    file: str = "",
    steps: tuple[str, ...] = (),
    replan: tuple[str, ...] | None = None,
) -> int:
    from planrun.app.resume import ResumeRequest, resume
    from planrun.cliutil.failure import printable

    is_dry = values.pop("dry_run", False)
    settings = _of_project(settings_of(values))
    plan = None
    if file:
        plan, warnings = _load(file, settings.but(cache=False) if is_dry else settings)
        if settings.log_level != "error":
            _warn(plan, warnings, secrets_of(plan))
    request = ResumeRequest(
        report=lambda line: write_stderr(f"planrun: {printable(line)}\n"),
        planner=planner,
        changes=changes,
        plan=plan,
        steps=steps,
        replan=replan,
    )
    if is_dry:
        from planrun.dryrun.preview import dry_resume  # starts nothing

        return dry_resume(run, settings, request)
    settings = traced(settings)
    result = resume(run, settings, request)
    if result is not None:
        return finish(result, settings)
    write_stderr("planrun: the run is finished; nothing to do\n")
    if settings.json:
        from planrun.cli.report import print_ledger

        print_ledger(run)
    return 0


def traced(settings: Settings) -> Settings:
    """Return the settings of a run with what sends its spans, if it is wanted; raises InvalidInput."""
    if not settings.otel:
        return settings
    from planrun.trace.beside import Exporter, require_exporter  # few runs are watched from outside

    require_exporter()
    return settings.but(beside=Exporter)


def finish(result: Result, settings: Settings) -> int:
    """Print what is asked for and return the exit code of a run; raises RecordsLost."""
    if settings.json:
        from planrun.cliutil.printing import say_bytes

        say_bytes(_ledger(result))
    for note in result.notes:
        write_stderr(f"planrun: warning: {note}\n")
    if settings.no_persist or settings.stored_runs:
        from planrun.app.pruning import tidy  # most runs keep everything

        if (note := tidy(result, settings)) and not settings.quiet:
            write_stderr(f"planrun: {note}\n")
    if result.lost:
        raise result.lost
    if result.exit_code == 1 and (result.state.plan.llm or settings.llm_model):
        from planrun.planner.readiness import suggestion  # few plans name a model

        if advice := suggestion(result.state, settings):
            write_stderr(f"planrun: {advice}\n")
    return result.exit_code


def _ledger(result: Result) -> bytes:
    """`ledger.json` as it was written, or as it would have been where nothing can be written."""
    if result.lost:
        return render(result.state, result.rundir, "json", head=result.head)
    with open(result.reports["json"], "rb") as file:
        return file.read()
