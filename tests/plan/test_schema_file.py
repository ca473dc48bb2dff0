"""The schema file and the loader's tables come from the models, and agree with the loader on good and bad files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

from planrun.plan import load
from planrun.plan.schema import shape
from planrun.plan.schema.__main__ import POLICY, PROJECT, SCHEMA, generated
from planrun.plan.tables import NAMED, OBJECTS
from tests.plan.corpus import bad_plans, good_plans

if TYPE_CHECKING:
    from collections.abc import Iterator

GENERATED = generated()
FILE: dict[str, Any] = json.loads(GENERATED[SCHEMA])


def pattern(_validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Match as ECMA-262 does, which JSON Schema prescribes: `$` is the end of the text, not of its last line."""
    if isinstance(value, str) and not re.search(wanted.replace("$", r"\Z"), value):
        yield jsonschema.ValidationError(f"{value!r} does not match {wanted}")


class WithoutDates(SafeConstructor):
    """YAML 1.2 has no dates."""


WithoutDates.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)
_with_patterns: Any = jsonschema.validators.extend  # untyped
VALIDATOR = _with_patterns(jsonschema.Draft7Validator, {"pattern": pattern})(FILE)
# The schema sees values, not YAML: duplicate keys, tags and the like are for the loader alone.
UNREADABLE = {"limits-huge", "yaml-ini"}  # the library that check-jsonschema reads YAML with gives up
BAD = [bad for bad in bad_plans() if all(each.code >= "E1" for each in bad.expected)]


def named(value: Any) -> Any:
    """Make every key text, as JSON has it and as editors and check-jsonschema do."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): named(each) for key, each in value.items()}
    return [named(each) for each in value] if isinstance(value, list) else value


def accepts(path: Path) -> bool:
    """Say whether the schema accepts a file that is read as an editor does: YAML 1.2, by a reader that is not ours."""
    try:
        reader = YAML(typ="safe", pure=True)
        reader.Constructor = WithoutDates
        value = reader.load(path.read_bytes())
    except (YAMLError, ValueError):
        return False
    return bool(VALIDATOR.is_valid(named(value)))


def keys() -> list[tuple[str, str]]:
    """Return object and name of every key that can be written."""
    return [(name, key) for name, rules in OBJECTS.items() for key in rules]


def schema_of(name: str) -> dict[str, Any]:
    """Return the part of the schema for one kind of mapping."""
    if name == "PolicyFile":
        policy: dict[str, Any] = json.loads(GENERATED[POLICY])["definitions"]["Policy"]
        return policy
    project: dict[str, Any] = json.loads(GENERATED[PROJECT])
    if name == "Project" or name in project["definitions"]:
        return project if name == "Project" else dict(project["definitions"][name])
    found: dict[str, Any] = FILE if name == "Plan" else FILE["definitions"][name]
    return found


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: Path(path).name)
def test_generated_files_are_up_to_date(path: str) -> None:
    """`python -m planrun.plan.schema` would change nothing."""
    assert Path(path).read_text(encoding="utf-8") == GENERATED[path]


def test_schema_is_draft_07() -> None:
    """The file follows the metaschema of draft-07 and uses no word of later drafts, nor one of ours."""
    jsonschema.Draft7Validator.check_schema(FILE)
    assert FILE["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert FILE["$id"] == "urn:planrun:schema:plan:1"
    text = json.dumps(FILE)
    for word in ("$defs", "prefixItems", "oneOf", "unevaluated", "dependentRequired", '"x-', '"null"'):
        assert word not in text


def test_every_key_is_explained() -> None:
    """Each key has a sentence about it and an example that the schema accepts in its place."""
    for name, key in keys():
        said = schema_of(name)["properties"][key]
        assert said["description"].endswith("."), (name, key)
        (example,) = said["examples"]
        alone = {
            **said,
            "definitions": {**json.loads(GENERATED[PROJECT])["definitions"], **FILE["definitions"]},
        }
        assert list(jsonschema.Draft7Validator(alone).iter_errors(example)) == [], (name, key)


@pytest.mark.parametrize("name", OBJECTS)
def test_no_mapping_takes_other_keys(name: str) -> None:
    """Unknown keys are errors; but at the top what begins with x- is free, and in a matrix axes have any name."""
    said = schema_of(name)
    assert (said["additionalProperties"] is False) == (name not in NAMED)
    assert said["description"]
    assert ("patternProperties" in said) == (name == "Plan")


@pytest.mark.parametrize("path", good_plans(), ids=lambda path: path.stem)
def test_good_files_are_accepted_by_both(path: Path) -> None:
    """A good plan is valid for the loader and for the schema."""
    assert shape.read(path.read_bytes(), path.name)[1] == []
    found = load.check_bytes(path.read_bytes(), path.name).problems
    assert [each for each in found if each.code != "W305"] == []  # a step without an action is legal
    assert accepts(path)


def test_bad_files_are_refused_by_both() -> None:
    """The schema refuses the shapes that the loader refuses, except those that the file marks as invisible to it."""
    assert [bad.name for bad in BAD if accepts(bad.path) != bad.schema_accepts] == []


def test_check_jsonschema_agrees(tmp_path: Path) -> None:
    """The command that people run in hooks gives the same verdict on every file."""
    (tmp_path / "plan.schema.json").write_text(GENERATED[SCHEMA], encoding="utf-8")
    bad_ones = [bad for bad in BAD if bad.name not in UNREADABLE]
    files = [*good_plans(), *(bad.path for bad in bad_ones)]
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--schemafile",
        str(tmp_path / "plan.schema.json"),
        "-o",
        "json",
    ]
    done = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, timeout=300, check=False
    )
    refused = {Path(error["filename"]).stem for error in json.loads(done.stdout)["errors"]}
    assert refused == {bad.name for bad in bad_ones if not bad.schema_accepts}


def test_loader_imports_no_pydantic() -> None:
    """Reading and checking a plan needs neither the models nor a JSON Schema library."""
    program = (
        "import sys\n"
        "from planrun.plan.schema import shape\n"
        "assert shape.read(b'version: 1\\nsteps: [{run: x}]', 'p')[1] == []\n"
        "print([name for name in ('pydantic', 'jsonschema', 'jinja2', 'json', 'typing') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() in {"[]", "['typing']"}
