"""The keys `validate`, `expect`, `verify` and `criteria`: what must hold, checked and compiled."""

from __future__ import annotations

from planrun.expressions.parse import bare
from planrun.model.plan import Check
from planrun.plan.keys.formulas import COMPLETED, LIST_CHECKS
from planrun.plan.keys.outline import entries, members
from planrun.plan.kinds import PROCESSES
from planrun.plan.kinds.command import Exec, Run
from planrun.plan.kinds.validate import Validate
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Action
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import RawStep


def checks_of(checked: Checked, node: Node, step: str) -> tuple[Check, ...]:
    """Return the checks of a list, the shape of which is right."""
    return tuple([_check(checked, name, value, step) for item in node.value for name, value in members(item)])


def _check(checked: Checked, kind: str, node: Node, step: str) -> Check:
    value: Any
    if kind == COMPLETED:
        links = checked.outline.by_id[step].links
        value = tuple(
            [item.value for item in node.value] if node.kind == SEQUENCE else [link.on for link in links]
        )
        source = ", ".join(value)
    elif kind in LIST_CHECKS:
        value = checked.formulas.words(node)
        source = ", ".join(item.value for item in entries(node))
    elif kind == "that":
        value = checked.formulas.tree(node)
        source = bare(node.value)
    else:
        schema = node.value["schema"]
        source = node.value["file"].value
        value = {
            "file": checked.formulas.text(node.value["file"]),
            "schema": to_data(schema) if schema.kind == MAPPING else checked.formulas.text(schema),
        }
    return Check(kind=kind, value=value, source=source)  # type: ignore[arg-type]  # its shape was checked


PROOFS = ("expect", "verify")
_PROVING = frozenset(PROOFS)


def check(checked: Checked) -> None:
    """Report proofs of steps that do nothing a proof could be about: gates, abstract steps and whole plans.

    Criteria without a proof are reported, too: nothing else would be evidence for them.
    """
    outline = checked.outline
    for raw in outline.steps:
        if "criteria" in raw.keys and _PROVING.isdisjoint(raw.keys):
            message = f'"criteria" of step "{raw.id}" without a post-check'
            hint = "add `expect` or `verify`, which check the criteria"
            outline.report("E254", message, raw.keys["criteria"], hint)
        if "verify_timeout" in raw.keys and "verify" not in raw.keys:
            message = f'"verify_timeout" of step "{raw.id}" requires `verify`'
            outline.report(
                "E208", message, raw.keys["verify_timeout"], "it limits each command under `verify`"
            )
        for key in PROOFS:
            if key in raw.keys and not any(action in raw.keys for action in PROCESSES):
                message = f'"{key}" of step "{raw.id}" has no action to check'
                hint = f"it requires {', '.join(PROCESSES[:-1])} or {PROCESSES[-1]}"
                outline.report("E208", message, raw.keys[key], hint)


def _expect(checked: Checked, step: RawStep, node: Node) -> dict[str, Any]:
    return {"expect": checks_of(checked, node, step.id)}


def _verify(checked: Checked, _step: RawStep, node: Node) -> dict[str, Any]:
    return {"verify": tuple([_action(checked, each) for each in commands(node)])}


def _validate(checked: Checked, step: RawStep, node: Node) -> dict[str, Any]:
    return {"action": Validate(checks=checks_of(checked, node, step.id))}


COMPILE = {"expect": _expect, "verify": _verify, "validate": _validate}


def commands(node: Node) -> list[Node]:
    """Return the commands of `verify`, each a text or a list of words."""
    return list(node.value) if node.kind == SEQUENCE else [node]


def _action(checked: Checked, node: Node) -> Action:
    if node.kind == SCALAR:
        return Run(script=checked.formulas.text(node, script=True))
    return Exec(argv=checked.formulas.words(node))
