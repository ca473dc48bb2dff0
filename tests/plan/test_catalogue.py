"""The entry for SchemaStore's catalogue, and the rules that SchemaStore has for the schema it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from planrun.fmt.fmt import formatted
from planrun.lsp.analysis import is_plan
from planrun.plan.load import load_bytes
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = Path(__file__).parents[2] / "schemas"
ENTRY = json.loads((SCHEMAS / "schemastore.catalog.json").read_text("utf-8"))
SCHEMA = json.loads((SCHEMAS / "plan.schema.json").read_text("utf-8"))
# All that draft-07 has and the schema may use: Ajv refuses any other in its strict mode.
KEYWORDS = frozenset(
    {"$schema", "$id", "$ref", "title", "description", "examples", "definitions", "type", "enum", "const"}
    | {"properties", "patternProperties", "additionalProperties", "propertyNames", "required", "dependencies"}
    | {"items", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum", "pattern"}
    | {"minLength", "maxLength", "minProperties", "maxProperties", "anyOf", "allOf", "if", "then", "else"}
)
NAMES = ("properties", "patternProperties", "definitions", "dependencies")
DATA = ("examples", "enum", "const", "required")


def subschemas(schema: Any, where: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each schema in a schema, with its place."""
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from subschemas(each, f"{where}/{number}")
    elif isinstance(schema, dict):
        yield where, schema
        for name, value in schema.items():
            inner = value.items() if name in NAMES else [("", value)] if name not in DATA else []
            for key, each in inner:
                yield from subschemas(each, f"{where}/{name}/{key}")


def test_the_entry_is_complete_and_names_only_plans() -> None:
    """It has the keys of an entry; its patterns match names that only plans have, and the language server agrees."""
    assert set(ENTRY) == {"name", "description", "fileMatch", "url"}
    assert re.fullmatch(r"https://www\.schemastore\.org/[a-z-]+\.json", ENTRY["url"])
    assert not ENTRY["description"].endswith(".")
    names = (
        "release.plan.yml",
        "a.plan.yaml",
        "plan.yml",
        "compose.yml",
        "my-plan.yml",
        ".github/workflows/ci.yml",
    )
    matched = [name for name in names if any(fnmatch(name, pattern) for pattern in ENTRY["fileMatch"])]
    assert matched == ["release.plan.yml", "a.plan.yaml"]
    assert all(is_plan(name, "") for name in matched)


def test_the_schema_has_what_strict_validators_ask_for() -> None:
    """Known keywords alone, references that lead somewhere, required keys that are properties, types of objects."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for where, schema in subschemas(SCHEMA):
        assert set(schema) <= KEYWORDS, where
        if "$ref" in schema:
            assert schema["$ref"].removeprefix("#/definitions/") in SCHEMA["definitions"], where
        if "required" in schema:
            assert set(schema["required"]) <= set(schema["properties"]), where
        if "properties" in schema:
            assert schema["type"] == "object", where
    assert re.fullmatch(r"urn:planrun:schema:plan:\d+", SCHEMA["$id"])
    described = [about for name, about in SCHEMA["definitions"]["Step"]["properties"].items()]
    assert all(each.get("description") for each in described)


@pytest.mark.parametrize("plan", ["check.yml", "examples/pipeline/pipeline.yml"])
def test_the_validator_of_pre_commit_takes_it(plan: str) -> None:
    """check-jsonschema, which reads YAML 1.2 as editors do, accepts the project's own plans by this schema."""
    file = SCHEMAS.parent / "plans" / plan
    schema = str(SCHEMAS / "plan.schema.json")
    words = [sys.executable, "-m", "check_jsonschema", "--schemafile", schema, str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout


def test_the_comment_for_editors_is_a_comment() -> None:
    """The lines by which `init` names the schema change no digest, and `fmt` keeps them where they are."""
    bare = b"version: 1\nsteps:\n  - {id: a, run: exit 0}\n"
    lines = b"# yaml-language-server: $schema=plan.schema.json\n# $schema: plan.schema.json\n"
    digests = {load_bytes(data, "plan.yml", cache=False).digest for data in (bare, lines + bare)}
    assert len(digests) == 1
    assert formatted(lines + bare, "plan.yml").startswith(lines)
