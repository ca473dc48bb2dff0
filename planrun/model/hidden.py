r"""What terminals and browsers do not show: masks look through it, views drop it, by this one table.

Control sequences are those of ECMA-48 in 7 bits, in 8 bits and in UTF-8. A line end ends each of them, so that it
cannot hide what follows; other control characters in a CSI do not, as terminals execute them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

CONTROLS = bytes((*(code for code in range(0x20) if code not in b"\t\n\r"), 0x7F))
"""Control characters of ASCII, but for tabs and line ends."""
UNSEEN = frozenset(
    (
        # Unicode's Default_Ignorable_Code_Point, with the direction marks.
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x2028, 0x202F),  # also the two separators
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
        *range(0xFFF0, 0xFFFD),  # also interlinear annotations and the object replacement
        *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B),
        # Looks like a blank; musical nothing; what is no character.
        *(0x2800, 0x1D159, 0xFFFE, 0xFFFF),
        *range(0xFDD0, 0xFDF0),
    )
)
"""Characters beyond ASCII and C1 that are not shown, and TAGS; some are needed in emoji and in some scripts."""
TAGS = range(0xE0000, 0xE1000)

_CSI = rb"[0-?\x00-\x09\x0b\x0c\x0e-\x17\x19\x1c-\x1f\x7f]*[ -/]*"
# Text up to BEL, ST, or what aborts it. An 8-bit ST ends it too, unless the byte is the rest of a character.
_PAYLOAD = (
    rb"[^\x07\x18\x1a\x1b\x9c\n\r]*(?:(?:(?<=[\xc3-\xf4])|(?<=[\xe0-\xf4][\x80-\xbf])|(?<=[\xf0-\xf4][\x80-\xbf]{2}))"
    rb"\x9c[^\x07\x18\x1a\x1b\x9c\n\r]*)*"
)
# An 8-bit control is one that is no part of a character: of `\xc2` with it is one in UTF-8.
_ALONE = rb"(?<![\xc2-\xf4])(?<![\xe0-\xf4][\x80-\xbf])(?<![\xf0-\xf4][\x80-\xbf]{2})"
# Each begins with what is searched fastest.
_SEVEN_BITS = rb"\x1b(?:\[" + _CSI + rb"%b|[\]PX^_]" + _PAYLOAD + rb"%b|[ -/]*%b)"
_EIGHT_BITS = rb"|(?:\xc2|" + _ALONE + rb")(?:\x9b" + _CSI + rb"%b|[\x90\x98\x9d-\x9f]" + _PAYLOAD + rb"%b)"
_ENDS = (rb"[@-~]?", rb"(?:\x07|\x1b\\|\x9c)?")
_CUTS = (rb"\Z", rb"\x1b?\Z")
_CUT_CHARACTER = rb"[\xc2-\xf4]\Z|[\xe0-\xf4][\x80-\xbf]\Z|[\xf0-\xf4][\x80-\xbf]{2}\Z"


def escaped(text: str, kept: str = "") -> str:
    """Return `text` with escapes in place of characters that are not shown or steer terminals, but for those `kept`.

    All that planrun prints of what a stranger may have written goes through this.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join([char if char in kept or is_shown(char) else _escape(char) for char in text])


def is_shown(char: str) -> bool:
    """Whether terminals and browsers show a character (a blank is shown)."""
    return char.isprintable() and ord(char) not in UNSEEN and ord(char) not in TAGS


