"""What the schema of plans says about a path: keys that may stand there, words, and descriptions."""

from __future__ import annotations

import json
from functools import cache

from planrun.cliutil.schemas import schema_bytes
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_COMBINED = ("allOf", "anyOf", "oneOf")


class Property(Record):
    """A key as the schema describes it."""

    name: str
    description: str = ""
    example: Any = None
    has_example: bool = False
    type: str = ""
    words: tuple[str, ...] = ()
    deprecated: bool = False


@cache
def _schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema_bytes("plan"))
    return found


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema with all that it refers to or combines."""
    yield schema
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        yield from _parts(_schema()["definitions"][name])
    for word in _COMBINED:
        for part in schema.get(word, ()):
            yield from _parts(part)


def _within(schema: Mapping[str, Any], step: str | int) -> list[Mapping[str, Any]]:
    """Return the schemas of a key or an entry."""
    found: list[Mapping[str, Any]] = []
    for part in _parts(schema):
        if isinstance(step, int):
            items = part.get("items")
            found += [items] if isinstance(items, dict) else []
        elif step in part.get("properties", {}):
            found.append(part["properties"][step])
        elif isinstance(part.get("additionalProperties"), dict):
            found.append(part["additionalProperties"])
    return found


def _at(path: Sequence[str | int]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = [_schema()]
    for step in path:
        found = [inner for schema in found for inner in _within(schema, step)]
    return found


def keys_at(path: Sequence[str | int]) -> dict[str, Property]:
    """Return the keys that a mapping at a path may have."""
    found: dict[str, Property] = {}
    for schema in _at(path):
        for part in _parts(schema):
            for name, about in part.get("properties", {}).items():
                found.setdefault(name, _property(name, about))
    return found


def words_at(path: Sequence[str | int]) -> tuple[str, ...]:
    """Return the words that a value at a path may be, as YAML has them."""
    return tuple(dict.fromkeys(word for schema in _at(path) for word in _words(schema)))


def describe(path: Sequence[str | int]) -> Property | None:
    """Return what the schema says of the key that ends a path; None where it has no description."""
    if not path or not isinstance(path[-1], str):
        return None
    for schema in _at(path):
        found = _property(str(path[-1]), schema)
        if found.description:
            return found
    return None


def _property(name: str, schema: Mapping[str, Any]) -> Property:
    parts = list(_parts(schema))
    description = next((str(part["description"]) for part in parts if part.get("description")), "")
    examples = next((part["examples"] for part in parts if part.get("examples")), None)
    kinds = _kinds(schema)
    return Property(
        name=name,
        description=description,
        example=examples[0] if examples else None,
        has_example=bool(examples),
        type=" or ".join(kinds),
        words=tuple(dict.fromkeys(_words(schema))),
        deprecated=description.startswith("DEPRECATED"),
    )


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return the types of a value; of a text, which may be written without quotes, only that it is one."""
    kinds = list(
        dict.fromkeys(str(part["type"]) for part in _parts(schema) if isinstance(part.get("type"), str))
    )
    if "string" in kinds:
        kinds = [kind for kind in kinds if kind not in ("boolean", "number")]
    return kinds


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = _kinds(schema)
    for part in _parts(schema):
        for value in part.get("enum", [part["const"]] if "const" in part else []):
            yield _word(value)
    if "boolean" in kinds:
        yield from ("true", "false")


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
