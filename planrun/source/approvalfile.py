"""An approval file: JSON with exactly these keys, read strictly, every problem with its line and column."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.source.document import SCALAR, SEQUENCE, parse
from planrun.source.problems import Problem, did_you_mean, in_order
from planrun.source.scripts import NotRegular, read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.source.node import Node

VERSION = 1
KEYS = ("version", "id", "digest", "steps", "approver", "expires", "uses")
MOST_USES = 1_000_000
_HEX = frozenset("0123456789abcdef")
_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_LONGEST = 200  # characters of an id, of an approver's name


class Approval(Record):
    """Somebody's word that what has this digest may run.

    `steps`: ids, or `*` for all of them; `expires`: RFC 3339; `uses`: how many runs it serves; `file`: where it
    was read.
    """

    id: str
    digest: str
    steps: tuple[str, ...]
    approver: str
    expires: str
    uses: int
    file: str = ""

    def names(self, step: str) -> bool:
        """Whether a step is among those that are approved; the empty id stands for the plan as a whole."""
        return "*" in self.steps or (step != "" and step in self.steps)


def approval_in(data: bytes, path: str) -> Approval:
    """Return the approval in the bytes of a file, called `path` in problems; raises InvalidPlan with all."""
    root, problems = _tree(data, path)
    if root is not None:
        problems += _check(root, path)
    if root is None or problems:
        raise InvalidPlan(in_order(problems), sources={path: data})
    fields: dict[str, Any] = json.loads(data)
    del fields["version"]
    return Approval(**{**fields, "steps": tuple(fields["steps"])}, file=path)


def read_json(path: str, what: str) -> bytes:
    """Return the bytes of a small file that `what` is in; raises InvalidInput."""
    try:
        return read_script(os.path.realpath(path))
    except NotRegular as kind:
        raise InvalidInput(f"cannot read {what} from {path}: it is {kind}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot read {what} from {path}: {reason}") from None


def _tree(data: bytes, path: str) -> tuple[Node | None, list[Problem]]:
    """Return the JSON object in a file with its places."""
    try:
        found = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None, [Problem(code="E004", message="not UTF-8 text", file=path)]
    except json.JSONDecodeError as error:
        message = f"this is no JSON: {error.msg.lower()}"
        return None, [Problem(code="E106", message=message, file=path, line=error.lineno, col=error.colno)]
    except (RecursionError, ValueError):
        return None, [
            Problem(code="E012", message="nested too deeply, or a number of too many digits", file=path)
        ]
    if not isinstance(found, dict):
        return None, [Problem(code="E101", message="an approval is a JSON object", file=path)]
    root, problems = parse(data, path)  # JSON is YAML, and nodes have places
    return root, problems


def _check(root: Node, path: str) -> list[Problem]:
    problems: list[Problem] = []

    def wrong(code: str, message: str, at: Node, hint: str = "") -> None:
        problems.append(Problem(code=code, message=message, file=path, line=at.line, col=at.col, hint=hint))

    for key in root.value:
        if key not in KEYS:
            wrong("E104", f'unknown key "{key}" in an approval', root.key(key), did_you_mean(key, KEYS))
    for key in KEYS:
        node = root.get(key)
        if node is None:
            wrong("E102", f'an approval needs "{key}"', root)
        elif reason := _CHECKS[key](node):
            wrong("E106", f'"{key}" {reason}', node)
    return problems


def _version(node: Node) -> str:
    fits = node.kind == SCALAR and node.plain and node.value == str(VERSION)
    return "" if fits else f"is {VERSION}; another version of planrun may know others"


def _text(node: Node) -> str:
    if node.kind != SCALAR or node.plain:
        return "is a text"
    if not node.value.strip() or len(node.value) > _LONGEST or not node.value.isprintable():
        return f"is a line of 1 to {_LONGEST} characters"
    return ""


def _id(node: Node) -> str:
    return _text(node) or (
        "" if _ID.issuperset(node.value) else "consists of letters, digits, `.`, `_` and `-`"
    )


def _digest(node: Node) -> str:
    fits = node.kind == SCALAR and len(node.value) == 64 and _HEX.issuperset(node.value)
    return "" if fits else "is a SHA-256: 64 hexadecimal digits in lower case"


def _steps(node: Node) -> str:
    if node.kind != SEQUENCE or not node.value or any(_text(item) for item in node.value):
        return 'is a list of ids of steps, or ["*"]'
    names = [item.value for item in node.value]
    if "*" in names and len(names) > 1:
        return 'names steps, or "*" alone'
    return "" if len(set(names)) == len(names) else "names a step twice"


def _expires(node: Node) -> str:
    if node.kind == SCALAR and not node.plain:
        try:
            moment(node.value)
        except ValueError:
            return 'is a time with its zone, such as "2026-01-31T09:30:00Z"'
        return ""
    return 'is a time with its zone, such as "2026-01-31T09:30:00Z"'


def _uses(node: Node) -> str:
    fits = node.kind == SCALAR and node.plain and node.value.isascii() and node.value.isdecimal()
    return (
        "" if fits and len(node.value) < 9 and 0 < int(node.value) <= MOST_USES else "is a number from 1 up"
    )


_CHECKS: dict[str, Callable[[Node], str]] = {
    "version": _version,
    "id": _id,
    "digest": _digest,
    "steps": _steps,
    "approver": _text,
    "expires": _expires,
    "uses": _uses,
}


def moment(text: str) -> datetime:
    """Return an RFC 3339 time; raises ValueError, also for one without a zone."""
    if len(text) < 20 or text[10] not in "Tt":
        raise ValueError(text)
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found.astimezone(UTC)
