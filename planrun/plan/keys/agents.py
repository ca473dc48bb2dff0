"""What `agent` and `agents` mean: the agent of a step, and every problem beyond its shape."""

from __future__ import annotations

from planrun.model.agenttypes import BY_NAME, MAX_TOKENS, MAX_TURNS, MODES, TOOLS, TYPES, AgentType, offered
from planrun.model.mcp import PREFIX, full_name, split
from planrun.plan.keys.outline import entries, members, scalar
from planrun.plan.keys.sandbox import is_host
from planrun.plan.keys.table import module
from planrun.plan.kinds.agent import Agent
from planrun.plan.schema.forms import as_bool, as_int, as_number
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline, RawStep

OUTPUTS: dict[str, dict[str, Any]] = {
    "summary": {"type": "string"},
    "patch": {"type": "string"},
}
"""What other steps can read of an agent: its report, and the SHA-256 of its patch ("" for none)."""
_FOREIGN = {
    "outputs": "its outputs are `summary` and `patch`",
    "service": "an agent ends by itself",
    "shell": "write the shell in the commands of `verify`",
    "workdir": "an agent has the whole workspace; name the folder in its task",
    "rollback": "its patch is its only effect; `git apply -R` undoes it",
    "produces": "its result is a patch",
    "cache": "a model answers differently each time",
    "reports": "an agent writes none",
    "idle_timeout": "an agent is silent while its model answers",
}


def find(checked: Checked) -> None:
    """Report what is wrong with the agents of a plan, and add what they hand on to the outputs."""
    outline = checked.outline
    own = outline.root.get("agents")
    for name, node in members(own):
        if name in TYPES and own is not None:
            message = f'the type of agent "{name}" is built in'
            outline.report("E274", message, own.key(name), "give the type of this plan another name")
        _check_tools(outline, node.get("tools"), f'agent type "{name}"')
    known = [*TYPES, *[name for name, _ in members(own)]]
    for raw in outline.steps:
        agent = raw.keys.get("agent")
        if agent is None or agent.kind != MAPPING or outline.is_full:
            continue
        _check_step(outline, raw, agent, known)
        checked.outputs[raw.id] = {name: dict(fragment) for name, fragment in OUTPUTS.items()}


def _about(raw: RawStep) -> str:
    """Return the title and the description of a step: the task of an agent without a prompt."""
    found = [scalar(raw.keys.get(key)) for key in ("title", "description")]
    return "\n\n".join([node.value for node in found if node is not None and node.value.strip()])


def _check_step(outline: Outline, raw: RawStep, node: Node, known: list[str]) -> None:
    kind = scalar(node.get("type"))
    if kind is not None and kind.value not in known:
        hint = (
            outline.nearest(kind.value, known) or f"types: {', '.join(known)}; define others under `agents`"
        )
        outline.report("E272", f'unknown type of agent "{kind.value}" in step "{raw.id}"', kind, hint)
    given = [key for key in ("prompt", "task") if key in node.value]
    if not given and not _about(raw):
        hint = "e.g. `prompt: Fix it.`; or give the step a title or a description"
        outline.report("E102", f'"agent" in step "{raw.id}" needs `prompt`', node, hint)
    if len(given) > 1:
        message = f'"prompt" and "task" of step "{raw.id}" are the same'
        outline.report("E118", message, node.key("task"), "write `prompt` alone")
    tools = node.get("tools")
    for key in ("allow", "deny"):
        if tools is not None and tools.kind == MAPPING:
            _check_tools(outline, tools.get(key), f'step "{raw.id}"')
    web = node.get("web")
    for host in entries(web.get("allow")) if web is not None and web.kind == MAPPING else ():
        if scalar(host) is not None and not is_host(host.value):
            hint = "write a name such as `docs.python.org`, `*.example.com` or `localhost:8080`"
            outline.report("E301", f'"{host.value}" is no host', host, hint)
    for key, why in _FOREIGN.items():
        if key in raw.keys:
            message = f'`{key}` does not apply to the agent in step "{raw.id}"'
            outline.report("E275", message, raw.node.key(key), why)


def _check_tools(outline: Outline, node: Node | None, label: str) -> None:
    for item in entries(node):
        if item.value.startswith(PREFIX):
            _check_server(outline, item, label)
        elif item.value not in TOOLS:
            hint = outline.nearest(item.value, TOOLS) or f"tools: {', '.join(TOOLS)}"
            outline.report("E273", f'unknown tool "{item.value}" in {label}', item, hint)


def _check_server(outline: Outline, item: Node, label: str) -> None:
    known = _servers_of(outline.root)
    server = split(item.value)[0]
    if server not in known:
        hint = outline.nearest(server, known) or "declare it under `mcp: {servers: …}`"
        outline.report("E273", f'{label} names a tool of the unknown MCP server "{server}"', item, hint)


def _servers_of(root: Node) -> list[str]:
    if root.get("mcp") is None:
        return []
    return list(module("mcp").names_of(root))


