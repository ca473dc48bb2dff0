"""The parts of reports that only some runs have, in modules that only those runs load.

A part says in one `Part` what it adds; reports ask `parts_of` for the parts of a run. A new part is a module with a
`Part` and a row in `_TABLE`.
"""

from __future__ import annotations

import os

from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.policies import any_gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal, TypedDict

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.elements import Dialect, Suite

    Kind = Literal["text", "code", "number", "step"]
    Form = Literal["text", "markdown", "html"]
    Rows = Callable[[RunState], Iterable[str]]
    RowsKey = Literal["warnings", "opening", "ending", "closing"]

    class Part(TypedDict, total=False):
        """What a part adds to the reports: clean lines for the console, sections of texts as they are elsewhere."""

        # Text, markdown and HTML.
        sections: Callable[[RunState], Iterable[Section]]
        summary: Callable[[RunState], Iterable[tuple[str, str]]]  # name and value among the facts of the run
        step_rows: Callable[[StepState], Iterable[str]]  # below the line of a step
        warnings: Rows  # the console shows them when a run starts, with --quiet, too
        # The console.
        opening: Rows  # when a run starts
        event_line: Callable[[Any, RunState], tuple[str, str]]  # a status, whose icon is shown, and a line
        failures: Callable[
            [RunState], Iterable[tuple[str, str, str]]
        ]  # heading, message, annotation's title or ""
        ending: Rows  # when a run ended
        closing: Rows  # below all else
        notices: Callable[
            [RunState], Iterable[tuple[int, str, str]]
        ]  # annotations: line of the plan, title, message
        places: Callable[
            [StepState], Iterable[tuple[str, int, str, str]]
        ]  # annotations of a failed step, with a file
        # JUnit.
        properties: Callable[[RunState], dict[str, str]]
        suites: Callable[[RunState, str, Dialect], list[Suite]]  # state, run directory, dialect
        # ledger.json.
        ledger: Mapping[str, Callable[[RunState], Any]]  # values of keys that are empty in other runs
        usage_by_step: Callable[[RunState], dict[str, dict[str, float]]]


BELOW = "below"
"""In place of a status: a line that belongs to the one above it."""


class Section(Record):
    """A heading and what stands below it, in this order; a part that is empty is not shown.

    `lines`: status, BELOW or "", and a text. Cells of `rows` may have several lines; those of a `step` column are ids,
    which become links. `forms`: the formats that show it, empty for all. `leads`: it stands above the steps.
    """

    heading: str
    mark: str = ""  # the status whose icon stands before the heading
    step: str = ""  # the step that it is about
    text: str = ""
    is_error: bool = False  # `text` is a line by which a program named its error
    facts: Sequence[tuple[str, str, Kind]] = ()
    lines: Sequence[tuple[str, str]] = ()
    code: str = ""
    language: Literal["text", "sh", "mermaid"] = "text"
    columns: Sequence[tuple[str, Kind]] = ()
    rows: Sequence[tuple[str, ...]] = ()
    note: str = ""
    sections: Sequence[Section] = ()
    forms: tuple[Form, ...] = ()
    leads: bool = False


def table(
    heading: str,
    columns: Sequence[tuple[str, Kind]],
    rows: Sequence[tuple[str, ...]],
    *,
    note: str = "",
    forms: tuple[Form, ...] = (),
) -> Section:
    """Return a section with a table, without the columns that say nothing: all their cells are empty or 0."""
    kept = [at for at in range(len(columns)) if any(row[at] not in ("", "0") for row in rows)]
    if len(kept) < len(columns):
        columns = [columns[at] for at in kept]
        rows = [tuple([row[at] for at in kept]) for row in rows]
    return Section(heading=heading, columns=columns, rows=rows, note=note, forms=forms)


def lined(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return texts as lines of a section."""
    return [("", text) for text in texts]


# Which runs have a part, and where it is. Every form shows its parts in this order.
_TABLE: tuple[tuple[Callable[[RunState], object], str], ...] = (
    (lambda state: facts.option(state, "secrets"), "extras:SECRETS"),
    (facts.shard_of, "extras:SHARD"),
    (lambda state: state.undoing or state.cut_short, "extras:ROLLBACK"),
    (lambda state: any([step.step.edges for step in state.steps.values()]), "drawing:GRAPH"),  # noqa: C419 - half the time
    # Where GitHub shows the page; elsewhere it would be a block of numbers.
    (lambda state: os.environ.get("GITHUB_STEP_SUMMARY") and len(state.steps) > 1, "gantt:TIMELINE"),
    (lambda state: any([step.step.makes for step in state.steps.values()]), "extras:PRODUCED"),  # noqa: C419 - as above
    (lambda state: state.plan.outputs, "extras:OUTPUTS"),
    (facts.is_revised, "versions:VERSIONS"),
    (lambda state: state.noted, "collaboration:COLLABORATION"),
    (
        lambda state: (
            state.planning is not None
            or (state.started is not None and "generation" in state.started.options)
        ),
        "models:MODELS",
    ),
    (lambda state: state.agents, "agents:AGENTS"),
    (lambda state: state.rounds, "extras:ROUNDS"),
    (lambda state: any([step.step.hooks for step in state.steps.values()]), "extras:HOOKS"),  # noqa: C419 - as above
    (any_gate, "gates:GATES"),
    (lambda state: facts.option(state, "sandbox") or facts.is_revised(state), "extras:SANDBOXES"),
    (lambda state: state.options.get("executor", {}).get("files"), "extras:SENT"),
    (lambda state: any([step.step.reports for step in state.steps.values()]), "testcases:TEST_CASES"),  # noqa: C419 - as above
)


class _Known:
    """The parts of the run that was asked for last: all its reports ask, and each answer is a look at all steps."""

    state: RunState | None = None
    events = -1
    parts: list[Part] = []  # noqa: RUF012 - replaced, never changed


def parts_of(state: RunState) -> list[Part]:
    """Return the parts that the reports of a run have."""
    if _Known.state is not state or _Known.events != state.events:
        _Known.parts = [part(place) for has_part, place in _TABLE if has_part(state)]
        _Known.state, _Known.events = state, state.events
    return _Known.parts


def part(place: str) -> Part:
    """Return the part at a place, as `gates:GATES`, and load its module."""
    module, _, name = place.partition(":")
    found: Part = getattr(load(module), name)
    return found


def load(module: str) -> Any:
    """Return a module of this package that only some runs need."""
    # importlib.import_module would load `warnings` for this.
    return __import__(f"planrun.reports.{module}", fromlist=[module])


def rows_of(parts: Iterable[Part], key: RowsKey, state: RunState) -> Iterator[str]:
    """Yield what parts add at one place of a form."""
    for found in parts:
        if key in found:
            yield from found[key](state)
