"""Markdown that shows any text as it is: nothing in it becomes a link, a mention, markup or HTML."""

from __future__ import annotations

from planrun.reports.clean import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What follows `&#8203;` (a zero-width space) no longer forms a word with what stands before it: that is what
# keeps GitHub and GitLab from making mentions, references and links, which they do after unescaping.
_APART = "&#8203;"
_ESCAPES = {ord(char): "\\" + char for char in "\\`*[]{}~!$|"}
_ESCAPES.update({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"})
_ESCAPES.update({ord("@"): "@" + _APART, ord("#"): "#" + _APART})
_MARKUP = frozenset(chr(code) for code in _ESCAPES)
_LINKS = ("://", "www.", "gh-", "mailto:", "xmpp:")  # in lower case


def inline(text: str, limit: int = 300) -> str:
    """Return one line of running text, usable in a table cell too."""
    text = line(text, limit)
    if not _MARKUP.isdisjoint(text):
        text = text.translate(_ESCAPES)
    if "_" in text:
        text = _with_underscores(text)
    lowered = text.lower()
    linked = ":" in text or "www." in lowered or "gh-" in lowered
    return _without_links(text) if linked else text


def _without_links(text: str) -> str:
    """Break what GitHub turns into a link by itself."""
    for start in _LINKS:
        at = text.lower().find(start)
        while at >= 0:
            cut = at + len(start) - 1
            text = text[:cut] + _APART + text[cut:]
            at = text.lower().find(start, cut)
    return text


def _with_underscores(text: str) -> str:
    """Escape underscores, but not those inside of words, which GitHub leaves alone: `step_1` stays so."""
    before, *rest = text.split("_")
    joined = before
    for after in rest:
        inside = before[-1:].isalnum() and after[:1].isalnum()
        joined += ("_" if inside else "\\_") + after
        before = after
    return joined


def code(text: str, limit: int = 300) -> str:
    """Return a code span in one line, usable in a table cell too."""
    text = line(text, limit)
    if "|" in text:
        text = text.replace("|", "\\|")
    if "`" not in text:
        return f"`{text or ' '}`"
    marks = "`" * (longest_run(text) + 1)
    return f"{marks} {text} {marks}"


def fence(clean: str, language: str = "text") -> str:
    """Return a fenced block of clean text that nothing in the text can close."""
    marks = "`" * max(3, longest_run(clean) + 1)
    return f"{marks}{language}\n{clean}{'' if clean.endswith(chr(10)) else chr(10)}{marks}\n"


def longest_run(text: str) -> int:
    """Length of the longest run of backticks."""
    longest = current = 0
    for char in text if "`" in text else "":
        current = current + 1 if char == "`" else 0
        longest = max(longest, current)
    return longest


def fitting(rows: Sequence[str], budget: int, rest: str) -> str:
    """Return as many rows as fit into `budget` bytes, and `rest`, which counts the others in its `{}`."""
    kept: list[str] = []
    for number, row in enumerate(rows):
        budget -= size(row)
        if budget < 0:
            return "".join([*kept, rest.format(len(rows) - number)])
        kept.append(row)
    return "".join(kept)


def size(text: str) -> int:
    """Bytes of a text."""
    return len(text.encode("utf-8", "replace"))
