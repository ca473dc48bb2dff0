"""What the YAML reader stumbled over, told so that a person can mend it."""

from __future__ import annotations

from planrun.source.problems import Problem
from planrun.source.text import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Part of the library's message (libyaml's or PyYAML's own wording), code, our message, hint; the first match wins.
_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    ("found undefined tag handle", "E014", "tags such as !x are not accepted", "remove the tag"),
    (
        "found unexpected end of stream",
        "E010",
        "a quote that is never closed",
        "close it, or escape it inside",
    ),
    ("document indicator", "E010", "a quote that is never closed", "close it before --- or ..."),
    (
        "found unknown escape character",
        "E010",
        "an escape that YAML does not know",
        r"write \\ for a backslash, or use single quotes",
    ),
    ("hexdecimal", "E010", r"an escape without enough hexadecimal digits", r"write \\ for a backslash"),
    ("hexadecimal", "E010", r"an escape without enough hexadecimal digits", r"write \\ for a backslash"),
    ("Unicode character escape", "E010", "an escape that is no character", "write the character itself"),
    (
        "mapping values are not allowed",
        "E010",
        "a `: ` where no key can stand",
        "quote text that holds `: `, or check the indentation",
    ),
    (
        "sequence entries are not allowed",
        "E010",
        "a `- ` where no list can begin",
        "put the list on lines of its own, below its key",
    ),
    (
        "mapping keys are not allowed",
        "E010",
        "a `? ` where no key can stand",
        "quote text that begins with `? `",
    ),
    (
        "could not find expected ':'",
        "E010",
        "a key without `: ` after it",
        "write `key: value`; quote long text",
    ),
    (
        "expected ',' or ']'",
        "E010",
        "a list that is not closed",
        "put `,` between its entries and `]` at its end",
    ),
    (
        "expected ',' or '}'",
        "E010",
        "a mapping that is not closed",
        "put `,` between its entries and `}` at its end; quote text with `${{ }}` in it",
    ),
    (
        "expected key",
        "E010",
        "this line does not fit what is above it",
        "check its indentation; text after a closing quote is not allowed either",
    ),
    (
        "expected <block end>",
        "E010",
        "this line does not fit what is above it",
        "check its indentation; text after a closing quote is not allowed either",
    ),
    (
        "expected '-' indicator",
        "E010",
        "this line does not fit the list above it",
        "begin it with `- `, or indent it",
    ),
    ("expected <document start>", "E010", "text that belongs to no key", "check the indentation"),
    (
        "alphabetic or numeric character",
        "E010",
        "an alias or anchor without a name",
        "quote text that begins with * or &",
    ),
    ("tab character", "E011", "a tab where spaces indent", "indent with spaces"),
    ("indentation indicator", "E010", "a wrong number after | or >", "leave the number away"),
    ("comment or line break", "E010", "text after | or >", "begin the text on the next line"),
    (
        "expected node content",
        "E010",
        "a value is missing here",
        "close the list or mapping, or quote the text",
    ),
    (
        "expected the node content",
        "E010",
        "a value is missing here",
        "close the list or mapping, or quote the text",
    ),
    ("maximum", "E012", "nested too deeply", "a plan needs no more than 64 levels"),
)
# A plain value may not begin with these.
_RESERVED = {
    "@": "quote text that begins with @",
    "`": "quote text that begins with a backtick",
    "%": "quote text that begins with %",
}
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
        return Problem(code="E010", message="an unresolved merge conflict", file=file, line=line, col=col)
    line, col = last = place(text, len(text))
    if (
        mark is not None and (mark.line + 1, mark.column + 1) < last
    ):  # libyaml adds a line end where there is none
        line, col = mark.line + 1, mark.column + 1
    code, message, hint = _words(said, _character(text, line, col))
    return Problem(code=code, message=message, file=file, line=line, col=col, hint=hint)


def _words(said: str, character: str) -> tuple[str, str, str]:
    if "cannot start any token" in said:
        if character == "\t":
            return "E011", "a tab where spaces indent", "indent with spaces"
        return "E010", "no value can begin like this", _RESERVED.get(character, "quote it")
    for part, code, message, hint in _KNOWN:
        if part in said:
            return code, message, hint
    return "E010", "this is not YAML", said if said.isprintable() and len(said) < 100 else ""


def _character(text: str, line: int, col: int) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n", line)
    row = lines[line - 1] if line <= len(lines) else ""
    return row[col - 1 : col]
