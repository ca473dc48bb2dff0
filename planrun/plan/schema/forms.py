"""The forms a scalar can be wanted in: what is wrong with one, and what it is once it is right.

Only the place decides what a scalar is. `no`, `0755`, `1:30`, `3.10` and dates are text where text is wanted; where a
number or a boolean is wanted, only decimal numbers and `true` and `false` of YAML 1.2 are one.
"""

from __future__ import annotations

from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # Code, what is the matter (goes after the name of the key), hint.
    Finding = tuple[str, str, str]

NULLS = frozenset(("", "~", "null", "Null", "NULL"))
TRUE = frozenset(("true", "True", "TRUE"))
FALSE = frozenset(("false", "False", "FALSE"))
NO_VALUE = ("E103", "has no value", 'write "" for an empty string')

LONGEST = 366 * 86400.0  # seconds; a longer wait is a slip of the pen, and overflows timers
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_LONGEST_NAME = 100  # characters of ids and names
# Patterns that most plans never need: importing `re` and compiling them takes a tenth of a first start.
_NUMBER = r"[-+]?(?:(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,2})?\Z"
# What YAML 1.2 reads as a number, decimal or not, and what such a number begins with.
_NUMERAL = frozenset("+-.0123456789")
_NUMERIC = (
    r"(?:[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
# What YAML 1.1 reads as something else than text, and 1.2 does not, or the other way round; and its beginnings.
_FIRST = frozenset("+-0123456789yYnNoO")
_TWOFOLD = (
    r"(?i:yes|no|on|off|y|n|[-+]?0[0-9_]+|[-+]?[0-9][0-9_]*_[0-9_.]*|0b[01_]+|[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?)\Z"
)
_WORDS = {
    **dict.fromkeys(("yes", "on", "y"), "true"),
    **dict.fromkeys(("no", "off", "n"), "false"),
}
_ID_HINT = "use letters, digits, `_`, `-` and `.`, and begin with a letter or digit"
_AMOUNT = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h)"
_HARMFUL = frozenset(
    map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)))
)


def shown(text: str) -> str:
    """Quote a value of the plan for a message, cut to what is needed to know it again."""
    return f'"{text[:57]}..."' if len(text) > 60 else f'"{text}"'


def _matches(pattern: str, text: str) -> bool:
    import re

    return re.match(pattern, text) is not None


def _is_id(text: str) -> bool:
    """Whether a text is [A-Za-z0-9_][A-Za-z0-9._-]{0,99}."""
    if not (0 < len(text) <= _LONGEST_NAME and text.isascii()):
        return False
    if text.isidentifier():
        return True
    return f"_{text.replace('-', '_').replace('.', '_')}".isidentifier() and text[0] not in "-."


def _is_name(text: str) -> bool:
    """Whether a text is [A-Za-z_][A-Za-z0-9_]{0,99}."""
    return _is_variable(text) and len(text) <= _LONGEST_NAME


def _is_variable(text: str) -> bool:
    """Whether a text is [A-Za-z_][A-Za-z0-9_]*."""
    return text.isidentifier() and text.isascii()


def _is_integer(text: str) -> bool:
    """Whether a text is [-+]?(0|[1-9][0-9]{0,17})."""
    digits = text[1:] if text.startswith(("-", "+")) else text
    if not (digits.isdigit() and digits.isascii()):
        return False
    return len(digits) == 1 or (digits[0] != "0" and len(digits) <= 18)


def _is_number(text: str) -> bool:
    return text[:1] in _NUMERAL and (_is_integer(text) or _matches(_NUMBER, text))


def _is_numeric(text: str) -> bool:
    return text[:1] in _NUMERAL and _matches(_NUMERIC, text)


def _is_twofold(text: str) -> bool:
    return text[:1] in _FIRST and _matches(_TWOFOLD, text)


def as_text(node: Node) -> str:
    """Return a scalar's text as it was written."""
    text: str = node.value
    return text


def as_bool(node: Node) -> bool:
    """Return True or False; raises ValueError for anything but the words true and false, unquoted."""
    if node.kind == SCALAR and node.plain:
        if node.value in TRUE:
            return True
        if node.value in FALSE:
            return False
    raise ValueError("not a boolean")


def as_int(node: Node) -> int:
    """Return a decimal integer of at most 18 digits; raises ValueError."""
    if node.kind == SCALAR and node.plain and _is_integer(node.value):
        return int(node.value)
    raise ValueError("not an integer")


def as_number(node: Node) -> int | float:
    """Return a decimal number; raises ValueError."""
    if node.kind == SCALAR and node.plain and _is_number(node.value):
        return int(node.value) if _is_integer(node.value) else float(node.value)
    raise ValueError("not a number")


def as_duration(text: str) -> float:
    """Return seconds of a duration such as `500ms` or `1h30m`; raises ValueError."""
    amount, unit = (text[:-2], "ms") if text.endswith("ms") else (text[:-1], text[-1:])
    if unit in _UNITS and amount.isdigit() and amount.isascii() and len(amount) <= 9:
        return int(amount) * _UNITS[unit]
    import re

    seconds, end = 0.0, 0
    for part in re.finditer(_AMOUNT, text):
        if part.start() != end:
            break
        seconds += float(part.group(1)) * _UNITS[part.group(2)]
        end = part.end()
    if not text or end != len(text):
        raise ValueError("not a duration")
    return seconds


_SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def as_size(text: str) -> int:
    """Return bytes of a size such as `512MiB`; raises ValueError."""
    amount, unit = text[:-3], text[-3:]
    if (
        unit not in _SIZES
        or not (amount.isdigit() and amount.isascii())
        or amount[0] == "0"
        or len(amount) > 9
    ):
        raise ValueError("not a size")
    return int(amount) * _SIZES[unit]


def to_data(node: Node, wanted: str = "") -> Any:
    """Return plain data with the types of YAML 1.2, for places that take any JSON value.

    Where `wanted` is "string" (the type of a parameter), a scalar is its text.
    """
    if node.kind == MAPPING:
        return {name: to_data(value) for name, value in node.value.items()}
    if node.kind != SCALAR:
        return [to_data(value, wanted) for value in node.value]
    text = node.value
    if not node.plain or wanted == "string":
        return text
    if text in NULLS:
        return None
    if text in TRUE or text in FALSE:
        return text in TRUE
    return as_number(node) if _is_number(text) else text


def ambiguous(node: Node, wanted: str = "") -> Finding | None:
    """Find a scalar that readers of YAML take for different things, in a place that takes any value."""
    text = node.value
    if not node.plain or wanted == "string":
        return None
    if _is_numeric(text):
        if _is_number(text) and (wanted in ("number", "integer") or str(as_number(node)) == text):
            return None
    elif not _is_twofold(text):
        return None
    hint = f'quote it to make it a string: "{text[:40]}"'
    if wanted == "boolean" and (word := _WORDS.get(text.lower())):
        hint = f"write `{word}`"
    return "E117", f"is ambiguous in YAML: {text[:40]}", hint


