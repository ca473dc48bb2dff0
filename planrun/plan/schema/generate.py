"""From pydantic's JSON Schema (2020-12) to the draft-07 that editors and SchemaStore want.

From the same schema to plain Python literals that `planrun.plan.schema.shape` walks with.
"""

from __future__ import annotations

import json
import re
from typing import Any

from planrun.plan.schema.fields import AXIS_PATTERN, ENV_PATTERN, ID_PATTERN, NAME_PATTERN
from planrun.plan.schema.plan import Plan, PolicyFile
from planrun.plan.schema.project import Project
from planrun.plan.schema.step import ACTIONS, COMPANIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pydantic import BaseModel

SCHEMA_ID = "urn:planrun:schema:plan:1"
POLICY_ID = "urn:planrun:schema:policy:1"
PROJECT_ID = "urn:planrun:schema:project:1"
_DRAFT = "http://json-schema.org/draft-07/schema#"
_PREFIX = "#/$defs/"
# What takes several types of scalar stands once in the file, by the name of its form.
_Forms = dict[str, dict[str, Any]]


def written_schema() -> dict[str, Any]:
    """Return what pydantic says about a plan, without nulls and made-up titles, but with our `x-` marks."""
    return _written(Plan)


def json_schema() -> dict[str, Any]:
    """Return the draft-07 schema of a plan file."""
    lowered, definitions = _converted(written_schema())
    lowered["required"] = [name for name in lowered["required"] if name != "steps"]
    lowered["anyOf"] = [{"required": ["steps"]}, {"required": ["extends"]}]
    only: dict[str, Any] = {
        action: {"type": "object", "properties": {other: False for other in ACTIONS if other != action}}
        for action in ACTIONS
    }
    forms = {"matrix": {"type": "object", "properties": {"foreach": False}}}
    definitions["Step"]["dependencies"] = {
        **only,
        **forms,
        **{key: [needed] for key, needed in COMPANIONS.items()},
    }
    strict: dict[str, Any] = _strict(
        {
            "$schema": _DRAFT,
            "$id": SCHEMA_ID,
            "title": "planrun plan",
            **lowered,
            "definitions": definitions,
        }
    )
    return strict


def policy_schema() -> dict[str, Any]:
    """Return the draft-07 schema of a policy file: the mapping itself, or under the only key `policy`."""
    lowered, definitions = _converted(_written(PolicyFile))
    policy = {"$ref": "#/definitions/Policy"}
    strict: dict[str, Any] = _strict(
        {
            "$schema": _DRAFT,
            "$id": POLICY_ID,
            "title": "planrun policy",
            "description": "A policy file, as `planrun execute --policy FILE` reads it.",
            "if": {"type": "object", "required": ["policy"]},
            "then": {
                "type": "object",
                "properties": {"policy": {"description": "The policy, as in a plan.", "allOf": [policy]}},
                "additionalProperties": False,
            },
            "else": policy,
            "definitions": {**definitions, "Policy": lowered},
        }
    )
    return strict


def _strict(schema: Any) -> Any:
    """Return a schema in which each part that requires keys names them as properties, too.

    The strict mode of Ajv, which SchemaStore asks for, takes a required key without a property for a misspelt one.
    """
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: value if name == "examples" else _strict(value) for name, value in schema.items()}
    required = found.get("required")
    if isinstance(required, list) and "properties" not in found:
        found = {"type": "object", **found, "properties": {name: {} for name in required}}
    return found


def project_schema() -> dict[str, Any]:
    """Return the draft-07 schema of `.planrun.yml`."""
    lowered, definitions = _converted(_written(Project))
    return {
        "$schema": _DRAFT,
        "$id": PROJECT_ID,
        "title": "planrun project",
        **lowered,
        "definitions": definitions,
    }


