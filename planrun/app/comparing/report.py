"""All that is told about two plans: the difference, whose plans they are, and the approvals that the new one needs."""

from __future__ import annotations

from planrun.app.comparing.matching import renamed
from planrun.app.comparing.plans import compare
from planrun.app.comparing.records import Difference
from planrun.app.revisions import read_side
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from planrun.app.revisions import Side
    from planrun.source.problems import Problem


class Gate(Record):
    """A step of the new plan that does not run unasked: the answer, the rule that gave it, and why.

    `before`: what the policy of the old plan would say to the same step; empty without an old plan.
    """

    step: str
    risk: str
    answer: Literal["ask", "deny"]
    rule: str
    reason: str
    before: str = ""


class Report(Record):
    """Two sides and what is different; `gates` in file order, `policy` in one line what decided about them.

    `command` writes the approval for the steps that are asked for; empty when there are none.
    """

    old: Side
    new: Side
    difference: Difference
    gates: tuple[Gate, ...] = ()
    policy: str = ""
    command: str = ""

    @property
    def differs(self) -> bool:
        """Whether the two plans do not mean the same."""
        return bool(self.difference)


def read_report(old: str, new: str) -> Report:
    """Read and compare what two words of the command line name: see `revisions.read_side`.

    Raises InvalidPlan with the problems of both sides, InvalidInput for what cannot be read.
    """
    if old == new == "-":
        raise InvalidInput("only one of the two can be standard input")
    sides: list[Side] = []
    problems: list[Problem] = []
    sources: dict[str, bytes] = {}
    for name, other in ((old, new), (new, old)):
        try:
            sides.append(read_side(name, stand_in=other))
        except InvalidPlan as error:
            problems += error.problems
            sources.update(error.sources)
    if problems:
        raise InvalidPlan(problems, sources=sources)
    if all(side.plan is None for side in sides):
        raise InvalidInput(f"there is no plan on either side: {old}, {new}")
    return report(*sides)


def report(old: Side, new: Side) -> Report:
    """Compare two sides, at least one of which has a plan."""
    was = renamed(old.plan, new.plan) if old.plan and new.plan else {}
    found = compare(old.plan, new.plan, was)
    return Report(old=old, new=new, difference=found)
