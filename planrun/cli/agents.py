"""`planrun agents`, `modes` and `tools`: the types and modes of agents, and the tools, that a plan can name."""

from __future__ import annotations

import click

from planrun.cliutil.completion import complete_plans
from planrun.cliutil.printing import say, say_json, table
from planrun.model.agenttypes import MODES, NOT_OFFERED, TYPES, AgentMode, AgentType
from planrun.model.tools import CATALOGUE, NAMES
from planrun.plan.keys.agents import types_of
from planrun.plan.load import load
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.document import read_tree

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


@click.command(short_help="List the types of agents, with their tools.")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def agents(plan: str | None, *, as_json: bool) -> int:
    """List the types of agents that a step can name by `agent: {type: NAME}`: the built-in ones, and those of PLAN.

    A tool in brackets is in the list of a type; a step has it only by a key of its own, or not at all.

    \b
    Examples:
      planrun agents
      planrun agents plan.yml
      planrun agents --json | jq -r '.agents[].name'
    """
    if plan is None:
        found = dict(TYPES)
    else:
        loaded = load(plan, cache=False)  # with every problem of the plan
        root = read_tree(loaded.source, loaded.file)[0]
        found = types_of(root) if root is not None else dict(TYPES)
    if as_json:
        say_json({"agents": [_as_data(each) for each in found.values()], "not_offered": dict(NOT_OFFERED)})
        return 0
    rows = [
        (
            each.name,
            each.description,
            " ".join([f"({name})" if name in NOT_OFFERED else name for name in each.tools]),
        )
        for each in found.values()
    ]
    say(table(("Type", "What it does", "Tools"), rows))
    return 0


@click.command(short_help="List the modes of agents, with their limits.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def modes(*, as_json: bool) -> int:
    """List the modes that a step can name by `agent: {mode: NAME}`: what each is for, its limits, and what it denies.

    \b
    Examples:
      planrun modes
      planrun modes --json
    """
    if as_json:
        say_json({"modes": [vars(each) for each in MODES.values()]})
        return 0
    rows = [_mode_row(each) for each in MODES.values()]
    say(table(("Mode", "Use it", "Turns", "Tokens", "Without"), rows, right=(2, 3)))
    return 0


def _mode_row(mode: AgentMode) -> tuple[str, ...]:
    without = ", ".join(mode.without) or "-"
    return (f"{mode.icon} {mode.name}", mode.planner, str(mode.max_turns), str(mode.max_tokens), without)


def _as_data(kind: AgentType) -> dict[str, Any]:
    return {
        "name": kind.name,
        "description": kind.description,
        "builtin": kind.name in TYPES,
        "mode": kind.mode or None,
        "tools": list(kind.tools),
        "max_tokens": kind.max_tokens,
        "max_turns": kind.max_turns,
        "model": kind.model or None,
        "prompt": kind.prompt,
    }
