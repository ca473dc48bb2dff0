"""`planrun lint`: advice about valid plans, and a better order of their steps."""

from __future__ import annotations

import click

from planrun.cliutil.click import replace_file, tell
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import printable
from planrun.cliutil.findings import say_form, say_text
from planrun.cliutil.printing import say
from planrun.errors import EXIT_FAILED, EXIT_INVALID, InvalidPlan
from planrun.lint.codes import ADVICE
from planrun.lint.lint import advise, reordered
from planrun.plan.problems import CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.lint.lint import Advised
    from planrun.plan.problems import Problem

FORMATS = ("text", "json", "sarif", "github")


@click.command(short_help="Report risks and mistakes in valid plans.")
@click.argument(
    "plans",
    metavar="PLAN...",
    nargs=-1,
    type=click.Path(readable=False),
    shell_complete=complete_plans,
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="text for people; json; sarif for code scanning; github for annotations.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="The same as --format json.")
@click.option("--ignore", metavar="CODE", multiple=True, help="Leave out advice of this code; repeatable.")
@click.option("--strict", is_flag=True, help="End with exit code 1 when there are findings.")
@click.option(
    "--fix", is_flag=True, help="Put the longest path first in the file (L412); nothing else is changed."
)
def lint(  # noqa: PLR0913 - one for each option
    plans: tuple[str, ...], form: str, ignore: tuple[str, ...], *, as_json: bool, strict: bool, fix: bool
) -> int:
    """Give advice about valid plans: dangers, attempts, waits, leftovers. Nothing runs.

    Exit code 0 also with findings (--strict: 1). 2: a plan is not valid. Suppress rules with
    `x-lint: {ignore: [L403]}` in the plan. Without PLAN it is about the plan that `planrun run` takes.

    \b
    Examples:
      planrun lint
      planrun lint plan.yml
      planrun lint plans/*.yml --strict --ignore L411
      planrun lint plan.yml --format sarif > planrun.sarif
      planrun lint plan.yml --fix
    """
    plans = plans or (given(None).file,)
    if fix:
        for file in dict.fromkeys(plans):
            _fix(file)
    advised = [advise(file, ignore) for file in dict.fromkeys(plans)]
    problems = [problem for one in advised for problem in one.problems]
    form = "json" if as_json else form
    if form == "text":
        _write_text(advised, problems)
    else:
        say_form(form, problems, {**CODES, **ADVICE})
    if not all(one.is_plan for one in advised):
        return EXIT_INVALID
    return EXIT_FAILED if strict and problems else 0


def _fix(file: str) -> None:
    try:
        found = reordered(file)
    except InvalidPlan:
        return  # its problems are reported below
    if found is not None:
        before, after, order = found
        replace_file(file, after, before)
        tell(f"{file}: reordered steps: {', '.join(order)}")


def _write_text(advised: Sequence[Advised], problems: Sequence[Problem]) -> None:
    for one in advised:
        if not one.problems:
            say(f"{printable(one.file)}: no findings")
    if problems:
        sources = {file: data for one in advised for file, data in one.sources.items()}
        say_text(problems, sources)
