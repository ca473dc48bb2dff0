"""The HTML report of a run: data for the template, which writes all the markup and escapes every text.

No run loads this unless it is asked for the page: it is the only module of the reports that knows Jinja2.
"""

from __future__ import annotations

import os
from base64 import b64encode

import jinja2

from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.document import Section, document
from planrun.reports.escape import line, plain
from planrun.reports.gates import choices, open_gates, shown
from planrun.reports.html.comparison import differences
from planrun.reports.html.layout import MAX_NODES
from planrun.reports.html.picture import Drawing, picture, shown_kinds
from planrun.reports.html.searches import of_run, trees
from planrun.reports.html.steps import Pages, shown_patch
from planrun.reports.html.timeline import LEAST_WIDTH, timeline
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, BinaryIO

    from planrun.model.events import GateOpened
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.html.comparison import Baseline
    from planrun.reports.html.timeline import Line, Scale, Timeline

_HEADING = 24.0  # pixels above a tree
_FOLDER = os.path.join(os.path.dirname(__file__), "templates")
_BOXES = 50  # failures that are shown at the top; the others are in the list of steps
_ROWS = 12  # lines of the log of each of them
_BUFFER = 200  # pieces of the page that are written at once
MOST_DIFFERENCES = 50
LARGE = MAX_NODES
"""Steps of a run above which the page leaves out what would make it too large for a browser."""
FILTERED = 12
"""Steps from which on the list can be filtered."""
SINCE_RESUMED = " since it was resumed"
# Of a bar: place and height in its row of 20 pixels, and a colour that can be told from white and from black.
BARS = {
    "wait": (9, 2, "#789"),
    "gate": (7, 6, "#85e"),
    "ok": (4, 12, "#293"),
    "bad": (4, 12, "#d23"),
    "again": (6, 8, "#b70"),
    "cut": (6, 8, "#678"),
    "live": (4, 12, "#28f"),
}
COLOURS = {
    "completed": "#293",
    "failed": "#d23",
    "partial": "#b70",
    "blocked": "#b70",
    "cancelled": "#b70",
    "paused": "#b70",
    "waiting": "#85e",
    "running": "#28f",
    "skipped": "#789",
    "pending": "#789",
}
"""Of the statuses in pictures, which always name them, too."""


class Row(Record):
    """A step in the list of steps, with its bars."""

    step: str
    title: str
    status: str
    why: str
    bars: tuple[tuple[str, str, int, int, str], ...]  # place, width, top, height, colour
    began: str
    waited: str
    ran: str
    tries: int
    critical: bool
    classes: str


class Served(Record):
    """What a page has that `planrun serve` shows: links, forms where answers are allowed, and a script.

    `head` is what stands at its top now. `shape` stands for the list of steps, whose numbers the script knows. `csrf`
    is empty where no answers are allowed. `refresh`: seconds after which a browser without scripts loads the page
    again; 0: never. `files`: name, link, size. `can_run`: steps may be run again now. `verb`: what runs them, or
    ran them last, as long as this server knows.
    """

    run: str
    head: Mapping[str, Any]
    shape: str = ""
    csrf: str = ""
    digest: str = ""
    message: str = ""
    refresh: int = 0
    is_active: bool = False
    can_cancel: bool = False
    can_run: bool = False
    can_resume: bool = False
    verb: Any = None  # planrun.serve.pages.Said
    files: tuple[tuple[str, str, str], ...] = ()


def write_html(
    state: RunState, rundir: str, out: BinaryIO, *, head: str = "", baseline: Baseline | None = None
) -> None:
    """Write the page to a binary file; raises OSError when `out` cannot be written.

    `head` is the hash of the ledger's last line; `baseline`: what is known of earlier runs, None: nothing.
    """
    _write("report.html.j2", {**_context(state, rundir, head, baseline), "live": None}, out)


def write_served(
    state: RunState, rundir: str, out: BinaryIO, served: Served, *, baseline: Baseline | None = None
) -> None:
    """Write the same page as `planrun serve` shows it."""
    text, digest = style(live=True)
    context = _context(state, rundir, "", baseline)
    live = {"live": served, "style": text, "style_hash": digest}
    _write("report.html.j2", {**context, **served.head, **live}, out)


def write_svg(records: Iterable[Mapping[str, Any]], out: BinaryIO) -> None:
    """Write the trees of searches, by their records, below each other as one SVG picture."""
    found = [*trees(records)]
    tops, y = [], 0.0
    for tree in found:
        tops.append(y)
        y += tree.drawing.height + _HEADING
    context = {
        "trees": [*zip(tops, found, strict=True)],
        "width": max(
            [
                width
                for tree in found
                for width in (tree.drawing.width, 16 + 7 * len(f"{tree.title}: {tree.found}"))
            ],
            default=0.0,
        ),
        "height": y,
        "colours": COLOURS,
        "heading": _HEADING,
    }
    _write("searches.svg.j2", context, out)


