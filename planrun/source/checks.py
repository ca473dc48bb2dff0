"""Checks of `validate` and `expect`, compiled."""

from __future__ import annotations

from planrun.expressions.scan import bare
from planrun.model.plan import Check
from planrun.source.node import MAPPING, SEQUENCE, Node
from planrun.source.outline import entries, members
from planrun.source.places import COMPLETED, LIST_CHECKS
from planrun.source.shape import to_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.compile import Compiler


def checks_of(compiler: Compiler, node: Node, step: str) -> tuple[Check, ...]:
    """Return the checks of a list, the shape of which is right."""
    return tuple(
        [_check(compiler, name, value, step) for item in node.value for name, value in members(item)]
    )


def _check(compiler: Compiler, kind: str, node: Node, step: str) -> Check:
    value: Any
    if kind == COMPLETED:
        links = compiler.outline.by_id[step].links
        value = tuple(
            [item.value for item in node.value] if node.kind == SEQUENCE else [link.on for link in links]
        )
        source = ", ".join(value)
    elif kind in LIST_CHECKS:
        value = compiler.words(node)
        source = ", ".join(item.value for item in entries(node))
    elif kind == "that":
        value = compiler.formulas.tree(node)
        source = bare(node.value)
    else:
        schema = node.value["schema"]
        source = node.value["file"].value
        value = {
            "file": compiler.formulas.text(node.value["file"]),
            "schema": to_data(schema) if schema.kind == MAPPING else compiler.formulas.text(schema),
        }
    return Check(kind=kind, value=value, source=source)  # type: ignore[arg-type]  # its shape was checked
