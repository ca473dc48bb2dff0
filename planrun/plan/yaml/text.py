"""The bytes of a plan as text: known to be plain UTF-8, with places by line and column.

Explains the errors of the YAML reader so that the user can fix them.
"""

from __future__ import annotations

from planrun.plan.problems import Problem
from planrun.plan.yaml.file import BOUNDS, MAX_BYTES, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Tab, line feed, carriage return and everything from space on, but DEL; bytes above 127 are checked as text.
_HARMLESS = bytes(byte for byte in range(256) if byte in (9, 10, 13) or (byte >= 32 and byte != 127))
_BINARY = 8192  # bytes at the beginning in which NUL shows that a file is no text
# C0 and C1 controls, DEL, what some readers take for a line end, a byte order mark inside, non-characters, and
# the marks that make text look different from what it is (bidirectional overrides: "Trojan Source").
_HARMFUL = "".join(
    map(
        chr,
        (
            *(code for code in range(0x20) if code not in (9, 10, 13)),
            *range(0x7F, 0xA0),
            *range(0x2028, 0x202F),
            *range(0x2066, 0x206A),
            *(0xFEFF, 0xFFFE, 0xFFFF),
        ),
    )
)


def decode(data: bytes, file: str) -> tuple[str | None, list[Problem]]:
    """Return the text without a byte order mark, or None with the first thing that keeps it from being read."""
    if len(data) > max(BOUNDS.size, MAX_BYTES):
        return None, list(too_large(file).problems)
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")):
        return None, [_not_utf8(file, "the file is UTF-16 or UTF-32", 1, 1)]
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, col = place(data[: error.start].decode("utf-8"), error.start)
        what = "the file is binary" if b"\0" in data[:_BINARY] else f"invalid byte 0x{data[error.start]:02X}"
        return None, [_not_utf8(file, what, line, col)]
    if data.translate(None, _HARMLESS) or not data.isascii():
        found = _control_character(text, file)
        return (None, [found]) if found else (text, [])
    return text, []


def _not_utf8(file: str, what: str, line: int, col: int) -> Problem:
    return Problem(
        code="E004",
        message=f"not UTF-8 text: {what}",
        file=file,
        line=line,
        col=col,
        hint="a plan is a text file" if what.endswith("binary") else "save it as UTF-8",
    )


def _control_character(text: str, file: str) -> Problem | None:
    places = [at for at in map(text.find, _HARMFUL) if at >= 0]
    if not places:
        return None
    line, col = place(text, min(places))
    number = ord(text[min(places)])
    hint = (
        f'remove it, or write it in double quotes as "\\u{number:04x}"'
        if number
        else "check that the file is a plan in UTF-8"
    )
    message = f"invisible character: U+{number:04X}"
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
    message, hint = "unknown YAML directive", "only one `%YAML 1.2` is accepted, and it is optional"
    return Problem(code="E020", message=message, file=file, line=line, col=col, hint=hint)


def after_end(text: str, index: int, file: str) -> Problem | None:
    """Find anything but space and comments behind the end of the first document at `index`."""
    found = _next_word(text, index)
    if found is None:
        return None
    line, col = place(text, found)
    second = text.startswith("---", found)
    message = "more than one YAML document" if second else "text after the end of the document"
    return Problem(
        code="E013", message=message, file=file, line=line, col=col, hint="write one plan per file"
    )


def _next_word(text: str, index: int) -> int | None:
    """Return where the next thing stands that is neither space nor comment, from `index` on; None: nowhere."""
    while index < len(text):
        if text[index] in " \t\r\n":
            index += 1
        elif text[index] != "#":
            return index
        else:
            index = text.find("\n", index)
            if index < 0:
                return None
    return None


