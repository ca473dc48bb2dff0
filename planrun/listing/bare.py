"""A bare `planrun`: the plans of this folder and their steps, then how to go on. Without click."""

from __future__ import annotations

import os
import sys

from planrun.cliutil.defaultplan import plans_in
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, speaks_unicode
from planrun.listing.listing import Listing, listing
from planrun.model.widths import width_of
from planrun.reports.ci import coloured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.listing.listing import Listed, ListedStep


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


_NO_PLANS = "No plan in this folder: looked for plan.yml, plan.yaml, *.yml and plans/*.yml."


def print_plans() -> int:
    """Print the plans with their steps and two lines of help; returns the exit code.

    Raises InvalidInput, RecordsLost.
    """
    found = listing()
    if not found.plans and found.error is None:
        say(no_plans())
        return 0
    print_listing(found)
    default = next((plan.file for plan in found.plans if plan.is_default), "")
    words = "planrun run [STEP]" if default else "planrun run PLAN"
    about = f"run {default}, or a step and what it depends on" if default else "run one of them"
    say(f"\n{words.ljust(18)}   {about}\n{'planrun help'.ljust(18)}   all commands")
    if found.error is not None:
        raise found.error
    return 0


def no_plans() -> str:
    """Return what stands in place of a listing: how to write a first plan, or to convert a file that is here."""
    from planrun.cliutil.otherfiles import convert_commands  # reads files of other tools

    rows = [(command, "") for command in convert_commands(plans_in(""))]
    rows += [("planrun init", "write a first plan: plan.yml"), ("planrun help", "all commands")]
    return "\n".join([_NO_PLANS, "", *[f"{command.ljust(14)}   {about}".rstrip() for command, about in rows]])


def print_listing(found: Listing) -> None:
    """Print the plans with their steps."""
    width = terminal_width()
    color = coloured(os.environ, terminal=width > 0)
    text = "\n".join(lines(found, width=width, color=color))
    say(text if speaks_unicode() else text.replace("…", "..."))
