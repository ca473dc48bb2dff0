"""MCP servers: the records under `mcp` of a plan, the names of their tools, and the digests that pin these.

A tool of a server is called `mcp__SERVER__TOOL`. Its class is the one that the plan gives it, and high without one:
what a server says of itself is not believed.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PREFIX = "mcp__"
DEFAULT_SECONDS = 60.0
"""How long one call may take."""
START_SECONDS = 30.0
"""How long a start may take at least: programs load slowly on a busy machine."""
MOST_TOOLS = 128
"""Of one server; more are left out."""
LONGEST_DESCRIPTION = 8192  # characters of the description of a tool
LONGEST_SCHEMA = 64 * 1024  # characters of the JSON Schema of its arguments
_LONGEST_NAME = 128  # of a tool, as a model service takes it
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Server(Record):
    """One server; exactly one of `command` and `url` is given.

    `secrets`: those that its process gets as variables. `headers`, `secret_headers`: of requests to `url`; the values,
    or the names of secrets. `allow`, `deny`: names of tools. `hosts`: what its process may connect to.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}  # noqa: RUF012 - never written
    secrets: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012
    secret_headers: dict[str, str] = {}  # noqa: RUF012
    cwd: str = ""
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    classes: dict[str, str] = {}  # noqa: RUF012
    pins: dict[str, str] = {}  # noqa: RUF012
    hosts: tuple[str, ...] = ()
    timeout: float = DEFAULT_SECONDS
    line: int = 0

    @property
    def needs(self) -> tuple[str, ...]:
        """The secrets that its process gets, by name."""
        return tuple(dict.fromkeys((*self.secrets, *self.secret_headers.values())))

    @property
    def start_timeout(self) -> float:
        """How many seconds its start may take."""
        return max(self.timeout, START_SECONDS)

    def offers(self, tool: str) -> bool:
        """Whether the plan lets agents have a tool of the server."""
        return (self.allow is None or tool in self.allow) and tool not in self.deny

    def class_of(self, tool: str) -> str:
        """Return the risk of a call of a tool."""
        return self.classes.get(tool, "high")

    def text(self) -> str:
        """Return it in one line: its name, and what starts it or where it is."""
        return f"{self.name} ({self.url or ' '.join(self.command)})"

    def as_written(self) -> dict[str, Any]:
        """Return the server in the words of the plan language."""
        found: dict[str, Any] = {}
        for name in (
            "command",
            "url",
            "env",
            "secrets",
            "headers",
            "secret_headers",
            "cwd",
            "classes",
            "pins",
        ):
            value = vars(self).get(name)
            if value:
                found[name] = list(value) if isinstance(value, tuple) else value
        tools = {"allow": self.allow, "deny": self.deny or None}
        if any(value is not None for value in tools.values()):
            found["tools"] = {name: list(value) for name, value in tools.items() if value is not None}
        if self.hosts and not self.url:
            found["network"] = {"allow": list(self.hosts)}
        if self.timeout != DEFAULT_SECONDS:
            found["timeout"] = f"{self.timeout:g}s"
        return found


class McpTool(Record):
    """A tool as its server describes it; `digest`: of name, description and schema."""

    server: str
    name: str
    description: str
    schema: dict[str, Any]
    digest: str

    @property
    def full_name(self) -> str:
        """The name that agents call it by."""
        return full_name(self.server, self.name)


def full_name(server: str, tool: str = "") -> str:
    """Return the name of a tool for agents, or of a server with all of its tools."""
    return f"{PREFIX}{server}__{tool}" if tool else f"{PREFIX}{server}"


def split(name: str) -> tuple[str, str]:
    """Return server and tool of a name; the tool is empty for a whole server, both for another name."""
    if not name.startswith(PREFIX):
        return "", ""
    server, _, tool = name.removeprefix(PREFIX).partition("__")
    return server, "" if tool == "*" else tool


def is_named(name: str, names: Iterable[str]) -> bool:
    """Whether a tool is among some names, by its own or by that of its server."""
    server, tool = split(name)
    return any(split(each) in ((server, tool), (server, "")) for each in names)


def is_callable(name: str) -> bool:
    """Whether a service of a model takes a name."""
    return len(name) <= _LONGEST_NAME and _LETTERS.issuperset(name)


def digest_of(name: str, description: str, schema: Mapping[str, Any]) -> str:
    """Return what pins a tool: a SHA-256 over all that a model is shown of it."""
    whole = dumps(_ordered({"name": name, "description": description, "schema": schema}))
    return str(sha256(whole.encode("utf-8", "surrogatepass")).hexdigest())


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list) else value


def tools_of(server: Server, listed: Iterable[Mapping[str, Any]]) -> tuple[list[McpTool], list[str]]:
    """Return the tools that a plan may use of those that a server lists, and why others are left out."""
    found: list[McpTool] = []
    notes: list[str] = []
    for each in listed:
        name, description, schema = str(each["name"]), str(each["description"]), dict(each["schema"])
        if not server.offers(name):
            continue
        full = full_name(server.name, name)
        if not is_callable(full) or "__" in name:
            notes.append(f"{name[:60]!a} is left out: a model service does not take its name")
        elif len(description) > LONGEST_DESCRIPTION or len(dumps(schema)) > LONGEST_SCHEMA:
            notes.append(f"{name} is left out: its description or its schema is too long")
        elif any(tool.name == name for tool in found):
            notes.append(f"{name} is listed twice")
        elif len(found) >= MOST_TOOLS:
            notes.append(f"{name} is left out: more than {MOST_TOOLS} tools")
        else:
            digest = digest_of(name, description, schema)
            found.append(
                McpTool(server=server.name, name=name, description=description, schema=schema, digest=digest)
            )
    return found, notes


def drift(server: Server, tools: Iterable[McpTool]) -> tuple[list[McpTool], list[str], list[str]]:
    """Return the tools that fit the pins, what differs from a pin, and the tools that have none.

    A server without pins offers all of its tools.
    """
    known = list(tools)
    if not server.pins:
        return known, [], []
    kept, differing, unpinned = [], [], []
    for tool in known:
        pin = server.pins.get(tool.name)
        if pin is None:
            unpinned.append(tool.name)
        elif pin != tool.digest:
            differing.append(
                f"{tool.full_name} is not what was reviewed: its digest is {tool.digest[:12]}…, its pin {pin[:12]}…"
            )
        else:
            kept.append(tool)
    names = {tool.name for tool in known}
    gone = [name for name in server.pins if name not in names and server.offers(name)]
    differing += [
        f"{full_name(server.name, name)} is pinned, and the server does not list it" for name in gone
    ]
    return kept, differing, unpinned
