"""Part: files that workers of a cluster were sent, and what steps made there and did not declare."""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.sections import Section, lined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Part

_START = "not declared in "


def _left(state: RunState) -> Iterator[tuple[StepState, str]]:
    """Yield the steps whose last attempt left files that no other step finds."""
    for step in state.steps.values():
        last = facts.last(step)
        if last is not None and last.ended is not None:
            yield from [(step, line(note)) for note in last.ended.notes if note.startswith(_START)]


def _opening(_state: RunState) -> Iterator[str]:
    yield "files: sent to workers; what steps declare in `produces` and `writes` comes back"


def _closing(state: RunState) -> Iterator[str]:
    for step, note in _left(state):
        yield f"  warning: {facts.name(step)}: {note}"


def _sections(state: RunState) -> Iterator[Section]:
    if rows := [f"{facts.name(step)}: {note}" for step, note in _left(state)]:
        yield Section(heading="Files that were left on workers", lines=lined(rows))


def _notices(state: RunState) -> Iterator[tuple[int, str, str]]:
    for step, note in _left(state):
        yield step.step.line, f"{facts.name(step)} leaves files on a worker", note


SENT: Part = {
    "opening": _opening,
    "closing": _closing,
    "sections": _sections,
    "notices": _notices,
}