def write_other(name: str, context: Mapping[str, Any], out: BinaryIO) -> None:
    """Write another page of `planrun serve`, by the name of its template."""
    text, digest = style(live=True)
    _write(
        f"{name}.html.j2",
        {"style": text, "style_hash": digest, "icons": facts.ICONS, **context},
        out,
    )


def _write(name: str, context: Mapping[str, Any], out: BinaryIO) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    stream = environment.get_template(name).stream(context)
    stream.enable_buffering(_BUFFER)
    out.writelines(part.encode("utf-8", "replace") for part in stream)


def _finalize(value: Any) -> Any:
    """Clean every text that the template prints and that was not cleaned before."""
    return plain(value) if type(value) is str else value


def _context(state: RunState, rundir: str, head: str, baseline: Baseline | None) -> dict[str, Any]:
    text, digest = style()
    listed = rows_of_steps(state)
    is_large = len(listed) > LARGE
    scripts = not facts.has_secret_in_plan(state)
    pages = Pages(state, rundir, scripts=scripts, is_large=is_large)
    times = timeline(state)
    drawn = picture(state, times.path)
    labels = facts.labels(state)
    return {
        "style": text,
        "style_hash": digest,
        "icons": facts.ICONS,
        "anchors": {details.step: f"s{number}" for number, details in enumerate(pages.details, 1)},
        "titles": {step.step.id: line(step.step.title) for step in listed},
        "statuses": {step.step.id: (step.status, facts.details(step)) for step in listed},
        **_top(state),
        **_sections(state, rundir, head),
        "forms": {gate.step: _form(gate) for gate in open_gates(state)},
        "patches": dict(_patches(state, rundir)),
        "compared": _compared(state, baseline) if baseline else None,
        "rows": [_row(step, times, labels, waits=not is_large) for step in listed],
        "is_large": is_large,
        "filtered": len(listed) >= FILTERED,
        "narrow": [
            name
            for name, is_shown in (
                ("waited", any(found.waited >= 0.05 for found in times.lines.values())),
                ("tries", any(len(step.tries) > 1 for step in listed)),
            )
            if not is_shown
        ],
        "scale": times.scale,
        "ticks": [(_short(tick.at), tick.text) for tick in times.scale.ticks()],
        "breaks": [(_short(at), _short(width), text) for at, width, text in times.scale.breaks()],
        "legend": _legend(times, waits=not is_large),
        "bars_of": BARS,
        "colours": COLOURS,
        "path": times.path,
        "is_resumed": bool(state.resumed),
        "path_seconds": facts.seconds(sum([_ran(times.lines[name]) for name in times.path])),
        "drawing": drawn if isinstance(drawn, Drawing) else None,
        "kinds": shown_kinds(drawn) if isinstance(drawn, Drawing) else (),
        "matrix": None if isinstance(drawn, Drawing) else drawn,
        "searches": of_run(state, rundir),
        "details": pages.details,
    }


def style(*, live: bool = False) -> tuple[str, str]:
    """Return the style of a page, and its hash as a content security policy names it."""
    text = "".join([_read(name) for name in ("report.css", "live.css")[: 1 + live]])
    return text, b64encode(sha256(text.encode()).digest()).decode()


def script() -> bytes:
    """Return the script of a page that `planrun serve` shows."""
    return _read("live.js").encode()


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()


def brief(step: StepState) -> tuple[str, str, str, int]:
    """Return what the row of a step says of it: status, why, how long it ran, attempts."""
    status = step.status
    flaky = "flaky" if status == "completed" and step.flaky else ""
    why = "" if status in ("completed", "pending", "running") else facts.cause(step)
    ran = facts.seconds(facts.duration(step)) if step.tries else ""
    return (
        status,
        "cached" if step.restored else flaky or ("" if why == status else why),
        ran,
        len(step.attempts),
    )


def rows_of_steps(state: RunState) -> list[StepState]:
    """Return the steps that have a row, in their order."""
    return [*facts.listed(state), *state.undoing.values()]


def _top(state: RunState) -> dict[str, Any]:
    """Return what stands at the top of the page."""
    status = facts.status_of(state)
    since = SINCE_RESUMED if state.resumed and state.ended else ""
    return {
        "title": line(state.plan.title or state.plan.name),
        "goal": line(state.plan.goal, 500),
        "status": status,
        "icon": facts.ICONS.get(status, facts.ICONS["running"]),
        "outcome": facts.outcome(state),
        "ending": f"exit code {state.ended.exit_code}" if state.ended else facts.unended(state),
        "duration": facts.seconds(facts.elapsed(state)) + since,
        "counts": [(name, count) for name, count in facts.counts(state) if count or name == "Total"],
    }


