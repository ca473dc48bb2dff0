"""The key `mcp`: its servers and their checks."""

from __future__ import annotations

from planrun.model.mcp import Server
from planrun.plan.keys.notify import fault_of
from planrun.plan.keys.outline import entries, members, scalar
from planrun.plan.keys.sandbox import is_host
from planrun.plan.keys.top import RESERVED, declared_secrets
from planrun.plan.schema.forms import as_duration
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline

MAX_SERVERS = 20
"""Of one plan: an agent that has them starts a process for each."""
_OPEN = "${{"
_DIGEST, _HEX = 64, frozenset("0123456789abcdef")
_OF_COMMAND = ("env", "cwd", "network")
_OF_URL = ("headers", "secret_headers")
_PORTS = {"http": "80", "https": "443"}


def check(checked: Checked) -> None:
    """Report servers that cannot be started or reached, and secrets that the plan does not declare."""
    outline = checked.outline
    servers = _servers(outline.root)
    declared = declared_secrets(outline.root)
    listed = list(members(servers))
    if len(listed) > MAX_SERVERS and servers is not None:
        message = f"too many MCP servers: {len(listed)}; at most {MAX_SERVERS} are allowed"
        outline.report("E241", message, servers.key(listed[MAX_SERVERS][0]))
    for name, node in listed:
        if node.kind == MAPPING and servers is not None:
            _check_server(outline, name, servers.key(name), node)
        for secret in _secrets_in(node):
            if secret.value.startswith(RESERVED):
                outline.report(
                    "E230", f"reserved environment variable {secret.value}: planrun sets it", secret
                )
            elif secret.value not in declared:
                names = ", ".join([*declared, secret.value])
                hint = outline.nearest(secret.value, declared)
                hint = hint or f"declare it at the top level: `secrets: [{names}]`"
                outline.report("E232", f'undeclared secret "{secret.value}"', secret, hint)


def _check_server(outline: Outline, name: str, place: Node, node: Node) -> None:
    command, url = node.get("command"), node.get("url")
    if (command is None) == (url is None):
        hint = "add `command: [PROGRAM]`, or `url: https://HOST/PATH`" if url is None else "keep one of them"
        what = "has neither `command` nor `url`" if url is None else "has `command` and `url`"
        outline.report("E305", f'the MCP server "{name}" {what}', place, hint)
        return
    kind, others = ("command", _OF_URL) if url is None else ("url", _OF_COMMAND)
    for key in others:
        if key in node.value:
            hint = f"it goes with `{'url' if url is None else 'command'}`"
            outline.report(
                "E305", f"`{key}` does not apply to an MCP server with `{kind}`", node.key(key), hint
            )
    found = scalar(url)
    if found is not None:
        why, hint = fault_of(found.value)
        if why:
            outline.report(
                "E305", why, found, hint.replace("KIND: {url_secret: NAME}", "secret_headers: {…}")
            )
    words = entries(command)
    if words and not words[0].value.strip():
        outline.report("E305", "the first word of `command` is empty", words[0], "name a program")
    _check_texts(outline, node)


def _check_texts(outline: Outline, node: Node) -> None:
    for value in [*entries(node.get("command")), *_values(node, "env"), *_values(node, "headers")]:
        if _OPEN in value.value:
            hint = "secrets are given by `secrets` and `secret_headers`"
            outline.report("E305", "interpolations are not evaluated in `mcp`", value, hint)
    for header, value in members(node.get("headers")):
        if header.lower() in ("authorization", "proxy-authorization", "cookie"):
            hint = f"write `secret_headers: {{{header}: NAME_OF_A_SECRET}}`"
            outline.report("E305", f"the header {header} in the text of a plan", value, hint)
    for value in _values(node, "pins"):
        if len(value.value) != _DIGEST or not _HEX.issuperset(value.value):
            outline.report(
                "E305", "a pin is a SHA-256: 64 hexadecimal digits", value, "`planrun mcp pin` writes it"
            )
    cwd = scalar(node.get("cwd"))
    if cwd is not None and (cwd.value.startswith(("/", "~")) or ".." in cwd.value.split("/")):
        outline.report(
            "E305", f'"{cwd.value}" is not a folder of the workspace', cwd, "write e.g. `cwd: tools`"
        )
    network = node.get("network")
    for host in entries(network.get("allow")) if network is not None and network.kind == MAPPING else ():
        if scalar(host) is not None and not is_host(host.value):
            hint = "write a name such as `pypi.org`, `*.example.com` or `localhost:8080`"
            outline.report("E305", f'"{host.value}" is no host', host, hint)


def _values(node: Node, key: str) -> list[Node]:
    return [value for _, value in members(node.get(key)) if scalar(value) is not None]


def _servers(root: Node) -> Node | None:
    found = root.get("mcp")
    return found.get("servers") if found is not None and found.kind == MAPPING else None


def names_of(root: Node) -> list[str]:
    """Return the names of the servers of a plan."""
    return [name for name, _ in members(_servers(root))]


def _secrets_in(node: Node) -> Iterator[Node]:
    yield from entries(node.get("secrets"))
    yield from _values(node, "secret_headers")


def servers_of(root: Node) -> tuple[Server, ...]:
    """Return the servers of a plan without problems."""
    return tuple([_server(name, node) for name, node in members(_servers(root))])


def _server(name: str, node: Node) -> Server:
    fields: dict[str, Any] = {"name": name, "line": node.line}
    known = node.value
    for key in [key for key in ("command", "secrets") if key in known]:
        fields[key] = tuple([word.value for word in entries(known[key])])
    for key in [key for key in ("env", "headers", "secret_headers", "classes", "pins") if key in known]:
        fields[key] = {each: value.value for each, value in members(known[key])}
    fields |= {key: node.value[key].value for key in ("url", "cwd") if key in node.value}
    tools = node.get("tools")
    named = tools.value if tools is not None else {}
    fields |= {
        key: tuple([word.value for word in entries(named[key])]) for key in ("allow", "deny") if key in named
    }
    network = node.get("network")
    if network is not None and network.kind == MAPPING:
        fields["hosts"] = tuple([host.value.lower() for host in entries(network.value["allow"])])
    if "url" in fields:
        url = fields["url"]
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0].partition("?")[0].partition("#")[0].lower()
        bare = host.rpartition("]")[2] if host.startswith("[") else host
        fields["hosts"] = (host if ":" in bare else f"{host}:{_PORTS[scheme.lower()]}",)
    if "timeout" in node.value:
        fields["timeout"] = as_duration(node.value["timeout"].value)
    return Server(**fields)
