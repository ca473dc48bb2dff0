"""From pydantic's JSON Schema (2020-12) to the draft-07 that editors and SchemaStore want."""

from __future__ import annotations

from typing import Any

from planrun.source.schema.plan import Plan
from planrun.source.schema.step import ACTIONS, COMPANIONS

SCHEMA_ID = "urn:planrun:schema:plan:1"
_PREFIX = "#/$defs/"


def written_schema() -> dict[str, Any]:
    """Return what pydantic says about a plan, without nulls and made-up titles, but with our `x-` marks."""
    raw = Plan.model_json_schema(by_alias=True)
    definitions = {name: _plain(schema) for name, schema in raw.pop("$defs").items()}
    return {**_plain(raw), "$defs": definitions}


def json_schema() -> dict[str, Any]:
    """Return the draft-07 schema of a plan file."""
    raw = written_schema()
    definitions = {name: _lowered(schema) for name, schema in raw.pop("$defs").items()}
    definitions["Step"]["dependencies"] = _dependencies()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_ID,
        "title": "planrun plan",
        **_lowered(raw),
        "definitions": definitions,
    }


def _dependencies() -> dict[str, Any]:
    """Say that a step has at most one action, and that some keys need another one beside them."""
    only: dict[str, Any] = {
        action: {"not": {"anyOf": [{"required": [other]} for other in ACTIONS if other != action]}}
        for action in ACTIONS
    }
    return {**only, **{key: [needed] for key, needed in COMPANIONS.items()}}


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


def _lowered(schema: dict[str, Any]) -> dict[str, Any]:
    """Strip our marks, point references to `definitions`, and keep words beside a reference from being ignored."""
    result: dict[str, Any] = {}
    for word, value in schema.items():
        if word.startswith("x-"):
            continue
        if word == "properties":
            result[word] = {name: _lowered(each) for name, each in value.items()}
        elif word in ("anyOf", "allOf"):
            result[word] = [_lowered(each) for each in value]
        elif isinstance(value, dict) and word in ("items", "additionalProperties"):
            result[word] = _lowered(value)
        elif word == "propertyNames":
            result[word] = {"type": "string", **value}
        elif word == "$ref":
            result[word] = value.replace(_PREFIX, "#/definitions/")
        else:
            result[word] = value
    if "$ref" in result and len(result) > 1:  # draft-07 ignores everything beside a reference
        result["allOf"] = [{"$ref": result.pop("$ref")}]
    return result
