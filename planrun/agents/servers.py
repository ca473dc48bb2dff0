"""The MCP servers of one agent: started in sandboxes of their own, their tools pinned and offered, and their calls.

For each server one process of planrun's is its client, for as long as the agent works; see `planrun.mcp`. A question to
it is a job of its own, as a call of any other tool is.
"""

from __future__ import annotations

import json
import os

from planrun import entry
from planrun.actions.tool import shortened
from planrun.folders import make_private
from planrun.model import events as ev
from planrun.model.agenttypes import MODES
from planrun.model.job import Job
from planrun.model.jsontext import dumps
from planrun.model.mcp import PREFIX, drift, full_name, is_named, split, tools_of
from planrun.model.sandbox import placed, tightened
from planrun.opening import open_record
from planrun.risk.classifier import Risk
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.agents.loop import AgentRun
    from planrun.model.job import Outcome
    from planrun.model.mcp import McpTool, Server
    from planrun.model.plan import Sandbox
    from planrun.model.sandbox import Confinement

START = "start:"
"""How the id of a call begins that stands for the start of a server."""
_CHANGED = 4  # `planrun.mcp.call.CHANGED`
_LATE = 5.0  # seconds that a question may take longer than the server
_MOST_LISTED = 8 << 20  # bytes of a list of tools
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_LONGEST = 400  # characters of a message


