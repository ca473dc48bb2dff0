"""`planrun expand`: let a model expand the abstract steps of a plan, for review."""

from __future__ import annotations

import os

import click

from planrun.cliutil import write_stderr
from planrun.cliutil.click import DRY_RUN, FORCE, JSON, replace_file, report_failure, tabled, tell
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.failure import printable
from planrun.cliutil.options import APPROVING, MODEL_OPTIONS, Option, parse
from planrun.cliutil.printing import say, say_bytes, say_json
from planrun.cliutil.searching import CANDIDATES, LIMITS, SEARCH, limits_in
from planrun.diff.approvals import Terms
from planrun.diff.cli import rows_of
from planrun.diff.data import as_data
from planrun.diff.report import masked
from planrun.diff.report import report as compare
from planrun.errors import EXIT_OK, InvalidInput
from planrun.llm.drafts import as_data as faults_data
from planrun.plan.revisions import Side
from planrun.planner.expand import Order, finish, request_texts
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.diff.report import Report
    from planrun.planner.expand import Finished

_SCOPE = "EXPAND"
_OWN = (
    Option(
        flags=("--output", "-o"),
        name="output",
        kind="text",
        metavar="FILE",
        help="Where the finished plan goes, instead of standard output.",
        scope=_SCOPE,
    ),
    Option(
        flags=("--in-place", "-w"),
        name="in_place",
        kind="flag",
        help="Write it into PLAN itself.",
        scope=_SCOPE,
    ),
    FORCE.but(scope=_SCOPE),
    Option(
        flags=("--offline",),
        name="offline",
        kind="flag",
        help="Call no model: use planrun's own patterns, and skip steps that none matches.",
        scope=_SCOPE,
    ),
    SEARCH.but(help="Call no model: search parts of the plan that provide what a step is to provide."),
    *LIMITS,
    CANDIDATES,
    Option(
        flags=("--step",),
        name="steps",
        kind="list",
        metavar="STEP",
        help="Expand this abstract step and leave the others; repeatable.",
        scope=_SCOPE,
    ),
    DRY_RUN.but(scope=_SCOPE),
)
EXPAND = (*_OWN, *MODEL_OPTIONS, *APPROVING, JSON)
_HELP = """Expand the abstract steps of PLAN, for review.

    A step without an action states a task; a model writes the steps that do it. Each abstract step is one request, with
    the whole plan as it is by then. The last new step keeps its id, the settings of the abstract step hold for each
    new one, and no other byte of the file changes. The result is checked like any plan, judged by its policy and
    --policy, and printed, or written by -o or -w; the difference is shown as by planrun diff. Nothing runs.

    \b
    Examples:
      planrun expand plan.yml
      planrun expand plan.yml -o plan.ready.yml
      planrun expand plan.yml --in-place --step migrate
      planrun expand plan.yml --dry-run

    \b
    Exit codes:
      0    the plan is written, or it has no abstract steps
      1    the model reports that it cannot be done, or gave no usable answer
      2    the command line or the plan is wrong, no model is available, or FILE exists already
      3    a policy denies what the model wrote
    """


def _expand(words: list[str]) -> int:
    file, values = parse(words, EXPAND, "plan file")
    own = {option.name: values.pop(option.name, None) for option in _OWN}
    limits = limits_in(own, without=("offline", "dry_run"))
    order = Order(
        file=file,
        settings=Settings(**values, **limits),
        search=bool(own["search"]),
        steps=tuple(own["steps"] or ()),
        target=str(own["output"] or ""),
        offline=bool(own["offline"]),
    )
    if own["dry_run"]:
        for texts in request_texts(order):
            say("\n\n".join(texts))
        return EXIT_OK
    target = _target(file, own)
    finished = finish(order, tell)
    if finished.outcome != "accepted":
        if order.settings.json:
            say_json(_document(finished, "", None))
        return report_failure(finished)
    assert finished.after is not None
    report = _difference(finished)
    if order.settings.json:
        if target:
            _write(target, finished)
        say_json(_document(finished, target, report))
        return EXIT_OK
    if not finished.asked:
        tell(f"{file} has no abstract steps")
    if not target:
        say_bytes(finished.after.source)
    elif finished.asked or target != file:
        _write(target, finished)
    if finished.asked:
        _show(finished, target, report)
    return EXIT_OK