def _escape(char: str) -> str:
    short = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}.get(char)
    code = ord(char)
    return short or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def without_sequences(text: str) -> str:
    """Return `text` without control sequences; single control characters and unseen ones stay."""
    if "\x1b" not in text and (text.isascii() or not _C1.intersection(text)):
        return text
    known = _patterns()
    pattern = known.sequences if text.isascii() else known.sequences_wide
    return pattern.sub(b"", text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


_C1 = frozenset("\x90\x98\x9b\x9d\x9e\x9f")
_SINGLE = CONTROLS.replace(b"\x1b", b"")
_ORDINARY = bytes(code for code in range(0x80) if code not in CONTROLS)
_FEW = 12  # different colours of a text, each of which is replaced at once
_CANCEL = b"\x18"  # ends a sequence as an escape character does, and is not shown
_NEAR = 256  # bytes, beside those that are looked for, in which the line of a position may begin
_LONGEST = 3  # bytes that begin a character and are not all of it
_CONTINUING = bytes(range(0x80, 0xC0))
HELD = 4096
"""Bytes of a sequence without an end that may still get one."""


class _Patterns:
    """Patterns of what is not shown; `*_wide` ones also find 8-bit controls, and are slow."""

    def __init__(self) -> None:
        import re  # ordinary text needs none

        ends: dict[bytes, list[bytes]] = {}
        for code in (*range(0x80, 0xA0), *UNSEEN, *TAGS):
            data = chr(code).encode()
            ends.setdefault(data[:-1], []).append(re.escape(data[-1:]))
        unseen = {prefix: re.escape(prefix) + b"[" + b"".join(last) + b"]" for prefix, last in ends.items()}
        characters = b"|".join([*unseen.values(), _ALONE + rb"[\x80-\x9f]"])
        sequences = _SEVEN_BITS % (*_ENDS, rb"[0-~]?")
        wide = sequences + _EIGHT_BITS % _ENDS
        cut = _SEVEN_BITS % (*_CUTS, rb"\Z")
        self.sequences, self.sequences_wide = re.compile(sequences), re.compile(wide)
        self.colours = re.compile(rb"\x1b\[[0-9;]*[mK]")  # several times faster
        self.openings = re.compile(rb"\xc2[\x90\x98\x9b\x9d-\x9f]")
        self.cut, self.cut_wide = re.compile(cut), re.compile(cut + _EIGHT_BITS % _CUTS)
        self.cut_character = re.compile(_CUT_CHARACTER)
        controls = b"|[" + re.escape(CONTROLS) + b"]"
        self.plain = re.compile(sequences + controls)
        self.characters = re.compile(characters + controls)
        self.all = re.compile(wide + b"|" + characters + controls)
        self.all_but_backspaces = re.compile(rb"(?!\x08)(?:" + self.all.pattern + rb")")
        # By the first two bytes at most: a text is searched for few of them, and for one byte fastest.
        groups: dict[bytes, list[bytes]] = {}
        for prefix, pattern in unseen.items():
            groups.setdefault(prefix[:2], []).append(pattern)
        self.unseen = [
            (prefix[:1], prefix, re.compile(b"|".join(patterns))) for prefix, patterns in groups.items()
        ]


_made: list[_Patterns] = []


def _patterns() -> _Patterns:
    """Return the patterns, made when a text first needs them."""
    if not _made:
        _made.append(_Patterns())
    return _made[0]


def without_erased(text: str) -> str:
    """Return a text with backspaces as a terminal shows it: without what they erase and what is not shown."""
    data = text.encode("utf-8", "surrogatepass")
    return b"".join([data[start:end] for start, end in _unerased(data)]).decode("utf-8", "replace")


class Reading:
    """Text as some reader shows it, `shown`, and the positions of its bytes in the original."""

    __slots__ = ("_dropped", "_pieces", "_starts", "is_coloured", "shown", "text")

    def __init__(
        self, text: bytes, shown: bytes, dropped: Pattern[bytes] | None = None, *, is_coloured: bool = False
    ) -> None:
        self.text, self.shown = text, shown
        self.is_coloured = is_coloured
        """Whether nothing but colours is missing, `ESC [ digits m` or `K`."""
        self._dropped = dropped  # for the positions, which are seldom asked for
        self._pieces: list[tuple[int, int]] = []
        self._starts: list[int] = []

    def place(self, index: int) -> int:
        """Return the position of a shown byte in the original."""
        if self._dropped is None and not self._pieces:
            return index
        left = len(self.shown) - index
        if self._dropped and not self._pieces and left < HELD:
            # No sequence goes over a line end: the last lines alone say where their bytes are.
            begin = self.text.rfind(b"\n", 0, len(self.text) - min(len(self.text), left + _NEAR)) + 1
            tail = Reading(self.text[begin:], b"")
            tail._set(_kept(tail.text, self._dropped))
            if begin and len(tail.shown) >= left:
                return begin + tail.place(len(tail.shown) - left)
        if not self._pieces and self._dropped:
            self._set(_kept(self.text, self._dropped))
        from bisect import bisect_right

        at = bisect_right(self._starts, index) - 1
        return self._pieces[at][0] + index - self._starts[at]

    def _set(self, pieces: list[tuple[int, int]]) -> None:
        from itertools import accumulate

        self._pieces = pieces
        self.shown = b"".join([self.text[start:end] for start, end in pieces])
        self._starts = [0, *accumulate([end - start for start, end in pieces])][:-1]


def readings(text: bytes) -> list[Reading]:
    """Return `text` as readers show it who differ: all bytes, then without what some or all do not show.

    A viewer may show a sequence, without its control characters, that a terminal drops. Backspaces erase in
    terminals, and are dropped elsewhere.
    """
    found = [Reading(text, text)]
    is_odd = not text.isascii() and _has_unseen(text)
    if b"\x1b" in text and not is_odd:
        known = _patterns()
        rest, colours = _without_colours(text)
        shown = rest.translate(None, CONTROLS)
        if b"\x1b" not in rest and len(rest) - len(shown) == colours:
            return [*found, Reading(text, shown, known.colours, is_coloured=True)]
        if len(text.translate(None, _SINGLE)) != len(text):
            found.append(Reading(text, text.translate(None, CONTROLS), known.characters))
        shown = known.sequences.sub(_CANCEL, rest).translate(None, CONTROLS)
        found.append(Reading(text, shown, known.plain))
    elif is_odd:
        known = _patterns()
        found.append(Reading(text, _without_unseen(text), known.characters))
        found.append(Reading(text, _without_unseen(_without_odd_sequences(text)), known.all))
    elif len(text.translate(None, _SINGLE)) != len(text):
        found.append(Reading(text, text.translate(None, CONTROLS), _patterns().characters))
    if b"\b" in text:
        erased = Reading(text, b"")
        erased._set(_unerased(text))
        found.append(erased)
    return found


def begun(text: bytes) -> int:
    """Return where a sequence or character begins that the next bytes may complete; else the length of `text`."""
    end = text[-HELD:]
    is_ascii = end.isascii()
    if b"\x1b" not in end and is_ascii:
        return len(text)
    known = _patterns()
    whole = len(end)
    if not is_ascii and (match := known.cut_character.search(end, max(0, whole - _LONGEST))):
        whole = match.start()
    # The first bytes may be the rest of a character.
    is_odd = not is_ascii and _has_unseen(
        end[:whole].lstrip(_CONTINUING) if len(end) < len(text) else end[:whole]
    )
    # One of 7 bits has no escape inside, but for that of its end.
    last = end.rfind(b"\x1b", 0, max(0, end.rfind(b"\x1b")))
    match = known.cut_wide.search(end) if is_odd else known.cut.search(end, max(0, last))
    return len(text) - len(end) + (min(whole, match.start()) if match else whole)


def _has_unseen(text: bytes) -> bool:
    if not _is_utf8(text):
        return True
    rest = text.translate(None, _ORDINARY)  # whole characters, side by side
    return any(
        first in rest and prefix in rest and pattern.search(rest)
        for first, prefix, pattern in _patterns().unseen
    )


def _without_colours(text: bytes) -> tuple[bytes, int]:
    """Return `text` with a CAN in place of each colour, and how many there were."""
    colours, size = _patterns().colours, 0
    for _ in range(_FEW):
        found = colours.match(text, max(0, text.find(b"\x1b")))
        if not found:
            break
        parts = text.split(found[0])  # faster than `replace`
        size += len(parts) - 1
        text = _CANCEL.join(parts)
    rest, more = colours.subn(_CANCEL, text) if b"\x1b" in text else (text, 0)
    return rest, size + more


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_unseen(text: bytes) -> bytes:
    """Return `text` without control characters and unseen ones."""
    if not _is_utf8(text):
        return _patterns().characters.sub(b"", text)
    for first, prefix, pattern in _patterns().unseen:
        if first in text and prefix in text:
            text = pattern.sub(b"", text)
    return text.translate(None, CONTROLS)


def _without_odd_sequences(text: bytes) -> bytes:
    """Return `text` with a CAN, which means the same to what is around, in place of each sequence."""
    known = _patterns()
    if _is_utf8(text) and not known.openings.search(text):
        return known.sequences.sub(_CANCEL, known.colours.sub(_CANCEL, text)) if b"\x1b" in text else text
    return known.sequences_wide.sub(_CANCEL, text)


def _unerased(text: bytes) -> list[tuple[int, int]]:
    """Return the pieces that are shown where a backspace erases the character before it in its line."""
    pieces: list[tuple[int, int]] = []
    for start, end in _kept(text, _patterns().all_but_backspaces):
        for at in range(start, end):
            byte = text[at]
            if byte == 8:
                while pieces and text[pieces[-1][0]] not in b"\n\r":
                    if text[pieces.pop()[0]] & 0xC0 != 0x80:
                        break
            else:
                pieces.append((at, at + 1))
    return pieces


def _kept(text: bytes, dropped: Pattern[bytes]) -> list[tuple[int, int]]:
    kept, at = [], 0
    for match in dropped.finditer(text):
        start, end = match.span()
        if start > at:
            kept.append((at, start))
        at = end
    if at < len(text):
        kept.append((at, len(text)))
    return kept
