"""Every form of a secret that a step may print: encodings, escapes, dumps and wrapped lines."""

from __future__ import annotations

from binascii import b2a_base64, hexlify
from bisect import bisect_right
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def to_bytes(text: str) -> bytes:
    """Return UTF-8; lone surrogates that stand for bytes (as `os.environ` has them) become these bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # surrogates that stand for nothing
        return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Return the text that `to_bytes` made these bytes of."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


SHORTEST = 6
"""Characters. Shorter values occur by chance."""
_FEWEST_KINDS = 3  # different characters: rulers, zeros and dots are not secrets
_COMMON = frozenset(
    """
    0.0.0.0 123123 123456 1234567 12345678 123456789 1234567890 127.0.0.1 abc123 admin123 administrator
    application approved branch cancel canceled cancelled changed changeme commit completed config container
    credentials custom database debugging default deploy deployment develop developer development disable
    disabled docker enable enabled encrypted errors example example.com failed failure github gitlab google
    hidden information inherit integration latest letmein library localhost master memory missing namespace
    nothing object passed passphrase password password1 password123 plaintext postgres postgresql preview
    private product production profile project public qwerty qwerty123 readonly registry release removed
    repository required running sandbox secret secrets security server service session staging started status
    stderr stdout stopped string succeeded success system testing tokens trusted undefined unknown update
    upload username version warning warnings windows workspace
    """.split()  # noqa: SIM905 - a list of words reads best as words
)


def is_plain(value: str) -> bool:
    """Whether a value, stripped of white space and quotes, is too short or too common to be masked."""
    return len(value) < SHORTEST or len(set(value)) < _FEWEST_KINDS or value.casefold() in _COMMON


BREAK_GRACE = 4
"""Bytes before the first line break. With fewer, most line ends would be held back as the start of a secret."""
# Longer than a blank line with \r\n. Without a limit, the held text could grow without bound.
_GAP = b"\n" * 5


class Unbroken:
    """A text without its line breaks, `flat`, and the positions of its bytes in the original."""

    __slots__ = ("_shifts", "flat", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.flat = flatten(text)
        self._shifts: list[int] | None = None  # for each break the number of flat bytes before it

    def place(self, index: int) -> int:
        """Return the position of byte `index` of the flat text in the original."""
        left = len(self.flat) - index
        if len(self.flat) == len(self.text):
            return index
        if left < BREAK_GRACE and self.text.endswith(self.flat[index:]):
            return len(self.text) - left
        if self._shifts is None:
            lines = self.text.replace(b"\r", b"\n").split(b"\n")
            self._shifts = list(accumulate(map(len, lines)))
        return index + bisect_right(self._shifts, index)

    def holds(self, start: int, end: int) -> bool:
        """Whether flat bytes `start` to `end` are one piece, except for breaks that line wrapping may insert."""
        return _is_one(self.text[self.place(start) : self.place(end - 1) + 1])

    def begins(self, start: int) -> bool:
        """Whether flat bytes from `start` on are one piece that the next text may continue."""
        if len(self.flat) - start < BREAK_GRACE:
            return self.text.endswith(self.flat[start:])
        return _is_one(self.text[self.place(start) :])


def flatten(text: bytes) -> bytes:
    """Return `text` without line breaks."""
    return text.replace(b"\n", b"").replace(b"\r", b"")


def _is_one(text: bytes) -> bool:
    lines = text.replace(b"\r", b"\n")
    return b"\n" not in lines[:BREAK_GRACE] and _GAP not in lines


_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_ROW = 16  # bytes in a row of a dump
_WRAPPED = 24  # characters; shorter words are hardly ever wrapped


def base64s(data: bytes) -> Iterator[bytes]:
    """Yield `data` in base64 of both alphabets, between other bytes or at the end of a text or file."""
    for word in (*inner_base64s(data), *_last_base64s(data)):
        yield word
        yield word.translate(_URL_SAFE)
    for word in inner_base64s(data):
        yield from after_break(word)
        yield from after_break(word.translate(_URL_SAFE))


def inner_base64s(data: bytes) -> Iterator[bytes]:
    """Yield the base64 of `data` after 0, 1 and 2 other bytes: the characters that depend on it alone."""
    for before in range(3):
        word = b2a_base64(bytes(before) + data, newline=False)
        yield word[_first(before) : 8 * (before + len(data)) // 6]


def _last_base64s(data: bytes) -> Iterator[bytes]:
    """Yield the same with the last characters, which depend on what follows: nothing or a newline."""
    for before in range(3):
        word = b2a_base64(bytes(before) + data, newline=False)[_first(before) :]
        yield word
        yield word.rstrip(b"=")
        yield b2a_base64(bytes(before) + data + b"\n", newline=False)[_first(before) :]


def _first(before: int) -> int:
    """Return the first character that does not depend on preceding bytes."""
    return (8 * before + 5) // 6


def after_break(word: bytes, shortest: int = _WRAPPED) -> Iterator[bytes]:
    """Yield the rest of a word whose first line break comes within BREAK_GRACE bytes.

    Yields nothing for words shorter than `shortest` characters.
    """
    if len(word) >= shortest:
        yield word[BREAK_GRACE - 1 :]


def numbers(data: bytes) -> Iterator[bytes]:
    """Yield `data` as numbers: hexadecimal, joined and separated, in pairs as xxd prints them, and decimal lists."""
    lower = hexlify(data)
    upper = lower.upper()
    for digits in (lower, upper):
        yield digits
        yield from after_break(digits)
        yield b":".join(_cut(digits, 2))
    for apart in (b" ", b"\\x", b", 0x"):
        yield apart.join(_cut(lower, 2))
    yield b"-".join(_cut(upper, 2))
    yield ", ".join(map(hex, data)).encode()
    for between in (", ", ",", " "):  # lists of Python and Rust, of JSON, of Go
        yield between.join(map(str, data)).encode()
    yield b" ".join(_cut(lower, 4))
    yield b" ".join([lower[:2], *_cut(lower[2:], 4)])


def dumps(data: bytes) -> Iterator[bytes]:
    """Yield what xxd, `hexdump -C` and `od -t x1` print of `data`, without the first address."""
    yield _rows(data, "%08x: ", _xxd)
    yield _rows(data, "%08x  ", _hexdump)
    yield _rows(data, "%07o ", lambda row: row.hex(" "))


def _rows(data: bytes, address: str, write: Callable[[bytes], str]) -> bytes:
    rows = range(0, len(data), _ROW)
    lines = [(address % at if at else "") + write(data[at : at + _ROW]) for at in rows]
    return "\n".join(lines).encode()


def _xxd(row: bytes) -> str:
    return f"{row.hex(' ', -2):39}  {_printable(row)}"


def _hexdump(row: bytes) -> str:
    return f"{row[:8].hex(' '):23}  {row[8:].hex(' '):23}  |{_printable(row)}|"


def _printable(row: bytes) -> str:
    return "".join([chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row])


def _cut(digits: bytes, size: int) -> list[bytes]:
    return [digits[at : at + size] for at in range(0, len(digits), size)]


_ASCII = 0x80
_FIRST_PRINTABLE = 0x20
_DELETE = 0x7F
_BEYOND_ONE_UNIT = 0x10000


class Escapes(dict[int, str]):
    """A table for `str.translate`: given replacements, one rule for control characters and one for non-ASCII ones."""

    def __init__(
        self,
        given: Mapping[str, str],
        control: Callable[[int], str] = chr,
        beyond: Callable[[int], str] = chr,
    ) -> None:
        super().__init__({ord(character): replacement for character, replacement in given.items()})
        self._control = control
        self._beyond = beyond

    def __missing__(self, code: int) -> str:
        rule = self._beyond if code >= _ASCII else self._control if _is_control(code) else chr
        self[code] = rule(code)
        return self[code]


def _is_control(code: int) -> bool:
    return code < _FIRST_PRINTABLE or code == _DELETE


def _units(code: int, form: str) -> str:
    """Write a character as one or two UTF-16 units."""
    if code < _BEYOND_ONE_UNIT:
        return form % code
    high, low = divmod(code - _BEYOND_ONE_UNIT, 0x400)
    return form % (0xD800 + high) + form % (0xDC00 + low)


def _u_lower(code: int) -> str:
    return _units(code, "\\u%04x")


def _u_upper(code: int) -> str:
    return _units(code, "\\u%04X")


def _u_control(code: int) -> str:
    return chr(code) if code == _DELETE else _u_lower(code)


def _octal_control(code: int) -> str:
    return f"\\{code:03o}"


def _octal_bytes(code: int) -> str:
    return "".join(f"\\{byte:03o}" for byte in to_bytes(chr(code)))


def _decimal_reference(code: int) -> str:
    return f"&#{code};"


def _hex_reference(code: int) -> str:
    return f"&#x{code:X};"


_LETTERS = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\\": "\\\\"}
_JSON = {**_LETTERS, '"': '\\"'}
_SAFE_JSON = {**_JSON, "<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_NET_JSON = {
    **_LETTERS,
    **{character: _u_upper(ord(character)) for character in "\"'+<>&`\x7f"},
}
JSON = (
    Escapes(_JSON, _u_control),
    Escapes(_JSON, _u_lower),  # jq escapes DEL, too
    Escapes(_JSON, _u_control, _u_lower),
    Escapes(_JSON, _u_control, _u_upper),
    Escapes({**_JSON, "/": "\\/"}, _u_control),
    Escapes({**_JSON, "/": "\\/"}, _u_control, _u_lower),
    Escapes(_SAFE_JSON, _u_control),
    Escapes(_SAFE_JSON, _u_control, _u_lower),
    Escapes(_NET_JSON, _u_upper, _u_upper),
)
"""Tables for the inside of a JSON string; applied twice, for a string of JSON in JSON."""

_ANSI_C = {**_LETTERS, "'": "\\'", "\a": "\\a", "\v": "\\v", "\x1b": "\\E"}
_MARKED = frozenset("\t !\"#$&'()*,;<>?[\\]^`{|}~")  # characters that bash's %q escapes with a backslash
_MARKED_FIRST = frozenset("#~")  # of these only at the start of a word
SHELL = (
    Escapes({"'": "'\\''"}),
    Escapes({"'": "'\"'\"'"}),
    Escapes({character: f"\\{character}" for character in '"$`\\'}),
    Escapes({character: f"\\{character}" for character in _MARKED}),
    Escapes({character: f"\\{character}" for character in _MARKED - _MARKED_FIRST}),
    Escapes(_ANSI_C, _octal_control),
    Escapes(_ANSI_C, _octal_control, _octal_bytes),
    Escapes({"'": "''"}),  # also SQL, YAML and PowerShell
    Escapes({'"': '""'}),  # also CSV
)

# GitHub's commands, Azure's, TeamCity's; Make, Compose; formats of printf and systemd.
_PERCENT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
COMMANDS = (
    Escapes(_PERCENT),
    Escapes({**_PERCENT, ":": "%3A", ",": "%2C"}),
    Escapes({**_PERCENT, "%": "%AZP25"}),
    Escapes({"|": "||", "'": "|'", "\n": "|n", "\r": "|r", "[": "|[", "]": "|]"}),
    Escapes({"$": "$$"}),
    Escapes({"%": "%%"}),
)

_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ATTRIBUTE = {**_MARKUP, '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#09;"}
MARKUP = (
    Escapes(_MARKUP),
    Escapes(_MARKUP, beyond=_decimal_reference),
    Escapes({**_MARKUP, '"': "&quot;"}),
    Escapes({**_MARKUP, '"': "&quot;", "'": "&#x27;"}),
    Escapes({**_MARKUP, '"': "&quot;", "'": "&#39;"}),
    Escapes({**_MARKUP, '"': "&quot;", "'": "&apos;"}),
    Escapes({**_MARKUP, '"': "&#34;", "'": "&#39;"}),
    Escapes({**_MARKUP, '"': "&quot;"}, beyond=_hex_reference),
    Escapes(_ATTRIBUTE),
    Escapes({**_MARKUP, "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}),
    Escapes({**_ATTRIBUTE, "\t": "&#9;"}),
    Escapes({**_ATTRIBUTE, "\n": "&#xA;", "\r": "&#xD;", "\t": "&#x9;"}),
    Escapes(_ATTRIBUTE, beyond=_decimal_reference),
)

_INERT = str.maketrans("", "", "-_.")
_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~"
_LEFT_ALONE = (
    b"",
    b"/",  # urllib.parse.quote
    b"!'()*",  # encodeURIComponent
    b"!'()*;,/?:@&=+$#",  # encodeURI
    b"*",  # HTML forms, but for the tilde
)


def is_inert(value: str) -> bool:
    """Whether `value` has no character that any encoding escapes."""
    return value.isascii() and value.translate(_INERT).isalnum()


def addresses(data: bytes) -> Iterator[bytes]:
    """Yield the URL encodings of `data`, with upper and lower case digits, blanks as + or %20."""
    for left_alone in _LEFT_ALONE:
        kept = frozenset(_UNRESERVED + left_alone)
        for form in ("%%%02X", "%%%02x"):
            table = [chr(byte) if byte in kept else form % byte for byte in range(0x100)]
            yield "".join([table[byte] for byte in data]).encode()
            table[0x20] = "+"
            yield "".join([table[byte] for byte in data]).encode()
            table[0x7E] = form % 0x7E
            yield "".join([table[byte] for byte in data]).encode()


def texts(value: str) -> Iterator[str]:
    """Yield `value` as escaped in JSON, shells, Python, commands of CI systems and markup."""
    for table in JSON:
        once = value.translate(table)
        yield once
        yield once.translate(table)
    for table in (*SHELL, *COMMANDS, *MARKUP):
        yield value.translate(table)
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield repr(to_bytes(value))[2:-1]


_QUOTES = ('"', "'")
_FOLDED = 14  # bytes; the rest of a shorter value after a break is slow to search, see masker.py
_MOST_BLANKS = 12


def variants(value: str) -> frozenset[bytes]:
    """Return the forms of a secret: none when it is too short or too common to be masked.

    `value` is as `os.environ` gives it: bytes that are not UTF-8 are lone surrogates. Encodings of encodings are
    not included, except JSON in JSON; neither are parts of a value other than its lines.
    """
    bare = _bare(value)
    if is_plain(bare):
        return frozenset()
    decoded = bare.replace("\\r", "").replace("\\n", "\n")
    forms: set[bytes] = set()
    for whole in {value.strip(), bare, decoded}:
        forms.update(_encodings(whole))
        forms.update(_wide_encodings(whole))
    for whole in (value, value + "\n"):
        forms.update(dumps(to_bytes(whole)))
    for line in {_bare(line) for text in (bare, decoded) for line in text.splitlines()}:
        # The first and last line of PEM keys are constant.
        if not is_plain(line) and not (line.startswith("-----") and line.endswith("-----")):
            forms.update(_encodings(line))
    return frozenset(variant for variant in forms if len(variant) >= SHORTEST)


def _bare(text: str) -> str:
    text = text.strip()
    while len(text) > 1 and text[0] in _QUOTES and text[0] == text[-1]:
        text = text[1:-1].strip()
    return text


def _encodings(text: str) -> Iterator[bytes]:
    data = to_bytes(text)
    yield data
    yield from after_break(data, _FOLDED)
    yield from _wrapped(data)
    yield from inner_base64s(data)
    yield hexlify(data)
    if not is_inert(text):
        yield from addresses(data)
        for escaped in texts(text):
            yield to_bytes(escaped)


def _wrapped(data: bytes) -> Iterator[bytes]:
    """Yield a line of several words as wrapped text: line breaks in place of one blank, or of all."""
    words = data.split(b" ")
    if 1 < len(words) <= _MOST_BLANKS + 1 and len(data) >= _FOLDED and b"\n" not in data:
        for at in range(1, len(words)):
            yield b" ".join(words[:at]) + b" ".join(words[at:])
        yield b"".join(words)


def _wide_encodings(text: str) -> Iterator[bytes]:
    """Yield the encodings that are searched for whole values only."""
    data = to_bytes(text)
    yield to_bytes(text[::-1])  # `rev` reverses characters, so bytes of one character keep their order
    yield from (b"".join(form % byte for byte in data) for form in (b"\\u%04x", b"\\u%04X"))
    yield from base64s(data)
    yield from numbers(data)
    wide = text.encode("utf-16-le", "surrogatepass")
    yield wide
    yield from inner_base64s(wide)  # PowerShell's -EncodedCommand
