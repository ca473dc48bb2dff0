"""Mask secrets in texts, in plain data, and in streams that arrive in pieces of any size.

Every occurrence of every variant of a secret is replaced by `***`, overlapping ones together; line breaks are kept.
Variants are also found across line wrapping (see `encodings.Unbroken`). A stream holds back only the longest end that
could become a variant.

The multi-pattern search is as fast as a scan, without a compiled library. A string of at least `stride + 3` bytes
covers a whole four-byte word at a multiple of `stride`, at any offset. So only these words of a text are looked up, a
few hundred per call into C, in a set that holds one word of each string for each alignment; the strings themselves are
compared only where a word matches. Strings too short for the stride are searched one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from sys import byteorder

from planrun.model.hidden import CONTROLS, HELD, begun, readings
from planrun.secrets.encodings import BREAK_GRACE, SHORTEST, Unbroken, flatten, to_bytes, to_text, variants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.model.hidden import Reading

_WORD = 4  # bytes of "I" in a view, on every platform that CPython runs on
_STRIDES = (16, 8, 4)
# Nanoseconds, measured with CPython 3.11 to 3.13; only their ratio matters, in the choice of the stride.
_LOOK_UP = 25.0  # one word
_SEARCH = 0.35  # one byte for one short string
_AT_ONCE = 256  # words looked up in one call; a match is then located in their text
# How rare a byte is in logs, roughly; 2 for bytes not listed. Words of common bytes match by chance.
_WEIGHTS = bytearray(b"\2" * 256)
for _weight, _bytes in enumerate((b" \t.,:;/_-=0etaoinsrhl", b"123456789bcdfgjkmpquvwxyz")):
    for _byte in _bytes:
        _WEIGHTS[_byte] = _weight
for _byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ":
    _WEIGHTS[_byte] = 3
_CHOICES = 8
_RARE = 8  # of four different bytes together


class MultiPatternSearch:
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
            self._add(string, stride)
        self._words = frozenset(self._table)

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where strings begin and end in `text`, in ascending order."""
        spans: list[tuple[int, int]] = []
        for string in self._short:
            start = text.find(string)
            while start >= 0:
                spans.append((start, start + len(string)))
                start = text.find(string, start + 1)
        if self._words:
            words = _view(text)[:: self._step]
            for first in range(0, len(words), _AT_ONCE):
                known = self._words.intersection(words[first : first + _AT_ONCE])
                if known:
                    self._compare(text, first, known, spans)
        spans.sort()
        return spans

    def _compare(self, text: bytes, first: int, words: Iterable[int], spans: list[tuple[int, int]]) -> None:
        """Add the spans of the strings around these words, which are among the words from index `first` on."""
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
                            spans.append((start, start + len(string)))
                place += 1

    def _add(self, string: bytes, stride: int) -> None:
        """Choose the words by which a string is found: one for each alignment to `stride`."""
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
    """Return how rare a word is in logs; 0: common."""
    return sum(bytes(set(word)).translate(_WEIGHTS))


def _cost(stride: int, strings: list[bytes]) -> float:
    """Return the nanoseconds per byte of a text without matches."""
    short = sum(len(string) < stride + _WORD - 1 for string in strings)
    return (_LOOK_UP / stride if short < len(strings) else 0.0) + _SEARCH * short


PROVIDER_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CO_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
)
"""API keys of language models, by the variables that the vendors' libraries read."""


