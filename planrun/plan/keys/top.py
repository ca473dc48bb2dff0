"""The keys at the top of a plan that concern whole runs: params, limits, secrets and the language model."""

from __future__ import annotations

from planrun.model.plan import Limits, Param
from planrun.model.planning import Llm
from planrun.plan.keys.outline import entries, members, scalar
from planrun.plan.problems import did_you_mean
from planrun.plan.schema.forms import as_bool, as_duration, as_int, as_number, to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node


def params_of(fragments: Mapping[str, Mapping[str, Any]]) -> tuple[Param, ...]:
    """Return the parameters of a plan in file order; `fragments`: as they were written, by name."""
    found = []
    for name, fragment in fragments.items():
        schema = {key: value for key, value in fragment.items() if key != "required"}
        required = {"required": True} if fragment.get("required") is True else {}
        found.append(Param(name=name, schema=schema, **required))
    return tuple(found)


def limit_of(root: Node, key: str) -> int:
    """Return a number under `limits`, of a file that may be invalid; the default where it is not a number."""
    limits = root.get("limits")
    given = scalar(limits.get(key)) if limits is not None else None
    try:
        return as_int(given) if given is not None else int(getattr(Limits, key))
    except ValueError:  # reported by the check of the shape
        return int(getattr(Limits, key))


def limits_of(node: Node | None) -> Limits:
    """Return the limits of a run."""
    fields: dict[str, Any] = {}
    for key, value in members(node):
        if key in ("deadline", "cleanup"):
            fields[key] = as_duration(value.value)
        elif key == "max_usd":
            fields[key] = float(as_number(value))
        elif key == "locks":
            fields[key] = {name: as_int(slots) for name, slots in members(value)}
        else:
            fields[key] = as_int(value)
    return Limits(**fields)


ROUNDS = {"rounds": 2, "pause": 60.0}
"""What `resume: {auto: true}` stands for."""


def rounds_of(node: Node) -> dict[str, float]:
    """Return how a run goes on by itself: rounds and the seconds before each; empty where it does not."""
    auto = node.get("auto")
    if auto is None or (auto.kind == SCALAR and not as_bool(auto)):
        return {}
    found: dict[str, float] = dict(ROUNDS)
    if auto.kind == MAPPING:
        for key, value in members(auto):
            found[key] = as_int(value) if key == "rounds" else as_duration(value.value)
    return found


RESERVED = "PLANRUN_"


def declared_secrets(root: Node) -> dict[str, Node]:
    """Return the secrets that a plan declares, by name, with their first place."""
    found: dict[str, Node] = {}
    for node in _names(root):
        found.setdefault(node.value, node)
    return found


def optional_secrets(root: Node) -> tuple[str, ...]:
    """Return the secrets that a plan declares as not required."""
    mappings = [node for node in _written(root) if node.kind == MAPPING]
    return tuple([node.value["name"].value for node in mappings if _is_optional(node.get("required"))])


def _is_optional(node: Node | None) -> bool:
    return node is not None and not as_bool(node)


def _written(owner: Node) -> list[Node]:
    listed = owner.get("secrets")
    return listed.value if listed is not None and listed.kind == SEQUENCE else []


def _names(owner: Node) -> list[Node]:
    """Return the names of the secrets that a plan declares or a step lists."""
    named = [node.get("name") if node.kind == MAPPING else node for node in _written(owner)]
    return [node for node in named if node is not None and node.kind == SCALAR]


def check(checked: Checked) -> None:
    """Report names that are reserved, listed twice or not declared, and those that an `env` sets as well."""
    outline = checked.outline
    declared = declared_secrets(outline.root)
    listing = [raw for raw in outline.steps if "secrets" in raw.keys]
    if not declared and not listing:
        return
    _check_list(outline, outline.root)
    for raw in listing:
        _check_list(outline, raw.node)
        for node in entries(raw.keys["secrets"]):
            if node.value not in declared:
                hint = did_you_mean(node.value, declared) or _declare(node.value, declared)
                outline.report("E232", f'undeclared secret "{node.value}"', node, hint)
        listed = {node.value: node for node in entries(raw.keys["secrets"])}
        _check_env(outline, raw.node, listed)
        for undo in raw.undos:
            _check_env(outline, undo.node, listed)
    _check_env(outline, outline.root, declared)


def _check_list(outline: Outline, owner: Node) -> None:
    first: dict[str, Node] = {}
    for node in _names(owner):
        name = node.value
        if name.startswith(RESERVED):
            outline.report("E230", f"reserved environment variable {name}: planrun sets it", node)
        elif first.setdefault(name, node) is not node:
            place = first[name]
            related = ((place.line, place.col, "first defined here"),)
            message = f'duplicate secret "{name}", first on {outline.line_of(place)}'
            outline.report("E234", message, node, related=related)


def _check_env(outline: Outline, owner: Node, secrets: dict[str, Node]) -> None:
    """Report the variables of an `env` that are secrets, too: which of both a step sees would be ambiguous."""
    env = owner.get("env")
    for name, _ in members(env):
        if name in secrets and env is not None:
            related = ((secrets[name].line, secrets[name].col, "the secret is listed here"),)
            message = f"{name} is a secret and is also set by `env`"
            hint = "remove it from one of the two"
            outline.report("E233", message, env.key(name), hint, related=related)


def _declare(name: str, declared: dict[str, Node]) -> str:
    names = ", ".join([*declared, name])
    return f"declare it at the top level: `secrets: [{names}]`"


def _seconds(node: Node) -> float:
    return as_duration(node.value)


_READ: dict[str, Callable[[Node], Any]] = {
    "plan_max_tokens": as_int,
    "max_generated_steps": as_int,
    "retries": as_int,
    "extra_body": to_data,
    "enabled": as_bool,
    "max_context_tokens": as_int,
    "clear_context": as_bool,
    "delegate_steps": as_bool,
    "planning_timeout": _seconds,
    "timeout": _seconds,
}


def llm_of(node: Node) -> Llm:
    """Return what a plan says about its model."""
    fields: dict[str, Any] = {}
    for name, value in members(node):
        if value.kind == MAPPING and name != "extra_body":
            from planrun.plan.keys.collaboration import settings_of  # few plans have agents

            fields[name] = settings_of(name, value)
        else:
            fields[name] = _READ[name](value) if name in _READ else value.value
    return Llm(**{name: value for name, value in fields.items() if value != {}})
