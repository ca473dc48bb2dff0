"""`planrun diff`: what changed in the meaning of a plan, for people, programs and pull requests."""

from __future__ import annotations

import os
import sys

import click

from planrun.cli.printing import say, say_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.app.comparing.report import Report

FORMATS = ("text", "json", "markdown")
_COLOURS = {"+": "32", "-": "31", "~": "33", "=": "36", "head": "1", "warning": "33"}


@click.command(short_help="What changed in the meaning of a plan.")
@click.argument("old", type=click.Path(readable=False))
@click.argument("new", type=click.Path(readable=False))
@click.option(
    "--policy",
    type=click.Path(readable=False),
    default="",
    metavar="FILE",
    envvar="PLANRUN_POLICY",
    help="A policy that the plan cannot lift, as for execute; COMMIT:PATH reads it from git.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="text for people; json; markdown for a comment or a step summary.",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="The same as --format json.")
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    envvar="PLANRUN_COLOR",
    help="Colours; auto follows NO_COLOR, FORCE_COLOR and the terminal.",
)
@click.option("--exit-code", is_flag=True, help="End with 1 when there is a difference.")
def diff(  # noqa: PLR0913 - click gives each option as an argument
    old: str, new: str, *, policy: str, form: str, as_json: bool, color: str, exit_code: bool
) -> int:
    """Tell what NEW does that OLD does not, and the other way round; comments and spelling do not count.

    OLD and NEW are plan files, `-` for standard input, or COMMIT:PATH, which is read from git and never from the
    checkout; where the commit has no such file, the plan is new (or gone). PATH counts from the root of the
    repository. A file with a colon in its name is written ./a:b.yml. Told besides: which steps of NEW need an
    approval under its policy and --policy, and the command that writes it.

    \b
    Exit codes:
      0    compared; with --exit-code: no difference
      1    with --exit-code: there is a difference
      2    one of the two is no valid plan, or cannot be read

    \b
    Examples:
      planrun diff old.yml new.yml
      planrun diff origin/main:plans/release.yml plans/release.yml
      planrun diff HEAD~1:plan.yml HEAD:plan.yml --exit-code
      planrun diff origin/main:plan.yml plan.yml --policy origin/main:ci/policy.yml
      planrun diff origin/main:plan.yml plan.yml --format markdown >> "$GITHUB_STEP_SUMMARY"
    """
    from planrun.app.comparing.approvals import Terms
    from planrun.app.comparing.report import masked, read_report

    found = read_report(old, new, Terms(policy=policy))
    form = "json" if as_json else form
    if form == "json":
        from planrun.app.comparing.data import as_data

        say_json(masked(found, as_data(found)))
    elif form == "markdown":
        from planrun.app.comparing.markdown import markdown

        say(masked(found, markdown(found)).rstrip("\n"))
    else:
        say(masked(found, "\n".join(rows_of(found, _coloured(color)))))
    return 1 if exit_code and found.differs else 0


def _coloured(wish: str) -> bool:
    from planrun.reports.ci import coloured

    out = sys.stdout
    return coloured(os.environ, wish, terminal=out is not None and out.isatty())


def rows_of(found: Report, colours: bool) -> Iterable[str]:  # noqa: FBT001 - the answer of the function above
    """Yield a report as lines that steer neither a terminal nor a CI system."""
    from planrun.app.comparing.text import rows
    from planrun.model.commands import broken
    from planrun.source.render import visible

    for kind, text in rows(found):
        shown = broken(visible(text))
        yield f"\x1b[{_COLOURS[kind]}m{shown}\x1b[0m" if colours and kind in _COLOURS and shown else shown
