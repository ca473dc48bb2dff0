"""Quotes are removed where every YAML reader takes the same text without them."""

from __future__ import annotations

import re

from planrun.fmt.layout import edited
from planrun.fmt.spans import UnsupportedError, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.fmt.spans import Span

# What begins with a letter and has no mark of YAML; `:` only inside of words. Fewer marks between brackets.
_PLAIN = re.compile(r"(?=[^\W\d])(?:[\w ./+=@();?~^$<>%!&*|\\,-]|:(?=[\w/]))*(?<! )")
_PLAIN_IN_BRACKETS = re.compile(r"(?=[^\W\d])[\w ./+=@()~^$<>%-]*(?<! )")
# Words that some readers take for a boolean or for nothing.
_WORDS = {
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
    "null",
    "nil",
    "none",
    "nan",
    "inf",
    "infinity",
}


def is_plain(text: str, *, in_brackets: bool = False) -> bool:
    """Whether a text means the same with and without quotes."""
    form = _PLAIN_IN_BRACKETS if in_brackets else _PLAIN
    return bool(form.fullmatch(text)) and text.lower() not in _WORDS


def unquoted(text: str) -> str:
    """Return a plan's text without the quotes that nothing needs; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    edits: list[tuple[int, int, str]] = []
    _collect(text, root, edits, in_brackets=False)
    return edited(text, edits)


def _collect(text: str, span: Span, edits: list[tuple[int, int, str]], *, in_brackets: bool) -> None:
    in_brackets = in_brackets or span.is_flow
    for child in [value for _, value in span.pairs] + [item for _, item in span.entries]:
        if child.kind == "scalar":
            written = text[child.start + 1 : child.end - 1]
            quoted = child.style in ("'", '"') and not child.has_anchor
            if quoted and written == child.value and is_plain(written, in_brackets=in_brackets):
                edits.append((child.start, child.end, written))
        else:
            _collect(text, child, edits, in_brackets=in_brackets)
