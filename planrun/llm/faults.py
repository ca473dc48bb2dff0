"""What is wrong with an answer, in a form that a model can mend it by."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MOST = 40  # faults that are told at once
_LONGEST = 400  # characters of a message


class Fault(Record):
    """One thing that is wrong: where in the answer (`steps[2].run`), by which rule, what, and what is allowed there."""

    path: str
    rule: str
    message: str
    allowed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The fault in one line, for people; `$`, the whole of an answer, is said in words."""
        there = f"; allowed: {', '.join(self.allowed)}" if self.allowed else ""
        place = "the answer" if self.path == "$" else self.path
        return f"{place}: {self.message} [{self.rule}]{there}"


def as_data(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """Return faults as plain data for a repair, the first MOST of them."""
    return [
        {
            "path": fault.path,
            "rule": fault.rule,
            "message": fault.message[:_LONGEST],
            **({"allowed": list(fault.allowed)} if fault.allowed else {}),
        }
        for fault in list(faults)[:MOST]
    ]
