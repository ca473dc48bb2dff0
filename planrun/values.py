"""Values against the JSON Schema fragments of params and outputs: from text to a typed value, and checks.

HOT: used whenever a step has typed outputs. The keys that nearly every fragment consists of are checked by
hand; `jsonschema` (170 ms to import) is only asked when a fragment says more than that.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping
    from typing import Any

    Schema = Mapping[str, Any]

TYPES = ("string", "integer", "number", "boolean", "array", "object")
# Checked by hand, or saying nothing about the value.
PLAIN_KEYS = frozenset(
    {
        "type",
        "enum",
        "pattern",
        "minimum",
        "maximum",
        "default",
        "required",
        "description",
        "title",
        "examples",
    }
)
MAX_PATTERN = 1000  # characters
MAX_MATCHED = 4096  # characters of a value that has a pattern
# Of processor time, for one match: some patterns take longer than the universe has existed, and a machine that is busy
# with other work must not make a good one fail.
PATTERN_SECONDS = 1.0
MAX_SHOWN = 60  # characters of a value in a message
MAX_DEPTH = 64  # of lists and mappings in a value given as JSON, as in a plan file
MAX_DIGITS = 1000  # of an integer: Python refuses 4,300, other readers of a ledger much fewer


class PatternTooSlow(Exception):
    """A pattern that did not come to an end on a value in time."""


def sorted_data(value: Any) -> Any:
    """Return plain data with the keys of all mappings sorted, and lists in place of tuples."""
    if isinstance(value, dict):
        return {key: sorted_data(value[key]) for key in sorted(value)}
    return [sorted_data(item) for item in value] if isinstance(value, list | tuple) else value


def read_value(schema: Schema, text: str) -> Any:
    """Return `text` as the type that `schema` names, checked; raises ValueError with a line for people."""
    value = _READERS[str(schema.get("type", "string"))](text)
    problem = check_value(schema, value)
    if problem:
        raise ValueError(problem)
    return value


def check_value(schema: Schema, value: Any) -> str | None:
    """Return what is wrong with a value, as a clause that follows its name ("is not one of …"), or None."""
    wanted = schema.get("type")
    if wanted is not None and not fits(str(wanted), value):
        return f"is {show(value)}, not {_AN[str(wanted)]}"
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        return f"is {show(value)}, not one of {', '.join(show(allowed) for allowed in schema['enum'])}"
    problem = _check_range(schema, value) or _check_pattern(schema, value)
    if problem or schema.keys() <= PLAIN_KEYS:
        return problem
    return _check_all(schema, value)


def fits(wanted: str, value: Any) -> bool:
    """Say whether a value is of the JSON type `wanted`; true is no integer, and 1.0 is none either."""
    kind = type(value)
    if wanted == "number":
        return kind is float or kind is int
    if wanted == "array":
        return kind is list or kind is tuple
    return kind is _KINDS[wanted]


def type_of(value: Any) -> str:
    """Return the JSON type of a value; `null` for None."""
    if value is None:
        return "null"
    return next(name for name in TYPES if fits(name, value))


def show(value: Any) -> str:
    """Return a value as JSON, cut to MAX_SHOWN characters, for a message."""
    text = dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def pattern_problem(pattern: str) -> str | None:
    """Return why a pattern cannot be used, or None."""
    if len(pattern) > MAX_PATTERN:
        return f"the pattern is longer than {MAX_PATTERN} characters"
    import re  # 10 ms; only plans with patterns pay for it

    try:
        _compiled(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"the pattern is not a regular expression: {error}"
    return None


def matches(pattern: str, text: str) -> bool:
    """Say whether a pattern is found in a text, as JSON Schema means it: ASCII classes, `$` only at the end.

    Raises PatternTooSlow after PATTERN_SECONDS.
    """
    compiled = _compiled(pattern)
    return bounded(lambda: compiled.search(text) is not None)


def _compiled(pattern: str) -> re.Pattern[str]:
    import re
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `[[a]` is a set with a bracket, in JSON Schema as in Python
        found = ""
        escaped = False
        opened = -1  # where a class began; `]` as its first character is a member
        for at, char in enumerate(pattern):
            if char == "$" and not escaped and opened < 0:
                found += "\\Z"
                continue
            if not escaped and opened < 0 and char == "[":
                opened = at
            elif not escaped and char == "]" and pattern[opened + 1 : at] not in ("", "^"):
                opened = -1
            escaped = char == "\\" and not escaped
            found += char
        return re.compile(found, re.ASCII)


def bounded(work: Callable[[], bool]) -> bool:
    """Return what `work` returns; raises PatternTooSlow when that uses more than PATTERN_SECONDS.

    The regular expression engine looks for signals while it runs, so a timer can end it. Only the main
    thread may set one; elsewhere the work has all the time it wants.
    """
    import signal  # needs what `re` has loaded already

    def ring(_number: int, _frame: object) -> None:
        raise PatternTooSlow

    try:
        before = signal.signal(signal.SIGVTALRM, ring)
    except ValueError:
        return work()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, PATTERN_SECONDS)
        return work()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _check_range(schema: Schema, value: Any) -> str | None:
    if type(value) not in (int, float):
        return None
    if "minimum" in schema and value < schema["minimum"]:
        return f"is {show(value)}, less than {show(schema['minimum'])}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"is {show(value)}, more than {show(schema['maximum'])}"
    return None


def _check_pattern(schema: Schema, value: Any) -> str | None:
    if "pattern" not in schema or type(value) is not str:
        return None
    pattern = str(schema["pattern"])
    if len(value) > MAX_MATCHED:
        return f"is longer than {MAX_MATCHED} characters, too long for a pattern"
    try:
        found = matches(pattern, value)
    except PatternTooSlow:
        return f"could not be matched with the pattern {pattern} within {PATTERN_SECONDS:g} s"
    return None if found else f"is {show(value)}, which does not match the pattern {pattern}"


def _check_all(schema: Schema, value: Any) -> str | None:
    """Ask jsonschema about the whole fragment; references lead nowhere but into the fragment itself."""
    import warnings

    from jsonschema import Draft202012Validator
    from referencing import Registry

    fragment = dict(schema)
    if isinstance(fragment.get("required"), bool):
        del fragment["required"]  # our own word: the parameter itself must be given
    validator = Draft202012Validator(fragment, registry=Registry())
    found: list[str] = []

    def check() -> bool:
        warnings.simplefilter("ignore")  # as in `_compiled`
        for error in validator.iter_errors(value):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
            found.append(f"does not fit{' at ' + place if place else ''}: {error.message[:200]}")
            return False
        return True

    try:
        with warnings.catch_warnings():
            bounded(check)
    except PatternTooSlow:
        return f"could not be checked within {PATTERN_SECONDS:g} s"
    except RecursionError:
        return "could not be checked: the schema or the value is nested too deeply"
    return found[0] if found else None


def schema_problem(schema: Schema) -> str | None:
    """Return why jsonschema could not work with a fragment (an unknown reference, a wrong value), or None."""
    if schema.keys() <= PLAIN_KEYS:
        return None
    import warnings

    from jsonschema import Draft202012Validator, SchemaError

    fragment = dict(schema)
    if isinstance(fragment.get("required"), bool):
        del fragment["required"]
    outside = _outside_reference(fragment)
    if outside:
        return f"a schema cannot refer to anything outside itself: {outside[:MAX_SHOWN]}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in `_compiled`
            Draft202012Validator.check_schema(fragment)
    except SchemaError as error:
        return f"not a JSON Schema: {error.message[:200]}"
    except RecursionError:
        return "the schema is nested too deeply"
    return None


def _outside_reference(fragment: Any) -> str | None:
    """Return the first `$ref`, `$dynamicRef` or `$id` that is no plain reference into the fragment itself."""
    stack = [fragment]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            for key, value in part.items():
                if key == "$id" or (key in ("$ref", "$dynamicRef") and not str(value).startswith("#/$defs/")):
                    return f"{key}: {value}"
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
    return None


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON does: 1 and 1.0 are the same number, 1 and true are not the same value."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        raise ValueError(f"is {show(text)}, not an integer")
    return int(text)


def _number(text: str) -> int | float:
    try:
        return _integer(text)
    except ValueError:
        pass
    if text and not text.strip("0123456789+-.eE"):
        try:
            value = float(text)
        except ValueError:
            value = float("inf")
        if abs(value) != float("inf"):
            return value
    raise ValueError(f"is {show(text)}, not a number")


def _boolean(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise ValueError(f"is {show(text)}, not a boolean")


def _json(text: str) -> Any:
    import json  # 8 ms; only values that are JSON pay for it

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is not a JSON number")

    try:
        value = json.loads(text, parse_constant=refuse, parse_float=_number, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from None
    depth, level = 0, [value]
    while level:
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [item for part in inner for item in (part.values() if isinstance(part, dict) else part)]
        depth += bool(inner)
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested deeper than {MAX_DEPTH}")
    return value


def duration(seconds: float) -> str:
    """Return seconds in the plan's own notation: `500ms`, `90s` as `1m30s`, `1h`."""
    milliseconds = round(seconds * 1000)
    parts = []
    for size, unit in ((3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _json,
    "object": _json,
}
_KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "object": dict}
_AN = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a mapping",
}
