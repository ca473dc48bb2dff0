"""The picture of the README shows what a terminal shows now."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from tests.docs.playing import steady
from tests.docs.record_picture import PICTURE, record, shown_in, text_of


def told(text: str) -> list[str]:
    """Return the lines in no order, without times and ids: which step prints first is another in each run."""
    rows = [re.sub(r"^\w+ \| ", "", row.rstrip()) for row in steady(text).splitlines()]
    return sorted(row for row in rows if row and not row.startswith("▶ "))


def test_the_picture_is_what_a_terminal_shows() -> None:
    """`python -m tests.docs.record_picture` draws it anew."""
    now = "\n".join([text_of(row) for row in record()])
    assert told(shown_in(PICTURE.read_text("utf-8"))) == told(now)


def test_the_picture_is_safe_to_show() -> None:
    """It is XML without scripts, links and fonts from elsewhere, and names no folder of the machine that drew it."""
    text = PICTURE.read_text("utf-8")
    root = ET.fromstring(text)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "svg",
        "rect",
        "g",
        "text",
        "tspan",
    }
    assert not re.search(r"href|url\(|/home/|/root/|/tmp/", text)
