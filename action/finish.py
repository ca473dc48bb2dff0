"""Finish the pending cleanup of the run that this action started, after it was killed or cancelled: `planrun finalize`.

It is a separate step that always runs. It touches only the run that the step before it started: other files in the
workspace may have another origin.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.dont_write_bytecode = True  # the folder of this file may be the checkout
    sys.path.append(str(Path(__file__).resolve().parents[1]))  # -I leaves it out

from action.origin import Origin, origin_of
from action.start import Inputs, become, enter, known_runs, run, shared

OPTIONS = ("--report-dir=", "--policy=")
"""The options of a run that `finalize` also takes."""


def command(inputs: Inputs, origin: Origin, runs: list[str]) -> list[str]:
    """Return the arguments of planrun; empty when no run was started. `runs`: those that are there now.

    The first that is newer than the start is the action's own: its steps may have made others.
    """
    begin, *before = inputs.text("begin").split() or ["~"]  # sorts behind every run
    mine = [name for name in runs if name >= begin and name not in before]
    if not mine:
        return []
    words = [word for word in shared(inputs, origin) if word.startswith(OPTIONS)]
    return ["finalize", *words, "--", min(mine)]


def finish(environment: dict[str, str]) -> None:
    """Replace this process by planrun if there is a run; otherwise return."""
    inputs = Inputs(environment)
    folder = enter(environment, inputs)
    words = command(inputs, origin_of(environment), known_runs(folder))
    if words:
        become(environment, words)


if __name__ == "__main__":
    sys.exit(run(finish))
