"""Failures marked beside the plan, as a CI system shows them. Loaded by runs that have something to mark there."""

from __future__ import annotations

import os

from planrun.reports import facts
from planrun.reports.ci import from_checkout
from planrun.reports.errorlines import failure
from planrun.reports.escape import line
from planrun.reports.parts import part, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Sections

MAX_PROBLEMS = 9  # GitHub shows ten errors and ten warnings of a step


class Annotations:
    """The annotations of one run."""

    def __init__(self, sections: Sections, rundir: str) -> None:
        self._sections = sections
        self._rundir = rundir
        self._unmarked: list[str] = []
        self._left = {"problem": MAX_PROBLEMS, "warning": MAX_PROBLEMS}

    def failed(self, state: RunState, step: StepState) -> str:
        """Return the annotations of a failed step and of its test cases; "" once there are enough of a kind."""
        name = facts.name(step)
        tolerated = not facts.option(state, "strict") and state.tolerance(step.step.id) is not None
        kind, say = ("warning", self._sections.warning) if tolerated else ("problem", self._sections.problem)
        if not self._left[kind]:
            self._unmarked.append(name)
            return ""
        self._left[kind] -= 1
        title = f"{name} {facts.details(step)}"
        shown = say(file_of(state, step), step.step.line, title, failure(self._rundir, step))
        if not step.step.reports:
            return shown
        places = list(part("testcases:TEST_CASES")["places"](step))[: self._left[kind]]
        self._left[kind] -= len(places)
        return shown + "".join([say(*place) for place in places])

    def rest(self, state: RunState) -> str:
        """Return an annotation that names the failed steps that have none of their own; "" without such steps."""
        more = self._unmarked
        if not more:
            return ""
        return self._sections.problem(file_of(state), 0, f"and {len(more)} more failed", ", ".join(more))


def problem(state: RunState, sections: Sections, title: str, message: str) -> str:
    """Return the annotation of a failure that is not one of a step."""
    return sections.problem(file_of(state), 0, title, message)


def notices(state: RunState, sections: Sections) -> str:
    """Return an annotation for each question that waits for an answer."""
    parts = [each["notices"] for each in parts_of(state) if "notices" in each]
    return "".join([sections.notice(file_of(state), *notice) for rows in parts for notice in rows(state)])


def file_of(state: RunState, step: StepState | None = None) -> str:
    """Return the file of a step, or the plan's, as annotations count it: from the root of the checkout."""
    file = state.plan.file_of(step.step) if step else state.plan.file
    return line(from_checkout(file, os.environ))
