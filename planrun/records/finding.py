"""Which runs there are in a workspace, and which of them somebody means."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.records.rundir import HOME, LEDGER, RUNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def runs(workspace: str) -> Iterator[str]:
    """Yield the ids of all runs in a workspace, newest first."""
    folder = os.path.join(workspace, HOME, RUNS)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in sorted(names, reverse=True):
        if os.path.exists(os.path.join(folder, name, LEDGER)):
            yield name


def find(workspace: str, run: str) -> str:
    """Return the folder of a run by its id, the start of it, or `last`; raises InvalidInput."""
    known = list(runs(workspace))
    matches = known[:1] if run == "last" else [name for name in known if name.startswith(run)]
    if run in matches:
        matches = [run]
    if len(matches) == 1:
        return os.path.join(workspace, HOME, RUNS, matches[0])
    if not known:
        raise InvalidInput("there are no runs in this folder")
    if not matches:
        raise InvalidInput(f'no run "{run}"; the newest is {known[0]}')
    raise InvalidInput(f'"{run}" could be {len(matches)} runs: {", ".join(matches[:5])}')
