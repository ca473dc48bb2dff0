"""Untrusted text can have any content and no effect; logs are cut in constant memory."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.reports import escape
from planrun.reports.escape import line, plain
from planrun.reports.facts import epoch, seconds, tokens

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - hypothesis wants it naive
ANY = st.text(st.characters(codec=None)) | st.text(
    st.sampled_from("\x1b[]P\\0;m\x07\r\n\t :#vso\x9b\x9d\u2028\u202e\ud800a")
)


@given(ANY)
def test_nothing_active_is_left(raw: str) -> None:
    """No control but tab and newline, no override, no command of a CI system; always encodable."""
    text = plain(raw)
    text.encode("utf-8")
    assert not any(ord(char) < 0x20 and char not in "\t\n" for char in text)
    assert not any(0x7F <= ord(char) < 0xA0 or 0x202A <= ord(char) <= 0x202E for char in text)
    assert not any(row.lstrip().startswith("::") for row in text.split("\n"))
    assert not any(command in text for command in ("##[", "##vso[", "##teamcity["))


@given(ANY, st.integers(10, 50))
def test_lines_are_lines(raw: str, limit: int) -> None:
    """A line has no line end, keeps its limit and is as harmless as text."""
    text = line(raw, limit)
    assert "\n" not in text
    assert len(text) <= limit
    assert not text.lstrip().startswith("::")
    assert "##[" not in text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\nnext line", "\nnext line"),
        ("a\x1b(Bb\x1bMc", "abc"),
        ("\x9b31mred \x9d0;t\x07x", "red x"),
        ("10%\r20%\r\nok\r", "10%\n20%\nok\n"),
        ("bell\x07 nul\x00", "bell\ufffd nul\ufffd"),
        ("  ::error::x\na ::b", "  : :error::x\na ::b"),
        ("##[group]a ##vso[x] ##teamcity[y]", "# #[group]a # #vso[x] # #teamcity[y]"),
        ("###[x] ##VSO[y]", "## #[x] # #VSO[y]"),
        ("#\u200b#\u00advso[x]", "# #vso[x]"),
        ("\ufeff::error::x", ": :error::x"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("lone \udc80", "lone ?"),
        ("plain: text", "plain: text"),
    ],
)
def test_examples(raw: str, shown: str) -> None:
    """Dropped, replaced and broken-up text."""
    assert plain(raw) == shown


def test_head_and_tail_of_a_log(tmp_path: Path) -> None:
    """The bytes shown and the bytes reported as missing add up to the size of the log."""
    rows = b"".join(b"line %d\n" % number for number in range(100_000))
    (tmp_path / "x.log").write_bytes(rows)
    text = escape.excerpt(str(tmp_path), "x.log", 10_000)
    before, _, rest = text.partition("… ")
    missing, _, after = rest.partition(" bytes left out …\n")
    assert before.startswith("line 0\n")
    assert after.endswith("line 99999\n")
    assert after.startswith("line ")
    assert len(before) + int(missing) + len(after) == len(rows)
    assert 9_000 < len(before) + len(after) <= 10_000


def test_a_log_without_lines_is_cut_anywhere(tmp_path: Path) -> None:
    """One long line, even of broken UTF-8, is cut at the limit."""
    (tmp_path / "x.log").write_bytes("é".encode() * 50_000)
    text = escape.tail(str(tmp_path), "x.log", 1001)
    assert text.startswith("… 98999 bytes left out …\n")
    assert text.endswith("é" * 500)


@pytest.mark.parametrize(
    "name", ["", "/etc/hostname", "../x.log", "a/../../x.log", "missing", "nul\0", "dir", "fifo"]
)
def test_what_is_no_log_reads_as_empty(name: str, tmp_path: Path) -> None:
    """Absolute names, ways out, folders, FIFOs and missing files give nothing and never wait."""
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path.parent / "x.log").write_text("outside")
    assert escape.excerpt(str(tmp_path), name) == ""


def test_numbers_for_people() -> None:
    """Durations and tokens are short."""
    assert [seconds(value) for value in (0, 0.04, 12.34, 59.94, 59.96, 3599.6, 7380)] == [
        "0.0s",
        "0.0s",
        "12.3s",
        "59.9s",
        "1m00s",
        "1h00m",
        "2h03m",
    ]
    assert [tokens(value) for value in (0, 1, 950, 1234, 999_949, 999_950, 3_400_000)] == [
        "0 tokens",
        "1 token",
        "950 tokens",
        "1.2K tokens",
        "999.9K tokens",
        "1.0M tokens",
        "3.4M tokens",
    ]


@given(st.datetimes(min_value=EPOCH))
def test_moments(moment: dt.datetime) -> None:
    """Texts of moments are read as `datetime` reads them."""
    aware = moment.replace(tzinfo=dt.UTC, microsecond=moment.microsecond // 1000 * 1000)
    text = aware.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert epoch(text) == pytest.approx(aware.timestamp(), abs=0.0005)
    assert epoch("") == epoch("yesterday") == 0.0
