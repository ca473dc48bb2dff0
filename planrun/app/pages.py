"""The HTML report of a run, and earlier runs of its plan that it is compared with, from the workspace's history."""

from __future__ import annotations

import os

from planrun.errors import RecordsLost
from planrun.model import events as ev
from planrun.records import history
from planrun.records.reading import read_ledger
from planrun.records.rundir import LEDGER
from planrun.reports.html.comparison import Baseline
from planrun.reports.write import Source, write_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.state import RunState
    from planrun.records.history import History


def write_page_of(state: RunState, rundir: str, head: str, paths: dict[str, str]) -> RecordsLost | None:
    """Write the HTML report beside the others and add it to their paths; returns why that failed."""
    source = Source(state=state, rundir=rundir, head=head, baseline=baseline_of(state, rundir))
    try:
        paths["html"] = write_page(source, os.path.dirname(next(iter(paths.values()))))
    except RecordsLost as error:
        return error
    return None


def baseline_of(state: RunState, rundir: str) -> Baseline | None:
    """Return what the history knows of runs before this one; None where it knows none."""
    run = os.path.basename(rundir)
    runs = os.path.dirname(rundir)
    known = history.read(history.path_of(os.path.dirname(runs), state.plan))
    earlier = [name for name in known.runs if name < run]  # ids sort by time
    if not earlier:
        return None
    cells = {name: text.split(" ")[: len(earlier)] for name, text in known.cells.items()}
    endings = {
        name: tuple([history.LETTERS[cell[0]] for cell in row if cell != "-"]) for name, row in cells.items()
    }
    good = _last_good(known, earlier, runs)
    seconds: dict[str, float] = {}
    if good:
        at = known.runs.index(good)
        seconds = {name: float(row[at][1:]) for name, row in cells.items() if row[at] != "-"}
    return Baseline(run=good, seconds=seconds, endings=endings, runs=len(earlier))


def _last_good(known: History, earlier: list[str], runs: str) -> str:
    """Return the newest earlier run in which steps ran and none failed; "" where there is none."""
    for run in reversed(earlier):
        at = known.runs.index(run)
        cells = {row.split(" ")[at][0] for row in known.cells.values()}
        if cells - {"-"} and "f" not in cells and _may_be_good(os.path.join(runs, run, LEDGER)):
            return run
    return ""


def _may_be_good(ledger: str) -> bool:
    """Return whether a run completed as far as its ledger says; runs are pruned earlier than their history."""
    if not os.path.exists(ledger):
        return True
    events = read_ledger(ledger).events
    last = events[-1] if events else None
    return isinstance(last, ev.RunEnded) and last.verdict == "completed"
