"""Steps that run in a container: checked, compiled, and what a container adds to the risk of a step."""

from __future__ import annotations

from planrun.model.plan import Container
from planrun.source.node import MAPPING, SCALAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Text
    from planrun.source.compile import Compiler
    from planrun.source.node import Node
    from planrun.source.outline import Outline

_ACTS = ("run", "exec")
_DIGEST = "@sha256:"
_PULLS = "an image that is not there is fetched from a registry"


def check_containers(outline: Outline) -> None:
    """Report containers of steps that start no process of their own."""
    for draft in outline.drafts:
        if "container" in draft.keys and not any(action in draft.keys for action in _ACTS):
            what = (
                "a tool runs with planrun, outside of it" if "tool" in draft.keys else "it starts no process"
            )
            message = f'step "{draft.id}" cannot run in a container: {what}'
            outline.report("E293", message, draft.node.key("container"), "it goes with `run` and `exec`")


def container_of(compiler: Compiler, node: Node) -> Container:
    """Return the record of a container; a scalar is the image alone."""
    if node.kind != MAPPING:
        return Container(image=compiler.formulas.text(node))
    fields: dict[str, Any] = {"image": compiler.formulas.text(node.value["image"])}
    if "env" in node.value:
        fields["env"] = compiler.texts(node.value["env"])
    if "volumes" in node.value:
        fields["volumes"] = compiler.words(node.value["volumes"])
    if "user" in node.value:
        fields["user"] = compiler.formulas.text(node.value["user"])
    if "network" in node.value:
        fields["network"] = node.value["network"].value
    return Container(**fields)


def least(container: Container) -> tuple[str, str]:
    """Return the least risk of a step in a container, and why; what is known only later counts as the worst."""
    for volume in container.volumes:
        if _is_of_host(volume):
            return "high", "its container gets files of this machine"
    if container.network not in ("", "none", "bridge"):
        return "high", "its container is on a network of this machine"
    if isinstance(container.image, str) and _DIGEST in container.image:
        return "read-only", ""
    return "medium", _PULLS


def _is_of_host(volume: Text) -> bool:
    """Say whether a volume is, or may be, a path of this machine; a name of letters and digits is a volume's own."""
    if not isinstance(volume, str):
        return True
    source = volume.partition(":")[0] if ":" in volume else ""
    return not source.replace("-", "").replace("_", "").replace(".", "a").isalnum() or source.startswith(".")


def places(node: Node) -> list[tuple[Node, str]]:
    """Return where expressions stand in a container."""
    if node.kind == SCALAR:
        return [(node, "text")]
    found = [node.get("image"), node.get("user")]
    for key in ("env", "volumes"):
        held = node.get(key)
        if held is not None:
            found += (
                held.value.values() if held.kind == MAPPING else held.value if held.kind != SCALAR else []
            )
    return [(each, "text") for each in found if each is not None and each.kind == SCALAR]