def types_of(root: Node) -> dict[str, AgentType]:
    """Return the types of agents that a plan can name: built-in ones, then its own."""
    return {**TYPES, **{name: _type(name, node) for name, node in members(root.get("agents"))}}


def _type(name: str, node: Node) -> AgentType:
    mode = node.get("mode")
    limits = MODES.get(mode.value) if mode is not None else None
    tools = node.get("tools")
    fields: dict[str, Any] = {"mode": mode.value} if mode is not None else {}
    for key in ("max_tokens", "max_turns"):
        limit = node.get(key)
        if limit is not None or limits is not None:
            fields[key] = as_int(limit) if limit is not None else getattr(limits, key)
    for key in ("model", "prompt"):
        text = node.get(key)
        fields[key] = text.value if text is not None else ""
    named = TOOLS if tools is None else [item.value for item in entries(tools)]
    fields["tools"] = tuple([tool for tool in TOOLS if tool in named])
    if tools is not None:
        fields["mcp"] = tuple([name for name in named if name.startswith(PREFIX)])
    return AgentType(name=name, description=node.value["description"].value, **fields)


def _agent(checked: Checked, step: RawStep, node: Node) -> dict[str, Any]:
    """Return the agent of a step in which `find` found nothing wrong."""
    values = node.value
    types = types_of(checked.outline.root)
    kind = types[values["type"].value if "type" in values else "general"]
    mode = values["mode"].value if "mode" in values else kind.mode
    limits = MODES[mode] if mode else None
    prompt = values.get("prompt", values.get("task"))
    fields: dict[str, Any] = {
        "type": kind.name,
        "prompt": checked.formulas.text(prompt) if prompt is not None else _about(step),
        "instructions": kind.prompt,
    }
    fields |= _tools(kind, mode, values.get("tools"))
    if servers := _servers_of(checked.outline.root):
        fields |= _of_servers(kind, servers, values.get("tools"))
    if mode:
        fields["mode"] = mode
    own = vars(kind)
    fields["max_tokens"] = own.get("max_tokens", limits.max_tokens if limits else MAX_TOKENS)
    fields["max_turns"] = own.get("max_turns", limits.max_turns if limits else MAX_TURNS)
    for key in ("max_tokens", "max_turns"):
        if key in values:
            fields[key] = as_int(values[key])
    if "max_usd" in values:
        fields["max_usd"] = float(as_number(values["max_usd"]))
    if "prompt_suffix" in values:
        fields["suffix"] = checked.formulas.text(values["prompt_suffix"])
    if "model" in values or kind.model:
        fields["model"] = values["model"].value if "model" in values else kind.model
    llm = checked.outline.root.get("llm")
    delegates = scalar(llm.get("delegate_steps")) if llm is not None and llm.kind == MAPPING else None
    if delegates is not None and not as_bool(delegates):
        fields["workspace"] = "shared"
    fields |= _ways(values)
    return {"action": Agent(**fields), "outputs": checked.outputs[step.id]}


def _ways(values: dict[str, Node]) -> dict[str, Any]:
    """Return how an agent works: on what, with which pages, and what becomes of its plan and its patch."""
    fields: dict[str, Any] = {key: values[key].value for key in ("apply", "workspace") if key in values}
    if "plan_mode" in values and as_bool(values["plan_mode"]):
        fields["plan_mode"] = True
    if "web" in values:
        fields["web"] = tuple([host.value.lower() for host in entries(values["web"].value["allow"])])
    return fields


def _tools(kind: AgentType, mode: str, node: Node | None) -> dict[str, Any]:
    """Return the tools that an agent has, and those that it may ask for: what `allow` has besides its type."""
    allow = node.get("allow") if node is not None else None
    deny = [item.value for item in entries(node.get("deny") if node is not None else None)]
    if allow is None:
        own = [name for name in kind.tools if name not in BY_NAME or kind.name not in TYPES]
        return {"tools": offered(own, mode, deny)}
    allowed = [item.value for item in entries(allow)]
    found = offered([name for name in allowed if name in kind.tools], mode, deny)
    more = offered([name for name in allowed if name not in kind.tools], mode, deny)
    if more and "request_tool" in kind.tools and "request_tool" not in deny:
        found = offered([*found, "request_tool"], mode, deny)
    return {"tools": found, **({"grantable": more} if more else {})}


def _of_servers(kind: AgentType, servers: list[str], node: Node | None) -> dict[str, Any]:
    """Return which tools of MCP servers an agent has: those that it or its type names; all where its type has all."""
    allow = node.get("allow") if node is not None else None
    if allow is not None:
        found = [item.value for item in entries(allow) if item.value.startswith(PREFIX)]
    elif kind.mcp is not None:
        found = list(kind.mcp)
    else:
        found = [full_name(server) for server in servers] if kind.tools == TOOLS else []
    denied = [item.value for item in entries(node.get("deny") if node is not None else None)]
    denied = [name for name in denied if name.startswith(PREFIX)]
    kept = tuple([name for name in found if name not in denied])
    if not kept:
        return {}
    return {"mcp": kept, **({"mcp_deny": tuple(denied)} if denied else {})}


COMPILE = {"agent": _agent}
