"""The MCP servers of a plan before a run: whether planrun can speak with them, and which tools they list."""

from __future__ import annotations

import json
import os
from tempfile import TemporaryDirectory

from planrun.agents.servers import environment_of, listing, sandbox_of
from planrun.app.sandboxing import home_folder
from planrun.app.secrets import read_secrets
from planrun.errors import InvalidInput
from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.executors.sandbox.probe import find
from planrun.executors.sandbox.view import Site
from planrun.executors.wait import SignalInbox
from planrun.model.job import Job
from planrun.model.mcp import drift, tools_of
from planrun.model.record import Record
from planrun.model.sandbox import Confinement
from planrun.opening import read_record
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.mcp import McpTool, Server
    from planrun.model.plan import Plan

_LATE = 10.0  # seconds that a process may take longer than its server
_LONGEST = 400  # characters of a message


class Listed(Record):
    """What a server lists; `fault`: why it lists nothing. `differing`: pins that its tools do not fit."""

    server: Server
    tools: tuple[McpTool, ...] = ()
    notes: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    fault: str = ""


def require_client(plan: Plan) -> None:
    """Raise InvalidInput when the library for MCP is not installed."""
    from importlib.util import find_spec  # few plans have servers

    if find_spec("mcp") is None:
        place = f"{plan.file}:{plan.mcp[0].line}" if plan.mcp else plan.file
        raise InvalidInput(
            f"{place}: the plan has MCP servers, and the library for them is not installed\n"
            "  hint: pip install 'planrun[mcp]'"
        )


def listed(plan: Plan, environ: Mapping[str, str], names: tuple[str, ...] = ()) -> list[Listed]:
    """Start the servers of a plan, one after the other in a sandbox that reads only, and return what they list.

    `names`: of those to start; none: all. Raises InvalidInput where the library or a sandbox is missing.
    """
    require_client(plan)
    backend, missing = find()
    if not backend:
        raise InvalidInput(f"an MCP server is only started in a sandbox, and there is none here: {missing}")
    workspace = os.getcwd()
    records = os.path.join(workspace, HOME)
    site = Site(
        workspace=workspace,
        records=records if os.path.isdir(records) else "",
        home=home_folder(),
        path=os.environ.get("PATH", os.defpath),
    )
    confinement = Confinement(workspace=workspace, home=site.home, backend=backend)
    chosen = [server for server in plan.mcp if not names or server.name in names]
    with TemporaryDirectory(prefix="planrun-mcp-") as folder, SignalInbox() as inbox:
        executor = LocalExecutor(
            inbox=inbox, masks=read_secrets(plan, environ).redactor, options=ExecutorOptions(site=site)
        )
        try:
            return [_listed(server, executor, confinement, folder, environ) for server in chosen]
        finally:
            executor.close()


def _listed(
    server: Server, executor: LocalExecutor, confinement: Confinement, folder: str, environ: Mapping[str, str]
) -> Listed:
    absent = [name for name in server.needs if not environ.get(name)]
    if absent:
        return Listed(server=server, fault=f"the secret {absent[0]} is not set")
    top = confinement.workspace
    log = os.path.join(folder, f"{server.name}.log")
    executor.start(
        Job(
            step=server.name,
            attempt=1,
            argv=listing(server, top),
            env=environment_of(server, environ, environ),
            cwd=top,
            log=log,
            timeout=server.start_timeout + _LATE,
            call={"name": "mcp"},
            sandbox=sandbox_of(server, confinement, None, "read-only"),
        )
    )
    ended = executor.wait(None)
    while not ended and executor.running:
        ended = executor.wait(None)
    lines = _read(log).strip().splitlines()
    if not ended or ended[0][1].status != "completed":
        why = ended[0][1].message or ended[0][1].reason if ended else "it was interrupted"
        return Listed(server=server, fault="; ".join([line[:_LONGEST] for line in lines[-2:]]) or why)
    found, notes = tools_of(server, json.loads(lines[-1]))
    _, differing, unpinned = drift(server, found)
    more = [f"{name} has no pin" for name in unpinned]
    return Listed(server=server, tools=tuple(found), notes=(*notes, *more), differing=tuple(differing))


def _read(path: str) -> str:
    try:
        return read_record(path).decode("utf-8", "replace")
    except OSError:
        return ""
