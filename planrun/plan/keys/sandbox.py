"""The key `sandbox` of a step, of `defaults` and of a policy, and `llm_sandbox` of a policy: checked and compiled."""

from __future__ import annotations

from planrun.model.plan import Sandbox
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.outline import entries, scalar
from planrun.plan.kinds import PROCESSES
from planrun.plan.schema.forms import as_bool, as_int, as_size
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline, RawStep

_DEFAULT = "low"  # the level of a mapping that names none
_HOST = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_SIZES = ("memory", "file_size")


def check(checked: Checked) -> None:
    """Report sandboxes of steps that start no process or run in a container, and hosts and paths that are none."""
    outline = checked.outline
    for raw in outline.steps:
        node = raw.keys.get("sandbox")
        if node is None:
            continue
        check_sandbox(outline, node)
        if _is_off(node):
            continue
        place = raw.node.key("sandbox")
        if not any(action in raw.keys for action in PROCESSES):
            message = f'step "{raw.id}" cannot have a sandbox: it starts no process'
            outline.report("E301", message, place, f"it requires {', '.join(PROCESSES)}")
        container = raw.keys.get("container")
        if container is not None and (container.kind == MAPPING or container.value):
            message = f'step "{raw.id}" cannot have a sandbox: its container engine confines it'
            hint = "remove one of the two; a container has `network: none` and `volumes`"
            outline.report("E301", message, place, hint)
    defaults = outline.root.get("defaults")
    node = defaults.get("sandbox") if defaults is not None and defaults.kind == MAPPING else None
    if node is not None:
        check_sandbox(outline, node)


def check_sandbox(outline: Outline, node: Node) -> None:
    """Report hosts and paths that mean nothing."""
    if node.kind != MAPPING:
        return
    network = node.get("network")
    for host in entries(network.get("allow")) if network is not None and network.kind == MAPPING else ():
        if scalar(host) is not None and not is_host(host.value):
            hint = "write a name such as `pypi.org`, `*.example.com` or `localhost:8080`"
            outline.report("E301", f'"{host.value}" is no host', host, hint)
    for key in ("read", "write"):
        for path in entries(node.get(key)):
            if scalar(path) is not None and (OPEN in path.value or not path.value.strip()):
                outline.report(
                    "E301", f'"{path.value}" is no path', path, "interpolations are not evaluated here"
                )


def is_host(text: str) -> bool:
    """Whether a text is a host, `*.domain`, or one of these with a port; IPv6 addresses stand in brackets."""
    name, colon, port = (
        text.lower().rpartition(":") if "]" not in text or text[-1:] != "]" else (text, "", "")
    )
    if not colon:
        name, port = text.lower(), "1"
    if not port.isdecimal() or not 0 < int(port) < 65536:
        return False
    if name.startswith("[") and name.endswith("]"):
        return bool(name[1:-1]) and set(name[1:-1]) <= set("0123456789abcdef:.")
    name = name.removeprefix("*.")
    return bool(name) and _HOST.issuperset(name) and not name.startswith((".", "-")) and ".." not in name


def _is_off(node: Node) -> bool:
    level = node.get("level") if node.kind == MAPPING else node
    return scalar(level) is not None and level.value == "off"  # type: ignore[union-attr]


def sandbox_of(node: Node, level: str = _DEFAULT) -> Sandbox:
    """Return the sandbox that a word or a mapping says; `level`: where it names none."""
    if node.kind != MAPPING:
        word: Any = "" if node.value == "risk" else node.value
        return Sandbox(level=word, line=node.line)
    fields: dict[str, Any] = {"level": level, "line": node.line}
    for key, value in node.value.items():
        if key == "network":
            if value.kind == MAPPING:
                hosts = tuple([host.value.lower() for host in entries(value.value["allow"])])
                fields |= {"network": "hosts", "hosts": hosts}
            else:
                fields["network"] = value.value
        elif key in ("read", "write"):
            fields[key] = tuple([path.value for path in entries(value)])
        elif key == "require":
            fields[key] = as_bool(value)
        elif key in _SIZES:
            fields[key] = as_size(value.value)
        elif key == "processes":
            fields[key] = as_int(value)
        else:
            fields[key] = value.value
    return Sandbox(**fields)


def sandboxes_of(policy: Node) -> dict[str, Sandbox]:
    """Return the sandboxes of a policy; that of models has the level of the risk class where it names none."""
    levels = {"sandbox": _DEFAULT, "llm_sandbox": ""}
    return {key: sandbox_of(policy.value[key], level) for key, level in levels.items() if key in policy.value}


def _sandbox(_checked: Checked, _step: RawStep | None, node: Node) -> dict[str, Any]:
    return {"sandbox": sandbox_of(node)}


COMPILE = {"sandbox": _sandbox}