def _value(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain and node.value in NULLS:
        return NO_VALUE
    return ambiguous(node)


def _text(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    return NO_VALUE if node.plain and node.value in NULLS else None


def _full(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain:
        return ("E103", "has no value", "") if node.value in NULLS else None
    return None if node.value.strip() else ("E113", "is empty", "")


def _line(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    if node.plain and text in NULLS:
        return NO_VALUE
    if not text:
        return "E113", "is empty", ""
    if not text.isprintable() and (found := next(filter(_HARMFUL.__contains__, text), "")):
        what = "more than one line" if found in "\n\r" else f"the control character U+{ord(found):04X}"
        return "E114", f"contains {what}", "write one line without control characters"
    return None


def _id(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    if node.plain and text in NULLS:
        return NO_VALUE
    if not _is_id(text):
        hint = "write the id as text: interpolations are not evaluated here" if "${{" in text else _ID_HINT
        return "E112", f"is not a valid id: {shown(text)}", hint
    if node.plain and (text in TRUE or text in FALSE or _fraction(text)):
        return "E112", f"is not a valid id: {text}", f'quote it: "{text}"'
    return None


def _fraction(text: str) -> bool:
    """Say whether an id is a number with a point or an exponent to other readers."""
    if text.isdigit() or text[0] not in "0123456789" or text.startswith(("0x", "0o")):
        return False
    return _is_numeric(text)


def _env(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain and node.value in NULLS:
        return NO_VALUE
    if not _is_variable(node.value) or (node.plain and (node.value in TRUE or node.value in FALSE)):
        return (
            "E106",
            f"is not a valid variable name: {shown(node.value)}",
            "use letters, digits and `_`, e.g. PYPI_TOKEN",
        )
    return None


def _bool(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    if node.plain:
        if text in TRUE or text in FALSE:
            return None
        if text in NULLS:
            return "E103", "has no value", "write true or false"
    word = text.lower()
    if word in ("yes", "on", "y", "true", "1"):
        hint = "write true, without quotes"
    elif word in ("no", "off", "n", "false", "0"):
        hint = "write false, without quotes"
    else:
        hint = "write true or false"
    return "E109", f"must be a boolean, got {shown(text)}", hint


def _integer(node: Node, spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    if node.plain and _is_integer(text):
        return _bounds(int(text), spec)
    if node.plain and text in NULLS:
        return "E103", "has no value", "write an integer"
    return "E110", f"must be an integer, got {shown(text)}", _number_hint(text)


def _number(node: Node, spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    if node.plain and _is_number(text):
        return _bounds(as_number(node), spec)
    if node.plain and text in NULLS:
        return "E103", "has no value", "write a number"
    return "E110", f"must be a number, got {shown(text)}", _number_hint(text)


def _number_hint(text: str) -> str:
    if _is_number(text):
        return "write it without quotes" if _is_integer(text) else "write an integer"
    if text.startswith(("0", "+0", "-0")) and text.lstrip("+-").isdigit():
        return f"write it without the leading zero: {text.lstrip('+-0') or '0'}"
    return "write a decimal number" if _is_numeric(text) or _is_twofold(text) else ""


def _bounds(value: float, spec: tuple[Any, ...]) -> Finding | None:
    _form, least, most = spec
    if least is not None and value < least:
        return "E115", f"must be at least {least}, got {value}", ""
    if most is not None and value > most:
        return "E115", f"must be at most {most}, got {value}", ""
    return None


def _word(node: Node, spec: tuple[Any, ...]) -> Finding | None:
    _form, words = spec
    text = node.value
    if text in words:
        return None
    if node.plain and text in NULLS:
        return "E103", "has no value", f"write one of {', '.join(words)}"
    return "E105", f"must be {_or(words)}, got {shown(text)}", _word_hint(text, words)


def _true(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain and node.value == "true":
        return None
    return "E105", f"must be true or a list of ids, got {shown(node.value)}", ""


_CRON = r"@[a-z]+\Z|[-*/,0-9A-Za-z]+( +[-*/,0-9A-Za-z]+){4,5}\Z"


def _word_hint(text: str, words: tuple[str, ...]) -> str:
    """Return what to write for a word that is not accepted; a time of cron is one that many tools take."""
    if "sequential" in words and _matches(_CRON, text):
        return (
            "this key is the order of the steps, and planrun has no scheduler: "
            "start it from cron, a systemd timer or a scheduled CI pipeline"
        )
    from planrun.plan.schema.dialects import VALUES  # for messages only

    meant = VALUES.get(text.lower(), "")
    return f'did you mean "{meant}"?' if meant in words else did_you_mean(text, words)


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _duration(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    return _delay(node, ("delay", 1e-9))


def _delay(node: Node, spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    try:
        seconds = as_duration(text)
        if seconds <= LONGEST:
            nothing = len(spec) > 1 and seconds < spec[1]
            return ("E115", f"must be longer than zero: {shown(text)}", "") if nothing else None
    except ValueError:
        if node.plain and text in NULLS:
            return "E103", "has no value", "write a duration such as 30s, 5m or 1h30m"
        return "E111", f"must be a duration, got {shown(text)}", _duration_hint(text)
    return "E115", f"must be at most one year: {shown(text)}", ""


def _duration_hint(text: str) -> str:
    if _is_number(text):
        return f"add a unit: {text}s"
    if ":" in text:
        return "write hours, minutes and seconds with their units, such as 1h30m"
    return "the units are ms, s, m and h, such as 500ms, 30s or 1h30m"


def _size(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    text = node.value
    try:
        as_size(text)
    except ValueError:
        if node.plain and text in NULLS:
            return "E103", "has no value", "write a size such as 512MiB or 2GiB"
        hint = "the units are KiB, MiB, GiB and TiB, such as 512MiB or 2GiB"
        return "E119", f"must be a size, got {shown(text)}", hint
    return None


def _condition(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain and _is_numeric(node.value):
        return (
            "E101",
            f"must be boolean, got a number: {shown(node.value)}",
            "write true, false or an expression",
        )
    return _full(node, _spec)


def _version(node: Node, _spec: tuple[Any, ...]) -> Finding | None:
    if node.plain and node.value == "1":
        return None
    if node.plain and node.value in NULLS:
        return "E103", "has no value", "write `version: 1`"
    return (
        "E116",
        f": unsupported version {shown(node.value)}; expected 1",
        "write `version: 1`" if node.plain else "write `version: 1`, without quotes",
    )


FORMS: dict[str, Callable[[Node, tuple[Any, ...]], Finding | None]] = {
    "text": _text,
    "value": _value,
    "full": _full,
    "line": _line,
    "id": _id,
    "env": _env,
    "bool": _bool,
    "integer": _integer,
    "number": _number,
    "word": _word,
    "true": _true,
    "duration": _duration,
    "delay": _delay,
    "size": _size,
    "condition": _condition,
    "version": _version,
}

# What a message calls a form that was expected.
NOUNS = {
    "id": "an id",
    "bool": "a boolean (true or false)",
    "integer": "an integer",
    "number": "a number",
    "word": "a word",
    "duration": "a duration",
    "delay": "a duration",
    "size": "a size",
    "any": "a value",
    "value": "a string, a number or a boolean",
}


def key_finding(form: str, text: str) -> Finding | None:
    """Find what is wrong with a key that the person names: of `params`, `env`, `outputs`, `depends_on` ..."""
    if form == "id":
        return None if _is_id(text) else ("E112", "is not a valid id", _ID_HINT)
    if form == "name":
        hint = "begin with a letter, and use letters, digits and `_`"
        return None if _is_name(text) else ("E106", "is not a valid name", hint)
    if form == "axis":
        hint = "begin with a letter, and use letters, digits, `_` and `-`"
        return (
            None
            if _is_name(text.replace("-", "_")) and text[0] != "-"
            else ("E106", "is not a valid axis name", hint)
        )
    if form == "env":
        return (
            None
            if _is_variable(text)
            else ("E106", "is not a valid variable name", "use letters, digits and `_`, e.g. PYTHONPATH")
        )
    return None
