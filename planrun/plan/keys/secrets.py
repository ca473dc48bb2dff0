"""What a plan says about secrets: what it declares, which steps list it, and where the name means something else."""

from __future__ import annotations

from planrun.plan.keys.outline import entries, members
from planrun.plan.problems import did_you_mean
from planrun.plan.schema.forms import as_bool
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node

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


def check_secrets(outline: Outline) -> None:
    """Report names that are reserved, listed twice or not declared, and those that an `env` sets as well."""
    declared = declared_secrets(outline.root)
    listing = [draft for draft in outline.drafts if "secrets" in draft.keys]
    if not declared and not listing:
        return
    _check_list(outline, outline.root)
    for draft in listing:
        _check_list(outline, draft.node)
        for node in entries(draft.keys["secrets"]):
            if node.value not in declared:
                hint = did_you_mean(node.value, declared) or _declare(node.value, declared)
                outline.report("E232", f'"{node.value}" is not among the secrets of the plan', node, hint)
        listed = {node.value: node for node in entries(draft.keys["secrets"])}
        _check_env(outline, draft.node, listed)
        if draft.undo is not None:
            _check_env(outline, draft.undo.node, listed)
    _check_env(outline, outline.root, declared)


def _check_list(outline: Outline, owner: Node) -> None:
    first: dict[str, Node] = {}
    for node in _names(owner):
        name = node.value
        if name.startswith(RESERVED):
            outline.report("E230", f"the environment variable {name} is set by planrun itself", node)
        elif first.setdefault(name, node) is not node:
            place = first[name]
            related = ((place.line, place.col, "the first one is here"),)
            message = f'the secret "{name}" is listed twice, first on {outline.line_of(place)}'
            outline.report("E234", message, node, related=related)


def _check_env(outline: Outline, owner: Node, secrets: dict[str, Node]) -> None:
    """Report the variables of an `env` that are secrets, too: nobody could tell which of both a step sees."""
    env = owner.get("env")
    for name, _ in members(env):
        if name in secrets and env is not None:
            related = ((secrets[name].line, secrets[name].col, "the secret is here"),)
            message = f"{name} is a secret, and `env` sets it as well"
            hint = "which one is meant? take it out of one of the two"
            outline.report("E233", message, env.key(name), hint, related=related)


def _declare(name: str, declared: dict[str, Node]) -> str:
    names = ", ".join([*declared, name])
    return f"declare it at the top level: `secrets: [{names}]`"
