"""Format a plan: quotes, blank lines and order, then compare the result with the original before it is written."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from planrun.errors import InvalidInput, InvalidPlan
from planrun.fmt.layout import edited, indented
from planrun.fmt.order import SECTIONS, ordered_plan, ordered_steps
from planrun.fmt.spans import Lines, UnsupportedError, covered, read
from planrun.plan.load import NoCollection, load_bytes
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import MAPPING, SCALAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.fmt.spans import Span
    from planrun.plan.yaml.node import Node


def spaced(text: str) -> str:
    """Return a plan's text with its blank lines in order; raises UnsupportedError."""
    root = read(text)
    if root.is_flow:
        raise UnsupportedError
    lines, inside = Lines(text), covered(text, root)
    before, none = _places(lines, root)
    rows: list[str] = []
    last, length = -1, 0  # the line above that is not blank, and the number of rows up to it
    for number in range(len(lines.starts)):
        row = lines.row(number)
        if number in inside or row.strip():
            if number in before and rows and rows[-1]:
                rows.append("")
            rows.append(row)
            last, length = number, len(rows)
        elif rows and rows[-1] and last not in none:
            rows.append("")
    return "\n".join(rows[:length]) + ("\n" if text.endswith("\n") else "")


def ended(text: str) -> str:
    """Return a text with a line end behind its last line."""
    return text if text.endswith("\n") else f"{text}\n"


def _places(lines: Lines, root: Span) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that a blank line stands before, and of those that none follows."""
    before, none = set(), set()
    any_long = False
    for key, section in root.pairs:
        if key.value not in SECTIONS or not section.is_block or section.kind != "list":
            continue
        none.add(lines.number(key.start))
        is_long = [lines.last_of(step) > lines.number(dash) for dash, step in section.entries]
        for at, (dash, _) in enumerate(section.entries):
            if at and (is_long[at] or is_long[at - 1]):
                before.add(_head(lines, lines.number(dash), lines.column(dash)))
        any_long = any_long or any(is_long)
        if key.value == "finally" and any_long:
            before.add(_head(lines, lines.number(key.start), 0))
    return before, none


def _head(lines: Lines, number: int, column: int) -> int:
    """Return the first of the comments directly above a line and in its column."""
    while number:
        row = lines.row(number - 1)
        if not row.lstrip().startswith("#") or len(row) - len(row.lstrip()) != column:
            break
        number -= 1
    return number


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


# Each is left out where it would change what the file means, or where it cannot place a comment.
_PASSES = (indented, unquoted, ordered_steps, ordered_plan, spaced, ended)
_BOM = b"\xef\xbb\xbf"


def formatted(data: bytes, file: str) -> bytes:
    """Return the bytes of a plan in the canonical layout; `file` names it in problems.

    Its meaning and its comments are those that it had. Raises InvalidPlan when it is not YAML, and InvalidInput when
    the result would differ in meaning.
    """
    with NoCollection():
        return _formatted(data, file)


def _formatted(data: bytes, file: str) -> bytes:
    tree, problems = parse(data, file)
    if tree is None or problems:
        raise InvalidPlan(problems, {file: data})
    text = data.removeprefix(_BOM).decode("utf-8")
    line_end = "\r\n" if "\r\n" in text else "\r" if "\r" in text else "\n"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    before = text
    for change in _PASSES:
        try:
            after = change(text)
            if after != text and not _difference(tree, text, after, file):
                text = after
        except UnsupportedError:
            continue
    made = (_BOM if data.startswith(_BOM) else b"") + text.replace("\n", line_end).encode("utf-8")
    _check(data, made, file, _difference(tree, before, text, file))
    return made


def _check(data: bytes, made: bytes, file: str, difference: str) -> None:
    """Raise InvalidInput unless the plan has the digest that it had; what is no valid plan has none."""
    if not difference and made != data:
        try:
            digest = load_bytes(data, file, cache=False).digest
        except InvalidPlan:
            return
        if load_bytes(made, file, cache=False).digest != digest:
            difference = "the digest would change"
    if difference:
        raise InvalidInput(f"{file}: cannot be formatted: {difference}; the file was not changed")


def _difference(tree: Node, before: str, after: str, file: str) -> str:
    """Return what of a file would change, in words; "" for nothing but its layout."""
    found, problems = parse(after.encode("utf-8"), file)
    if found is None or problems:
        return f"line {problems[0].line}: {problems[0].message}"
    if not _same(tree, found, 0):
        return "a value would change"
    return "" if comments(before) == comments(after) else "a comment would change"


def _same(old: Node, new: Node, level: int) -> bool:
    """Whether two values mean the same; `level` 0: the plan, 1: its lists of steps, 2: a step, 3: all others."""
    if old.kind != new.kind:
        return False
    if old.kind == SCALAR:
        return bool(old.value == new.value and (old.plain == new.plain or is_plain(old.value)))
    if old.kind != MAPPING:
        inner = 2 if level == 1 else 3
        return len(old.value) == len(new.value) and all(
            _same(one, other, inner) for one, other in zip(old.value, new.value, strict=True)
        )
    if set(old.value) != set(new.value) or (level not in (0, 2) and list(old.value) != list(new.value)):
        return False
    return all(
        _same(value, new.value[name], 1 if level == 0 and name in SECTIONS else 3)
        for name, value in old.value.items()
    )


@lru_cache(maxsize=3)  # the text as it was, the last one and the next
def comments(text: str) -> Counter[str]:
    """Count the comments of a text that can be read as a plan, those behind values included."""
    found: Counter[str] = Counter()
    at = 0
    for span in [*[span for span in read(text).walk() if span.kind == "scalar" and not span.is_empty], None]:
        end = len(text) if span is None else span.start
        gap = text[at:end]
        for row in gap.split("\n"):
            mark = row.find("#")
            if mark >= 0:
                found[row[mark:].rstrip()] += 1
        if span is not None:
            at = span.end
    return found
