"""Many byte strings looked for at once, at the speed of a scan and without a compiled library.

A string of at least `stride + 3` bytes covers a whole four-byte word at a multiple of `stride`, wherever it
stands. So only every such word of a text is looked up, by one call into C for a few thousand of them, in a set
that holds a word of each string for each way it can lie; and only where a word is found are the strings
themselves compared. Strings too short for the stride are searched one by one.
"""

from __future__ import annotations

from sys import byteorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = 4  # bytes of "I" in a view, on every platform that CPython runs on
_STRIDES = (16, 8, 4)
# Nanoseconds, measured with CPython 3.11 to 3.13; only their ratio matters, in the choice of the stride.
_LOOK_UP = 25.0  # one word
_SEARCH = 0.35  # one byte for one short string
_AT_ONCE = 256  # words looked up in one call; one that is known is then searched in the text of all
# How seldom a byte is in logs, roughly; 2 for those that are not named. Words of common bytes are found by chance.
_WEIGHTS = bytearray(b"\2" * 256)
for _weight, _bytes in enumerate((b" \t.,:;/_-=0etaoinsrhl", b"123456789bcdfgjkmpquvwxyz")):
    for _byte in _bytes:
        _WEIGHTS[_byte] = _weight
for _byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ":
    _WEIGHTS[_byte] = 3
_CHOICES = 8
_RARE = 8  # of four different bytes together


class Needles:
    """Finds all occurrences of given byte strings, overlapping ones included."""

    __slots__ = ("_short", "_step", "_table", "_words")

    def __init__(self, strings: Iterable[bytes]) -> None:
        # Shortest first: a string that contains a shorter one is then found by the words of that one.
        wanted = sorted({string for string in strings if string}, key=lambda string: (len(string), string))
        stride = min(_STRIDES, key=lambda stride: _cost(stride, wanted))
        self._step = stride // _WORD
        self._short = [string for string in wanted if len(string) < stride + _WORD - 1]
        self._table: dict[int, list[tuple[int, bytes]]] = {}
        for string in wanted[len(self._short) :]:
            self._enter(string, stride)
        self._words = frozenset(self._table)

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where strings begin and end in `text`, in ascending order."""
        found: list[tuple[int, int]] = []
        for string in self._short:
            start = text.find(string)
            while start >= 0:
                found.append((start, start + len(string)))
                start = text.find(string, start + 1)
        if self._words:
            words = _view(text)[:: self._step]
            for first in range(0, len(words), _AT_ONCE):
                known = self._words.intersection(words[first : first + _AT_ONCE])
                if known:
                    self._compare(text, first, known, found)
        found.sort()
        return found

    def _compare(self, text: bytes, first: int, words: Iterable[int], found: list[tuple[int, int]]) -> None:
        """Add the spans of the strings that stand around these words, which are among those from `first` on."""
        stride = self._step * _WORD
        for word in words:
            place = first * stride
            end = place + _AT_ONCE * stride
            sought = word.to_bytes(_WORD, byteorder)
            while (place := text.find(sought, place, end)) >= 0:
                if not place % stride:
                    for offset, string in self._table[word]:
                        start = place - offset
                        if start >= 0 and text.startswith(string, start):
                            found.append((start, start + len(string)))
                place += 1

    def _enter(self, string: bytes, stride: int) -> None:
        """Choose the words by which a string is found: one for each way it can lie across multiples of `stride`."""
        table = self._table
        words = [_view(string[at:]) for at in range(_WORD)]
        for offset in range(stride):
            best, rarest = offset, -1
            for place in range(offset, min(len(string) - _WORD + 1, offset + _CHOICES * stride), stride):
                if words[place % _WORD][place // _WORD] in table:
                    best = place
                    break
                if rarest < _RARE:
                    rarity = _rarity(string[place : place + _WORD])
                    if rarity > rarest:
                        best, rarest = place, rarity
            table.setdefault(words[best % _WORD][best // _WORD], []).append((best, string))


def _view(text: bytes) -> memoryview[int]:
    """Return the whole words of `text`."""
    return memoryview(text)[: len(text) // _WORD * _WORD].cast("I")


def _rarity(word: bytes) -> int:
    """Return how seldom a word is in logs, from 0."""
    return sum(bytes(set(word)).translate(_WEIGHTS))


def _cost(stride: int, strings: list[bytes]) -> float:
    """Nanoseconds for a byte of text that holds none of the strings."""
    short = sum(len(string) < stride + _WORD - 1 for string in strings)
    return (_LOOK_UP / stride if short < len(strings) else 0.0) + _SEARCH * short
