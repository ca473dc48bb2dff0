"""`planrun logs`: the output of the steps of a run."""

from __future__ import annotations

import click

from planrun.app.published import opened
from planrun.cliutil.completion import complete_runs, complete_steps
from planrun.cliutil.output import from_option
from planrun.errors import InvalidInput
from planrun.logs.attempts import Wanted, run_and_steps
from planrun.logs.following import follow as follow_logs
from planrun.logs.printing import Form, print_logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from click.shell_completion import CompletionItem


def _complete(ctx: click.Context, param: click.Parameter, typed: str) -> list[CompletionItem]:
    """Return runs and steps of the last run; after a run its steps."""
    words = tuple(ctx.params.get("words") or ())
    run, _ = run_and_steps(words)
    runs = [] if words else complete_runs(ctx, param, typed)
    ctx.params["run"] = run
    return [*runs, *complete_steps(ctx, param, typed)]


@click.command(short_help="Print the output of the steps of a run.")
@click.argument("words", nargs=-1, metavar="[RUN] [STEP]...", shell_complete=_complete)
@click.option("-f", "--follow", is_flag=True, help="Print what is added, until the run ends.")
@click.option("--failed", is_flag=True, help="Only steps that failed.")
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="The attempt N of each step. Default: the last.",
)
@click.option(
    "-n", "--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each log."
)
@click.option("--head", type=click.IntRange(min=0), metavar="N", help="Only the first N lines of each log.")
@click.option(
    "--no-prefix", is_flag=True, help="Without headings, and without the names of steps before lines."
)
@from_option
@click.option(
    "--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print JSON, one document a line."
)
def logs(
    words: tuple[str, ...],
    source: str | None,
    *,
    follow: bool,
    failed: bool,
    attempt: int | None,
    **form: Any,
) -> int:
    """Print what the steps of RUN wrote, stdout and stderr, in the order in which the steps started.

    RUN is the id of a run, the beginning of one, or `last`. Without one it is the last run: `planrun logs test` prints
    the step `test` of it. STEP is the id of a step; the id of a matrix, a foreach or a used plan stands for all its
    members.

    On a terminal a heading stands above each step; control sequences are removed, colours excepted. Elsewhere each
    line begins with the step, as in `test | 3 passed`. The log of one step has neither, and is written
    elsewhere byte for byte. Secrets are masked, as they are in the log.

    \b
    Examples:
      planrun logs
      planrun logs --failed
      planrun logs last test
      planrun logs last 'test[py=3.12]' --attempt 1
      planrun logs build --tail 20 --follow
      planrun logs 20260131-093000-1f2e3d build > build.log
    """
    given = {
        "--follow": follow,
        "--failed": failed,
        **{f"--{key}": form[key] is not None for key in ("head", "tail")},
    }
    if follow and source:
        raise InvalidInput("--follow and --from exclude each other: logs are published at the end of a run")
    for one, other in (("--head", "--tail"), ("--follow", "--failed"), ("--follow", "--head")):
        if given[one] and given[other]:
            raise InvalidInput(f"{one} and {other} exclude each other")
    run, steps = run_and_steps(words)
    form["prefix"] = not form.pop("no_prefix")
    wanted = Wanted(steps=steps, attempt=attempt or 0, failed=failed)
    try:
        with opened(run, source) as name:
            return (
                follow_logs(name, wanted, Form(**form)) if follow else print_logs(name, wanted, Form(**form))
            )
    except BrokenPipeError:  # click would make it exit code 1
        return 141
