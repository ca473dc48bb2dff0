"""The arguments of a call held against the catalogue: when a plan is read, before a call starts, and in the tool."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.tools import Fragment, Spec

    Path = tuple[str | int, ...]

_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_KINDS: dict[str, type] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
MAX_TEXT = 4 << 20
"""Characters of one text; what is larger belongs into a file."""


class Fault(Record):
    """What is wrong with arguments: where (keys and 0-based positions from `args` on), and a clause that follows it.

    kind: missing, unknown, type, value or choice (of several arguments, one).
    """

    path: tuple[str | int, ...]
    kind: str
    message: str


class Later:
    """Stands for a value that is not known before the step starts."""


LATER = Later()


def faults(spec: Spec, args: dict[str, Any]) -> Iterator[Fault]:
    """Yield everything wrong with the arguments of a tool; names are those of the catalogue."""
    yield from _members(spec.params, args, ())
    for group in spec.one_of:
        given = [name for name in group if name in args]
        if len(given) != 1:
            names = " or ".join(f"`{name}`" for name in group)
            yield Fault(
                path=(), kind="choice", message=f"needs {names}" if not given else f"has {_both(given)}"
            )


def named(spec: Spec, args: dict[str, Any]) -> dict[str, Any]:
    """Return arguments under the names that the catalogue has for them."""
    return {spec.spellings.get(name, name): value for name, value in args.items()}


def place(path: Path) -> str:
    """Return where a value stands, as messages say it: `operations[2].path`, counted from 1."""
    text = "args"
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return text


def _both(names: list[str]) -> str:
    return f"{' and '.join(f'`{name}`' for name in names)}, which exclude each other"


def _members(params: dict[str, Fragment], given: dict[str, Any], path: Path) -> Iterator[Fault]:
    for name, schema in params.items():
        if schema.get("required") and name not in given:
            yield Fault(path=path, kind="missing", message=f"`{name}` is missing")
    for name, value in given.items():
        if name in params:
            yield from _value(params[name], value, (*path, name))
        else:
            yield Fault(path=(*path, name), kind="unknown", message="is unknown")


def _value(schema: Fragment, value: Any, path: Path) -> Iterator[Fault]:
    if value is LATER:
        return
    wanted = schema.get("type")
    types = [wanted] if isinstance(wanted, str) else wanted or []
    if types and not any(type(value) is _KINDS[name] for name in types):
        words = " or ".join(_WORDS[name] for name in types)
        yield Fault(path=path, kind="type", message=f"must be {words}, got {_kind(value)}")
    elif isinstance(value, str):
        yield from _text(schema, value, path)
    elif isinstance(value, list):
        yield from _items(schema, value, path)
    elif isinstance(value, dict):
        yield from _members(schema["properties"], value, path) if "properties" in schema else ()
    elif type(value) is int and "minimum" in schema:
        least, most = schema["minimum"], schema["maximum"]
        if not least <= value <= most:
            yield Fault(path=path, kind="value", message=f"is {value}, and must be {least} to {most}")


def _items(schema: Fragment, value: list[Any], path: Path) -> Iterator[Fault]:
    if len(value) < schema.get("minItems", 0):
        yield Fault(path=path, kind="value", message="is empty")
    for position, item in enumerate(value):
        yield from _value(schema.get("items", {}), item, (*path, position))


def _text(schema: Fragment, value: str, path: Path) -> Iterator[Fault]:
    if "minLength" in schema and not value.strip():
        yield Fault(path=path, kind="value", message="is empty")
    elif "enum" in schema and value not in schema["enum"]:
        words = ", ".join(schema["enum"])
        yield Fault(path=path, kind="value", message=f'is "{value[:40]}", and must be one of {words}')
    elif "\0" in value or len(value) > MAX_TEXT:
        why = "contains a NUL character" if "\0" in value else f"has more than {MAX_TEXT:,} characters"
        yield Fault(path=path, kind="value", message=why)
    elif "pattern" in schema:
        import re  # few arguments have a pattern

        if not re.search(schema["pattern"].replace("$", "\\Z"), value):
            yield Fault(path=path, kind="value", message=f"does not have the form {schema['pattern']}")


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    return next(
        (_WORDS[name] for name, kind in _KINDS.items() if type(value) is kind), "a number with a point"
    )
