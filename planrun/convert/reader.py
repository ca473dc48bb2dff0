"""Values of a file of another tool, read without exceptions, and what a conversion reports besides the plan."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Literal

    Kind = Literal["differs", "todo", "refused"]

MAX_FINDINGS = 1000  # of one file; more are counted with the last
MAX_EXPANDED = 1 << 22  # characters and values that all expansions of one conversion may make
EVERYTHING = ("all", "*")
NEVER = frozenset(("shape", "too-large"))  # findings that cannot be accepted: there is nothing to convert


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
    """Collects findings of one file; the same finding at several places is reported once, at the first."""

    def __init__(self, file: str, accepted: Iterable[str] = ()) -> None:
        self.file = file
        self.accepted = frozenset("*" if name in EVERYTHING else name for name in accepted)
        self._found: dict[tuple[str, str], Finding] = {}
        self._left = [MAX_EXPANDED]
        self.files: dict[str, Node | None] = {}  # other files that were read, by their paths

    def of(self, file: str) -> Findings:
        """Return a view for another file that belongs to the conversion: its findings stand beside these."""
        other = Findings(file, self.accepted)
        other._found, other.files = self._found, self.files
        other._left = self._left
        return other

    def spend(self, count: int, node: Node | None = None) -> None:
        """Charge what an expansion is about to make; raises InvalidInput when all of them make too much."""
        self._left[0] -= count
        if self._left[0] < 0:
            place = f"{self.file}:{node.line}:{node.col}: " if node is not None else f"{self.file}: "
            raise InvalidInput(
                f"{place}its variables or lists expand to too much; --job converts a part of the file"
            )

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
            kind, code = "refused", "too-large"
            message = f"there are more than {MAX_FINDINGS:,} findings; convert a part of the file"
        is_wanted = code not in NEVER and any(fnmatchcase(code, name) for name in self.accepted)
        finding = Finding(
            kind=kind, code=code, message=message, file=self.file, line=node.line, col=node.col, step=step,
            accepted=kind == "refused" and is_wanted,
        )  # fmt: skip
        self._found.setdefault((code, message), finding)

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
        files = [self.file, *(each.file for each in self._found.values())]
        return tuple(
            sorted(self._found.values(), key=lambda each: (files.index(each.file), each.line, each.col))
        )


NOTHING = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE", "yes", "on"))
_FALSE = frozenset(("false", "False", "FALSE", "no", "off"))
_NAMES = {SCALAR: "a string", SEQUENCE: "a list", MAPPING: "a mapping"}
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\Z")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?\Z")


def is_nothing(node: Node | None) -> bool:
    """Say whether a key is missing, or has no value."""
    return node is None or (node.kind == SCALAR and node.plain and node.value in NOTHING)


def text_of(node: Node | None) -> str:
    """Return the text of a scalar; "" for anything else."""
    if node is None or node.kind != SCALAR or is_nothing(node):
        return ""
    return str(node.value)


def truth_of(node: Node | None) -> bool | None:
    """Return what an unquoted true or false says; None for anything else."""
    if node is None or node.kind != SCALAR or not node.plain:
        return None
    return True if node.value in _TRUE else False if node.value in _FALSE else None


def data_of(node: Node) -> str | int | float | bool | None:
    """Return the value of a scalar as tools that read YAML 1.2 take it; a list or mapping is None."""
    if node.kind != SCALAR or is_nothing(node):
        return None
    text = str(node.value)
    if not node.plain:
        return text
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    if INTEGER.match(text):
        return int(text)
    return float(text) if NUMBER.match(text) else text


class Reader:
    """Reads values of one file; what has another shape than it must have is reported, and read as nothing."""

    def __init__(self, found: Findings) -> None:
        self.found = found

    def mapping(self, node: Node | None, what: str) -> dict[str, Node]:
        """Return the members of a mapping; nothing where there is no value."""
        if node is None or is_nothing(node):
            return {}
        if node.kind != MAPPING:
            self._misshapen(node, what, "a mapping")
            return {}
        members: dict[str, Node] = node.value
        return members

    def items(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list."""
        if node is None or is_nothing(node):
            return []
        if node.kind != SEQUENCE:
            self._misshapen(node, what, "a list")
            return []
        members: list[Node] = node.value
        return members

    def either(self, node: Node | None, what: str) -> list[Node]:
        """Return the items of a list, or the only value."""
        if node is None or is_nothing(node):
            return []
        if node.kind == MAPPING:
            self._misshapen(node, what, "text or a list")
            return []
        return list(node.value) if node.kind == SEQUENCE else [node]

    def text(self, node: Node | None, what: str) -> str:
        """Return the text of a scalar, "" where there is none."""
        if node is not None and node.kind != SCALAR:
            self._misshapen(node, what, "text")
        return text_of(node)

    def texts(self, node: Node | None, what: str) -> list[str]:
        """Return a text or a list of texts as a list."""
        return [self.text(item, what) for item in self.either(node, what)]

    def unknown(
        self, members: dict[str, Node], known: Container[str], owner: Node, what: str
    ) -> Iterator[str]:
        """Yield the keys that are not known, after having refused each."""
        for name in members:
            if name not in known:
                self.found.refuse(f"key:{name}", f"{what}: unknown key `{name}`", owner.key(name))
                yield name

    def ignored(self, members: dict[str, Node], known: Container[str], owner: Node, what: str) -> None:
        """Report the keys that are not known, and that the tool ignores as well."""
        for name in members:
            if name not in known:
                self.found.differs("key", f"{what}: unknown key `{name}`, which is ignored", owner.key(name))

    def _misshapen(self, node: Node, what: str, wanted: str) -> None:
        self.found.refuse("shape", f"{what}: expected {wanted}, got {_NAMES[node.kind]}", node)
