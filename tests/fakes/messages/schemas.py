"""What the service takes as the schema of an answer or of a strict tool, with its limits."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.messages.refusing import RequestError

MOST_OPTIONAL = 24
MOST_UNIONS = 16
MOST_BYTES = 64 * 1024
"""Of one schema; the service tells `compiled grammar is too large` for what it cannot compile, without a figure."""
TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
# Keywords that are refused with the types that have them; minItems is taken as 0 or 1.
UNSUPPORTED = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("maxItems", "uniqueItems", "contains", "prefixItems"),
    "object": ("patternProperties", "propertyNames", "minProperties", "maxProperties"),
}
UNKNOWN = ("oneOf", "not", "if", "then", "else", "dependentSchemas", "unevaluatedProperties")


def check(where: str, schema: Any) -> None:
    """Refuse a schema that the service would refuse; `where` is its path in the request."""
    if not isinstance(schema, dict):
        raise RequestError(f"{where}: Input should be a valid dictionary")
    if len(json.dumps(schema)) > MOST_BYTES:
        raise RequestError(f"{where}: The compiled grammar is too large; simplify the schema")
    survey = _Survey(where, schema)
    survey.visit(schema, ())
    if survey.optional > MOST_OPTIONAL:
        raise RequestError(
            f"{where}: Schemas contains too many optional parameters ({survey.optional}), which would make grammar "
            f"compilation inefficient. Reduce the number of optional parameters (limit: {MOST_OPTIONAL})."
        )
    if survey.unions > MOST_UNIONS:
        raise RequestError(
            f"{where}: Schemas contains too many parameters with union types ({survey.unions} parameters with type "
            f"arrays or anyOf). Reduce the number of union-typed parameters (limit: {MOST_UNIONS})."
        )


class _Survey:
    """One walk over a schema: what is optional, what is a union."""

    def __init__(self, where: str, root: dict[str, Any]) -> None:
        self._where = where
        self._root = root
        self.optional = 0
        self.unions = 0

    def visit(self, schema: Any, inside: tuple[str, ...]) -> None:
        """Look at a schema; `inside`: the references that led here."""
        if not isinstance(schema, dict):
            raise self._error("a schema should be an object")
        for word in UNKNOWN:
            if word in schema:
                raise self._error(f"'{word}' is not supported")
        if "$ref" in schema:
            self._follow(schema["$ref"], inside)
            return
        choices = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        self.unions += "anyOf" in schema or len(kinds) > 1
        if not kinds and not choices and not {"enum", "const"} & schema.keys():
            raise self._error("a schema needs a 'type'")
        for choice in choices:
            self.visit(choice, inside)
        for kind in kinds:
            self._kind(kind, schema, inside)

    def _kind(self, kind: Any, schema: dict[str, Any], inside: tuple[str, ...]) -> None:
        if kind not in TYPES:
            raise self._error(f"unknown type {kind!r}")
        for word in UNSUPPORTED.get(kind, ()):
            if word in schema:
                raise self._error(f"For '{kind}' type, property '{word}' is not supported")
        if kind == "array":
            if schema.get("minItems", 0) not in (0, 1):
                raise self._error("For 'array' type, 'minItems' values other than 0 or 1 are not supported")
            self.visit(schema.get("items", {"type": "string"}), inside)
        if kind == "object":
            self._object(schema, inside)

    def _object(self, schema: dict[str, Any], inside: tuple[str, ...]) -> None:
        if schema.get("additionalProperties") is not False:
            raise self._error("For 'object' type, 'additionalProperties' must be explicitly set to false")
        properties = schema.get("properties", {})
        if missing := [name for name in schema.get("required", ()) if name not in properties]:
            raise self._error(f"required property {missing[0]!r} is not among the properties")
        self.optional += sum(name not in schema.get("required", ()) for name in properties)
        for part in properties.values():
            self.visit(part, inside)

    def _follow(self, reference: Any, inside: tuple[str, ...]) -> None:
        place, _, name = str(reference).rpartition("/")
        if place not in ("#/$defs", "#/definitions"):
            raise self._error(f"reference {reference!r} is not supported")
        if name in inside:
            raise self._error("Circular reference detected in schema: recursion is not supported")
        found = self._root.get(place[2:], {}).get(name)
        if found is None:
            raise self._error(f"reference {reference!r} leads nowhere")
        self.visit(found, (*inside, name))

    def _error(self, text: str) -> RequestError:
        return RequestError(f"{self._where}: {text}")
