"""The HTML report of a run: data for the template, which writes all the markup and escapes every text.

No run loads this unless it is asked for the page: it is the only module of the reports that knows Jinja2.
"""

from __future__ import annotations

import os
from base64 import b64encode

import jinja2
from markupsafe import Markup

from planrun.model.record import Record
from planrun.reports import causes, facts
from planrun.reports.escape import line, plain
from planrun.reports.gates import choices, commands, open_gates, until
from planrun.reports.html.comparison import differences
from planrun.reports.html.picture import Drawing, picture, shown_kinds
from planrun.reports.html.steps import Pages, failures
from planrun.reports.html.timeline import timeline
from planrun.reports.parts import parts_of, rows_of
from planrun.reports.policies import asked, decision, grounds, in_force, risk_totals, totals_line, waits_for
from planrun.reports.tables import Table, columns
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, BinaryIO

    from planrun.model.events import GateOpened
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.html.comparison import Baseline
    from planrun.reports.html.timeline import Line, Scale, Timeline
    from planrun.reports.parts import Part

_FOLDER = os.path.join(os.path.dirname(__file__), "templates")
_BUFFER = 200  # pieces of the page that are written at once
MOST_DIFFERENCES = 50
FILTERED = 12
"""Steps from which on the list can be filtered."""
# Of a bar: place and height in its row of 20 pixels, and a colour that can be told from white and from black.
BARS = {
    "wait": (9, 2, "#8c959f"),
    "gate": (7, 6, "#8250df"),
    "ok": (4, 12, "#2da44e"),
    "bad": (4, 12, "#d1242f"),
    "again": (6, 8, "#bf8700"),
    "cut": (6, 8, "#6e7781"),
    "live": (4, 12, "#218bff"),
}
COLOURS = {
    "completed": "#2da44e",
    "failed": "#d1242f",
    "partial": "#bf8700",
    "blocked": "#bf8700",
    "cancelled": "#bf8700",
    "paused": "#bf8700",
    "waiting": "#8250df",
    "running": "#218bff",
    "skipped": "#8c959f",
    "pending": "#8c959f",
}
"""Of the statuses in pictures, which always name them, too."""



class Row(Record):
    """A step in the list of steps, with its bars."""

    step: str
    name: str
    title: str
    status: str
    why: str
    bars: tuple[tuple[str, str, int, int, str], ...]  # place, width, top, height, colour
    began: str
    waited: str
    ran: str
    tries: int
    critical: bool
    section: str


class Waiting(Record):
    """An open gate, and how to answer it."""

    title: str
    question: str
    why: str
    choices: tuple[str, ...]
    until: str
    commands: str


