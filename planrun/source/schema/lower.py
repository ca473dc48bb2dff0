"""From pydantic's JSON Schema (2020-12) to the draft-07 that editors and SchemaStore want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planrun.source.schema.plan import Plan
from planrun.source.schema.rules import Policy
from planrun.source.schema.step import ACTIONS, COMPANIONS

if TYPE_CHECKING:
    from pydantic import BaseModel

SCHEMA_ID = "urn:planrun:schema:plan:1"
POLICY_ID = "urn:planrun:schema:policy:1"
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
    definitions["Step"]["dependencies"] = _dependencies()
    return {
        "$schema": _DRAFT,
        "$id": SCHEMA_ID,
        "title": "planrun plan",
        **lowered,
        "definitions": definitions,
    }


def policy_schema() -> dict[str, Any]:
    """Return the draft-07 schema of a policy file: the mapping itself, or under the only key `policy`."""
    lowered, definitions = _converted(_written(Policy))
    policy = {"$ref": "#/definitions/Policy"}
    return {
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


def _dependencies() -> dict[str, Any]:
    """Say that a step has at most one action, and that some keys need another one beside them."""
    only: dict[str, Any] = {
        action: {"type": "object", "properties": {other: False for other in ACTIONS if other != action}}
        for action in ACTIONS
    }
    return {**only, **{key: [needed] for key, needed in COMPANIONS.items()}}


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
