"""`planrun report`: a report of any run, rebuilt from its ledger and logs."""

from __future__ import annotations

import click

from planrun.app.inspect import inspect
from planrun.app.pages import baseline_of
from planrun.app.published import opened
from planrun.cliutil import write_stderr
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.output import deliver, from_option
from planrun.cliutil.printing import say_bytes
from planrun.records.reading import BROKEN
from planrun.reports.write import Source, render, rendered

FORMATS = ("text", "markdown", "html", "junit", "json")
DIALECTS = ("default", "jenkins-xunit", "surefire", "ant")


@click.command(short_help="Write a report as HTML, JUnit, markdown, JSON or text.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="What to write."
)
@click.option(
    "--junit-dialect",
    "dialect",
    type=click.Choice(DIALECTS),
    default="default",
    show_default=True,
    envvar="PLANRUN_JUNIT_DIALECT",
    help="The JUnit dialect.",
)
@click.option(
    "-o", "--output", type=click.Path(readable=False), metavar="FILE", help="Write to FILE instead of stdout."
)
@from_option
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def report(run: str, source: str | None, output: str | None, *, as_json: bool, **how: str) -> int:
    """Write a report of RUN (default: the newest run) to stdout, also while it is running or after it was killed.

    Everything comes from the run's ledger and logs, so it can be written again at any time.

    \b
    Examples:
      planrun report
      planrun report last --format html -o report.html
      planrun report last --format markdown >> "$GITHUB_STEP_SUMMARY"
      planrun report 20260131-09 --format junit --junit-dialect surefire -o junit.xml
      planrun report --format json | jq '.steps[] | select(.status == "failed")'
    """
    with opened(run, source) as name:
        data = _rendered(name, "json" if as_json else how["form"], how["dialect"])
    deliver(data, output)
    return 0


def _rendered(run: str, form: str, dialect: str) -> bytes:
    inspected = inspect(run)
    if inspected.reading.condition in BROKEN:
        # The report is incomplete, so it must not be mistaken for the whole run.
        where = f" at line {inspected.reading.line}" if inspected.reading.line else ""
        write_stderr(
            f"planrun: warning: the ledger is {inspected.reading.condition}{where}; the report ends there\n"
        )
    head = inspected.reading.head if inspected.reading.condition == "intact" else ""
    source = Source(state=inspected.state, rundir=inspected.rundir, head=head, dialect=dialect)
    if form == "html":
        source = source.but(baseline=baseline_of(inspected.state, inspected.rundir))
    return rendered(source, form)


def print_ledger(run: str) -> None:
    """Print a run's ledger.json on stdout."""
    inspected = inspect(run)
    say_bytes(render(inspected.state, inspected.rundir, "json"))
