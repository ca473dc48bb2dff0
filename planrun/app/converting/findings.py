"""What a conversion tells besides the plan: what means something else, what is left to do, what cannot be kept."""

from __future__ import annotations

from fnmatch import fnmatchcase

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from planrun.source.node import Node

    Kind = Literal["differs", "todo", "refused"]

MAX_FINDINGS = 1000  # of one file; more are counted with the last
EVERYTHING = ("all", "*")
NEVER = frozenset(("shape", "too-large"))  # what nobody can accept: there is nothing to convert


class UntranslatableError(Exception):
    """What planrun has no words for: the code and the message of a finding."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Finding(Record):
    """One finding about the file that is converted; line and column count from 1.

    `differs`: converted, and means something slightly else. `todo`: left to a person, with a comment in the plan.
    `refused`: cannot be kept, unless `accepted`: then a comment, or a step without an action, stands in its place.
    """

    kind: Kind
    code: str
    message: str
    file: str
    line: int = 1
    col: int = 1
    step: str = ""
    accepted: bool = False

    @property
    def text(self) -> str:
        """The finding without its place, as it stands in the plan's head and on the screen."""
        word = "accepted" if self.accepted else self.kind
        return f"{word}[{self.code}]: {self.message}"


class Findings:
    """Collects findings of one file; one that says the same of several places is told once, at the first."""

    def __init__(self, file: str, accepted: Iterable[str] = ()) -> None:
        self.file = file
        self.accepted = frozenset("*" if name in EVERYTHING else name for name in accepted)
        self._found: dict[tuple[str, str], Finding] = {}

    def of(self, file: str) -> Findings:
        """Return a view for another file that belongs to the conversion: its findings stand beside these."""
        other = Findings(file, self.accepted)
        other._found = self._found
        return other

    def differs(self, code: str, message: str, node: Node) -> None:
        """Note that something was converted and means something slightly else."""
        self._add("differs", code, message, node)

    def todo(self, code: str, message: str, node: Node, step: str = "") -> str:
        """Note what is left to a person; returns the text of the comment that the plan gets at that place."""
        self._add("todo", code, message, node, step=step)
        return f"todo: {message}"

    def refuse(self, code: str, message: str, node: Node, step: str = "") -> str:
        """Note what cannot be kept; returns the text of the comment in case that it is accepted."""
        self._add("refused", code, message, node, step=step)
        return f"not kept: {message}"

    def _add(self, kind: Kind, code: str, message: str, node: Node, *, step: str = "") -> None:
        if len(self._found) >= MAX_FINDINGS:
            code, message = (
                "too-large",
                f"there are more than {MAX_FINDINGS:,} findings; convert a part of the file",
            )
            kind = "refused"
        accepted = kind == "refused" and self._is_accepted(code)
        finding = Finding(
            kind=kind,
            code=code,
            message=message,
            file=self.file,
            line=node.line,
            col=node.col,
            step=step,
            accepted=accepted,
        )
        self._found.setdefault((code, message), finding)

    def _is_accepted(self, code: str) -> bool:
        return code not in NEVER and any(fnmatchcase(code, name) for name in self.accepted)

    @property
    def acceptable(self) -> list[str]:
        """The names of what is refused, accepted or not, and can be accepted."""
        return sorted({each.code for each in self._found.values() if each.kind == "refused"} - NEVER)

    @property
    def is_refused(self) -> bool:
        """Whether something is refused and not accepted."""
        return any(each.kind == "refused" and not each.accepted for each in self._found.values())

    @property
    def listed(self) -> tuple[Finding, ...]:
        """All findings in file order."""
        places = {
            file: at for at, file in enumerate(dict.fromkeys(each.file for each in self._found.values()))
        }
        first = self.file
        return tuple(
            sorted(
                self._found.values(),
                key=lambda each: (each.file != first, places[each.file], each.line, each.col),
            )
        )
