"""The text before the grammar sees it: where `${{ … }}` ends, which characters and how many brackets it has.

Jinja2's parser calls itself for every bracket, so the nesting is bounded here, before it starts.
"""

from __future__ import annotations

from planrun.expressions.tree import MAX_DEPTH, MAX_PLACES, MAX_TEXT, ExpressionError

OPEN = "${{"
CLOSE = "}}"

_DELETE = 0x7F

_BRACKETS = {"(": ")", "[": "]"}
_OPERATORS = "+-*/%~.,|:<>"
_COMPARISONS = ("==", "!=", "<=", ">=")
# What people write who come from other languages, the longest first.
_FOREIGN = {
    OPEN: "write `${{` and `}}` around the whole expression, or remove both",
    "===": "unknown operator `===`; use `==`",
    "!==": "unknown operator `!==`; use `!=`",
    "&&": "unknown operator `&&`; use `and`",
    "||": "unknown operator `||`; use `or`",
    "??": "unknown operator `??`; use `default(value, otherwise)`",
    "{%": "template statements (`{%`) are not supported; use an expression",
    "{#": "comments are not supported in expressions",
    "=~": "regular expressions are not supported; use contains, startswith or endswith",
    "=": "unknown operator `=`; use `==`",
    "!": "unknown operator `!`; use `not`",
    "&": "unknown operator `&`; use `and`",
    "?": "unknown operator `?`; use `a if test else b`",
    "{": "object literals are not supported in expressions",
    "}": "object literals are not supported in expressions",
    "$": "unexpected `$`; write the name without it",
    "`": "unexpected backtick; write a string in '…' or \"…\"",
}


def pieces(text: str) -> list[str | tuple[int, int]]:
    """Split a template into texts and the (start, end) of what stands between `${{` and `}}`.

    `$${{` is a literal `${{`. Raises ExpressionError for an interpolation or a string that is not closed.
    """
    found: list[str | tuple[int, int]] = []
    plain: list[str] = []
    at = 0
    places = 0
    while (start := text.find(OPEN, at)) >= 0:
        if text[max(at, start - 1) : start] == "$":
            plain += (text[at : start - 1], OPEN)
            at = start + len(OPEN)
            continue
        places += 1
        if places > MAX_PLACES:
            raise ExpressionError(f"more than {MAX_PLACES} interpolations in one string", start, len(OPEN))
        if before := "".join((*plain, text[at:start])):
            found.append(before)
        plain.clear()
        end = closing(text, start)
        found.append((start + len(OPEN), end))
        at = end + len(CLOSE)
    if after := "".join((*plain, text[at:])):
        found.append(after)
    return found


def bounds(text: str) -> tuple[int, int]:
    """Return where a bare expression starts and ends: inside of `${{ }}` where that is around the whole text.

    Raises ExpressionError for an interpolation or a string that is not closed.
    """
    start = len(text) - len(text.lstrip())
    if text.startswith(OPEN, start):
        end = closing(text, start)
        if not text[end + len(CLOSE) :].strip():
            return start + len(OPEN), end
    return 0, len(text)


def bare(text: str) -> str:
    """Return a bare expression as people read it, without the `${{ }}` that may be around it."""
    return text[slice(*bounds(text))].strip()


def closing(text: str, start: int) -> int:
    """Return where the `}}` of the `${{` at `start` stands; braces in strings and in braces do not count."""
    at = start + len(OPEN)
    braces = 0
    # One more than an expression may have, so that the end of a text that is not closed is found soon.
    limit = min(len(text), at + MAX_TEXT + 1)
    while at < limit:
        char = text[at]
        if char in "'\"":
            at = string_end(text, at, limit)
            continue
        if char == "{":
            braces += 1
        elif char == "}" and braces:
            braces -= 1
        elif text.startswith(CLOSE, at):
            return at
        at += 1
    if at < len(text):
        raise ExpressionError(f"the expression has more than {MAX_TEXT} characters", start, len(OPEN))
    raise ExpressionError("unclosed `${{`: expected `}}`; write `$${{` for a literal `${{`", start, len(OPEN))


def string_end(text: str, start: int, limit: int) -> int:
    """Return the index after the string that begins at `start`."""
    quote = text[start]
    at = start + 1
    while at < limit:
        char = text[at]
        if char == quote:
            return at + 1
        at += 2 if char == "\\" else 1
    raise ExpressionError(f"unclosed string: expected {quote}", start)


def brackets(text: str, start: int, end: int) -> dict[int, int]:
    """Return where each opening bracket in `text[start:end]` is closed.

    Raises ExpressionError for what no expression contains, and for brackets that do not match or are too deep.
    """
    if end - start > MAX_TEXT:
        raise ExpressionError(f"the expression has more than {MAX_TEXT} characters", start)
    _refuse_controls(text, start, end)
    closed: dict[int, int] = {}
    opened: list[int] = []
    at = start
    while at < end:
        char = text[at]
        if char in "'\"":
            at = string_end(text, at, end)
            continue
        if char in "([":
            opened.append(at)
            if len(opened) > MAX_DEPTH:
                raise ExpressionError(f"brackets are nested more than {MAX_DEPTH} levels deep", at)
        elif char in ")]":
            if not opened or _BRACKETS[text[opened[-1]]] != char:
                raise ExpressionError(f"unmatched `{char}`", at)
            closed[opened.pop()] = at
        at += _width(text, at, end)
    if opened:
        raise ExpressionError(f"unclosed `{text[opened[-1]]}`", opened[-1])
    return closed


def _refuse_controls(text: str, start: int, end: int) -> None:
    """Refuse what no one sees and no one writes, also in strings; Jinja2 would make a carriage return a line end."""
    for at in range(start, end):
        code = ord(text[at])
        if (code < ord(" ") and text[at] not in "\n\t") or code == _DELETE or 0xD800 <= code < 0xE000:
            raise ExpressionError(f"an expression cannot contain U+{code:04X}", at)


def _width(text: str, at: int, end: int) -> int:
    """Return how many characters the operator or character at `at` has, if it may stand in an expression."""
    char = text[at]
    if char.isalnum() or char in "_ \n\t()[]":
        return 1
    three = text[at : min(at + 3, end)]
    if three[:2] in _COMPARISONS and three not in _FOREIGN:
        return 2
    for foreign, hint in _FOREIGN.items():
        if three.startswith(foreign):
            raise ExpressionError(hint, at, len(foreign))
    if char in _OPERATORS:
        return 1
    name = char if char.isprintable() else f"U+{ord(char):04X}"
    raise ExpressionError(f"an expression cannot contain `{name}` outside a string", at)
