"""`planrun tools`: what plans can call by name."""

from __future__ import annotations

import click

from planrun.cliutil.printing import say, say_json, table
from planrun.model.tools import CATALOGUE, NAMES
from planrun.plan.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.tools import Spec


@click.command(short_help="List the tools that a plan can call, and their arguments.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def tools(name: str | None, *, as_json: bool) -> int:
    """List the tools that a plan can call by `tool: NAME`, or show one of them with its arguments and outputs.

    \b
    Examples:
      planrun tools
      planrun tools git.commit
      planrun tools --json | jq -r '.tools[].name'
    """
    if name is not None and name not in NAMES:
        hint = did_you_mean(name, NAMES) or f"tools are {', '.join(CATALOGUE)}"
        raise click.UsageError(f'there is no tool "{name}"; {hint}')
    specs = list(CATALOGUE.values()) if name is None else [CATALOGUE[NAMES[name]]]
    if as_json:
        say_json({"tools": [as_data(spec) for spec in specs]})
    elif name is None:
        rows = [(spec.name, spec.risk, spec.description) for spec in specs]
        say(table(("Tool", "Risk", "What it does"), rows))
    else:
        say(as_text(specs[0]))
    return 0


def as_data(spec: Spec) -> dict[str, Any]:
    """Return a tool as JSON data; its arguments and outputs as JSON Schemas of an object."""
    return {
        "name": spec.name,
        "aliases": list(spec.aliases),
        "description": spec.description,
        "risk": spec.risk,
        "effects": list(spec.effects),
        "args": _schema(spec.params),
        "outputs": _schema(spec.outputs),
        "one_of": [list(group) for group in spec.one_of],
        "spellings": spec.spellings,
        "version": spec.version,
    }


def as_text(spec: Spec) -> str:
    """Return a tool as text."""
    lines = [f"{spec.name}: {spec.description}", f"risk: {spec.risk}"]
    if spec.aliases:
        lines.append(f"also written: {', '.join(spec.aliases)}")
    for title, parts in (("args", spec.params), ("outputs", spec.outputs)):
        lines += ["", f"{title}:"] if parts else []
        for name, schema in parts.items():
            lines.append(f"  {name} ({words_of(spec, name, schema)}): {schema.get('description', '')}")
    return "\n".join(lines)


def words_of(spec: Spec, name: str, schema: dict[str, Any]) -> str:
    """Return the type of an argument or output, and whether it must be given, in a few words."""
    given = schema.get("type", "any")
    words = [given if isinstance(given, str) else " or ".join(given)]
    if "enum" in schema:
        words = [", ".join(schema["enum"])]
    group = next((group for group in spec.one_of if name in group), ())
    if schema.get("required"):
        words.append("required")
    elif group:
        words.append(f"this or {' or '.join(other for other in group if other != name)}")
    elif "default" in schema:
        words.append(f"default {str(schema['default']).lower()}")
    return "; ".join(words)


def _schema(parts: dict[str, Any]) -> dict[str, Any]:
    """Return fragments as the JSON Schema of the mapping that holds them; our own word `required` becomes a list."""
    return {
        "type": "object",
        "properties": {name: _plain(part) for name, part in parts.items()},
        "required": [name for name, part in parts.items() if part.get("required")],
        "additionalProperties": False,
    }


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in part.items() if key not in ("required", "properties", "items")}
    if "properties" in part:
        schema |= _schema(part["properties"])
    if "items" in part:
        schema["items"] = _plain(part["items"])
    return schema
