"""The key `mcp` of a plan, as pydantic models with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict

from planrun.plan.schema.fields import (
    Argv,
    Duration,
    Env,
    EnvName,
    EnvNames,
    Keys,
    Line,
    RiskLevel,
    TextList,
    Written,
    key,
)
from planrun.plan.schema.notify import HEADER_PATTERN
from planrun.plan.schema.step import SandboxNetwork

SERVER_PATTERN = r"^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$"
"""A name of a server; `__` ends it in the name of a tool."""
TOOL_PATTERN = r"^[A-Za-z0-9_-]{1,100}$"


class ServerTools(Written):
    """Which tools of a server agents may have."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    allow: TextList | None = key("The only tools that it offers.", ["search"])
    deny: TextList | None = key("Tools that it does not offer.", ["delete_issue"])


class McpServer(Written):
    """One MCP server: a program that planrun starts, or an address; and what its tools may do."""

    command: Argv | None = key(
        "The words of the command that starts it; it speaks MCP on stdin and stdout.",
        ["python3", "tools/issues_server.py"],
    )
    url: Line | None = key(
        "Its address, where it runs already (streamable HTTP).", "https://mcp.example.com/mcp"
    )
    env: Env | None = key("Its environment variables; it gets no others of yours.", {"LOG_LEVEL": "info"})
    secrets: EnvNames | None = key("Secrets of the plan that it gets as variables.", ["ISSUES_TOKEN"])
    headers: Annotated[dict[str, Line], Keys(HEADER_PATTERN)] | None = key(
        "Headers of requests to `url`.", {"X-Team": "release"}
    )
    secret_headers: Annotated[dict[str, EnvName], Keys(HEADER_PATTERN)] | None = key(
        "Headers whose values are secrets, by the names of the secrets.", {"Authorization": "MCP_AUTH"}
    )
    cwd: Line | None = key("The folder that it starts in, from the workspace.", "tools")
    tools: ServerTools | None = key("Which of its tools agents may have.", {"allow": ["search"]})
    classes: Annotated[dict[str, RiskLevel], Keys(TOOL_PATTERN)] | None = key(
        "The risk of its tools; a tool that is not named is high.", {"search": "read-only"}
    )
    pins: Annotated[dict[str, Line], Keys(TOOL_PATTERN)] | None = key(
        "The digests of the tools that were reviewed; `planrun mcp pin` writes them.",
        {"search": "0" * 64},
    )
    network: Literal["none"] | SandboxNetwork | None = key(
        "What its process may connect to. Left out: nothing; with `url`: that host.",
        {"allow": ["api.example.com"]},
    )
    timeout: Duration | None = key(
        "How long each call may take, and its start, for which it has 30s at least. Left out: 1m.", "30s"
    )


class Mcp(Written):
    """MCP servers whose tools agents may call."""

    servers: Annotated[dict[str, McpServer], Keys(SERVER_PATTERN)] = key(
        "The servers, by name. A tool is called `mcp__SERVER__TOOL`.",
        {"issues": {"command": ["python3", "tools/issues_server.py"]}},
        required=True,
    )
