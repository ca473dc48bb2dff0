"""`planrun pause` and `planrun cancel` signal the process of a run; `planrun finalize` cleans up after one."""

from __future__ import annotations

import click

from planrun.app.control import cancel as cancel_run
from planrun.app.control import pause as pause_run
from planrun.app.finalize import exit_code
from planrun.app.finalize import finalize as finalize_run
from planrun.cli.report import print_ledger
from planrun.cli.run import finish, ignore_pauses, traced
from planrun.cliutil import write_stderr
from planrun.cliutil.click import tabled
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.failure import printable
from planrun.cliutil.options import ADOPT, APPROVING, RUNNING, parse
from planrun.cliutil.printing import say
from planrun.settings import Settings, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.control import Ended


@click.command(short_help="Cancel a run from another shell, as Ctrl-C does.")
@click.argument("run", shell_complete=complete_runs)
@click.option("--now", is_flag=True, help="Kill its steps at once, as a second Ctrl-C does.")
@click.option(
    "--report-dir",
    type=click.Path(),
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the reports of a paused run go. Default: planrun-out",
)
def cancel(run: str, *, now: bool, report_dir: str | None) -> int:
    """Cancel RUN and wait for its end: steps get 5 seconds, `finally` runs, reports are written.

    The run's own process does this, and ends with exit code 143. A paused run has no process, so
    this command ends it. Exit code 0: it is cancelled. 1: it had ended otherwise. 2: it is not running.

    \b
    Examples:
      planrun cancel last
      planrun cancel 20260131-09 --now
    """
    settings = Settings(report_dir=report_dir) if report_dir else Settings()
    return _report(cancel_run(run, settings, _tell, now=now), "cancelled")


@click.command(short_help="Pause a run until it is resumed.")
@click.argument("run", shell_complete=complete_runs)
def pause(run: str) -> int:
    """Pause RUN: no further step starts, and running steps finish. To continue: `planrun resume RUN`.

    Waits until the run is paused. Its process writes the reports and ends with exit code 5; `finally` does
    not run. Exit code 0: it is paused. 1: it ended before it could be paused. 2: it is not running.

    \b
    Examples:
      planrun pause last
      planrun resume last
    """
    return _report(pause_run(run, _tell), "paused")


def _tell(text: str) -> None:
    write_stderr(f"planrun: {printable(text)}\n")


def _report(ended: Ended, wanted: str) -> int:
    advice = f"; to continue: planrun resume {ended.run}" if ended.status in ("paused", "unfinished") else ""
    say(f"run {ended.run}: {ended.status}{advice}")
    return 0 if ended.status == wanted else 1


_WITHOUT = ("strict", "fail_on_flaky")  # they are about the verdict of a run
_POLICY = next(option for option in APPROVING if option.name == "policy")
FINALIZE = (_POLICY, ADOPT, *[option for option in RUNNING if option.name not in _WITHOUT])


def _run(words: list[str]) -> int:
    run, values = parse(words, FINALIZE, "RUN id (or `last`)")
    ignore_pauses()
    settings = traced(settings_of(values))
    result = finalize_run(run, settings)
    if result is None:
        write_stderr("planrun: nothing to finalize\n")
        if settings.json:
            print_ledger(run)
        return 0
    finish(result, settings)
    return exit_code(result)


finalize = tabled(
    "finalize",
    [click.Argument(["run"], shell_complete=complete_runs)],
    FINALIZE,
    """Roll back an interrupted run, and run its `finally` steps.

    For a run whose process was killed, or ended by a second signal: completed steps with a rollback are undone, the
    `finally` steps that have not run start, and the run gets its end and its reports. No other step starts. A step
    without its required approval is denied. Repeating the command has no effect.

    Exit code 0: cleanup is complete, or was not needed. 1: part of it failed. 2: there is no such run, or it is
    running.

    \b
    Examples:
      planrun finalize last
      planrun finalize 20260131-09 --report-dir out
    """,
    _run,
)
