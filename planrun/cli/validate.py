"""`planrun validate`: every problem of one plan or many, in the form that its reader wants."""

from __future__ import annotations

import click

from planrun.app.check import check_all
from planrun.cliutil import write_stderr
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import printable
from planrun.cliutil.findings import say_form, say_text
from planrun.cliutil.printing import say, say_bytes
from planrun.errors import EXIT_INVALID
from planrun.model.groups import number_of
from planrun.plan.printing import closing_hint
from planrun.plan.problems import CODES
from planrun.reports.validate_junit import problems_junit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.app.check import Checked
    from planrun.plan.problems import Problem

FORMATS = ("text", "json", "sarif", "github", "junit")


@click.command(short_help="Report every problem with its line and column.")
@click.argument(
    "plans",
    metavar="PLAN...",
    nargs=-1,
    type=click.Path(readable=False),
    shell_complete=complete_plans,
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Check this policy file, too; repeatable. PLANs may be left out then.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="text for people; json; sarif for code scanning; github for annotations; junit for CI pages.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="The same as --format json.")
@click.option("--strict", is_flag=True, help="End with exit code 2 for warnings, too.")
def validate(
    plans: tuple[str, ...], policies: tuple[str, ...], form: str, *, as_json: bool, strict: bool
) -> int:
    """Check plans and policy files without running or writing anything, and report every problem in one go.

    Exit code 0: all plans are valid. 2: at least one is not (--strict: or has a warning).
    Without PLAN and --policy it checks the plan that `planrun run` takes.

    \b
    Examples:
      planrun validate
      planrun validate plan.yml
      planrun validate plans/*.yml
      planrun validate --policy ci/policy.yml
      planrun validate plan.yml --format sarif > planrun.sarif
      planrun validate plan.yml --format junit > validate.xml
    """
    if not plans and not policies:
        plans = (given(None).file,)
    checked = check_all(plans, policies)
    problems = [problem for one in checked for problem in one.problems]
    form = "json" if as_json else form
    if form == "text":
        _write_text(checked, problems)
    else:
        _write(form, checked, problems)
    if strict and problems:
        return EXIT_INVALID
    return 0 if all(one.steps is not None for one in checked) else EXIT_INVALID


def _write_text(checked: Sequence[Checked], problems: Sequence[Problem]) -> None:
    """Name valid files, then print problems with their source lines; both are the result, so both go to stdout."""
    for one in checked:
        if one.steps is not None and one.policy:
            say(f"{printable(one.file)}: ok, a policy")
        elif one.steps is not None:
            drafts = sum(problem.code == "W305" for problem in one.problems)
            more = f", draft: {drafts} without an action" if drafts else ""
            say(f"{printable(one.file)}: ok, {number_of(one.steps, one.later)}{more}")
    if problems:
        sources = {file: data for one in checked for file, data in one.sources.items()}
        say_text(problems, sources)
        write_stderr(closing_hint(problems))  # advice to people, and no part of the result


def _write(form: str, checked: Sequence[Checked], problems: Sequence[Problem]) -> None:
    if form == "junit":
        # A warning fails nothing, so it is no failed case either.
        errors = [problem for problem in problems if problem.severity == "error"]
        say_bytes(problems_junit([one.file for one in checked], errors))
        return
    say_form(form, problems, CODES)
