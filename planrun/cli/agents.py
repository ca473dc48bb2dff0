"""`planrun agents` and `planrun modes`: the types of agents and the modes that a plan can name."""

from __future__ import annotations

import click

from planrun.cliutil.completion import complete_plans
from planrun.cliutil.printing import say, say_json, table
from planrun.model.agenttypes import MODES, NOT_OFFERED, TYPES, AgentMode, AgentType
from planrun.plan.keys.agents import types_of
from planrun.plan.load import load
from planrun.plan.yaml.document import read_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
