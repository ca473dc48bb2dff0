"""Pins of MCP servers written into the text of a plan; everything else of the text stays as it is."""

from __future__ import annotations

from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.load import load_bytes
from planrun.plan.yaml.document import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.plan.yaml.node import Node


def pinned(data: bytes, file: str, pins: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the text of a plan with the pins of its servers, by server and tool.

    Raises InvalidInput where the text cannot be changed so that it means exactly that.
    """
    lines = data.decode("utf-8").split("\n")
    root, _ = parse(data, file)
    servers = root.get("mcp").get("servers") if root is not None and root.get("mcp") else None  # type: ignore[union-attr]
    if servers is None:
        raise InvalidInput(f"{file}: its MCP servers are in another file; pin them there")
    for name, node in sorted(servers.value.items(), key=lambda item: -item[1].line):
        if name in pins:
            _pin(lines, node, pins[name])
    after = "\n".join(lines).encode()
    if not _is_so(after, file, pins):
        raise InvalidInput(
            f"{file}: the pins cannot be written into this text; `planrun mcp list --json` prints the digests\n"
            "  hint: write each server as a block, a key a line"
        )
    return after


def _pin(lines: list[str], node: Node, pins: Mapping[str, str]) -> None:
    """Put the pins of one server in the place of those that it has, or before its first key."""
    keys = [node.key(key) for key in node.value]
    first = min(keys, key=lambda key: key.line)
    indent = " " * (first.col - 1)
    at = end = first.line - 1
    if "pins" in node.value:
        at = node.key("pins").line - 1
        end = at + 1
        while end < len(lines) and (not lines[end].strip() or lines[end].startswith(f"{indent} ")):
            end += 1
        while end > at + 1 and not lines[end - 1].strip():
            end -= 1
    elif node.value:  # behind its last key
        last = max([key.line for key in keys])
        at = last
        while at < len(lines) and lines[at].startswith(f"{indent} "):
            at += 1
        end = at
    block = [f"{indent}pins:", *[f"{indent}  {tool}: {digest}" for tool, digest in sorted(pins.items())]]
    lines[at:end] = block if pins else []


def _is_so(data: bytes, file: str, pins: Mapping[str, Mapping[str, str]]) -> bool:
    try:
        plan = load_bytes(data, file, cache=False)
    except InvalidPlan:
        return False
    return all(dict(server.pins) == dict(pins[server.name]) for server in plan.mcp if server.name in pins)
