"""From the same schema to plain Python literals that `planrun.source.shape` walks with."""

from __future__ import annotations

from typing import Any

from planrun.source.schema.lower import _PREFIX, written_schema
from planrun.source.schema.step import ACTIONS, COMPANIONS
from planrun.source.schema.words import AXIS_PATTERN, ENV_PATTERN, ID_PATTERN, NAME_PATTERN

# What a value may be, by the kind of its node: scalar, sequence, mapping; None: may not.
Rule = tuple[Any, Any, Any]

ANY: Rule = (("any",), "any", "any")
_KEY_FORMS = {ID_PATTERN: "id", NAME_PATTERN: "name", ENV_PATTERN: "env", AXIS_PATTERN: "axis"}

_HEAD = '''"""The keys of a plan file and their types, for the loader; made by `python -m planrun.source.schema`.

A rule is what a value may be, as (scalar, sequence, mapping); None: may not be one. A scalar's is (form, *bounds),
a sequence's (rule of an entry, least number of entries), a mapping's the name of an object below, or
(form of its keys, rule of its values, least number of keys). "any" takes everything. NAMED: objects with other keys
besides those that are known, as (form of such a key, rule of its value).
"""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

'''


def tables() -> dict[str, Any]:
    """Return every table by its name."""
    raw = written_schema()
    objects = {**raw.pop("$defs"), "Plan": raw}
    return {
        "OBJECTS": {name: _rules(schema) for name, schema in sorted(objects.items())},
        "REQUIRED": {
            name: tuple(schema["required"])
            for name, schema in sorted(objects.items())
            if "required" in schema
        },
        "NAMED": {name: _named(schema) for name, schema in sorted(objects.items()) if _is_open(schema)},
        "LATER": {name: keys for name, schema in sorted(objects.items()) if (keys := _later(schema))},
        "ONE_KEY": tuple(sorted(name for name, schema in objects.items() if schema.get("x-one-key"))),
        "FILLED": tuple(sorted(name for name, schema in objects.items() if schema.get("x-filled"))),
        "ACTIONS": ACTIONS,
        "COMPANIONS": COMPANIONS,
    }


def source() -> str:
    """Return the text of the module `planrun.source.tables`."""
    parts = []
    for name, table in tables().items():
        if isinstance(table, dict):
            kinds = {"OBJECTS": "dict[str, Any]", "NAMED": "tuple[str, Any]"}
            kind = f"dict[str, {kinds.get(name) or _kind(table)}]"
            parts.append(f"{name}: {kind} = {{\n{_lines(table)}}}\n")
        else:
            parts.append(f"{name}: tuple[str, ...] = {table!r}\n")
    return _HEAD + "\n".join(parts).replace("'", '"')  # no name in the tables holds a quote


def _kind(table: dict[str, Any]) -> str:
    return "str" if all(isinstance(value, str) for value in table.values()) else "tuple[str, ...]"


def _lines(table: dict[str, Any], indent: str = "    ") -> str:
    lines = ""
    for name, value in table.items():
        if isinstance(value, dict):
            lines += f"{indent}{name!r}: {{\n{_lines(value, indent + '    ')}{indent}}},\n"
        else:
            lines += f"{indent}{name!r}: {value!r},\n"
    return lines


def _rules(schema: dict[str, Any]) -> dict[str, Rule]:
    return {key: _rule(value) for key, value in schema["properties"].items()}


def _is_open(schema: dict[str, Any]) -> bool:
    return isinstance(schema.get("additionalProperties"), dict)


def _named(schema: dict[str, Any]) -> tuple[str, Rule]:
    """Return the form of the keys that a person may add to those that are known, and the rule of their values."""
    return _key_form(schema), _rule(schema["additionalProperties"])


def _key_form(schema: dict[str, Any]) -> str:
    return _KEY_FORMS.get(schema.get("propertyNames", {}).get("pattern"), "text")


def _later(schema: dict[str, Any]) -> tuple[str, ...]:
    return tuple(key for key, value in schema["properties"].items() if value.get("x-later"))


def _rule(schema: dict[str, Any]) -> Rule:
    form = schema.get("x-form")
    if form == "any":
        return (None, None, "any") if schema.get("type") == "object" else ANY
    if form is not None:
        return ((form,), None, None)
    if "anyOf" in schema:
        return _union([_rule(each) for each in schema["anyOf"]], schema)
    if "$ref" in schema:
        return (None, None, schema["$ref"].removeprefix(_PREFIX))
    return _typed(schema)


def _typed(schema: dict[str, Any]) -> Rule:
    match schema["type"]:
        case "string":
            return (
                ("word", tuple(schema["enum"] if "enum" in schema else [schema["const"]]), ()),
                None,
                None,
            )
        case "boolean":
            return (("bool",), None, None)
        case "integer" | "number" as form:
            least = schema.get("minimum")
            return ((form, least, schema.get("maximum")), None, None)
        case "array":
            return (None, (_rule(schema["items"]), schema.get("minItems", 0)), None)
        case _:
            return (
                None,
                None,
                (_key_form(schema), _rule(schema["additionalProperties"]), schema.get("minProperties", 0)),
            )


def _union(rules: list[Rule], schema: dict[str, Any]) -> Rule:
    """Put alternatives side by side; the kind of a node decides between them, so no two may want the same kind."""
    columns = [[rule[kind] for rule in rules if rule[kind] is not None] for kind in range(3)]
    if any(len(column) > 1 for column in columns):
        raise ValueError(f"two alternatives want the same kind of node: {schema}")
    scalar, sequence, mapping = (column[0] if column else None for column in columns)
    return (scalar, sequence, mapping)