expand = tabled(
    "expand",
    [click.Argument(["plan"], type=click.Path(readable=False), shell_complete=complete_plans)],
    EXPAND,
    _HELP,
    _expand,
)


def _target(file: str, own: dict[str, Any]) -> str:
    """Return the file to be written; empty: standard output. Raises InvalidInput before a model is called."""
    target = str(own["output"] or "")
    if own["in_place"]:
        if target:
            raise InvalidInput("-o FILE and --in-place exclude each other")
        return file
    if target in ("", "-"):
        return ""
    if os.path.isdir(target):
        raise InvalidInput(f"{target} is a folder")
    if os.path.lexists(target) and not own["force"]:
        raise InvalidInput(f"{target} exists already; --force overwrites it, --in-place writes into PLAN")
    return target


def _write(target: str, finished: Finished) -> None:
    assert finished.after is not None
    replace_file(
        target, finished.after.source, finished.before.source if target == finished.before.file else None
    )


def _difference(finished: Finished) -> Report | None:
    """Return the difference as `planrun diff` finds it; None when no model was called."""
    if not finished.asked:
        return None

    old, new = [
        Side(name=name, path=plan.file, plan=plan)
        for name, plan in (
            (finished.before.file, finished.before),
            (f"{finished.before.file} (expanded)", finished.after),
        )
        if plan is not None
    ]
    return compare(old, new, Terms())


def _show(finished: Finished, target: str, report: Report | None) -> None:
    rows = ["\n".join(rows_of(report, False))] if report else []
    for step, analysis in finished.analyses.items():
        rows.append(f"{step}: {printable(' '.join(analysis.split()))}" if analysis.strip() else "")
    rows.append(f"Model: {', '.join(_spent(finished)) if finished.calls else 'none'}")
    if target:
        left = [step.id for step in finished.after.steps if step.kind == "abstract"] if finished.after else []
        then = f"write {', '.join(map(printable, left))}" if left else f"planrun execute {printable(target)}"
        rows.append(f"Written: {printable(target)}; review it, then {then}")
    text = "\n".join([row for row in rows if row])
    text = masked(report, text) if report else text
    if target:
        say(text)
    else:
        write_stderr(f"{text}\n")


def _spent(finished: Finished) -> Iterable[str]:
    usage = finished.usage
    written = int(usage.get("output_tokens", 0))
    read = int(sum(value for name, value in usage.items() if name not in ("usd", "output_tokens")))
    last = finished.calls[-1]
    yield last.model or "unknown"
    yield f"{len(finished.calls)} call{'' if len(finished.calls) == 1 else 's'}"
    if finished.rounds:
        yield f"{finished.rounds} repair{'' if finished.rounds == 1 else 's'}"
    yield f"{read} tokens read, {written} written"
    if "usd" in usage:
        yield f"${usage['usd']:.4f}"
    if last.replayed:
        yield "from a recording"


def _document(finished: Finished, target: str, report: Report | None) -> dict[str, Any]:
    text = None
    if finished.after is not None and not target:
        text = finished.after.source.decode("utf-8", "replace")
    difference = None
    if report is not None:
        difference = masked(report, as_data(report))
    return {
        "outcome": finished.outcome,
        "plan": finished.before.file,
        "file": target or None,
        "text": text,
        "message": finished.message,
        "steps": [
            {
                "id": name,
                "steps": list(finished.pieces.get(name, ())),
                "analysis": finished.analyses.get(name, ""),
            }
            for name in finished.asked
        ],
        "rounds": finished.rounds,
        "faults": faults_data(finished.faults),
        "refusals": list(finished.refusals),
        "calls": len(finished.calls),
        "usage": finished.usage,
        "difference": difference,
    }
