"""Text that others wrote, made harmless for reports and consoles: it may say anything and do nothing."""

from __future__ import annotations

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
# The 8-bit forms of the escape sequences that carry text.
_WIDE_ESCAPES = {0x9B: "\x1b[", 0x9D: "\x1b]", 0x90: "\x1bP", 0x98: "\x1bX", 0x9E: "\x1b^", 0x9F: "\x1b_"}
_STRINGS = "]PX^_"  # OSC, DCS, SOS, PM, APC: text up to BEL or ST


def plain(text: str) -> str:
    r"""Return `text` without terminal sequences, control characters and commands to CI systems.

    `\r\n` and `\r` become `\n`; tab and newline stay; every other control character becomes U+FFFD.
    """
    if _is_harmless(text):
        return text
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode().translate(_WIDE_ESCAPES)
    if "\x1b" in text:
        text = _without_sequences(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    from planrun.model import commands  # ordinary text needs none of it

    return commands.broken(text.translate(_REPLACED))


def line(text: str, limit: int = 1000) -> str:
    """Return `text` as one clean line of at most `limit` characters."""
    # Nearly every id and title: kept in one expression, since a large report asks a hundred thousand times.
    if len(text) <= limit and text.isascii() and text.isprintable() and "::" not in text and "##" not in text:
        return text
    if len(text) > 4 * limit:
        text = text[: 4 * limit]
    text = plain(text)
    if "\n" in text or "\t" in text:
        from planrun.model import commands

        text = commands.broken(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _is_harmless(text: str) -> bool:
    return text.isascii() and text.isprintable() and "::" not in text and "##" not in text


def _without_sequences(text: str) -> str:
    """Drop ECMA-48 sequences; an unfinished one ends with its line, so that it cannot hide what follows."""
    first, *rest = text.split("\x1b")
    kept = [first]
    in_string = False
    for part in rest:
        if in_string and part[:1] == "\\":
            kept.append(part[1:])
            in_string = False
            continue
        in_string = part[:1] != "" and part[0] in _STRINGS
        if in_string:
            after = _after_string(part)
            if after is not None:
                kept.append(after)
                in_string = False
        else:
            kept.append(_after_sequence(part))
    return "".join(kept)


def _after_string(part: str) -> str | None:
    """What follows a control string; None when neither BEL nor a line end closes it within `part`."""
    ends = [end for end in (part.find("\x07"), part.find("\n")) if end >= 0]
    if not ends:
        return None
    end = min(ends)
    return part[end + 1 :] if part[end] == "\x07" else part[end:]


def _after_sequence(part: str) -> str:
    """What follows a CSI (parameters, intermediates, final byte) or a short escape (intermediates, final)."""
    at = 1 if part[:1] == "[" else 0
    parameters = "\x20", ("\x3f" if at else "\x2f")
    while at < len(part) and parameters[0] <= part[at] <= parameters[1]:
        at += 1
    if at < len(part) and "\x30" <= part[at] <= "\x7e":
        at += 1
    return part[at:]
