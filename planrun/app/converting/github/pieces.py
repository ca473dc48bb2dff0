"""Texts of a workflow cut into what stands there and the expressions between `${{` and `}}`."""

from __future__ import annotations

from planrun.app.converting.github.grammar import NotAnExpressionError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.github.grammar import Tree

    Piece = str | Tree


def pieces_of(text: str) -> list[Piece]:
    """Return the literal texts and the trees of a text, in order; raises NotAnExpressionError."""
    found: list[Piece] = []
    at = 0
    while (start := text.find("${{", at)) >= 0:
        if start > at:
            found.append(text[at:start])
        end = _end(text, start + 3)
        found.append(parse(text[start + 3 : end]))
        at = end + 2
    if at < len(text):
        found.append(text[at:])
    return found


def _end(text: str, at: int) -> int:
    """Return where `}}` stands, outside of texts in quotes."""
    is_quoted = False
    while at < len(text):
        if text[at] == "'":
            is_quoted = not is_quoted
        elif not is_quoted and text.startswith("}}", at):
            return at
        at += 1
    raise NotAnExpressionError("`}}` is missing")


def condition_of(text: str) -> Tree:
    """Return the tree of an `if`, whose braces may be left out; raises NotAnExpressionError.

    With text beside the braces it is a text that is not empty, which GitHub takes for true.
    """
    stripped = text.strip()
    if "${{" not in stripped:
        return parse(stripped)
    found = pieces_of(stripped)
    if len(found) == 1 and not isinstance(found[0], str):
        return found[0]
    raise NotAnExpressionError("text beside `${{ … }}` is always true")
