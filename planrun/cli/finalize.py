"""`planrun finalize`: do what a run that was cut short still owes."""

from __future__ import annotations

import sys

import click

from planrun.app.finalize import exit_code
from planrun.app.finalize import finalize as catch_up
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
    result = catch_up(run, settings)
    if result is None:
        sys.stderr.write("planrun: nothing is owed\n")
        if settings.json:
            print_ledger(run)
        return 0
    finish(result, settings)
    return exit_code(result)


finalize = tabled(
    "finalize",
    [click.Argument(["run"], shell_complete=complete_runs)],
    FINALIZE,
    """Undo what a run that was cut short did, and run its `finally` steps.

    For a run whose process was killed, or that a signal left no time: what completed and has a rollback is undone,
    the `finally` steps that have not run do, and the run gets its end and its reports. None of its steps start.
    What needs an approval that nobody gave is denied. A second time there is nothing to do.

    Exit code 0: all that was owed was done, or nothing was. 1: some of it failed. 2: there is no such run, or it
    goes on.

    \b
    Examples:
      planrun finalize last
      planrun finalize 20260131-09 --report-dir out
    """,
    _run,
)
