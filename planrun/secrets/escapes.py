r"""How programs write a text inside quotes, markup and addresses: one table of replacements for each way.

Only what stands between the quotes matters here, and what is beyond ASCII is written as it is or escaped.
Sources: RFC 8259 and the defaults of Python, jq, Node, Go, PHP and .NET for JSON; POSIX 2.2, bash's `%q`, `@Q`
and `set -x`, dash's `set -x` for shells; XML 1.0, html.escape, Go's and MarkupSafe's escapes for markup;
RFC 3986, encodeURI and encodeURIComponent, HTML forms for addresses.
"""

from __future__ import annotations

from planrun.secrets.text import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ASCII = 0x80
_FIRST_PRINTABLE = 0x20
_DELETE = 0x7F
_BEYOND_ONE_UNIT = 0x10000


class Escapes(dict[int, str]):
    """A table for `str.translate`: given replacements, one rule for controls and one for what is beyond ASCII."""

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
_MARKED = frozenset("\t !\"#$&'()*,;<>?[\\]^`{|}~")  # what bash's %q puts a backslash before
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
    """Whether nobody would escape anything in `value`."""
    return value.isascii() and value.translate(_INERT).isalnum()


def addresses(data: bytes) -> Iterator[bytes]:
    """Yield the ways `data` is written in an address, with upper and lower case digits, blanks as + or %20."""
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
    """Yield `value` as it stands inside quotes of JSON, shells and Python, in commands to CI systems and in markup."""
    for table in JSON:
        once = value.translate(table)
        yield once
        yield once.translate(table)
    for table in (*SHELL, *COMMANDS, *MARKUP):
        yield value.translate(table)
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield repr(to_bytes(value))[2:-1]