# Part of the library's message (libyaml's or PyYAML's own wording), code, our message, hint; the first match wins.
_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    ("found undefined tag handle", "E014", "YAML tags such as !x are not accepted", "remove the tag"),
    (
        "found unexpected end of stream",
        "E010",
        "unclosed quote",
        "close it, or escape it inside",
    ),
    ("document indicator", "E010", "unclosed quote", "close it before --- or ..."),
    (
        "found unknown escape character",
        "E010",
        "unknown escape sequence",
        r"write \\ for a backslash, or use single quotes",
    ),
    (
        "hexdecimal",
        "E010",
        r"incomplete escape sequence: too few hexadecimal digits",
        r"write \\ for a backslash",
    ),
    (
        "hexadecimal",
        "E010",
        r"incomplete escape sequence: too few hexadecimal digits",
        r"write \\ for a backslash",
    ),
    ("Unicode character escape", "E010", "invalid Unicode escape", "write the character itself"),
    (
        "sequence entries are not allowed",
        "E010",
        "sequence entries are not allowed here (unexpected `- `)",
        "put the list on its own lines below its key",
    ),
    (
        "mapping keys are not allowed",
        "E010",
        "mapping keys are not allowed here (unexpected `? `)",
        "quote text that begins with `? `",
    ),
    (
        "could not find expected ':'",
        "E010",
        "expected `: ` after the key",
        "write `key: value`; quote long text",
    ),
    (
        "expected ',' or ']'",
        "E010",
        "unclosed list: expected `,` or `]`",
        "separate entries by `,` and close the list with `]`",
    ),
    (
        "expected ',' or '}'",
        "E010",
        "unclosed mapping: expected `,` or `}`",
        "separate entries by `,` and close the mapping with `}`; quote text that contains `${{ }}`",
    ),
    (
        "expected key",
        "E010",
        "wrong indentation, or unexpected text after a value",
        "check the indentation; text after a closing quote is not allowed",
    ),
    (
        "expected <block end>",
        "E010",
        "wrong indentation, or unexpected text after a value",
        "check the indentation; text after a closing quote is not allowed",
    ),
    (
        "expected '-' indicator",
        "E010",
        "wrong indentation: expected an entry of the list above",
        "begin it with `- `, or indent it",
    ),
    (
        "mapping values are not allowed",
        "E010",
        "mapping values are not allowed here (unexpected `: `)",
        "quote text that contains `: `, or check the indentation",
    ),
    ("expected <document start>", "E010", "unexpected text outside any key", "check the indentation"),
    (
        "alphabetic or numeric character",
        "E010",
        "alias or anchor without a name",
        "quote text that begins with * or &",
    ),
    ("tab character", "E011", "tab used for indentation", "indent with spaces"),
    ("indentation indicator", "E010", "invalid indentation indicator after | or >", "remove the number"),
    ("comment or line break", "E010", "unexpected text after | or >", "begin the text on the next line"),
    (
        "expected node content",
        "E010",
        "expected a value",
        "close the list or mapping, or quote the text",
    ),
    (
        "expected the node content",
        "E010",
        "expected a value",
        "close the list or mapping, or quote the text",
    ),
    ("maximum", "E012", "nested too deeply", "at most 64 levels are allowed"),
)
# A plain value may not begin with these.
_RESERVED = {
    "@": "quote text that begins with @",
    "`": "quote text that begins with a backtick",
    "%": "quote text that begins with %",
}
_CONFLICT = "resolve it, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"
# What was opened, not where the file ended, is the place to look at.
_AT_CONTEXT = (
    "could not find expected ':'",
    "found unexpected end of stream",
    "document indicator",
    "expected ',' or",
)


def explain(error: Any, text: str, file: str) -> Problem:
    """Turn an exception of the YAML library into a Problem with place and hint."""
    said = str(getattr(error, "problem", None) or error)
    mark = getattr(error, "problem_mark", None)
    context = getattr(error, "context_mark", None)
    if context is not None and any(part in said for part in _AT_CONTEXT):
        mark = context
    conflict = f"\n{text}".find("\n<<<<<<< ")
    if conflict >= 0:
        line, col = place(text, conflict)
        return Problem(
            code="E010", message="unresolved merge conflict", file=file, line=line, col=col, hint=_CONFLICT
        )
    line, col = last = place(text, len(text))
    if (
        mark is not None and (mark.line + 1, mark.column + 1) < last
    ):  # libyaml adds a line end where there is none
        line, col = mark.line + 1, mark.column + 1
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n", line)[:line]
    if "mapping values are not allowed" in said or "expected key" in said or "expected <block end>" in said:
        found = _misplaced_key(rows, file, col, in_value=said.startswith("mapping values"))
        if found is not None:
            return found
    code, message, hint = _words(said, rows[line - 1][col - 1 : col] if line <= len(rows) else "")
    return Problem(code=code, message=message, file=file, line=line, col=col, hint=hint)


def _misplaced_key(rows: list[str], file: str, col: int, *, in_value: bool) -> Problem | None:
    """Explain a `: ` in a value without quotes, or a key that is indented deeper than the one above; None: neither.

    `related` names the key above where the YAML reader took the last row for its value: what it read is wrong, too.
    """
    last = _without_dashes(rows[-1])
    indent = len(rows[-1]) - len(last)
    key, colon, _ = last.partition(":")
    in_value = in_value and ": " in rows[-1][indent : col - 1]  # the place is a second `: ` of the row
    above = next((row for row in range(len(rows) - 2, -1, -1) if _is_content(rows[row])), None)
    related: tuple[tuple[int, int, str], ...] = ()
    name, column = "", 0
    if above is not None and not in_value and last == rows[-1].lstrip():
        head = _without_dashes(rows[above])
        column = len(rows[above]) - len(head) + 1
        name, is_key, _ = head.partition(":")
        if is_key and indent >= column:
            related = ((above + 1, column, f"`{name}` begins here"),)
            if " " in key:  # no key: the value of the key above goes on
                key, in_value = name, True
    message = "mapping values are not allowed here"
    if in_value:
        message += f": the value of `{key}` contains `: `"
        hint = f"put quotes around the whole value, or write `{key}: |` and the text on the next line"
    elif related and colon:
        message += f": `{key}` is indented deeper than `{name}` above it"
        hint = f"begin `{key}` in column {column}"
    else:
        return None
    return Problem(
        code="E010", message=message, file=file, line=len(rows), col=col, hint=hint, related=related
    )


def _without_dashes(row: str) -> str:
    """Return a line from its first key on, behind indentation and the dashes of lists."""
    row = row.lstrip()
    while row.startswith("- "):
        row = row[2:].lstrip()
    return row


def _is_content(row: str) -> bool:
    return bool(row.strip()) and not row.lstrip().startswith("#")


def _words(said: str, character: str) -> tuple[str, str, str]:
    if "cannot start any token" in said:
        if character == "\t":
            return "E011", "tab used for indentation", "indent with spaces"
        return "E010", "a value cannot begin with this character", _RESERVED.get(character, "quote it")
    for part, code, message, hint in _KNOWN:
        if part in said:
            return code, message, hint
    return "E010", "this is not YAML", said if said.isprintable() and len(said) < 100 else ""
