"""The steps that a search may take, checked as if they stood under `steps:`."""

from __future__ import annotations

from planrun.plan.keys.search import parts_of
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Included, Outline


def check_parts(
    checked: Checked, included: Included, validated: Callable[[Outline, Included], Checked]
) -> None:
    """Check the parts of a plan, report their problems, and keep them for the compiler.

    `validated` checks what a plan means. A step that is a part with edges is that part, taken by a search: it counts
    once.
    """
    outline = checked.outline
    parts, steps = parts_of(outline.root), outline.root.get("steps")
    if not parts or steps is None or steps.kind != SEQUENCE:
        return
    tree = Node(MAPPING, dict(outline.root.value), outline.root.line, outline.root.col)
    tree.keys = outline.root.keys
    taken = {_name(part): to_data(part) for part in parts}
    others = [step for step in steps.value if not _is_taken(step, taken)]
    tree.value["steps"] = Node(SEQUENCE, [*others, *parts], steps.line, steps.col)
    del tree.value["search"]
    found = validated(outline.of_tree(tree), included)
    for problem in found.problems:
        outline.add(problem)
    checked.parts = found


def _is_taken(step: Node, parts: dict[str, Any]) -> bool:
    part = parts.get(_name(step))
    if part is None:
        return False
    written = to_data(step).items()
    return bool({key: value for key, value in written if key not in ("depends_on", "replaces")} == part)


def _name(step: Node) -> str:
    node = step.get("id") if step.kind == MAPPING else None
    return str(node.value) if node is not None and node.kind == SCALAR else ""
