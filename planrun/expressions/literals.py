"""The values of literals: texts with a closed set of escapes, numbers that every reader of JSON understands."""

from __future__ import annotations

from planrun.expressions.errors import ExpressionError
from planrun.expressions.tree import MAX_INTEGER

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "/": "/"}
_CODES = {"x": 2, "u": 4, "U": 8}
_BASES = {"0x": 16, "0o": 8, "0b": 2}
_INFINITY = float("inf")


def string(source: str, offset: int) -> str:
    """Return the text that a literal with its quotes stands for; raises ExpressionError for an unknown escape."""
    if "\\" not in source:
        return source[1:-1]
    text = ""
    at = 1
    while at < len(source) - 1:
        if source[at] != "\\":
            text += source[at]
            at += 1
            continue
        char, width = _escaped(source, at, offset)
        text += char
        at += width
    return text


def _escaped(source: str, at: int, offset: int) -> tuple[str, int]:
    """Return the character that the escape at `at` stands for, and how long the escape is."""
    kind = source[at + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], 2
    width = _CODES.get(kind)
    if width is None:
        raise ExpressionError(f"`\\{kind}` is no escape; a backslash itself is `\\\\`", offset + at, 2)
    digits = source[at + 2 : at + 2 + width]
    code = -1
    if len(digits) == width and all(digit in "0123456789abcdefABCDEF" for digit in digits):
        code = int(digits, 16)
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        raise ExpressionError("this escape is no character", offset + at, 2 + len(digits))
    return chr(code), 2 + width


def integer(source: str, offset: int) -> int:
    """Return a whole number; raises ExpressionError for one beyond 64 bits."""
    digits = source.replace("_", "")
    value = MAX_INTEGER + 1
    # The shortest way to write the largest one is hexadecimal, the longest binary.
    if len(digits) <= 66:
        base = _BASES.get(digits[:2].lower(), 10)
        value = int(digits[2:] if base != 10 else digits, base)
    if value > MAX_INTEGER:
        raise ExpressionError("a number has at most 64 bits", offset, len(source))
    return value


def number(source: str, offset: int) -> float:
    """Return a number with a fraction or exponent; raises ExpressionError for one that is too large."""
    value = float(source.replace("_", ""))
    if value == _INFINITY:
        raise ExpressionError("this number is too large", offset, len(source))
    return value
