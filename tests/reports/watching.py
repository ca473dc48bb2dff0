"""A story as a console shows it."""

from __future__ import annotations

import io
from typing import Literal

from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.reports.ci import Look
from planrun.reports.console import Console
from planrun.reports.screen import Screen
from tests.reports.runs import Story


class Options(Record):
    """What the command line would pass."""

    color: Literal["auto", "always", "never"] = "auto"
    output: Literal["auto", "stream", "group", "failed", "quiet"] = "auto"
    verbose: bool = False
    json: bool = False
    in_program: bool = False


def shown(story: Story, look: Look, *, turn: float = 0.05) -> str:
    """Show the events of a story on a console, event by event, and return what it wrote; a turn takes `turn` s."""
    out, now = io.StringIO(), [100.0]
    state = RunState(story.plan)
    state.apply(story.events[0])
    watching = Console(Screen(out, lambda: now[0]), look, state, str(story.rundir))
    for event in story.events[1:]:
        state.apply(event)
        watching.on_event(event, state)
        watching.tick()
        now[0] += turn
    return out.getvalue()
