"""The plans of a folder as text for a terminal: a heading for each plan, an aligned line for each step."""

from __future__ import annotations

import os
import sys

from planrun.cliutil.failure import printable
from planrun.model.widths import width_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.listing.listing import Listed, ListedStep, Listing

_WIDEST_ID = 30
_MOST_STEPS = 60  # of one plan
_NARROWEST = 40
_BOLD, _DIM, _RED, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[0m"


def lines(found: Listing, *, width: int, color: bool) -> Iterator[str]:
    """Yield the lines of a listing; none is wider than `width`, where that is not 0, whatever a plan holds."""
    if found.folder:
        yield f"in {printable(found.folder)}:"
    steps = [step for plan in found.plans for step in plan.steps]
    columns = (
        min(_WIDEST_ID, max([width_of(printable(step.id)) for step in steps], default=0)),
        max([len(step.risk) for step in steps], default=0),
    )
    for number, plan in enumerate(found.plans):
        if number or found.folder:
            yield ""
        yield from _plan(plan, columns, width, color=color)


def _plan(plan: Listed, columns: tuple[int, int], width: int, *, color: bool) -> Iterator[str]:
    def styled(code: str, text: str) -> str:
        return f"{code}{text}{_PLAIN}" if color else text

    file = printable(plan.file)
    about = f"  {printable(plan.text or plan.name)}" if plan.text or plan.name else ""
    head = _fitting(file + about, width)
    yield styled(_BOLD, head[: len(file)]) + head[len(file) :]
    if plan.error:
        yield f"  {styled(_RED, 'error:')} {_fitting(printable(plan.error), max(0, width - 9))}"
    for step in plan.steps[:_MOST_STEPS]:
        ident, risk = printable(step.id), step.risk or "-"
        start = f"  {ident}{' ' * (columns[0] - width_of(ident))}  "
        rest = _fitting(f"{start}{risk.ljust(columns[1])}  {_about(step)}", width).rstrip()[
            len(start) + len(risk) :
        ]
        yield f"{start}{styled(_RED, risk) if step.risk == 'high' else risk}{rest}"
    if len(plan.steps) > _MOST_STEPS:
        yield styled(_DIM, f"  … {len(plan.steps) - _MOST_STEPS} more: planrun show {file}")


def _about(step: ListedStep) -> str:
    notes = [f"{step.instances} instances"] if step.instances else []
    notes += ["at the end"] if step.section == "finally" else []
    return " ".join(
        [part for part in (printable(step.text), f"({', '.join(notes)})" if notes else "") if part]
    )


def _fitting(text: str, width: int) -> str:
    """Return a text cut to a width with `…` at its end; 0: as it is."""
    if not width or width_of(text) <= width:
        return text
    end, left = 0, width - 1
    while end < len(text) and (left := left - width_of(text[end])) >= 0:
        end += 1
    return text[:end].rstrip() + "…"


def terminal_width() -> int:
    """Return the columns of the terminal on stdout; 0 when stdout is none, so that nothing is cut."""
    try:
        return max(_NARROWEST, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError, AttributeError):
        return 0
