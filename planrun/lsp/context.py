"""Where in a plan a place is, read from the lines above it: a document that is being typed is seldom whole."""

from __future__ import annotations

import re

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.lsp.text import Text

    Path = tuple[str | int, ...]

_LINE = re.compile(
    r"(?P<lead>[ \t]*(?:-[ \t]+)*)(?P<key>[\w$.-]+|\"[^\"]*\"|'[^']*')[ \t]*:(?=[ \t]|$)(?P<rest>.*)"
)
_DASHES = re.compile(r"[ \t]*(?:-(?:[ \t]+|$))*")
_BLOCK = re.compile(r"[ \t]*[|>][-+0-9]*[ \t]*(#.*)?")
_MOST = 5000  # lines above that are looked at
_OPEN = "${{"


class Context(Record):
    """`path`: of the mapping whose key, or the value, that is being typed; `typed`: what is there of it already.

    `present`: keys that the mapping has. `expression`: what of an expression stands before the place, None outside of
    one. `is_text`: the place is in a script or another text of several lines.
    """

    path: Path
    is_key: bool
    typed: str = ""
    present: tuple[str, ...] = ()
    expression: str | None = None
    is_text: bool = False


def context_at(text: Text, line: int, col: int) -> Context:
    """Return what is being typed at a place."""
    row = text.line(line)[: col - 1]
    start = row.rfind(_OPEN)
    inside = row[start + len(_OPEN) :] if start >= 0 and "}}" not in row[start:] else None
    if inside is not None:
        return Context(
            path=_above(text, line, len(row) - len(row.lstrip()) + 1)[0], is_key=False, expression=inside
        )
    lead = _DASHES.match(row)
    start = len(lead[0]) if lead else 0
    found = _LINE.match(row)
    key_col = len(found["lead"]) if found else start
    above, is_text = _above(text, line, key_col, lead[0] if lead else "")
    if is_text:
        return Context(path=above, is_key=False, is_text=True)
    if found is None:
        return _flow(row[start:], above, _siblings(text, line, key_col))
    key, rest = found["key"].strip("\"'"), found["rest"]
    return _flow(rest.lstrip(), (*above, key), (), at_value=True)


def _above(text: Text, line: int, limit: int, lead: str = "") -> tuple[Path, bool]:
    """Return the path of what a key at a column belongs to, and whether that is a text of several lines."""
    path: list[str | int] = []
    pending = False  # an entry of a list was left: its key may stand at the same column as the dash
    for at in reversed([number for number, char in enumerate(lead) if char == "-"]):
        path.append(0)
        limit, pending = at, True
    for number in range(line - 1, max(0, line - _MOST), -1):
        if limit <= 0 and not pending:
            break
        row = text.line(number)
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        found = _LINE.match(row)
        before = found["lead"] if found else _DASHES.match(row)[0]  # type: ignore[index]
        dashes = [index for index, char in enumerate(before) if char == "-"]
        key_col = len(before)
        if found and (key_col < limit or (pending and key_col == limit and not dashes)):
            if _BLOCK.fullmatch(found["rest"]) and not path:
                return (*_above(text, number, key_col, before)[0], found["key"].strip("\"'")), True
            path.append(found["key"].strip("\"'"))
            limit, pending = key_col, False
        for at in reversed(dashes):
            if at < limit and key_col <= max(limit, at + 2):
                path.append(0)
                limit, pending = at, True
    return tuple(reversed(path)), False


def _siblings(text: Text, line: int, key_col: int) -> tuple[str, ...]:
    """Return the keys that the mapping of a key at a column has on other lines."""
    found: list[str] = []
    for step in (-1, 1):
        number = line + (0 if step < 0 else 1)
        while 0 < number <= len(text.starts) and abs(number - line) < _MOST:
            row = text.line(number)
            match = _LINE.match(row)
            indent = len(row) - len(row.lstrip())
            if row.strip() and indent < key_col and not (match and len(match["lead"]) == key_col):
                break
            is_other_entry = step > 0 and match is not None and "-" in match["lead"]
            if match and len(match["lead"]) == key_col and not is_other_entry and number != line:
                found.append(match["key"].strip("\"'"))
            dash = match is not None and "-" in match["lead"] and len(match["lead"]) == key_col
            if (dash and step < 0) or is_other_entry:
                break
            number += step
    return tuple(found)


class _Level:
    """A mapping or list in braces that is open: its kind, the key whose value is due, the keys so far."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.key: str | None = None
        self.keys: list[str] = []


def _flow(rest: str, above: Path, present: tuple[str, ...], *, at_value: bool = False) -> Context:
    """Return the context of the end of a text that may have braces; `at_value`: the value of a key begins there."""
    levels: list[_Level] = []
    token, at = "", 0
    while at < len(rest):
        char = rest[at]
        if char in "\"'" and not token.strip():
            end = rest.find(char, at + 1)
            token += rest[at + 1 : end if end >= 0 else len(rest)]
            at = end if end >= 0 else len(rest)
        elif char in "{[" and not token.strip():
            levels.append(_Level(char))
            token = ""
        elif char in "}]" and levels:
            levels.pop()
            token = ""
        elif char == "," and levels:
            levels[-1].key, token = None, ""
        elif char == ":" and levels and levels[-1].kind == "{" and rest[at + 1 : at + 2] in ("", " "):
            levels[-1].key = token.strip()
            levels[-1].keys.append(token.strip())
            token = ""
        else:
            token += char
        at += 1
    path = list(above)
    for level in levels:
        path += [0] if level.kind == "[" else [level.key] if level.key is not None else []
    if not levels:
        return Context(path=tuple(path), is_key=not at_value, typed=token.strip(), present=present)
    last = levels[-1]
    is_key = last.kind == "{" and last.key is None
    return Context(
        path=tuple(path), is_key=is_key, typed=token.strip(), present=tuple(last.keys) if is_key else ()
    )
