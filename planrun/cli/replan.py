"""`planrun replan`: ask a model for a recovery plan, and continue the run; or only propose it."""

from __future__ import annotations

import os

import click

from planrun.cli.overview import EXIT_CODES
from planrun.cli.run import replan as run_replan
from planrun.cliutil.click import report_failure, tabled, tell
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.options import (
    ANSWERING,
    APPROVAL,
    APPROVING,
    MODEL_OPTIONS,
    OUTPUT,
    RUNNING,
    Option,
    parse,
)
from planrun.cliutil.printing import say_json
from planrun.cliutil.searching import CANDIDATES, LIMITS, SEARCH, check_candidates
from planrun.errors import EXIT_OK, InvalidInput
from planrun.llm.drafts import as_data
from planrun.model.events import BudgetCrossed, ModelAnswered, ModelRepeated
from planrun.planner.propose import propose
from planrun.reports.models import event_line
from planrun.settings import settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.events import Event
    from planrun.model.state import RunState
    from planrun.planner.propose import Proposal

_SCOPE = "REPLAN"
REPLAN = (
    Option(
        flags=("--step",),
        name="step",
        kind="list",
        metavar="STEP",
        help="Replan this failure; default: all failures of the run.",
        scope=_SCOPE,
    ),
    Option(
        flags=("--propose",),
        name="propose",
        kind="flag",
        help="Only write the next version of the plan and its diff, for review.",
        scope=_SCOPE,
    ),
    Option(
        flags=("--output", "-o"),
        name="target",
        kind="text",
        metavar="FILE",
        help="With --propose: where it goes. Default: beside plan.yml, as plan.v2.yml. Its diff: FILE.diff.",
        scope=_SCOPE,
    ),
    *ANSWERING,
    *APPROVING,
    APPROVAL,
    SEARCH.but(help="Search another way through steps and parts of the plan, instead of asking a model."),
    *LIMITS,
    CANDIDATES,
    *MODEL_OPTIONS,
    *[option for option in RUNNING if option is not OUTPUT],  # it has an --output of its own
)


def _run(words: list[str]) -> int:
    run, values = parse(words, REPLAN, "RUN id (or `last`)")
    check_candidates(values.get("candidates"))
    steps: tuple[str, ...] = values.pop("step", ())
    output: str = values.pop("target", "")
    if values.pop("propose", False):
        return _propose(run, values, steps, output)
    if output:
        raise InvalidInput("--output is for --propose; without it the run keeps the new version itself")
    return run_replan(run, values, steps)


def _propose(run: str, values: dict[str, Any], steps: tuple[str, ...], output: str) -> int:
    settings = settings_of(values)

    def ready(file: str, version: int) -> None:
        _refuse_existing(output or _beside(file, version))

    proposal = propose(run, settings, steps, _quiet if settings.quiet else _show, ready)
    if not proposal.text:
        if settings.json:
            say_json(_document(proposal, None))
        return report_failure(proposal.result, searched=proposal.searched)
    path = output or _beside(proposal.file, proposal.version)
    _refuse_existing(path)  # it may exist by now
    _write(path, proposal.text)
    _write(f"{path}.diff", proposal.difference.encode())
    if settings.json:
        say_json(_document(proposal, path))
    tell(f"version {proposal.version} for review: {path}; changes: {path}.diff")
    if proposal.about:
        tell(proposal.about)
    tell(f"nothing ran and nothing was recorded; to continue with it: `planrun resume {run} --plan {path}`")
    return EXIT_OK


def _document(proposal: Proposal, path: str | None) -> dict[str, Any]:
    """Return the result as data; `file` and `difference` are None where nothing was written."""
    return {
        "outcome": proposal.result.outcome,
        "version": proposal.version or None,
        "file": path,
        "difference": f"{path}.diff" if path else None,
        "message": proposal.about if path else proposal.result.message,
        "faults": as_data(proposal.result.faults),
        "refusals": list(proposal.result.refusals),
    }


def _refuse_existing(path: str) -> None:
    for name in (path, f"{path}.diff"):
        if os.path.lexists(name):
            raise InvalidInput(f"{name} exists already; --output names another file")


def _beside(file: str, version: int) -> str:
    stem, ending = os.path.splitext(file)
    return f"{stem}.v{version}{ending or '.yml'}"


def _write(path: str, data: bytes) -> None:
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from None


def _show(event: Event, state: RunState) -> None:
    if isinstance(event, ModelRepeated | ModelAnswered | BudgetCrossed):
        tell(event_line(event, state)[1])


def _quiet(event: Event, state: RunState) -> None:
    """Print nothing."""


replan = tabled(
    "replan",
    [click.Argument(["run"], shell_complete=complete_runs)],
    REPLAN,
    f"""Ask a model for a recovery plan and continue RUN: the id of a run, the beginning of one, or `last`.

Finished steps stay as they are. The model writes steps that replace the failed ones, and others that have not
started; the policy judges them as in any run. The run keeps the new version of its plan.

With --propose nothing runs and nothing is recorded: the next version of the plan and its diff are written for
review. To continue with it: `planrun resume RUN --plan FILE`.

\b
Examples:
  planrun replan last
  planrun replan last --step test
  planrun replan 20260131-093000-1f2e3d --propose -o plan.v2.yml

\b
Exit codes:
{EXIT_CODES}""",
    _run,
)
