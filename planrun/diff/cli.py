"""`planrun diff` and `planrun review`: what changed in the meaning of a plan, for people, programs and pull requests.

`review` also validates the plan and lists the approvals that it needs. Nothing runs.
"""

from __future__ import annotations

import os
import sys

import click

from planrun.app.check import check
from planrun.cliutil.click import is_given
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given, in_repository
from planrun.cliutil.failure import located, printable
from planrun.cliutil.printing import say, say_json
from planrun.diff import phrases
from planrun.diff.approvals import Terms
from planrun.diff.data import as_data
from planrun.diff.markdown import markdown
from planrun.diff.report import masked, read_report, report
from planrun.diff.text import rows
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.jsontext import dumps, well_formed
from planrun.model.record import Record
from planrun.plan.printing import render_github, render_text
from planrun.plan.revisions import NOWHERE, commit_of, is_file, path_from_root, read_side
from planrun.reports.ci import coloured
from planrun.reports.escape import code, fence, inline, line, plain
from planrun.reports.github import append_summary, write_outputs
from planrun.reports.write import write_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.app.check import Checked
    from planrun.diff.report import Report
    from planrun.plan.revisions import Side

_SHOWN = 20_000  # characters of the problems of a plan


class Proposal(Record):
    """The proposal for a plan: the check of its file (None: it is gone), and the report where it is valid or gone.

    `base`: the full name of the commit that it is compared with; empty: with nothing. `notes` are for people.
    """

    plan: str
    base: str = ""
    checked: Checked | None = None
    report: Report | None = None
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the plan may be merged as far as `validate` goes; one that is gone may."""
        return self.report is not None


def propose(plan: str, base: str, terms: Terms) -> Proposal:
    """Compare a plan of this checkout with that of a commit; `base`: its name, empty to compare with nothing.

    Raises InvalidInput, InvalidPlan for a policy or an approval that is none, a commit that is not there, and a plan
    that is neither here nor there.
    """
    if plan == "-":
        raise InvalidInput("review needs a file, not standard input")
    commit = commit_of(base) if base else ""
    exists = os.path.lexists(plan)
    if commit:
        prefix = path_from_root("./")
        root = os.path.realpath(os.path.join(".", *[".."] * (prefix.count("/") + 1 if prefix else 0)))
        inside = os.path.relpath(os.path.realpath(plan), root).split(os.sep)
        if inside[0] in ("..", ".git"):
            raise InvalidInput(f"{plan} is outside of the repository, so it is not read")
    checked = check(plan) if exists else None
    if checked is not None and checked.steps is None:
        return Proposal(plan=plan, base=commit, checked=checked)
    old, notes = _before(plan, base, commit)
    if not exists and old.plan is None:
        raise InvalidInput(f"no plan {plan}, neither in the working tree nor in {base or 'a commit'}")
    here = plan if is_file(plan) else f"./{plan}"
    new = read_side(here if exists else NOWHERE)
    if new.plan is not None:
        new = new.but(path=plan)
    found = report(old, new, terms)
    return Proposal(plan=plan, base=commit, checked=checked, report=found, notes=notes)


def _before(plan: str, base: str, commit: str) -> tuple[Side, tuple[str, ...]]:
    """Return the plan of the commit; where it is invalid, no plan and a note."""
    if not commit:
        return read_side(NOWHERE), ("There is nothing to compare with: everything counts as new.",)
    path = path_from_root(os.path.join(".", os.path.relpath(plan)))
    try:
        return read_side(f"{commit}:{path}"), ()
    except InvalidPlan:
        return read_side(NOWHERE), (f"The plan in {base} is not valid, so all of this one counts as new.",)


def summary(proposal: Proposal) -> str:
    """Return the report for reviewers, as markdown."""
    if proposal.report is None:
        assert proposal.checked is not None
        problems = proposal.checked.problems
        text = plain(render_text(problems, proposal.checked.sources))
        cut = text if len(text) < _SHOWN else f"{text[:_SHOWN]}\n…"
        return f"### ✗ Plan {code(line(proposal.plan))} is not valid\n\n{fence(cut)}"
    text = markdown(proposal.report)
    head, _, rest = text.partition("\n\n")
    lines = [f"Compared with commit {code(proposal.base[:12])}."] if proposal.base else []
    lines += [inline(note, 1_000) for note in proposal.notes]
    notes = "\n".join([f"> {text}" for text in lines])
    return str(masked(proposal.report, f"{head}\n\n{notes}\n\n{rest}" if notes else text))


def as_document(proposal: Proposal) -> dict[str, Any]:
    """Return the JSON data: the difference as in `diff --json`, and the fields of the review."""
    found = proposal.report
    problems = proposal.checked.problems if proposal.checked else ()
    return {
        "plan": proposal.plan,
        "valid": proposal.valid,
        "base": proposal.base or None,
        "problems": [vars(problem) for problem in problems],
        "notes": list(proposal.notes),
        "diff": masked(found, as_data(found)) if found else None,
    }


def outputs(proposal: Proposal, path: str) -> dict[str, str]:
    """Return the outputs of the action; `path`: of the report. Lists are JSON, since ids may contain commas."""
    found = proposal.report
    needed = found.approvals if found else None
    return {
        "result": "valid" if proposal.valid else "invalid",
        "digest": needed.digest if needed else "",
        "changed": "true" if found is None or found.differs else "false",
        "approvals-needed": dumps(["*"] if needed.whole else list(needed.asked)) if needed else "[]",
        "denied-steps": dumps(
            [gate.step for gate in needed.needed if gate.answer == "deny"] if needed else []
        ),
        "highest-risk": phrases.highest_changed(found.difference) if found else "",
        "report-path": path,
    }


FORMATS = ("text", "json", "markdown")
_COLOURS = {"+": "32", "-": "31", "~": "33", "=": "36", "head": "1", "warning": "33"}


@click.command(short_help="Show what changed in the meaning of a plan.")
@click.argument("old", required=False, type=click.Path(readable=False))
@click.argument("new", required=False, type=click.Path(readable=False))
@click.option(
    "--policy",
    type=click.Path(readable=False),
    default="",
    metavar="FILE",
    envvar="PLANRUN_POLICY",
    help="A policy that the plan cannot override, as for execute; COMMIT:PATH reads it from git.",
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
    old: str | None, new: str | None, *, policy: str, form: str, as_json: bool, color: str, exit_code: bool
) -> int:
    """Show the differences in meaning between OLD and NEW; comments and spelling do not count.

    OLD and NEW are plan files, `-` for standard input, or COMMIT:PATH, which is read from git and never from the
    checkout; where the commit has no such file, the plan is new (or gone). PATH counts from the root of the
    repository. A file with a colon in its name is written ./a:b.yml. Also shows which steps of NEW need
    an approval under its policy and --policy, and the command that writes it. Without NEW it is the plan that
    `planrun run` takes; without OLD that plan as it is in HEAD.

    \b
    Exit codes:
      0    compared; with --exit-code: no difference
      1    with --exit-code: there is a difference
      2    one of the two is no valid plan, or cannot be read

    \b
    Examples:
      planrun diff
      planrun diff old.yml new.yml
      planrun diff origin/main:plans/release.yml plans/release.yml
      planrun diff HEAD~1:plan.yml HEAD:plan.yml --exit-code
      planrun diff origin/main:plan.yml plan.yml --policy origin/main:ci/policy.yml
      planrun diff origin/main:plan.yml plan.yml --format markdown >> "$GITHUB_STEP_SUMMARY"
    """
    if new is None:
        chosen = given(None)
        old = f"HEAD:{in_repository(chosen.file)}" if old is None else chosen.path(old)
        new, policy = chosen.file, chosen.path(policy)
    report = read_report(old or "", new, Terms(policy=policy))
    form = "json" if as_json else form
    if form == "json":
        say_json(masked(report, as_data(report)))
    elif form == "markdown":
        say(masked(report, markdown(report)).rstrip("\n"))
    else:
        say(masked(report, "\n".join(rows_of(report, _coloured(color)))))
    return 1 if exit_code and report.differs else 0


def _coloured(requested: str) -> bool:
    out = sys.stdout
    return coloured(os.environ, requested, terminal=out is not None and out.isatty())


def rows_of(report: Report, colours: bool) -> Iterable[str]:  # noqa: FBT001 - the answer of the function above
    """Yield a report as lines without control sequences of a terminal or a CI system."""
    for kind, text in rows(report):
        shown = printable(text)
        yield f"\x1b[{_COLOURS[kind]}m{shown}\x1b[0m" if colours and kind in _COLOURS and shown else shown


LEVELS = ("none", "read-only", "low", "medium", "high")


@click.command(short_help="Review a change of a plan, for a pull request.")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.option(
    "--base", default="", metavar="COMMIT", help="The commit to compare with; without it everything is new."
)
@click.option(
    "--policy",
    type=click.Path(readable=False),
    default="",
    metavar="FILE",
    envvar="PLANRUN_POLICY",
    help="A policy that the plan cannot override, as for execute; COMMIT:PATH reads it from git.",
)
@click.option(
    "--approval",
    "approvals",
    multiple=True,
    metavar="FILE",
    help="Approvals, as for execute: covered steps need no other approval; repeatable.",
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
def review(plan: str | None, base: str, report_dir: str, **under: Any) -> int:
    """Check PLAN, compare it with that of a commit, and show what it needs before it may run. Nothing runs.

    Reports problems with line numbers, the changes in meaning and their risk, the policy in force and its source, and
    which steps need an approval, with the command that writes it. Without PLAN it is the plan that `planrun run` takes.
    The result is written to review.md and review.json,
    and under GitHub Actions to the step summary and the outputs. A new or removed plan is reported as such.

    Exit code 0: the plan is valid, or removed. 2: it is not, or a commit, a policy or an approval cannot be read.

    \b
    Examples:
      planrun review --base origin/main
      planrun review plans/release.yml --base origin/main
      planrun review plan.yml --base "$BASE" --policy "$BASE:ci/policy.yml" --approval "$BASE:approvals/*.json"
    """
    chosen = given(plan)
    report_dir = chosen.path(report_dir) if is_given("report_dir") else report_dir
    _refuse_detour(report_dir)
    under["policy"] = chosen.path(under["policy"])
    under["approvals"] = tuple([chosen.path(path) for path in under["approvals"]])
    terms = Terms(**{name: value for name, value in under.items() if value})
    proposal = propose(chosen.file, base, terms)
    _write(proposal, report_dir)
    _print(proposal)
    return 0 if proposal.valid else 2


def _refuse_detour(folder: str) -> None:
    """Raise InvalidInput for a folder that a link leads away from: the reviewed change may contain the link."""
    plain = os.path.join(os.path.realpath("."), os.path.normpath(folder))
    if not os.path.isabs(folder) and os.path.realpath(folder) != os.path.normpath(plain):
        raise InvalidInput(f"the report folder {folder} is reached by a link, so nothing is written there")


def _print(proposal: Proposal) -> None:
    checked = proposal.checked
    if checked and checked.problems:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            say(render_github(located(checked.problems)).rstrip("\n"))
        say(render_text(checked.problems, checked.sources).rstrip("\n"))
    for note in proposal.notes:
        say(printable(f"note: {note}"))
    if proposal.report:
        say(masked(proposal.report, "\n".join(rows_of(proposal.report, colours=False))))


def _write(proposal: Proposal, folder: str) -> None:
    """Write the files, and what GitHub reads; raises RecordsLost, InvalidInput."""
    text = summary(proposal)
    document = dumps(well_formed(as_document(proposal)))
    (path, _document) = write_texts(folder, {"review.md": text, "review.json": f"{document}\n"})
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(text, os.environ["GITHUB_STEP_SUMMARY"])
    if os.environ.get("GITHUB_OUTPUT"):
        write_outputs(outputs(proposal, os.path.abspath(path)), os.environ["GITHUB_OUTPUT"])
