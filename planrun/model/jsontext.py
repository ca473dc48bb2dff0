"""JSON as text: strict, compact, UTF-8, and without importing `json`, which costs as much as a small step.

Control characters (C0, DEL, C1), line separators, text direction marks and lone surrogates are escaped, so
the text is one printable line that no terminal, log viewer or line reader takes for anything else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
# Besides the controls: LRM/RLM/ALM and the direction overrides (they make a line read as something else),
# the two separators that JavaScript takes for line ends, the byte order mark and the two non-characters.
_HIDDEN = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFEFF,
    0xFFFE,
    0xFFFF,
)
_ESCAPES: dict[int, str] = {code: f"\\u{code:04x}" for code in _HIDDEN}
_ESCAPES.update({ord(char): escape for char, escape in _SHORT.items()})
_WORDS = {None: "null", True: "true", False: "false"}
_INFINITE = ("inf", "-inf", "nan")


def dumps(value: Any) -> str:
    """Return `value` as one line of JSON.

    Takes None, bool, int, float, str, dict with text keys, list and tuple, nested. Raises ValueError for
    NaN and infinities, TypeError for anything else: what cannot be read back is never written.
    """
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is dict:
        return "{" + members(value) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([dumps(item) for item in value]) + "]"
    if kind is int:
        return str(value)
    if value is None or kind is bool:
        return _WORDS[value]
    if kind is float:
        return number(value)
    raise TypeError(f"{kind.__name__} is no JSON value")


def members(fields: dict[str, Any]) -> str:
    """Return an object without its braces; raises as `dumps` does."""
    # One look at all texts of an object instead of one at each makes an event a third cheaper.
    if not _is_plain(fields):
        return ",".join([f"{quote(key)}:{dumps(item)}" for key, item in fields.items()])
    parts = []
    for key, item in fields.items():
        kind = type(item)
        if kind is str:
            parts.append(f'"{key}":"{item}"')
        elif kind is int:
            parts.append(f'"{key}":{item}')
        else:
            parts.append(f'"{key}":{dumps(item)}')
    return ",".join(parts)


def _is_plain(fields: dict[str, Any]) -> bool:
    """Return whether no key and no text among the values has anything to escape."""
    try:
        text = "".join([*fields, *[item for item in fields.values() if type(item) is str]])
    except TypeError:  # a key that is no text
        return False
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text and "##" not in text


def well_formed(value: Any) -> Any:
    """Return `value` with each byte that is no UTF-8, as file names may have, spelled as `repr` does.

    Ledgers keep such names as lone surrogates and get them back; other readers refuse a document that has any.
    """
    if type(value) is str:
        return "".join([_spelled(char) for char in value]) if _is_broken(value) else value
    if type(value) is dict:
        return {well_formed(key): well_formed(item) for key, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return [well_formed(item) for item in value]
    return value


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _spelled(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # where os.fsdecode puts bytes
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else char


def number(value: float) -> str:
    """Return the shortest text that reads back as the same float; raises ValueError when it is not finite."""
    text = repr(value)
    if text in _INFINITE:
        raise ValueError(f"{text} is not a JSON number")
    return text


def quote(text: str) -> str:
    """Return a JSON string; raises TypeError when `text` is no text (a key may be anything)."""
    if type(text) is not str:
        raise TypeError(f"{type(text).__name__} is no JSON text")
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text and "##" not in text:
        return '"' + text + '"'
    # Only surrogates fail to encode, and Python's spelling of them is JSON's. Agents of Azure and TeamCity
    # obey `##vso[` and `##teamcity[` anywhere in a line, so two of these signs never stand side by side.
    text = text.translate(_ESCAPES).replace("##", "#\\u0023")
    return '"' + text.encode("utf-8", "backslashreplace").decode() + '"'
