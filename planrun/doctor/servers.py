"""The MCP servers of the plan in this folder: whether planrun can speak with them, and which ones start."""

from __future__ import annotations

from planrun.app.servers import listed
from planrun.cliutil.defaultplan import default_file
from planrun.errors import PlanrunError
from planrun.plan.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Literal

    Status = Literal["ok", "warning", "problem", "none"]


def tried(environ: Mapping[str, str]) -> Iterator[tuple[Status, str, str]]:
    """Yield status, finding and advice for each server of the plan in this folder; nothing for a plan without any.

    A server that gets secrets or a network is not started: nobody may have reviewed the plan yet.
    """
    try:
        file = default_file()
        plan = load(file, cache=False) if file else None
    except PlanrunError:  # `planrun validate` says what is wrong
        plan = None
    if plan is None or not plan.mcp:
        return
    held = [server for server in plan.mcp if server.needs or server.hosts]
    for server in held:
        yield (
            "none",
            f"{server.name} gets secrets or a network, and is not started here",
            "planrun mcp list starts it",
        )
    names = tuple([server.name for server in plan.mcp if server not in held])
    if not names:
        return
    try:
        found = listed(plan, environ, names)
    except PlanrunError as error:
        first, _, hint = str(error).partition("\n")
        yield "problem", first, hint.strip().removeprefix("hint: ") or "planrun cannot run its agents"
        return
    for each in found:
        if each.fault:
            yield (
                "problem",
                f"{each.server.name} does not start: {each.fault}",
                "correct its `command` in the plan",
            )
        elif each.differing:
            todo = "read planrun mcp list, then planrun mcp pin"
            yield "problem", f"{each.server.name} is not what was reviewed: {each.differing[0]}", todo
        else:
            yield "ok", f"{each.server.name} starts, {len(each.tools)} tools", ""
