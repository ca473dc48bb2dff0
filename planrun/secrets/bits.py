"""How programs write bytes with letters and digits: base64, hexadecimal, and dumps of memory."""

from __future__ import annotations

from binascii import b2a_base64, hexlify

from planrun.secrets.broken import GRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_ROW = 16  # bytes in a row of a dump
_WRAPPED = 24  # characters; shorter words are hardly ever broken into lines


def base64s(data: bytes) -> Iterator[bytes]:
    """Yield `data` as base64 of both alphabets has it, amid other bytes or up to the end of a text or file."""
    for word in (*inner_base64s(data), *_last_base64s(data)):
        yield word
        yield word.translate(_URL_SAFE)
    for word in inner_base64s(data):
        yield from after_break(word)
        yield from after_break(word.translate(_URL_SAFE))


def inner_base64s(data: bytes) -> Iterator[bytes]:
    """Yield what base64 makes of `data` behind 0, 1 and 2 other bytes: the characters that it alone decides."""
    for before in range(3):
        word = b2a_base64(bytes(before) + data, newline=False)
        yield word[_first(before) : 8 * (before + len(data)) // 6]


def _last_base64s(data: bytes) -> Iterator[bytes]:
    """Yield the same with the characters that the end of the data decides: nothing or a newline follows."""
    for before in range(3):
        word = b2a_base64(bytes(before) + data, newline=False)[_first(before) :]
        yield word
        yield word.rstrip(b"=")
        yield b2a_base64(bytes(before) + data + b"\n", newline=False)[_first(before) :]


def _first(before: int) -> int:
    """Return which character is the first that bytes before have no part in."""
    return (8 * before + 5) // 6


def after_break(word: bytes, shortest: int = _WRAPPED) -> Iterator[bytes]:
    """Yield what must be found of a word when its line breaks too near to its beginning to be overlooked.

    Nothing of words of less than `shortest` characters.
    """
    if len(word) >= shortest:
        yield word[GRACE - 1 :]


def numbers(data: bytes) -> Iterator[bytes]:
    """Yield `data` as numbers: hexadecimal, plain and apart, in pairs as xxd prints them, and lists of decimals."""
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
