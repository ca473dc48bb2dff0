"""`planrun mcp`: the tools of the MCP servers of a plan, and their pins."""

from __future__ import annotations

import os

import click

from planrun.app.servers import listed
from planrun.cliutil.click import replace_file
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.errors import InvalidInput
from planrun.plan.edit.pins import pinned
from planrun.plan.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.servers import Listed

_plan = click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)


@click.group(short_help="List and pin the tools of MCP servers.")
def mcp() -> None:
    """List the tools of the MCP servers of a plan with their classes and digests, or pin them.

    Each server is started in a sandbox that reads only, with the secrets that the plan gives it.

    \b
    Examples:
      planrun mcp list plan.yml
      planrun mcp pin plan.yml
    """


@mcp.command("list", short_help="List the tools of the MCP servers of a plan.")
@_plan
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def list_(plan: str | None, *, as_json: bool) -> int:
    """List the tools of the MCP servers of PLAN, with the class that the plan gives each, and its digest.

    Exit code 1: a server does not start, or a tool is not what its pin says.

    \b
    Examples:
      planrun mcp list
      planrun mcp list plan.yml --json
    """
    found = _listed(given(plan).file)
    if as_json:
        say_json({"servers": [_as_data(each) for each in found]})
    else:
        for each in found:
            _say(each)
    return 1 if any(each.fault or each.differing for each in found) else 0


@mcp.command("pin", short_help="Write the digests of the tools into the plan.")
@_plan
def pin(plan: str | None) -> int:
    """Write the digests of the tools of each MCP server of PLAN into the plan, under `pins`.

    A run then fails before a tool is called if a server describes it in another way. Read what `planrun mcp list` shows
    before: a model reads these descriptions.

    \b
    Examples:
      planrun mcp pin
      planrun mcp pin plan.yml
    """
    file = given(plan).file
    found = _listed(file)
    faults = [f"{each.server.name}: {each.fault}" for each in found if each.fault]
    if faults:
        raise InvalidInput("nothing was pinned: " + "; ".join(faults))
    with open(file, "rb") as source:
        before = source.read()
    pins = {each.server.name: {tool.name: tool.digest for tool in each.tools} for each in found}
    after = pinned(before, file, pins)
    if after == before:
        say(f"{printable(file)}: every pin is right")
        return 0
    replace_file(file, after, before)
    for each in found:
        say(f"{printable(file)}: {each.server.name}: {len(each.tools)} tools pinned")
    return 0


def _listed(file: str) -> list[Listed]:
    plan = load(file)
    if not plan.mcp:
        raise InvalidInput(f"{file}: the plan has no MCP servers; add `mcp: {{servers: …}}`")
    return listed(plan, os.environ)


def _say(found: Listed) -> None:
    server = found.server
    say(f"{server.text()}")
    if found.fault:
        say(f"  it does not start: {printable(found.fault)}")
        return
    rows = [
        (
            tool.full_name,
            server.class_of(tool.name),
            tool.digest[:12],
            _state(server.pins.get(tool.name), tool.digest),
        )
        for tool in found.tools
    ]
    say(table(("Tool", "Class", "Digest", "Pin"), rows))
    for tool in found.tools:
        say(f"  {tool.name}: {printable(' '.join(tool.description.split()))[:400]}")
    for line in (*found.differing, *found.notes):
        say(f"  {printable(line)}")


def _state(pin: str | None, digest: str) -> str:
    return "none" if pin is None else "fits" if pin == digest else "differs"


def _as_data(found: Listed) -> dict[str, Any]:
    server = found.server
    return {
        "name": server.name,
        "fault": found.fault or None,
        "tools": [
            {
                "name": tool.name,
                "full_name": tool.full_name,
                "class": server.class_of(tool.name),
                "digest": tool.digest,
                "pin": server.pins.get(tool.name),
                "description": tool.description,
                "schema": tool.schema,
            }
            for tool in found.tools
        ],
        "differing": list(found.differing),
        "notes": list(found.notes),
    }
