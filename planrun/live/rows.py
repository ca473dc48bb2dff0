"""The steps of a run as rows: status, time, attempts, and why a step waits; and which of them are shown."""

from __future__ import annotations

import os
import time

from planrun.app.run_status import metrics, said, why
from planrun.model.record import Record
from planrun.records import history
from planrun.reports import facts
from planrun.reports.escape import line
from planrun.reports.facts import epoch, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.app.following import Followed
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.progress import Progress

FILTERS: dict[str, tuple[str, ...]] = {
    "all": (),
    "running": ("running",),
    "waiting": ("waiting", "paused"),
    "failed": ("failed", "blocked", "cancelled"),
    "to come": ("pending",),
    "done": ("completed", "skipped"),
}
"""Groups of statuses, in the order in which a key goes through them."""
_AGE = 1.0  # seconds that figures stay as they are


class Row(Record):
    """A step on the screen: clean texts."""

    step: str
    status: str
    time: str
    tries: int
    note: str


class Steps:
    """The steps of a run that is followed, and its figures, which are computed once a second."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed
        self._figures: tuple[float, Progress] | None = None
        self._said: tuple[float, Mapping[str, tuple[float, str]]] = (0.0, {})
        home = os.path.dirname(os.path.dirname(followed.rundir))
        self.expected = history.estimates(history.path_of(home, self.state.plan))

    @property
    def state(self) -> RunState:
        """The state of the run as it is now."""
        return self._followed.inspected.state

    def find(self, name: str) -> StepState | None:
        """Return a step, or what undoes one."""
        return self.state.steps.get(name) or self.state.undoing.get(name)

    def is_group(self, name: str) -> bool:
        """Return whether a step stands for others."""
        step = self.find(name)
        return step is not None and step.step.kind == "group" and bool(step.step.grouping.members)

    def names(self, statuses: tuple[str, ...] = (), text: str = "") -> list[str]:
        """Return the steps with one of these statuses (none: any) whose id or title holds a text."""
        found = [*facts.listed(self.state), *self.state.undoing.values()]
        if statuses:
            found = [step for step in found if step.status in statuses]
        if text:
            text = text.lower()
            found = [step for step in found if text in f"{step.step.id} {step.step.title}".lower()]
        return [step.step.id for step in found]

    def done(self) -> tuple[int, int]:
        """Return how many steps have ended, of how many."""
        counted = self.state.counted()
        return sum([step.ended for step in counted]), len(counted)

    def figures(self) -> Progress:
        """Return the progress of the run, with its ETA."""
        now = time.monotonic()
        if self._figures is None or now - self._figures[0] >= _AGE or not self._followed.inspected.is_active:
            self._figures = (now, metrics(self._followed.inspected))
        return self._figures[1]

    def row(self, name: str) -> Row:
        """Return a step as it is now."""
        step = self.find(name)
        assert step is not None
        return Row(
            step=facts.name(step),
            status=step.status,
            time=self._time(step),
            tries=len(step.tries),
            note=line(self._note(step)),
        )

    def _members(self, group: StepState) -> list[StepState]:
        """Return the members of a group, and those of groups in it."""
        found: list[StepState] = []
        waiting = [*group.step.grouping.members]
        while waiting:
            step = self.state.steps[waiting.pop()]
            below = step.step.grouping.members if step.step.kind == "group" else ()
            waiting += below
            found += [] if below else [step]
        return found

    def _time(self, step: StepState) -> str:
        if step.step.kind == "group":
            return self._time_of_group(step)
        if step.status == "running" and step.tries:
            if not self._followed.inspected.is_active:
                return "?"
            return seconds(max(0.0, time.time() - epoch(step.tries[0].started.at)))
        return seconds(facts.duration(step)) if step.tries else ""

    def _time_of_group(self, group: StepState) -> str:
        """Return the time from the first start of a member to the last end."""
        tried = [step for step in self._members(group) if step.tries]
        if not tried:
            return ""
        began = min([epoch(step.tries[0].started.at) for step in tried])
        is_live = self._followed.inspected.is_active and not group.ended
        ends = [epoch(step.ended_at) for step in tried if step.ended_at]
        return seconds(max(0.0, (time.time() if is_live or not ends else max(ends)) - began))

    def _note_of_group(self, group: StepState) -> str:
        """Return how many members have ended, and how many failed."""
        members = self._members(group)
        failed = sum([step.status == "failed" for step in members])
        ended = sum([step.ended for step in members])
        return f"{ended}/{len(members)}{f', {failed} failed' if failed else ''}  {group.step.title}".rstrip()

    def _note(self, step: StepState) -> str:
        name = step.step.id
        if self.is_group(name):
            return self._note_of_group(step)
        inspected = self._followed.inspected
        if step.status == "running":
            if not inspected.is_active:
                return "planrun was killed while it ran"
            known = f"usually {seconds(self.expected[name])}" if name in self.expected else ""
            now = time.monotonic()
            if now - self._said[0] >= _AGE:
                self._said = (now, said(self._followed.inspected))
            share, message = self._said[1].get(name, (None, ""))
            return ("" if share is None else f"{share:.0%} {message}".rstrip()) or known or step.step.title
        if step.status == "failed":
            return facts.sentence(step)
        because = why(inspected, step) if name in self.state.steps else []
        flaky = "passed after a failure" if step.status == "completed" and step.flaky else ""
        cached = "cached" if step.restored else ""
        return (because[0].removeprefix("it ") if because else "") or flaky or cached or step.step.title
