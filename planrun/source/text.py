"""The bytes of a plan as text: known to be plain UTF-8, with places by line and column."""

from __future__ import annotations

from planrun.source.file import MAX_BYTES, too_large
from planrun.source.problems import Problem

# Tab, line feed, carriage return and everything from space on, but DEL; bytes above 127 are looked at as text.
_HARMLESS = bytes(byte for byte in range(256) if byte in (9, 10, 13) or (byte >= 32 and byte != 127))
# C0 and C1 controls, DEL, what some readers take for a line end, a byte order mark inside, non-characters, and
# the marks that make text look different from what it is (bidirectional overrides: "Trojan Source").
_HARMFUL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"


def decode(data: bytes, file: str) -> tuple[str | None, list[Problem]]:
    """Return the text without a byte order mark, or None with the first thing that keeps it from being read."""
    if len(data) > MAX_BYTES:
        return None, list(too_large(file).problems)
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return None, [_not_utf8(file, "this is UTF-16 or UTF-32", 1, 1)]
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, col = place(data[: error.start].decode("utf-8"), error.start)
        return None, [_not_utf8(file, f"byte 0x{data[error.start]:02X} does not belong here", line, col)]
    if data.translate(None, _HARMLESS) or not data.isascii():
        found = _control_character(text, file)
        return (None, [found]) if found else (text, [])
    return text, []


def _not_utf8(file: str, what: str, line: int, col: int) -> Problem:
    return Problem(
        code="E004",
        message=f"a plan is UTF-8 text: {what}",
        file=file,
        line=line,
        col=col,
        hint="save it as UTF-8",
    )


def _control_character(text: str, file: str) -> Problem | None:
    import re  # the YAML library has it loaded already, or will at once

    found = re.search(_HARMFUL, text)
    if found is None:
        return None
    line, col = place(text, found.start())
    number = ord(found.group())
    hint = f'in double quotes it can be written "\\u{number:04x}"' if number else "is this a plan, and UTF-8?"
    message = f"a character that cannot be seen: U+{number:04X}"
    return Problem(code="E005", message=message, file=file, line=line, col=col, end_col=col + 1, hint=hint)


def place(text: str, index: int) -> tuple[int, int]:
    """Return line and column (1-based) of the character at `index`; lines end with LF, CR or both."""
    before = text[:index]
    line = before.count("\n") + before.count("\r") - before.count("\r\n")
    start = max(before.rfind("\n"), before.rfind("\r")) + 1
    return line + 1, index - start + 1


def directive(text: str, file: str) -> Problem | None:
    """Find a directive other than one %YAML 1.1 or 1.2, before the YAML library compares thousands of them."""
    if not text.startswith("%") and "\n%" not in text and "\r%" not in text:
        return None
    index = _next_word(text, 0)
    if index is not None and text[index : index + 9] in ("%YAML 1.1", "%YAML 1.2"):
        line_end = text.find("\n", index)
        index = _next_word(text, line_end) if line_end >= 0 else None
    if index is None or not text.startswith("%", index):
        return None  # what else may be wrong with the first one, the library finds at once
    line, col = place(text, index)
    message, hint = "a directive that planrun does not know", "one `%YAML 1.2` is known, and not needed"
    return Problem(code="E020", message=message, file=file, line=line, col=col, hint=hint)


def after_end(text: str, index: int, file: str) -> Problem | None:
    """Find anything but space and comments behind the end of the first document at `index`."""
    found = _next_word(text, index)
    if found is None:
        return None
    line, col = place(text, found)
    second = text.startswith("---", found)
    message = "a second document begins here" if second else "text after the end of the document"
    return Problem(code="E013", message=message, file=file, line=line, col=col, hint="a plan is one document")


def _next_word(text: str, index: int) -> int | None:
    """Return where the next thing stands that is neither space nor comment, from `index` on; None: nowhere."""
    import re

    space = re.compile("[ \\t\\r\\n]*")
    while True:
        gap = space.match(text, index)
        index = gap.end() if gap else index
        if index == len(text):
            return None
        if text[index] != "#":
            return index
        newline = text.find("\n", index)
        if newline < 0:
            return None
        index = newline
