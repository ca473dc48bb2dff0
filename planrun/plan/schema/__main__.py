"""Write the schemas and `planrun/plan/{tables,examples}.py` from the models, or `--check` them."""

from __future__ import annotations

import json
import os
import sys

from planrun.plan.schema import generate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(os.path.dirname(_HERE), "tables.py")
EXAMPLES = os.path.join(os.path.dirname(_HERE), "examples.py")
_SCHEMAS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(_HERE))), "schemas")
SCHEMA = os.path.join(_SCHEMAS, "plan.schema.json")
PROJECT = os.path.join(_SCHEMAS, "project.schema.json")
POLICY = os.path.join(_SCHEMAS, "policy.schema.json")


def generated() -> dict[str, str]:
    """Return path and text of every file that is made from the models."""
    return {
        SCHEMA: _json(generate.json_schema()),
        POLICY: _json(generate.policy_schema()),
        PROJECT: _json(generate.project_schema()),
        TABLES: generate.source(),
        EXAMPLES: generate.examples_source(),
    }


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the files and list them; with `--check` list those that differ and return 1."""
    if arguments == ["--check"]:
        return _check()
    if arguments:
        print("usage: python -m planrun.plan.schema [--check]", file=sys.stderr)
        return 2
    for path, text in generated().items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(os.path.relpath(path))
    return 0


def _check() -> int:
    differing = [path for path, text in generated().items() if _text(path) != text]
    for path in differing:
        print(f"{os.path.relpath(path)} differs; python -m planrun.plan.schema writes it", file=sys.stderr)
    return 1 if differing else 0


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