def write_html(
    state: RunState, rundir: str, out: BinaryIO, *, head: str = "", baseline: Baseline | None = None
) -> None:
    """Write the page to a binary file; raises OSError when `out` cannot be written.

    `head` is the hash of the ledger's last line; `baseline`: what is known of earlier runs, None: nothing.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    stream = environment.get_template("report.html.j2").stream(_context(state, rundir, head, baseline))
    stream.enable_buffering(_BUFFER)
    for part in stream:
        out.write(part.encode("utf-8", "replace"))


def _finalize(value: Any) -> Any:
    """Clean every text that the template prints and that was not cleaned before."""
    return plain(value) if type(value) is str else value


def _context(state: RunState, rundir: str, head: str, baseline: Baseline | None) -> dict[str, Any]:
    style = _style()
    pages = Pages(state, rundir, scripts=not facts.has_secret_in_plan(state))
    times = timeline(state)
    drawn = picture(state, times.path)
    parts = parts_of(state)
    listed = [*facts.listed(state), *state.undoing.values()]
    return {
        "style": Markup(style),  # noqa: S704 - a file of planrun
        "style_hash": b64encode(sha256(style.encode()).digest()).decode(),
        "icons": facts.ICONS,
        "anchors": {details.step: f"s{number}" for number, details in enumerate(pages.details, 1)},
        "titles": {step.step.id: line(step.step.title) for step in listed},
        "statuses": {step.step.id: (step.status, facts.details(step)) for step in listed},
        **_summary(state, parts, head),
        "failures": failures(state, rundir),
        "waiting": [_waiting(state, gate) for gate in open_gates(state)],
        "causes": [*causes.rows(state)] if state.settled else [],
        "baseline": baseline,
        "differences": _table_of_differences(state, baseline) if baseline and baseline.run else None,
        "rows": [_row(step, times) for step in listed],
        "filtered": len(listed) >= FILTERED,
        "scale": times.scale,
        "ticks": [(_short(tick.at), tick.text) for tick in times.scale.ticks()],
        "breaks": [(_short(at), _short(width), text) for at, width, text in times.scale.breaks()],
        "legend": _legend(times),
        "bars_of": BARS,
        "colours": COLOURS,
        "path": times.path,
        "path_seconds": facts.seconds(sum([_ran(times.lines[name]) for name in times.path])),
        "drawing": drawn if isinstance(drawn, Drawing) else None,
        "kinds": shown_kinds(drawn) if isinstance(drawn, Drawing) else (),
        "matrix": None if isinstance(drawn, Drawing) else drawn,
        "details": pages.details,
        "tables": [_policy_table(state), *[table for part in parts for table in _tables(part, state)]],
        "texts": ["\n".join(rows) for part in parts if (rows := _texts(part, state))],
    }


def _style() -> str:
    with open(os.path.join(_FOLDER, "report.css"), encoding="utf-8") as file:
        return file.read()


def _summary(state: RunState, parts: Sequence[Part], head: str) -> dict[str, Any]:
    """Return what stands at the top of the page."""
    status = facts.status_of(state)
    started = state.started
    ending = f"exit code {state.ended.exit_code}" if state.ended else facts.unended(state)
    rows = [
        ("Plan", f"{line(state.plan.file)}, version {state.plan.version}, digest {state.plan.digest[:12]}"),
        ("Run", line(started.run) if started else ""),
        ("Started", f"{started.at[:19].replace('T', ' ')} UTC" if started else ""),
        ("Policy", in_force(state)),
        ("Risk", totals_line(risk_totals(state))),
    ]
    rows += [(name, value) for part in parts if "summary" in part for name, _, value in part["summary"](state)]
    rows += [("Ledger head", head)] if head else []
    warnings = [*rows_of(parts, "warnings", state), *facts.notes(state)]
    objection = facts.objection(state)
    return {
        "title": line(state.plan.title or state.plan.name),
        "goal": line(state.plan.goal, 500),
        "status": status,
        "outcome": facts.outcome(state),
        "ending": ending,
        "duration": facts.seconds(facts.elapsed(state)),
        "counts": [(name, count) for name, count in facts.counts(state) if count or name == "Total"],
        "summary": [row for row in rows if row[1]],
        "warnings": ([objection] if objection else []) + warnings,
        "next": facts.to_continue(state) if status in ("failed", "cancelled", "paused") else "",
        "planrun": line(started.planrun) if started else "",
    }


def _waiting(state: RunState, opened: GateOpened) -> Waiting:
    return Waiting(
        title=waits_for(opened),
        question=asked(opened),
        why=grounds(opened),
        choices=tuple(choices(opened)),
        until=until(opened),
        commands="\n".join(commands(state, opened)),
    )


def _row(step: StepState, times: Timeline) -> Row:
    found = times.lines[step.step.id]
    why = "" if step.status in ("completed", "pending", "running") else facts.cause(step)
    if step.status == "completed" and step.flaky:
        why = "flaky"
    return Row(
        step=step.step.id,
        name=facts.name(step),
        title=line(step.step.title),
        status=step.status,
        why="cached" if step.restored else "" if why == step.status else why,
        bars=tuple(_bars(found, times.scale)),
        began=f"{found.began:.1f}s" if found.began is not None else "",
        waited=facts.seconds(found.waited) if found.waited >= 0.05 else "",
        ran=facts.seconds(facts.duration(step)) if step.tries else "",
        tries=len(step.attempts),
        critical=step.step.id in times.path,
        section=step.step.section,
    )


def _bars(found: Line, scale: Scale) -> Iterator[tuple[str, str, int, int, str]]:
    for piece in found.pieces:
        at, width = scale.span(piece)
        yield (_short(at), _short(width), *BARS[piece.what])


def _ran(found: Line) -> float:
    return sum([piece.end - piece.begin for piece in found.pieces if piece.what not in ("wait", "gate")])


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _legend(times: Timeline) -> list[tuple[str, str]]:
    """Return the kinds of bars in the list, with their names."""
    names = {
        "wait": "waiting to start",
        "gate": "waiting for an answer",
        "ok": "passed",
        "bad": "failed",
        "again": "failed, then repeated",
        "cut": "cancelled or lost",
        "live": "without an end",
    }
    used = {piece.what for found in times.lines.values() for piece in found.pieces}
    return [(what, name) for what, name in names.items() if what in used]


def _table_of_differences(state: RunState, baseline: Baseline) -> Table:
    found = differences(state, baseline)
    rows = [
        (
            each.step,
            each.text,
            "" if each.before is None else facts.seconds(each.before),
            "" if each.now is None else facts.seconds(each.now),
        )
        for each in found[:MOST_DIFFERENCES]
    ]
    more = len(found) - len(rows)
    return Table(
        heading="Compared with the last good run",
        caption=f"Differences from run {line(baseline.run)}",
        columns=columns(("Step", "step"), ("Difference", "text"), ("Then", "number"), ("Now", "number")),
        rows=tuple(rows),
        note=f"{more} more steps differ." if more else "",
    )


def _policy_table(state: RunState) -> Table:
    """Return which rule allowed, asked for or denied how many steps."""
    groups: dict[tuple[str, str], list[str]] = {}
    for step in facts.listed(state):
        if decided := decision(step):
            groups.setdefault((decided["answer"], decided["rule"]), []).append(facts.name(step))
    rows = [
        (answer, line(rule), str(len(steps)), steps[0] if len(steps) == 1 else facts.names(steps))
        for (answer, rule), steps in groups.items()
    ]
    return Table(
        heading="Policy decisions",
        caption="What the policy decided, and by which rule",
        columns=columns(("Decision", "text"), ("Rule", "code"), ("Steps", "number"), ("Which", "step")),
        rows=tuple(rows),
        note=f"In force: {in_force(state)}.",
    )


def _tables(part: Part, state: RunState) -> Iterator[Table]:
    if "tables" in part:
        yield from part["tables"](state)


def _texts(part: Part, state: RunState) -> list[str]:
    """Return what a part without tables adds to the text report."""
    if "tables" in part:
        return []
    rows = [*rows_of([part], "text_rows", state), *rows_of([part], "text_end", state)]
    return [row.strip("\n") for row in rows if row.strip()]
