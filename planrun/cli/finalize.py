"""`planrun finalize`: finish the pending rollback and cleanup of an interrupted run."""

from __future__ import annotations

import sys

import click

from planrun.app.finalize import exit_code
from planrun.app.finalize import finalize as finalize_run
from planrun.cli.report import print_ledger
from planrun.cli.run import finish, ignore_pauses
from planrun.cliutil.click import tabled
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.options import ADOPT, APPROVING, RUNNING, parse
from planrun.settings import settings_of

_WITHOUT = ("strict", "fail_on_flaky")  # they are about the verdict of a run
_POLICY = next(option for option in APPROVING if option.name == "policy")
FINALIZE = (_POLICY, ADOPT, *[option for option in RUNNING if option.name not in _WITHOUT])


def _run(words: list[str]) -> int:
    run, values = parse(words, FINALIZE, "RUN id (or `last`)")
    ignore_pauses()
    settings = settings_of(values)
    result = finalize_run(run, settings)
    if result is None:
        sys.stderr.write("planrun: nothing to finalize\n")
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
