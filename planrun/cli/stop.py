"""`planrun cancel` and `planrun pause`: tell the process that works on a run, from another shell."""

from __future__ import annotations

import sys

import click

from planrun.app.control import cancel as stop
from planrun.app.control import pause as rest
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.control import Ended


@click.command(short_help="End a run from another shell, as Ctrl-C does.")
@click.argument("run", shell_complete=complete_runs)
@click.option("--now", is_flag=True, help="Give its steps no time: what a second Ctrl-C does.")
@click.option(
    "--report-dir",
    type=click.Path(),
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the reports of a paused run go. Default: planrun-out",
)
def cancel(run: str, *, now: bool, report_dir: str | None) -> int:
    """Cancel RUN and wait for its end: steps get 5 seconds, `finally` runs, reports are written.

    The process that works on the run does all that, and ends with exit code 143. A paused run, which no process works
    on, is ended by this command. Exit code 0: it is cancelled. 1: it ended in another way just before. 2: it is
    not running.

    \b
    Examples:
      planrun cancel last
      planrun cancel 20260131-09 --now
    """
    settings = Settings(report_dir=report_dir) if report_dir else Settings()
    return _told(stop(run, settings, _tell, now=now), "cancelled")


@click.command(short_help="Have a run start nothing more, until it is resumed.")
@click.argument("run", shell_complete=complete_runs)
def pause(run: str) -> int:
    """Pause RUN: nothing more starts, what runs ends by itself, and `planrun resume RUN` goes on.

    Waits until the run has come to rest. Its process writes the reports and ends with exit code 5; `finally` does
    not run. Exit code 0: it is paused. 1: it ended before it could be paused. 2: it is not running.

    \b
    Examples:
      planrun pause last
      planrun resume last
    """
    return _told(rest(run, _tell), "paused")


def _tell(text: str) -> None:
    sys.stderr.write(f"planrun: {printable(text)}\n")


def _told(ended: Ended, wanted: str) -> int:
    goes_on = f"; planrun resume {ended.run} goes on" if ended.status in ("paused", "unfinished") else ""
    say(f"run {ended.run}: {ended.status}{goes_on}")
    return 0 if ended.status == wanted else 1