class Servers:
    """The servers of one agent. Without any it does nothing."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        named = run.agent.get("mcp", ())
        servers = {split(name)[0] for name in named}
        plan = run.recorder.state.plan
        self._servers = {each.name: each for each in plan.mcp if each.name in servers} if servers else {}
        self._clients: dict[str, str] = {}  # by the names of their jobs, those that run: the server
        self._lists: dict[str, tuple[str, Job]] = {}  # the same of the questions for tools
        self._waiting = list(self._servers)  # those that are not started yet
        self._tools: dict[str, McpTool] = {}
        self._is_closing = False

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the agent has."""
        return tuple(self._tools)

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the jobs that run."""
        return (*self._clients, *self._lists)

    def offer(self, name: str) -> dict[str, Any]:
        """Return a tool as a request to a model offers it."""
        from planrun.llm.untrusted import clean

        tool = self._tools[name]
        text = f"A tool of the MCP server {tool.server}. It says: {clean(tool.description).text}"
        return {"name": name, "description": text, "input_schema": tool.schema}

    def only_reads(self, name: str) -> bool:
        """Whether a tool, of a server or not, fits plan mode: its class is read-only, and its server writes nowhere."""
        if name not in self._tools:
            return True
        server = self._servers[split(name)[0]]
        on_copy = bool(self._run.agent["copy"]) and not _is_trusted(server)
        return not on_copy and self.risk_of(name).level == "read-only"

    def risk_of(self, name: str) -> Risk:
        """Return the risk of a call: that of the plan, high without one."""
        server, tool = split(name)
        found = self._servers[server]
        level = found.class_of(tool)
        reason = (
            f"the class of {name} in the plan"
            if tool in found.classes
            else f"{name} has no class in the plan"
        )
        effects = () if level == "read-only" else ("unknown", *(("network",) if found.hosts else ()))
        return Risk(level=level, reason=reason, effects=effects)

    # Their start.

    def advance(self) -> bool:
        """Start the servers; whether all have listed their tools."""
        while self._waiting and self._run.outcome is None:
            self._start(self._servers[self._waiting.pop(0)])
        return not self._lists

    def _start(self, server: Server) -> None:
        run = self._run
        absent = [name for name in server.needs if name not in self._run.context.place.secrets]
        if why := f"the secret {absent[0]} is not set" if absent else "":
            run.fail("mcp", f"the MCP server {server.name} cannot be started: {why}")
            return
        folder = self._folder(server)
        args = {"command": list(server.command)} if server.command else {"url": server.url}
        self._run.emit(
            ev.ToolCalled,
            call=self._start_id(server),
            name=full_name(server.name),
            args=shortened(args),
            sha256=_hash(dumps(args)),
            risk="medium",
            answer="allow",
        )
        run.say(f"starts the MCP server {server.name}")
        client = self._client(server, folder)
        self._clients[client.step] = server.name
        run.start(client)
        question = self._question(f"{run.name}:list-{server.name}", server, {"do": "list"}, "list")
        self._lists[question.step] = (server.name, question)
        run.start(question)

    def _folder(self, server: Server) -> str:
        """Make the folder of its socket anew."""
        folder = os.path.join(self._base(server), "socket")
        make_private(folder)
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        return folder

    def _base(self, server: Server) -> str:
        run = self._run
        name = f"{run.agent['session']}.mcp-{server.name}"
        return os.path.join(os.path.dirname(run.transcript_path), name)

    def _client(self, server: Server, folder: str) -> Job:
        """Return the job that starts or reaches a server, in its sandbox."""
        run, place = self._run, self._run.context.place
        copy = run.job.cwd if run.agent["copy"] and not _is_trusted(server) else ""
        top = copy or place.workspace
        return Job(
            step=f"{run.name}:mcp-{server.name}",
            attempt=run.job.attempt,
            argv=entry.command("planrun.mcp.serve", "serve", folder, spec_of(server, top)),
            env=environment_of(server, run.job.env, place.secrets),
            cwd=top,
            log=f"{self._base(server)}.log",
            timeout=max(1.0, run.seconds_left()),
            call={"name": "mcp"},
            sandbox=self._sandbox(server, "medium" if copy else "read-only"),
            copy=copy,
            shown=(("rw", folder),),
        )

    def _sandbox(self, server: Server, level: str) -> Sandbox | None:
        """Return the sandbox of a server: that of the agent, with what the server may connect to; None: in none."""
        confinement = self._run.context.place.confinement
        return sandbox_of(server, confinement, self._run.step.sandbox, level) if confinement else None

    def _question(self, name: str, server: Server, question: dict[str, Any], what: str) -> Job:
        """Return a job that asks the client of a server.

        It is in a sandbox, which shows that one socket: the server could put a link in its place.
        """
        run, base = self._run, self._base(server)
        file = f"{base}.{what}.json"
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as out:
            out.write(dumps(question))
        limit = server.start_timeout if what == "list" else server.timeout
        seconds = min(limit + _LATE, max(1.0, run.seconds_left()))
        folder = os.path.join(base, "socket")
        job = Job(
            step=name,
            attempt=run.job.attempt,
            argv=entry.command("planrun.mcp.call", folder, f"{seconds:.3f}", file, flags=("-I", "-S")),
            env={name: value for name, value in run.job.env.items() if name in _INHERITED},
            cwd=run.job.cwd,
            log=f"{base}.{what}.log",
            timeout=seconds + _LATE,
            call={"name": "mcp"},
        )
        return run.confined(job, "read-only", (("rw", folder), ("ro", file)))

    # What becomes of their jobs.

    def ended(self, job: Job, outcome: Outcome) -> bool:
        """Take the end of a job, if it is one of these."""
        if job.step in self._clients:
            name = self._clients.pop(job.step)
            if not self._is_closing:
                self._run.say(f"the MCP server {name} has ended: {outcome.message or outcome.reason}")
            for step, (server, _) in list(self._lists.items()):
                if server == name:
                    self._run.stop_job(step)
            return True
        if job.step not in self._lists:
            return False
        name, question = self._lists.pop(job.step)
        if not self._run.is_stopping and self._run.outcome is None:
            self._listed(self._servers[name], question, outcome)
        return True

    def _listed(self, server: Server, question: Job, outcome: Outcome) -> None:
        """Offer the tools of a server, or end the agent: none of its tools is called then."""
        run = self._run
        text = _read(question.log)
        if outcome.status != "completed":
            why = text.strip().rpartition("\n")[2][:_LONGEST] or outcome.message or outcome.reason
            if last := run.last_line(Job(**{**vars(question), "log": f"{self._base(server)}.log"})):
                why = f"{why}; its last output: {last[:_LONGEST]}"
            self._fail(server, why)
            return
        try:
            found, notes = tools_of(server, json.loads(text))
        except (ValueError, KeyError, TypeError):
            self._fail(server, f"the MCP server {server.name} lists its tools in no form that planrun knows")
            return
        kept, differing, unpinned = drift(server, found)
        if differing:
            self._fail(server, "; ".join(differing[:5]))
            return
        notes += [f"{name} is left out: it has no pin" for name in unpinned]
        kept = [tool for tool in kept if self._may_have(tool)]
        self._tools |= {tool.full_name: tool for tool in kept}
        names = ", ".join([tool.name for tool in kept]) or "no tools"
        for note in notes:
            run.say(f"MCP server {server.name}: {note}")
        run.say(f"MCP server {server.name}: {names}")
        self._returned(server, "done", names)

    def _may_have(self, tool: McpTool) -> bool:
        """Whether the step, its mode and its type let the agent have a tool."""
        agent = self._run.agent
        if not is_named(tool.full_name, agent["mcp"]) or is_named(tool.full_name, agent.get("mcp_deny", ())):
            return False
        reads_only = bool(agent["mode"]) and "write" in MODES[agent["mode"]].without
        return not reads_only or self.risk_of(tool.full_name).level == "read-only"

    def _fail(self, server: Server, why: str) -> None:
        self._returned(server, "failed", why)
        self._run.fail("mcp", why)

    def _returned(self, server: Server, status: str, message: str) -> None:
        self._run.emit(
            ev.ToolReturned,
            call=self._start_id(server),
            name=full_name(server.name),
            status=status,
            sha256=_hash(message),
            message=message[:1000],
        )

    def _start_id(self, server: Server) -> str:
        return f"{START}{self._run.id}:{server.name}"

    # Calls.

    def job_of(self, call: dict[str, Any], number: int) -> Job:
        """Return the job of a call."""
        run, tool = self._run, self._tools[call["name"]]
        question = {"do": "call", "tool": tool.name, "args": call["input"], "digest": tool.digest}
        return self._question(f"{run.name}:t{number}", self._servers[tool.server], question, f"tool{number}")

    def take(self, call: dict[str, Any], outcome: Outcome, message: str) -> None:
        """End the agent when a server has changed what was reviewed, or what the agent was offered."""
        if call["name"] in self._tools and outcome.exit_code == _CHANGED:
            self._run.fail("mcp", message)

    def close(self) -> bool:
        """End the servers; whether none is left."""
        self._is_closing = True
        for name in self.running:
            self._run.stop_job(name)
        return not self.running


def spec_of(server: Server, top: str) -> str:
    """Return what the client of a server has to know, without values of secrets; `top`: the folder of its files."""
    spec = {
        "name": server.name,
        "command": list(server.command),
        "url": server.url,
        "cwd": os.path.join(top, server.cwd) if server.cwd else top,
        "headers": dict(server.headers),
        "secret_headers": dict(server.secret_headers),
        "seconds": server.timeout,
        "start": server.start_timeout,
    }
    return dumps(spec)


def listing(server: Server, top: str) -> tuple[str, ...]:
    """Return the words of the process that starts a server and prints its tools."""
    return entry.command("planrun.mcp.serve", "list", spec_of(server, top))


def environment_of(server: Server, env: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: a few variables of the machine, its own, and its secrets."""
    found = {name: value for name, value in env.items() if name in _INHERITED}
    return {**found, **server.env, **{name: secrets[name] for name in server.needs if name in secrets}}


def sandbox_of(server: Server, confinement: Confinement, own: Sandbox | None, level: str) -> Sandbox | None:
    """Return the sandbox of a server, with what it may connect to; `own`: that of the step; None: in none."""
    found = confinement.of_agent(own, level)
    if found is None:  # a policy turned it off
        return None
    found = found.but(network="hosts" if server.hosts else "none", hosts=server.hosts)
    for ceiling in (*confinement.ceilings, *confinement.for_models):
        found = tightened(found, placed(ceiling, confinement.workspace, confinement.home))
    return found


def is_of_server(name: str) -> bool:
    """Whether a name is that of a tool of a server."""
    return name.startswith(PREFIX)


def _is_trusted(server: Server) -> bool:
    """Whether a server runs from the reviewed files of the workspace, and does not see what the agent wrote.

    It has secrets or a network: a file that the agent changed must not run with them.
    """
    return bool(server.needs or server.hosts)


def _hash(text: str) -> str:
    return str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _read(path: str) -> str:
    try:
        with open(open_record(path), encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_LISTED)
    except OSError:  # it printed nothing
        return ""