def _written(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema(by_alias=True)
    definitions = {name: _plain(schema) for name, schema in raw.pop("$defs").items()}
    return {**_plain(raw), "$defs": definitions}


def _converted(written: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a schema in draft-07 without its definitions, and the definitions."""
    forms: _Forms = {}
    definitions = {name: _lowered(schema, forms) for name, schema in written.pop("$defs").items()}
    lowered = _lowered(written, forms)
    definitions |= {form: _alternatives(schema) for form, schema in sorted(forms.items())}
    return lowered, definitions


def _alternatives(schema: dict[str, Any]) -> dict[str, Any]:
    """Write several types as alternatives: validators in strict mode take no list of types."""
    narrowed = {word: value for word, value in schema.items() if word != "type"}
    return {"anyOf": [{"type": each, **(narrowed if each == "string" else {})} for each in schema["type"]]}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop the alternative null (a key without a value is an error), its default, and titles made of names."""
    result: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "title" or (word == "default" and value is None):
            continue
        if word == "properties":
            result[word] = {name: _plain(each) for name, each in value.items()}
        elif word in ("anyOf", "allOf"):
            result[word] = [_plain(each) for each in value if each != {"type": "null"}]
        elif isinstance(value, dict) and word in ("items", "additionalProperties"):
            result[word] = _plain(value)
        else:
            result[word] = value
    if len(result.get("anyOf", ())) == 1:
        result = {**result.pop("anyOf")[0], **result}
    return result


def _lowered(schema: dict[str, Any], forms: _Forms) -> dict[str, Any]:
    """Strip our marks, point references to `definitions`, and keep words beside a reference from being ignored."""
    result: dict[str, Any] = {}
    if isinstance(schema.get("type"), list):
        form = schema["x-form"]
        forms[form] = {
            word: value for word, value in schema.items() if word in ("type", "pattern", "minLength")
        }
        schema = {word: value for word, value in schema.items() if word not in forms[form]}
        result["$ref"] = f"#/definitions/{form}"
    for word, value in schema.items():
        if word.startswith("x-"):
            continue
        if word == "properties":
            result[word] = {name: _lowered(each, forms) for name, each in value.items()}
        elif word in ("anyOf", "allOf"):
            result[word] = [_lowered(each, forms) for each in value]
        elif isinstance(value, dict) and word in ("items", "additionalProperties"):
            result[word] = _lowered(value, forms)
        elif word == "propertyNames":
            result[word] = {"type": "string", **value}
        elif word == "$ref":
            result[word] = value.replace(_PREFIX, "#/definitions/")
        else:
            result[word] = value
    if "$ref" in result and len(result) > 1:  # draft-07 ignores everything beside a reference
        result["allOf"] = [{"$ref": result.pop("$ref")}]
    return result


# What a value may be, by the kind of its node: scalar, sequence, mapping; None: may not.
Rule = tuple[Any, Any, Any]

ANY: Rule = (("any",), "any", "any")
_KEY_FORMS = {ID_PATTERN: "id", NAME_PATTERN: "name", ENV_PATTERN: "env", AXIS_PATTERN: "axis"}

_HEAD = '''"""The keys of a plan file and their types, for the loader; made by `python -m planrun.plan.schema`.

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
    raw, policy = written_schema(), _written(PolicyFile)
    project = _written(Project)
    objects = {**policy.pop("$defs"), **project.pop("$defs"), **raw.pop("$defs")}
    objects |= {"Plan": raw, "PolicyFile": policy, "Project": project}
    return {
        "OBJECTS": {name: _rules(schema) for name, schema in sorted(objects.items())},
        "REQUIRED": {
            name: tuple(schema["required"])
            for name, schema in sorted(objects.items())
            if "required" in schema
        },
        "NAMED": {name: _named(schema) for name, schema in sorted(objects.items()) if _is_open(schema)},
        "ONE_KEY": tuple(sorted(name for name, schema in objects.items() if schema.get("x-one-key"))),
        "FILLED": tuple(sorted(name for name, schema in objects.items() if schema.get("x-filled"))),
        "ACTIONS": ACTIONS,
        "COMPANIONS": COMPANIONS,
    }


def source() -> str:
    """Return the text of the module `planrun.plan.tables`."""
    parts = []
    for name, table in tables().items():
        if isinstance(table, dict):
            kinds = {"OBJECTS": "dict[str, Any]", "NAMED": "tuple[str, Any]"}
            kind = f"dict[str, {kinds.get(name) or _kind(table)}]"
            parts.append(f"{name}: {kind} = {{\n{_lines(table)}}}\n")
        else:
            parts.append(f"{name}: tuple[str, ...] = {table!r}\n")
    return _HEAD + "\n".join(parts).replace("'", '"')  # no name in the tables holds a quote


_EXAMPLES_HEAD = '''"""An example of each key's value, as a plan has it; made by `python -m planrun.plan.schema`."""

# ruff: noqa: Q003 - values that a plan has
# fmt: off
from __future__ import annotations

'''


def examples() -> dict[str, dict[str, str]]:
    """Return the first example of each key of each object, written in one line."""
    raw, project = written_schema(), _written(Project)
    objects = {**project.pop("$defs"), **raw.pop("$defs"), "Plan": raw, "Project": project}
    return {
        name: {key: flow(value["examples"][0]) for key, value in schema["properties"].items()}
        for name, schema in sorted(objects.items())
    }


def examples_source() -> str:
    """Return the text of the module `planrun.plan.examples`."""
    rows = ""
    for name, keys in examples().items():
        rows += f'    "{name}": {{\n'
        rows += "".join(f'        "{key}": {json.dumps(value)},\n' for key, value in keys.items())
        rows += "    },\n"
    return f"{_EXAMPLES_HEAD}EXAMPLES: dict[str, dict[str, str]] = {{\n{rows}}}\n"


def flow(value: Any, *, inside: bool = False) -> str:
    """Return plain data as YAML in one line; quoted is what other readers could take for something else."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each, inside=True)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(each, inside=True) for each in value) + "]"
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if re.fullmatch(r"[0-9]+(ms|s|m|h)", value):
        return value
    plain = re.fullmatch(r"[A-Za-z./_](?:[^\n#:\"`]|:[^\s#\"`])*", value)
    if plain and not (inside and re.search(r"[,\[\]{}'?]", value)):
        return value
    return f"'{value}'" if "\\" in value else f'"{value}"'


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


def _rule(schema: dict[str, Any]) -> Rule:
    form = schema.get("x-form")
    if form == "any":
        return (None, None, "any") if schema.get("type") == "object" else ANY
    if form is not None:
        return ((form,), None, None)
    if "anyOf" in schema:
        rules = [_rule(each) for each in schema["anyOf"]]
        columns = [[rule[kind] for rule in rules if rule[kind] is not None] for kind in range(3)]
        if any(len(column) > 1 for column in columns):
            raise ValueError(f"two alternatives want the same kind of node: {schema}")
        scalar, sequence, mapping = (column[0] if column else None for column in columns)
        return (scalar, sequence, mapping)
    if "$ref" in schema:
        return (None, None, schema["$ref"].removeprefix(_PREFIX))
    return _typed(schema)


def _typed(schema: dict[str, Any]) -> Rule:
    match schema["type"]:
        case "string":
            return (
                ("word", tuple(schema["enum"] if "enum" in schema else [schema["const"]])),
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
