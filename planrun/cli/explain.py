"""`planrun explain`: the page of a problem code, or why a step would run, ran, failed or did not run."""

from __future__ import annotations

import os
import shutil
import sys

import click

from planrun.cliutil.click import is_given, judged
from planrun.cliutil.completion import complete_explained, complete_steps
from planrun.cliutil.defaultplan import given, is_plan_name
from planrun.cliutil.printing import say, say_json
from planrun.codes.pages import SEVERITIES, find_page, looks_like_a_code
from planrun.codes.terminal import render
from planrun.lint.codes import ADVICE
from planrun.plan.problems import CODES
from planrun.reports.ci import coloured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOT_A_TERMINAL = 80  # columns


@click.command(short_help="Explain a problem code, or why a step would run, ran, failed or did not run.")
@click.argument("plan_or_run", metavar="CODE|PLAN|RUN", required=False, shell_complete=complete_explained)
@click.argument("step", metavar="[STEP]", required=False, shell_complete=complete_steps)
@click.option("--list", "listed", is_flag=True, help="List all problem codes with their titles.")
@judged
@click.option(
    "--cache-store",
    envvar="PLANRUN_CACHE_STORE",
    metavar="DIR",
    default="",
    help="Look for results here, too.",
)
@click.option(
    "--report-dir",
    envvar="PLANRUN_REPORT_DIR",
    metavar="DIR",
    default="planrun-out",
    help="The folder of reports, which no step reads. Default: planrun-out",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def explain(plan_or_run: str | None, step: str | None, *, listed: bool, as_json: bool, **under: Any) -> int:
    """Explain CODE, a problem code such as E104: what it means, an example, and how to correct it.

    Or explain STEP of a plan or a run, without one of the default plan: its dependencies and their results, its
    condition, its limits and where they are set.
    With a plan: when it would run, the class of risk of each command, which rule would allow it, ask for it or deny
    it, and whether the cache has its result. With a run: why it ran, failed or did not run, and who approved it; the
    policy of the run is on record, so --policy, --auto-approve and --param are ignored.

    \b
    Examples:
      planrun explain E104
      planrun explain --list
      planrun explain publish
      planrun explain plan.yml publish
      planrun explain plan.yml publish --policy ci/policy.yml --param target=prod
      planrun explain last publish
    """
    if listed:
        _list(as_json=as_json)
    elif step is not None and plan_or_run is not None:
        from planrun.runs.explaintext import explain_step  # loads what runs plans; a page needs none of it

        explain_step(plan_or_run, step, as_json=as_json, **under)
    elif plan_or_run is None:
        raise click.UsageError("give a problem code (planrun explain E104), or a plan or run and a step")
    elif looks_like_a_code(plan_or_run):
        _explain_code(plan_or_run, as_json=as_json)
    elif plan_or_run == "last" or is_plan_name(plan_or_run):
        raise click.UsageError(f"which step? planrun explain {plan_or_run} STEP")
    else:
        _explain_default(plan_or_run, as_json=as_json, under=under)
    return 0


def _explain_default(step: str, *, as_json: bool, under: dict[str, Any]) -> None:
    """Explain a step of the plan that runs when none is named."""
    from planrun.runs.explaintext import explain_step

    chosen = given(None)
    paths = {
        name: chosen.path(under[name]) for name in ("policy", "cache_store", "report_dir") if is_given(name)
    }
    explain_step(chosen.file, step, as_json=as_json, **{**under, **paths})


def _list(*, as_json: bool) -> None:
    titles = CODES | ADVICE
    if as_json:
        codes = [
            {"code": code, "title": title, "severity": SEVERITIES[code[0]]} for code, title in titles.items()
        ]
        say_json({"codes": codes})
    else:
        say("\n".join([f"{code}  {title}" for code, title in titles.items()]))


def _explain_code(word: str, *, as_json: bool) -> None:
    page = find_page(word, CODES | ADVICE)
    if as_json:
        say_json(page.as_data())
        return
    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _NOT_A_TERMINAL
    say(render(page, width, colour=coloured(os.environ, terminal=terminal)))
