"""Loader and schema agree: what one accepts the other accepts, as far as a schema can see it.

The schema gets its values from a YAML library that shares no code with planrun's reader, as an editor's would be.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

from planrun.model.tools import CATALOGUE
from planrun.plan import load
from proofs.fuzzing.corpus import ROOT
from proofs.fuzzing.oracle import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEN = frozenset(("E101", "E102", "E104", "E105", "E107", "E118"))
"""Codes that the schema must refuse for; the others are about spelling, ids, meaning, or what is not built yet."""
LARGEST = 6000
"""Bytes: the library takes milliseconds for a hundred."""


def pattern(_validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Match as ECMA-262 does, which JSON Schema prescribes: `$` is the end of the text, not of its last line."""
    if isinstance(value, str) and not re.search(wanted.replace("$", r"\Z"), value):
        yield jsonschema.ValidationError(f"{value!r} does not match {wanted}")


class _WithoutDates(SafeConstructor):
    """YAML 1.2 has no dates."""


_WithoutDates.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)
_with_patterns: Any = jsonschema.validators.extend  # untyped
_VALIDATOR = _with_patterns(jsonschema.Draft7Validator, {"pattern": pattern})(
    json.loads((ROOT / "schemas/plan.schema.json").read_text("utf-8"))
)


def judge(data: bytes) -> Verdict:
    """Ask both about a file."""
    if len(data) > LARGEST:
        return Verdict()
    problems = load.check_bytes(data, "plan.yml").problems
    errors = [problem for problem in problems if problem.severity == "error"]
    codes = tuple(sorted({problem.code for problem in errors}))
    if any(code < "E1" for code in codes):
        return Verdict(codes=codes)
    try:
        reader = YAML(typ="safe", pure=True)
        reader.Constructor = _WithoutDates
        value = _named(reader.load(data))
        wrong = next(_VALIDATOR.iter_errors(value), None)
        said = wrong.message[:200] if wrong else ""
    except (YAMLError, ValueError, OverflowError, RecursionError, Warning) as error:
        said = f"{type(error).__name__}: {str(error)[:300]}"
    if not errors and said:
        what = said.split(":")[0] if "Error" in said else "a value"
        return Verdict(
            complaint=f"the loader accepts what the schema refuses: {said}", mark=f"schema refuses: {what}"
        )
    seen = [problem for problem in errors if problem.code in SEEN and not _is_hidden(problem.message)]
    if not said and seen:
        first = seen[0]
        complaint = f"the schema accepts what the loader refuses: {first.code} {first.line}:{first.col} {first.message}"
        return Verdict(complaint=complaint, mark=f"schema accepts {first.code} {first.message.split()[0]}")
    return Verdict(accepted=not errors, codes=codes)


def _is_hidden(message: str) -> bool:
    """Whether the schema cannot see it: the arguments of a tool, and what type the text of `foreach` gives."""
    return message.startswith("`foreach`: ") or any(f"{name} in step" in message for name in CATALOGUE)


def _named(value: Any) -> Any:
    """Make every key text, as JSON has it."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _named(each) for key, each in value.items()}
    return [_named(each) for each in value] if isinstance(value, list) else value
