"""`planrun expand`: abstract steps of a plan made concrete by a model, as text for review."""

from __future__ import annotations

import os
import sys

import click

from planrun.cliutil.click import DRY_RUN, FORCE, JSON, replace_file, tabled, tell, told_why_not
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.failure import printable
from planrun.cliutil.options import APPROVING, MODEL_OPTIONS, Option, parse
from planrun.cliutil.printing import say, say_bytes, say_json
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
    from planrun.planner.expand import Finished, Order

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
        help="Ask no model: take planrun's own patterns, and leave the steps that none fits.",
        scope=_SCOPE,
    ),
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
_HELP = """Make the abstract steps of PLAN concrete, for review.

    A step without an action says what is to be done; a model writes the steps that do it. Each abstract step is a
    question of its own, with the whole plan as it is by then. The last of the new steps keeps its id, what the plan
    says of it holds for each of them, and not one byte of anything else changes. What comes out is checked like any
    plan, held against its policy and --policy, and printed, or written by -o or -w; what is different is told as by
    planrun diff. Nothing runs.

    \b
    Examples:
      planrun expand plan.yml
      planrun expand plan.yml -o plan.ready.yml
      planrun expand plan.yml --in-place --step migrate
      planrun expand plan.yml --dry-run

    \b
    Exit codes:
      0    the plan is written, or it has no abstract steps
      1    the model says that it cannot be done, or gave nothing that can be used
      2    the command line or the plan is wrong, no model can be asked, or FILE is there already
      3    a policy denies what the model wrote
    """


def _expand(words: list[str]) -> int:
    file, values = parse(words, EXPAND, "plan file")
    own = {option.name: values.pop(option.name, None) for option in _OWN}
    order = Order(
        file=file,
        settings=Settings(**values),
        steps=tuple(own["steps"] or ()),
        target=str(own["output"] or ""),
        offline=bool(own["offline"]),
    )
    if own["dry_run"]:
        return _show_requests(order)
    target = _target(file, own)
    found = finish(order, tell)
    if found.outcome != "accepted":
        if order.settings.json:
            say_json(_document(found, "", None))
        return told_why_not(found)
    assert found.after is not None
    report = _difference(found)
    if order.settings.json:
        if target:
            _write(target, found)
        say_json(_document(found, target, report))
        return EXIT_OK
    if not found.asked:
        tell(f"{file} has no abstract steps")
    if not target:
        say_bytes(found.after.source)
    elif found.asked or target != file:
        _write(target, found)
    if found.asked:
        _show(found, target, report)
    return EXIT_OK


expand = tabled(
    "expand",
    [click.Argument(["plan"], type=click.Path(readable=False), shell_complete=complete_plans)],
    EXPAND,
    _HELP,
    _expand,
)


def _target(file: str, own: dict[str, Any]) -> str:
    """Return the file to be written; empty: standard output. Raises InvalidInput before anybody is asked."""
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


def _write(target: str, found: Finished) -> None:
    assert found.after is not None
    replace_file(target, found.after.source, found.before.source if target == found.before.file else None)


def _show_requests(order: Order) -> int:
    for texts in request_texts(order):
        say("\n\n".join(texts))
    return EXIT_OK


def _difference(found: Finished) -> Report | None:
    """Return what is different as `planrun diff` finds it; None when nothing was asked."""
    if not found.asked:
        return None

    old, new = [
        Side(name=name, path=plan.file, plan=plan)
        for name, plan in (
            (found.before.file, found.before),
            (f"{found.before.file} (expanded)", found.after),
        )
        if plan is not None
    ]
    return compare(old, new, Terms())


def _show(found: Finished, target: str, report: Report | None) -> None:
    rows = ["\n".join(rows_of(report, False))] if report else []
    for step, analysis in found.analyses.items():
        rows.append(f"{step}: {printable(' '.join(analysis.split()))}" if analysis.strip() else "")
    rows.append(f"Model: {', '.join(_spent(found)) if found.calls else 'none'}")
    if target:
        left = [step.id for step in found.after.steps if step.kind == "abstract"] if found.after else []
        then = f"write {', '.join(map(printable, left))}" if left else f"planrun execute {printable(target)}"
        rows.append(f"Written: {printable(target)}; review it, then {then}")
    text = "\n".join([row for row in rows if row])
    text = masked(report, text) if report else text
    if target:
        say(text)
    else:
        sys.stderr.write(f"{text}\n")


def _spent(found: Finished) -> Iterable[str]:
    usage = found.usage
    written = int(usage.get("output_tokens", 0))
    read = int(sum(value for name, value in usage.items() if name not in ("usd", "output_tokens")))
    last = found.calls[-1]
    yield last.model or "unknown"
    yield f"{len(found.calls)} call{'' if len(found.calls) == 1 else 's'}"
    if found.rounds:
        yield f"{found.rounds} repair{'' if found.rounds == 1 else 's'}"
    yield f"{read} tokens read, {written} written"
    if "usd" in usage:
        yield f"${usage['usd']:.4f}"
    if last.replayed:
        yield "from a recording"


def _document(found: Finished, target: str, report: Report | None) -> dict[str, Any]:
    text = None
    if found.after is not None and not target:
        text = found.after.source.decode("utf-8", "replace")
    difference = None
    if report is not None:
        difference = masked(report, as_data(report))
    return {
        "outcome": found.outcome,
        "plan": found.before.file,
        "file": target or None,
        "text": text,
        "message": found.message,
        "steps": [
            {"id": name, "steps": list(found.pieces.get(name, ())), "analysis": found.analyses.get(name, "")}
            for name in found.asked
        ],
        "rounds": found.rounds,
        "faults": faults_data(found.faults),
        "refusals": list(found.refusals),
        "calls": len(found.calls),
        "usage": found.usage,
        "difference": difference,
    }
