"""JUnit files that are not well-formed: what XML does not allow is replaced, so that their test cases can be read.

Loaded only for such files. No replacement removes or adds a line, so that messages name the right one.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REPLACEMENT = "\ufffd"
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)")
_NAME = r"[A-Za-z_][\w:.-]*+"
_MARKUP = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!DOCTYPE"
    rf"|</{_NAME}\s*+>|<{_NAME}(?:\s++{_NAME}\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))*+\s*+/?>",
    re.DOTALL,
)
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NUMBER = re.compile(r"&#(\d++|x[0-9A-Fa-f]++);")
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);)")
_VALUE = re.compile(r"\"[^\"]*+\"|'[^']*+'")


def decoded(data: bytes) -> tuple[str, str]:
    """Return the text of an XML file, and a clause about bytes in it that are not in its encoding, or ""."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    declared = _DECLARED.search(data[:200])
    for encoding in [marked or (declared[1].decode() if declared else "utf-8"), "utf-8"]:
        try:
            if not marked and b"<?xml".decode(encoding) != "<?xml":
                continue  # the declaration was read, so it is not in UTF-16, whatever it says
            return data.decode(encoding).removeprefix("\ufeff"), ""
        except (LookupError, ValueError):
            continue
    encoding = marked or "utf-8"
    text = data.decode(encoding, "replace").removeprefix("\ufeff")
    line = text.count("\n", 0, max(text.find(REPLACEMENT), 0)) + 1
    return text, f"{line}: bytes that are not {encoding.upper()} are replaced by U+FFFD"


def mended(text: str) -> tuple[str, list[str]]:
    """Return a text that has only what XML allows, and clauses about what was replaced, `LINE: what`.

    Elements that are not closed and other errors of structure remain.
    """
    mending = _Mending(text)
    return "".join(mending.parts()), [
        f"{line}: {what}{f' ({count} times in the file)' if count > 1 else ''}"
        for what, (line, count) in mending.found.items()
    ]


class _Mending:
    """One file: its text, and for each kind of replacement the first line and how often."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, tuple[int, int]] = {}
        self._counted = (0, 1)  # up to this offset, this line

    def parts(self) -> Iterator[str]:
        end = 0
        for found in _MARKUP.finditer(self.text):
            if found.start() > end:
                yield self._plain(end, found.start())
            yield self._markup(found.start(), found[0])
            end = found.end()
        yield self._plain(end, len(self.text))

    def _plain(self, start: int, end: int) -> str:
        text = self.text[start:end]
        if "<" in text:
            self._note("a bare < is read as text", start + text.index("<"), text.count("<"))
            text = text.replace("<", "&lt;")
        return self._references(start, text).replace("]]>", "]]&gt;")

    def _markup(self, start: int, text: str) -> str:
        if text.startswith("<?"):  # a declaration is not allowed behind other text
            return re.sub(r"[^\n]", " ", text)
        if text.startswith("<!--"):
            return re.sub(r"[^\n]", " ", text)
        if text.startswith("<![CDATA["):
            return self._legal(start, text)
        return _VALUE.sub(lambda value: self._value(start + value.start(), value[0]), text)

    def _value(self, start: int, text: str) -> str:
        if "<" in text:
            self._note("a bare < is read as text", start, text.count("<"))
            text = text.replace("<", "&lt;")
        return self._references(start, text)

    def _references(self, start: int, text: str) -> str:
        text = self._legal(start, text)
        if "&" not in text:
            return text
        text = _NUMBER.sub(lambda found: self._number(start, found), text)
        if count := len(_AMPERSAND.findall(text)):
            self._note("a bare & is read as text", start, count)
            text = _AMPERSAND.sub("&amp;", text)
        return text

    def _number(self, start: int, found: re.Match[str]) -> str:
        digits = found[1]
        code = int(digits[1:], 16) if digits[0] == "x" else int(digits[:9])
        if code <= 0x10FFFF and not _ILLEGAL.match(chr(code)):
            return found[0]
        self._note(f"a character that XML does not allow (U+{code:04X}) is replaced by U+FFFD", start, 1)
        return REPLACEMENT

    def _legal(self, start: int, text: str) -> str:
        illegal = _ILLEGAL.findall(text)
        if not illegal:
            return text
        first = start + text.index(illegal[0])
        what = f"a character that XML does not allow (U+{ord(illegal[0]):04X}) is replaced by U+FFFD"
        self._note(what, first, len(illegal))
        return _ILLEGAL.sub(REPLACEMENT, text)

    def _note(self, what: str, offset: int, count: int) -> None:
        if what in self.found:
            line, before = self.found[what]
            self.found[what] = line, before + count
            return
        at, line = self._counted
        line += self.text.count("\n", at, offset) if offset >= at else -self.text.count("\n", offset, at)
        self._counted = offset, line
        if len(self.found) < 20:  # of a file; more kinds say nothing more
            self.found[what] = line, count