def known_secrets(names: Iterable[str], environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the values of the secrets with these names, and the names that are unset or empty."""
    wanted = dict.fromkeys(names)
    values = {name: environ[name] for name in wanted if environ.get(name)}
    return values, tuple(name for name in wanted if name not in values)


MARK = b"***"
_NUMBERS = b"0123456789;"  # in a colour, `ESC [ digits m` or `K`
_IN_COLOURS = b"[mK" + _NUMBERS
_SHORTEST_REST = 4  # bytes
# How many bytes identify the end of a text that could become a secret: _FAR_HEAD when it is longer than _NEAR, else
# _HEAD; ends shorter than _HEAD are compared byte by byte.
_NEAR = 256
_FAR_HEAD = 19
_HEAD = 7


class Masker:
    """Masks secrets: values by name, as `os.environ` gives them."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        patterns: set[bytes] = set()
        ignored: list[str] = []
        for name, value in secrets.items():
            forms = variants(value)
            for form in forms:
                patterns.update(_patterns(form))
            if not forms:
                ignored.append(name)
        self.ignored = tuple(ignored)
        """Names of secrets that are not masked: their values are too short or too common."""
        wanted = {pattern for pattern in patterns if len(pattern) >= SHORTEST}
        # Where nothing but colours is not shown, one search does for all bytes and for what is shown. Only all bytes
        # have a pattern that begins inside of a colour: what follows is searched, and the bytes before compared.
        self._rests: dict[bytes, set[bytes]] = {}
        self._searches_all = False
        for pattern in [pattern for pattern in wanted if pattern[0] in _IN_COLOURS or b"\x1b" in pattern]:
            begin, rest = _colour_end(pattern)
            if (begin and len(rest) < _SHORTEST_REST) or b"\x1b" in pattern:
                self._searches_all = True
            elif begin:
                self._rests.setdefault(rest, {b""} if rest in wanted else set()).add(begin)
        self._sorted = sorted(wanted.union(self._rests))
        self._search = MultiPatternSearch(self._sorted)
        self._far_heads = MultiPatternSearch(
            pattern[:_FAR_HEAD] for pattern in self._sorted if len(pattern) > _NEAR
        )
        self._heads = MultiPatternSearch(pattern[:_HEAD] for pattern in self._sorted if len(pattern) > _HEAD)
        self._longest = max(map(len, self._sorted), default=0)
        self.most_held = 4 * HELD + 2 * self._longest
        """Bytes that a stream holds back at most."""

    def __bool__(self) -> bool:
        """Whether there is anything to mask."""
        return bool(self._sorted)

    def stream(self) -> MaskedStream:
        """Return a new stream for one source of output."""
        return MaskedStream(self)

    def mask(self, data: bytes) -> bytes:
        """Return `data` masked."""
        if len(data) < SHORTEST:
            return data
        stream = MaskedStream(self)
        return stream.feed(data) + stream.finish()

    def mask_text(self, text: str) -> str:
        """Return `text` masked."""
        if len(text) < SHORTEST and text.isascii():
            return text
        data = to_bytes(text)
        masked = self.mask(data)
        return text if masked == data else to_text(masked)

    def mask_value(self, value: Any) -> Any:
        """Return plain data (None, numbers, texts, bytes, lists, tuples, mappings with any keys) masked throughout.

        A number that is a secret becomes a text. Keys that would become equal get additional stars.
        """
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, bytes):
            return self.mask(value)
        if isinstance(value, dict):
            return self._mask_mapping(value)
        if isinstance(value, (list, tuple)):
            masked = [self.mask_value(item) for item in value]
            return masked if isinstance(value, list) else tuple(masked)
        if isinstance(value, (int, float)):
            text = str(value)
            masked_text = self.mask_text(text)
            return value if masked_text == text else masked_text
        return value

    def _mask_mapping(self, value: dict[Any, Any]) -> dict[Any, Any]:
        masked: dict[Any, Any] = {}
        for key, item in value.items():
            name = self.mask_value(key)
            while name in masked:
                name = f"{name}*"
            masked[name] = self.mask_value(item)
        return masked

    def find(self, data: bytes) -> list[int]:
        """Return where in `data` masks would begin, ascending."""
        return [start for start, _ in _merged(self.spans(self.readings(data)), 0)]

    def readings(self, text: bytes) -> list[Reading]:
        """Return `text` as it has to be searched."""
        found = readings(text)
        return found[1:] if found[-1].is_coloured and not self._searches_all else found

    def spans(self, texts: Iterable[Reading]) -> list[tuple[int, int]]:
        """Return the spans of the original that some reader sees a secret in; ascending, may overlap."""
        found = []
        for each in texts:
            text = Unbroken(each.shown)
            seen = 0
            for start, end in self._search.spans(text.flat):
                # The longest of those that begin together comes last.
                if end > seen and text.holds(start, end):
                    place = each.place(text.place(start))
                    begins = self._rests.get(text.flat[start:end])
                    if begins:
                        lengths = [len(begin) for begin in begins if each.text.endswith(begin, 0, place)]
                        if not lengths or not (each.is_coloured or b"" in begins):
                            continue
                        place -= max(lengths) if each.is_coloured else 0
                    found.append((place, each.place(text.place(end - 1)) + 1))
                    seen = end
        return sorted(found)

    def undecided(self, text: Unbroken) -> int:
        """Return where the flat bytes begin that could become a secret with the next piece; their number if none do."""
        size = len(text.flat)
        for place in self._candidates(text.flat):
            if self._is_begun(text.flat[place:]) and text.begins(place):
                return place
        return size

    def _candidates(self, flat: bytes) -> Iterator[int]:
        """Yield, ascending, the positions from which `flat` may begin a pattern; a superset of them."""
        size = len(flat)
        far, near, last = (max(0, size - most) for most in (self._longest - 1, _NEAR - 1, _HEAD - 1))
        for start, _ in self._far_heads.spans(flat[far : near + _FAR_HEAD]) if far < near else ():
            yield far + start
        for start, _ in self._heads.spans(flat[near:]):
            yield near + start
        yield from range(last, size)

    def _is_begun(self, end: bytes) -> bool:
        """Whether a longer pattern begins with `end`."""
        place = bisect_right(self._sorted, end)
        return place < len(self._sorted) and self._sorted[place].startswith(end)


