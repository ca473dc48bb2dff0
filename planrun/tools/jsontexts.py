"""JSON files read so that they can be written as they were: numbers as written, keys in order, the same indentation."""

from __future__ import annotations

import json

from planrun.model.record import Record
from planrun.tools.refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Number(str):
    """A number as it stands in a file."""

    __slots__ = ()


class Style(Record):
    """How a file is written: `indent` of a level ("" for all on one line), and what follows a colon and a comma."""

    indent: str
    colon: str
    comma: str  # of a file on one line
    ending: str  # of the file
    line_end: str
    is_ascii: bool


def read(text: str) -> Any:
    """Return the data of a JSON text; raises Refusal with the place of what is wrong."""
    if text.startswith("\ufeff"):
        raise Refusal("it begins with a byte order mark, which is no JSON")
    try:
        return json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise Refusal(f"it is no JSON: {error.msg} at {error.lineno}:{error.colno}{_hint(text)}") from None


def style_of(text: str) -> Style:
    """Return how a text is written, by its first lines; comments and other spaces between values are not kept."""
    body = text.strip()
    line_end = "\r\n" if "\r\n" in text else "\n"
    lines = body.splitlines()
    second = next((line for line in lines[1:] if line.strip()), "")
    indent = second[: len(second) - len(second.lstrip())]
    return Style(
        indent=indent or ("  " if len(lines) > 1 else ""),
        colon=": " if '": ' in body or '":' not in body else ":",
        comma=", " if '", "' in body or ", " in body or "," not in body else ",",
        ending=text[len(text.rstrip()) :],
        line_end=line_end,
        is_ascii=text.isascii() and "\\u" in text,
    )


def written(value: Any, style: Style) -> str:
    """Return data as a text in a style."""
    text = "".join(_pieces(value, style, style.line_end))
    return text + style.ending


def _pieces(value: Any, style: Style, start: str) -> Iterator[str]:
    """Yield the text of a value; `start` is what begins a line at its level, line end included."""
    if not isinstance(value, dict | list) or not value:
        yield _scalar(value, style)
        return
    inner = start + style.indent if style.indent else ""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    for position, item in enumerate(value):
        if position:
            yield "," if style.indent else style.comma
        yield inner
        if isinstance(value, dict):
            yield json.dumps(item, ensure_ascii=style.is_ascii) + style.colon
            yield from _pieces(value[item], style, inner)
        else:
            yield from _pieces(item, style, inner)
    yield (start if style.indent else "") + closing


def _scalar(value: Any, style: Style) -> str:
    if isinstance(value, Number):
        return str(value)
    return json.dumps(value, ensure_ascii=style.is_ascii, allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refusal(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(word: str) -> Any:
    raise Refusal(f"{word} is no JSON")


def _hint(text: str) -> str:
    is_yaml = not text.lstrip().startswith(("{", "[")) and ":" in text
    return "; YAML cannot be changed without losing its comments" if is_yaml else ""
