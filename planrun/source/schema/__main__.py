"""Write `schemas/plan.schema.json` and `planrun/source/tables.py` anew from the models."""

from __future__ import annotations

import json
import os

from planrun.source.schema import lower, tabulate

_HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(os.path.dirname(_HERE), "tables.py")
SCHEMA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(_HERE))), "schemas", "plan.schema.json")


def generated() -> dict[str, str]:
    """Return path and text of every file that is made from the models."""
    schema = json.dumps(lower.json_schema(), indent=2, ensure_ascii=False) + "\n"
    return {SCHEMA: schema, TABLES: tabulate.source()}


def main() -> None:
    """Write the files and say which."""
    for path, text in generated().items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(os.path.relpath(path))


if __name__ == "__main__":
    main()