def _sections(state: RunState, rundir: str, head: str) -> dict[str, Any]:
    """Return the sections of the document: failures, gates, what else leads, the rest, and where the run comes from."""
    named: dict[str, Section] = {}
    leading, rest = [], []
    for section in document(state, rundir, "html", head=head):
        if section.heading in ("Failures", "Waiting for", "Next", "Run"):
            named[section.heading] = section
        elif section.leads or section.heading == "Notes":
            leading.append(section)
        else:
            rest.append(section)
    found = [*named["Failures"].sections] if "Failures" in named else []
    boxes = [each.but(code="\n".join(each.code.split("\n")[-_ROWS:])) for each in found[:_BOXES]]
    return {
        "failures": boxes,
        "failed": len(found),
        "waiting": named.get("Waiting for"),
        "next": named.get("Next"),
        "leading": leading,
        "sections": rest,
        "provenance": named["Run"],
    }


def _form(opened: GateOpened) -> tuple[str, list[tuple[str, str]]]:
    """Return what a served page asks with, yes, choice, choices or value; and the values with their texts."""
    form = "yes" if opened.kind in ("approval", "ask") and opened.schema is None else "value"
    if opened.options:
        form = "choices" if opened.multi else "choice"
    values = [shown(option.get("value")) for option in opened.options]
    return form, [*zip(values, choices(opened), strict=False)]


def _patches(state: RunState, rundir: str) -> Iterator[tuple[str, str]]:
    for opened in open_gates(state):
        step = state.steps.get(opened.step)
        if patch := shown_patch(rundir, step.patch if step else None):
            yield opened.step, patch


def _row(step: StepState, times: Timeline, labels: Mapping[str, str], *, waits: bool) -> Row:
    found, name = times.lines[step.step.id], step.step.id
    status, why, ran, tries = brief(step)
    critical = name in times.path
    classes = [
        f"rest {status}" if status != "completed" else "",
        "path" if critical else "",
        "again" if len(step.attempts) > 1 else "",
    ]
    label = f"{line(labels[name])}: " if name in labels else ""
    return Row(
        step=name,
        title=label + line(step.step.title),
        status=status,
        why=why,
        bars=tuple(_bars(found, times.scale, waits=waits)),
        began=f"{found.began:.1f}s" if found.began is not None else "",
        waited=facts.seconds(found.waited) if found.waited >= 0.05 else "",
        ran=ran,
        tries=tries,
        critical=critical,
        classes=" ".join(filter(None, classes)),
    )


def _bars(found: Line, scale: Scale, *, waits: bool) -> Iterator[tuple[str, str, int, int, str]]:
    for piece in found.pieces:
        at, width = scale.span(piece)
        if piece.what != "wait" or (waits and width > LEAST_WIDTH):
            yield (_short(at), _short(width), *BARS[piece.what])


def _ran(found: Line) -> float:
    return sum([piece.end - piece.begin for piece in found.pieces if piece.what not in ("wait", "gate")])


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _legend(times: Timeline, *, waits: bool) -> list[tuple[str, str]]:
    """Return the kinds of bars in the list, with their names."""
    names = {
        "wait": "waiting to start",
        "gate": "waiting for an answer",
        "ok": "passed",
        "bad": "failed",
        "again": "failed, then repeated",
        "cut": "cancelled or lost",
        "live": "running, or without an end",
    }
    used = {piece.what for found in times.lines.values() for piece in found.pieces}
    return [(what, name) for what, name in names.items() if what in used and (waits or what != "wait")]


def _compared(state: RunState, baseline: Baseline) -> Section:
    """Return how a run differs from the last good one of its plan."""
    heading = "Compared with the last good run"
    if not baseline.run:
        return Section(heading=heading, text="The history of this plan has no run in which all steps passed.")
    every = differences(state, baseline)
    found = [each for each in every if each.kind != "new"]
    new = [line(each.step) for each in every if each.kind == "new"]
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
    notes = [f"{more} more steps differ." if more else ""]
    notes.append(f"New since the known earlier runs: {facts.names(new)}." if new else "")
    return Section(
        heading=heading,
        text=f"{'Differences' if rows else 'The steps that ran show no difference'} from run {line(baseline.run)}.",
        columns=(("Step", "step"), ("Difference", "text"), ("Then", "number"), ("Now", "number")),
        rows=rows,
        note=" ".join(filter(None, notes)),
    )
