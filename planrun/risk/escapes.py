r"""Commands written one a line: `\\`, `\n`, `\t`, `\r`, `\xHH` and `\uHHHH` stand for one character each."""

from __future__ import annotations

_SIGNS = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_DIGITS = {"x": 2, "u": 4}
_HEX = frozenset("0123456789abcdefABCDEF")


class BadEscape(Exception):
    """A backslash that stands for nothing; the text says where."""


def decoded(line: str) -> str:
    """Return the command that a line stands for; raises BadEscape."""
    if "\\" not in line:
        return line
    found: list[str] = []
    at = 0
    while at < len(line):
        stop = line.find("\\", at)
        if stop < 0:
            found.append(line[at:])
            break
        found.append(line[at:stop])
        char, at = _escape(line, stop)
        found.append(char)
    return "".join(found)


def _escape(line: str, at: int) -> tuple[str, int]:
    """Return the character that an escape stands for, and where the text goes on."""
    letter = line[at + 1 : at + 2]
    if letter in _SIGNS:
        return _SIGNS[letter], at + 2
    count = _DIGITS.get(letter, 0)
    digits = line[at + 2 : at + 2 + count]
    if not count or len(digits) < count or not _HEX.issuperset(digits):
        raise BadEscape(f"no escape at character {at + 1}: {line[at : at + 2 + count]}")
    return chr(int(digits, 16)), at + 2 + count
