"""What `tool` and `args` mean: the call that they are, and every problem beyond their shape."""

from __future__ import annotations

from planrun.model.tools import CATALOGUE, LATER, NAMES, SCRIPT, SHELL, faults, named
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.outline import members, scalar
from planrun.plan.kinds.tool import Shell, Tool
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.node import MAPPING, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Text
    from planrun.model.tools import Fault, Fragment, Path, Spec
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.formulas import Formulas
    from planrun.plan.keys.outline import Outline, RawStep

_CODES = {"missing": "E102", "unknown": "E104", "type": "E101", "value": "E106", "choice": "E118"}
# What only the tool `shell` has a use for.
_OF_SHELLS = {"outputs": "a tool has outputs of its own", "shell": "no shell is started"}


def _call(checked: Checked, step: RawStep, tool: Node) -> dict[str, Any]:
    """Return the call of a step in which `check_call` found nothing wrong, and what it hands on."""
    formulas = checked.formulas
    spec = CATALOGUE[NAMES[tool.value]]
    args = _arguments(
        spec, step.keys.get("args"), lambda node, is_script: formulas.text(node, script=is_script)
    )
    given = named(spec, args)
    outputs = {"outputs": checked.outputs[step.id]} if checked.outputs.get(step.id) else {}
    if spec.name == SHELL:
        script = _joined([given["command"]] if "command" in given else given["commands"])
        return {"action": Shell(script=script), **outputs}
    action = Tool(name=spec.name, args=given)
    return {"action": action if spec.version == 1 else action.but(version=spec.version), **outputs}


COMPILE = {"tool": _call}


def find(checked: Checked) -> None:
    """Report what is wrong with the calls of a plan, and add what they hand on to the outputs."""
    outline, formulas, outputs = checked.outline, checked.formulas, checked.outputs
    for raw in outline.steps:
        tool = raw.keys.get("tool")
        if scalar(tool) is None or tool is None or outline.is_full:
            continue
        spec = check_call(outline, f'step "{raw.id}"', (tool, raw.keys.get("args")), formulas)
        if spec is None or spec.name == SHELL:
            continue
        for key, why in _OF_SHELLS.items():
            if key in raw.keys:
                message = f'`{key}` does not apply to the tool {spec.name} in step "{raw.id}"'
                outline.report("E271", message, raw.node.key(key), why)
        outputs[raw.id] = handed_on(spec)


def handed_on(spec: Spec) -> dict[str, dict[str, Any]]:
    """Return the outputs of a tool as a step would declare them."""
    return {name: {"type": fragment["type"]} for name, fragment in spec.outputs.items()}


def check_call(
    outline: Outline, label: str, written: tuple[Node, Node | None], formulas: Formulas
) -> Spec | None:
    """Report what is wrong with a call, its tool and arguments as written; returns the tool when there is one.

    `label` names in messages what the call belongs to.
    """
    tool, args = written
    if tool.value not in NAMES:
        hint = outline.nearest(tool.value, NAMES) or f"known tools: {', '.join(CATALOGUE)}"
        outline.report("E270", f'unknown tool "{tool.value}" in {label}', tool, hint)
        return None
    spec = CATALOGUE[NAMES[tool.value]]
    if args is not None and args.kind != MAPPING:
        return spec  # the check of the shape has reported it
    first: dict[str, str] = {}
    for name, _ in members(args):
        meant = spec.spellings.get(name, name)
        if first.setdefault(meant, name) != name and args is not None:
            message = f'"{name}" and "{first[meant]}" are the same argument of {spec.name} in {label}'
            outline.report("E118", message, args.key(name), f"write `{meant}` alone")

    def seen(node: Node, _is_script: object) -> Any:
        found = formulas.text(node)
        return LATER if isinstance(found, tuple) or OPEN in found else found

    for fault in faults(spec, named(spec, _arguments(spec, args, seen))):
        _report(outline, label, (spec, tool, args), fault)
    return spec


def _report(outline: Outline, label: str, called: tuple[Spec, Node, Node | None], fault: Fault) -> None:
    spec, tool, args = called
    at = _node(spec, args, fault.path) or tool
    hint = ""
    if fault.kind == "unknown":
        known = spec.params if len(fault.path) == 1 else _properties(spec, fault.path)
        meant = outline.nearest(str(fault.path[-1]), known)
        hint = meant or (
            f"{spec.name} takes {', '.join(known)}" if known else f"{spec.name} takes no arguments"
        )
    subject = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in fault.path)
    message = f'"args{subject}" of {spec.name} in {label} {fault.message}'
    if fault.kind in ("missing", "choice"):
        message = f"{spec.name} in {label} {fault.message}" if not subject else message
        message = message.replace("` is missing", "`").replace(f"{label} `", f"{label} needs `")
    outline.report(_CODES[fault.kind], message, at, hint)


def _properties(spec: Spec, path: Path) -> dict[str, Any]:
    schema: Fragment = spec.params[str(path[0])]
    for part in path[1:-1]:
        schema = (
            schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        )
    found: dict[str, Any] = schema.get("properties", {})
    return found


def _node(spec: Spec, args: Node | None, path: Path) -> Node | None:
    """Return the node at a path of arguments; of an unknown key the key."""
    node = args
    for position, part in enumerate(path):
        if node is None:
            return None
        if isinstance(part, int):
            node = node.value[part] if node.kind == SEQUENCE else node
            continue
        name = part
        if position == 0:  # it may be written in another way
            name = next((other for other in node.value if spec.spellings.get(other, other) == part), part)
        node = (node.get(name) if name in _known(spec, path, position) else None) or node.key(name)
    return node if path else None


def _known(spec: Spec, path: Path, position: int) -> Any:
    return [*spec.params, *spec.spellings] if position == 0 else _properties(spec, path[: position + 1])


def _arguments(spec: Spec, args: Node | None, read: Callable[[Node, bool], Any]) -> dict[str, Any]:
    """Return arguments as data; `read` says what a text with an interpolation becomes."""
    return {
        name: _data(node, spec.params.get(spec.spellings.get(name, name), {}), read)
        for name, node in members(args)
    }


def _data(node: Node, schema: Fragment, read: Callable[[Node, bool], Any]) -> Any:
    if node.kind == MAPPING:
        parts = schema.get("properties", {})
        return {name: _data(value, parts.get(name, {}), read) for name, value in node.value.items()}
    if node.kind == SEQUENCE:
        return [_data(item, schema.get("items", {}), read) for item in node.value]
    if OPEN in node.value:
        return read(node, schema.get("format") == SCRIPT)
    wanted = schema.get("type", "")
    return to_data(node, "string" if "string" in wanted and to_data(node) is not None else "")


def _joined(scripts: list[Text]) -> Text:
    """Return several scripts as one, a line end between them: the shell ends with the first that fails."""
    parts: list[Any] = []
    for script in scripts:
        for part in ["\n"] * bool(parts) + ([script] if isinstance(script, str) else [*script[1]]):
            if parts and isinstance(part, str) and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
    if all(isinstance(part, str) for part in parts):
        return "".join(parts)
    return ("template", tuple(parts))