class MaskedStream:
    """Masks output in pieces: feed all of them, then finish, and write what both return.

    What begins like a secret is held back, with what is not shown inside of it, and so is a control sequence without
    its end. Where that gets longer than any secret needs, the beginning is masked, and so is the rest when it comes.
    """

    __slots__ = ("_before", "_begun", "_done", "_held", "_marked", "_masker")

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._before = b""  # was returned already, and backspaces may erase it
        self._begun = b""  # of what was masked before it was whole: what is shown of it
        self._held = b""
        self._done = 0  # bytes at the start of the held text that were masked already
        self._marked = False  # the last returned bytes are a mask

    def feed(self, data: bytes) -> bytes:
        """Take the next piece and return all masked output that is decided."""
        return self._advance(self._held + data, is_last=False) if self._masker else data

    def finish(self) -> bytes:
        """Return what was held back and reset the stream."""
        rest = self._advance(self._held, is_last=True) if self._held else b""
        self._before, self._begun, self._marked = b"", b"", False
        return rest

    def _advance(self, new: bytes, *, is_last: bool) -> bytes:
        """Return the masked text up to what is undecided, and hold the rest."""
        is_begun = bool(self._begun)
        before = self._begun or (self._before if b"\b" in new else b"")
        text = before + new
        end = len(text) if is_last else begun(text)
        texts = self._masker.readings(text[:end])
        spans = [(max(0, start - len(before)), end - len(before)) for start, end in self._masker.spans(texts)]
        spans = [span for span in spans if span[1] > 0]
        keep, self._begun = len(new), b""
        if not is_last:
            undecided, rest = min([self._undecided(each) for each in texts])
            undecided -= len(before)
            keep = max(0, undecided)
            if len(new) - keep > self._masker.most_held:
                if 0 <= undecided < end - len(before):
                    spans = sorted([*spans, (undecided, len(new))])
                keep, self._begun = len(new), rest
            elif undecided < 0 and is_begun:
                self._begun = before
        parts: list[bytes] = []
        at = 0
        done = 0 if keep else self._done
        for start, end in _merged(spans, self._done):
            if start >= keep:
                break
            last = min(end, keep)
            stars = _stars(new[start:last])
            # A mask that began in an earlier piece continues.
            parts += [new[at:start], stars[len(MARK) :] if self._marked and not start else stars]
            at = last
            done = max(0, end - keep)
        parts.append(new[at:keep])
        if keep:
            self._marked = 0 < at == keep and new[at - 1] not in b"\r\n"
            self._before = (self._before + new[:keep])[-HELD:]
        self._held, self._done = new[keep:], done
        return b"".join(parts)

    def _undecided(self, each: Reading) -> tuple[int, bytes]:
        """Return where what could become a secret begins, and what is shown of it."""
        text = Unbroken(each.shown)
        place = self._masker.undecided(text)
        is_end = place == len(text.flat)
        at = len(each.text) if is_end else each.place(text.place(place))
        if each.is_coloured and each.text.endswith((b"m", b"K"), 0, at):
            # A pattern may begin inside of the colour before.
            escape = each.text.rfind(b"\x1b", 0, at)
            if _is_colour(each.text[escape:at]):
                at = escape
        return at, b"" if is_end else each.shown[text.place(place) :]


def _colour_end(pattern: bytes) -> tuple[bytes, bytes]:
    """Return with what of a colour a pattern may begin, and the rest; the first is empty if with nothing."""
    rest = pattern.removeprefix(b"[").lstrip(_NUMBERS)
    if rest[:1] in (b"m", b"K"):
        rest = rest[1:]
    elif rest:
        return b"", pattern
    return pattern[: len(pattern) - len(rest)], rest


def _is_colour(text: bytes) -> bool:
    return text.startswith(b"\x1b[") and text[2:-1].strip(_NUMBERS) == b""


def _patterns(variant: bytes) -> Iterable[bytes]:
    """Return a variant as search patterns: as readers show it."""
    if variant.isascii() and len(variant.translate(None, CONTROLS)) == len(variant):
        return (_pattern(variant),)
    return {_pattern(each.shown) for each in readings(variant)}


def _pattern(variant: bytes) -> bytes:
    """Return a variant as a search pattern: without line breaks, and without leading lines that are too short."""
    lines = variant.replace(b"\r", b"\n").strip(b"\n").split(b"\n")
    while len(lines) > 1 and len(lines[0]) < BREAK_GRACE:
        del lines[0]
    return flatten(b"\n".join(lines))


def _merged(spans: Iterable[tuple[int, int]], done: int) -> list[tuple[int, int]]:
    """Return ascending spans, overlapping and adjacent ones merged; the first `done` bytes are a span, too."""
    merged = [(0, done)] if done else []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _stars(text: bytes) -> bytes:
    """Return a mask for each line of `text`, and its breaks."""
    lines = text.split(b"\n")
    return b"\n".join([b"\r".join([MARK if part else b"" for part in line.split(b"\r")]) for line in lines])
