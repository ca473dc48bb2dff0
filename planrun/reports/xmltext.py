"""Escaped XML text: the little that a JUnit file needs, without `xml`, whose import alone costs 10 ms."""

from __future__ import annotations

from planrun.reports.clean import line

ATTRIBUTE_CHARS = 1000
# Surefire's schema is a sequence; the other readers take any order.
ORDER = (
    "failure",
    "rerunFailure",
    "flakyFailure",
    "skipped",
    "error",
    "rerunError",
    "flakyError",
    "system-out",
)


def escape(clean: str) -> str:
    """Escape character data that `reports.clean` went over; raw control characters are not XML."""
    if "&" in clean:
        clean = clean.replace("&", "&amp;")
    if "<" in clean:
        clean = clean.replace("<", "&lt;")
    return clean.replace(">", "&gt;") if ">" in clean else clean


def quoted(raw: str) -> str:
    """Clean any text into one line of at most 1,000 characters and quote it as an attribute's value."""
    text = escape(line(raw, ATTRIBUTE_CHARS))
    return '"' + (text.replace('"', "&quot;") if '"' in text else text) + '"'


def element(tag: str, attributes: str, clean: str) -> str:
    """Return an element with text; `attributes` are escaped and start with a blank."""
    return f"<{tag}{attributes}>{escape(clean)}</{tag}>\n"
