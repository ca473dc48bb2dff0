"""`planrun review`: what a pull request proposes for a plan, for whoever reviews it and for the summary of the job."""

from __future__ import annotations

import os

import click

from planrun.cli.completing import complete_plans
from planrun.cli.failure import located
from planrun.cli.printing import say
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.proposals import Proposal

LEVELS = ("none", "read-only", "low", "medium", "high")


@click.command(short_help="What a change of a plan comes to, for a pull request.")
@click.argument("plan", type=click.Path(readable=False), shell_complete=complete_plans)
@click.option(
    "--base", default="", metavar="COMMIT", help="The commit to compare with; without it all is new."
)
@click.option(
    "--policy",
    type=click.Path(readable=False),
    default="",
    metavar="FILE",
    envvar="PLANRUN_POLICY",
    help="A policy that the plan cannot lift, as for execute; COMMIT:PATH reads it from git.",
)
@click.option(
    "--approval",
    "approvals",
    multiple=True,
    metavar="FILE",
    help="Approvals, as for execute: what they cover is not needed any more; repeatable.",
)
@click.option("--auto-approve", type=click.Choice(LEVELS), default=None, help="A level, as for execute.")
@click.option(
    "--param",
    "-p",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the plan, as the run will get it; repeatable.",
)
@click.option(
    "--report-dir", type=click.Path(), default="planrun-out", show_default=True, help="Where review.md goes."
)
def review(plan: str, base: str, report_dir: str, **under: Any) -> int:
    """Check PLAN, compare it with that of a commit, and tell what it needs before it may run. Nothing runs.

    Told are problems with their lines, what changed in the meaning, the risk of what changed, the policy in force and
    where it was read, and which steps need an approval with the command that writes it. It stands in review.md and
    review.json, and under GitHub Actions in the step summary and the outputs. A plan that is new, or gone, is told as
    such.

    Exit code 0: the plan is valid, or gone. 2: it is not, or a commit, a policy or an approval cannot be read.

    \b
    Examples:
      planrun review plans/release.yml --base origin/main
      planrun review plan.yml --base "$BASE" --policy "$BASE:ci/policy.yml" --approval "$BASE:approvals/*.json"
    """
    from planrun.app.comparing.approvals import Terms
    from planrun.app.proposals import propose

    _refuse_detour(report_dir)
    terms = Terms(**{name: value for name, value in under.items() if value})
    found = propose(plan, base, terms)
    _write(found, report_dir)
    _print(found)
    return 0 if found.valid else 2


def _refuse_detour(folder: str) -> None:
    """Raise InvalidInput for a folder that a link leads away from: what is reviewed may have brought the link."""
    plain = os.path.join(os.path.realpath("."), os.path.normpath(folder))
    if not os.path.isabs(folder) and os.path.realpath(folder) != os.path.normpath(plain):
        raise InvalidInput(f"the report folder {folder} is reached by a link, and nothing is written there")


def _print(found: Proposal) -> None:
    from planrun.app.comparing.report import masked
    from planrun.cli.differing import rows_of
    from planrun.source.problems import render_github, render_text

    checked = found.checked
    if checked and checked.problems:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            say(render_github(located(checked.problems)).rstrip("\n"))
        say(render_text(checked.problems, checked.sources).rstrip("\n"))
    for note in found.notes:
        say(f"note: {note}")
    if found.report:
        say(masked(found.report, "\n".join(rows_of(found.report, colours=False))))


def _write(found: Proposal, folder: str) -> None:
    """Write the files, and what GitHub reads; raises RecordsLost, InvalidInput."""
    from planrun.app.proposals import as_document, outputs, summary
    from planrun.model.jsontext import dumps, well_formed
    from planrun.reports.github import append_summary, write_outputs
    from planrun.reports.write import write_texts

    text = summary(found)
    document = dumps(well_formed(as_document(found)))
    (path, _document) = write_texts(folder, {"review.md": text, "review.json": f"{document}\n"})
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(text, os.environ["GITHUB_STEP_SUMMARY"])
    if os.environ.get("GITHUB_OUTPUT"):
        write_outputs(outputs(found, os.path.abspath(path)), os.environ["GITHUB_OUTPUT"])
