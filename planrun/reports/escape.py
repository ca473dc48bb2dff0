"""Text from other sources, made harmless for consoles, markdown and XML.

Excerpts of log files: head and tail of any size in constant memory, cleaned after they were cut.
"""

from __future__ import annotations

import os

from planrun.model.job import original

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# C0 without tab and newline, DEL, C1; the line separators; the direction overrides, which make a line read as
# something else; surrogates are dealt with apart, since only they cannot be encoded.
_REPLACED: dict[int, str] = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
        0xFFFE,
        0xFFFF,
    ),
    "\ufffd",
)


# What `plain` leaves, and joins and colours emoji and letters.
_KEPT = "\n\t\ufffd\u200c\u200d\ufe0f"


def plain(text: str) -> str:
    r"""Return `text` without terminal sequences, control characters and commands to CI systems.

    `\r\n` and `\r` become `\n`; tab and newline stay; every other control character becomes U+FFFD.
    """
    if text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    from planrun.model import commands  # ordinary text needs none of it

    return commands.broken(without_controls(text))


def without_controls(text: str) -> str:
    """Return `text` as `plain` does, commands to CI systems left in it."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    from planrun.model.hidden import without_sequences

    text = without_sequences(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.translate(_REPLACED)


def line(text: str, limit: int = 1000) -> str:
    """Return `text` as one clean line of at most `limit` characters."""
    # Nearly every id and title: kept in one expression, since a large report asks a hundred thousand times.
    if len(text) <= limit and text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    from planrun.model.hidden import escaped  # ordinary text needs none of it

    text = escaped(plain(text), _KEPT)
    if "\n" in text or "\t" in text:
        from planrun.model import commands

        text = commands.broken(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
    for start in _LINKS:
        if start in lowered:
            return _without_links(text)
    return text


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


CASE_BYTES = 64 * 1024  # head and tail of one step in a JUnit case
TAIL_BYTES = 8 * 1024  # with a failure


def excerpt(rundir: str, log: str, limit: int = CASE_BYTES, *, whole: str = "") -> str:
    """Return a log as clean text of at most about `limit` bytes, a quarter of it head and the rest tail.

    `log` is relative to the run directory. Between the parts stands how much is missing. A log that is not
    there, is no regular file or lies outside of the run directory reads as empty. `whole` says where people find
    all of it.
    """
    return _read(os.path.join(rundir, log), whole, limit // 4, limit - limit // 4) if _inside(log) else ""


def tail(rundir: str, log: str, limit: int = TAIL_BYTES) -> str:
    """Return the end of a log as clean text; otherwise as `excerpt`."""
    return _read(os.path.join(rundir, log), "", 0, limit) if _inside(log) else ""


def span(rundir: str, log: str, begin: int, end: int, limit: int = TAIL_BYTES) -> str:
    """Return the last bytes of a part of a log as clean text; otherwise as `excerpt`."""
    return _read(os.path.join(rundir, log), "", 0, limit, (begin, end)) if _inside(log) else ""


def left_out(count: int, whole: str = "") -> str:
    """Return the line that stands for `count` missing bytes; `whole` is a file that has them."""
    there = f", all of it is in {whole}" if whole else ""
    return f"… {count} byte{'' if count == 1 else 's'} left out{there} …"


def _inside(log: str) -> bool:
    return bool(log) and log[0] != "/" and ".." not in log.split("/")


def _read(path: str, whole: str, head: int, tail: int, part: tuple[int, int] = (0, 0)) -> str:
    from planrun.opening import extent, open_record  # a run without failures reads no log

    try:
        fd = open_record(path)
    except (OSError, ValueError):
        return ""
    try:
        total = extent(fd)
        begin, end = part
        if end:
            begin = max(begin, end - tail)
            return _text(_at(fd, begin, end - begin))
        if total <= head + tail:
            return _text(_at(fd, 0, total))
        first, missing, last = _cut(fd, total, head, tail)
        gap = "\n" if first and not first.endswith("\n") else ""
        return f"{first}{gap}{left_out(missing, whole)}\n{last}"
    except OSError:
        return ""
    finally:
        os.close(fd)


def _cut(fd: int, size: int, head: int, tail: int) -> tuple[str, int, str]:
    """Read both ends, cut at line ends where there are any in the last and the first quarter.

    Returns the head, how many bytes are missing, and the tail.
    """
    first = _at(fd, 0, head)
    end = first.rfind(b"\n") + 1
    first = first[:end] if end > head * 3 // 4 else first
    last = _at(fd, size - tail, tail)
    start = last.find(b"\n", 0, tail // 4) + 1
    last = last[start:] if start else last
    missing = size - len(first) - len(last)
    return _text(first), missing, _text(last)


def _text(data: bytes) -> str:
    text = original(data.decode("utf-8", "replace"))
    if "\r" in text:
        end = "\n" if text[-1] == "\r" else ""
        text = "\n".join([last_state(row) for row in text.split("\n")]) + end
    return plain(text)


def last_state(row: str) -> str:
    """Return what a terminal shows of a line that carriage returns have overwritten, such as a progress bar."""
    if "\r" not in row:
        return row
    states = row.split("\r")
    return next((state for state in reversed(states) if without_controls(state).strip()), states[-1])


def _at(fd: int, offset: int, count: int) -> bytes:
    """Read up to `count` bytes; fewer only at the end of the file."""
    parts = []
    while count > 0:
        part = os.pread(fd, count, offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        count -= len(part)
    return b"".join(parts)
