"""When a failed attempt is repeated, as a plan says it.

What the failure of a step means where the step itself does not say it.
"""

from __future__ import annotations

from planrun.model.plan import Retry
from planrun.plan.keys.outline import members
from planrun.plan.schema.forms import as_duration, as_int, as_number
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.compile.compile import Compiler

_WORDS = ("any", "timeout", "idle_timeout")  # what `retries: {on: …}` names besides the classes of errors


_MAX = 2  # extra attempts where a mapping does not say it


def retry_of(node: Node, unknown: str = "fail") -> Retry:
    """Return what a number of extra attempts says, or the mapping with its backoff and filters.

    `unknown`: whether `on: auto` repeats what no rule knows (`retry`) or not (`fail`).
    """
    if node.kind != MAPPING:
        return Retry(max=as_int(node))
    fields: dict[str, Any] = {"max": as_int(node.value["max"]) if "max" in node.value else _MAX}
    for key, value in members(node.get("backoff")):
        if key in ("initial", "max"):
            fields["cap" if key == "max" else key] = as_duration(value.value)
        else:
            fields[key] = float(as_number(value))
    if "on" in node.value:
        rules = node.value["on"]
        if rules.kind == SCALAR:
            classes = ("transient", "unknown") if unknown == "retry" else ("transient",)
            fields["on"] = tuple([("class", name) for name in classes])
        else:
            fields["on"] = tuple([_retry_rule(rule) for rule in rules.value])
    return Retry(**fields)


def _retry_rule(node: Node) -> tuple[Any, ...]:
    if node.kind != MAPPING:
        word = node.value
        return (word,) if word in _WORDS else ("class", word)
    for key, value in node.value.items():
        if key == "exit":
            codes = value.value if value.kind == SEQUENCE else [value]
            return ("exit", tuple([as_int(code) for code in codes]))
        return (key, value.value)
    return ("any",)


_GATES = ("ask", "decide")  # their `no` is no failure of anything that ran


def meaning_of_failure(compiler: Compiler, fields: dict[str, Any]) -> None:
    """Fill in what policy and model make of its failures, where neither the step nor `defaults` say it."""
    if compiler.policy is not None and "on_failure" not in fields and fields["kind"] not in _GATES:
        from planrun.plan.keys.policy import failure_word

        reversible = fields.get("reversible", True if "rollback" in fields else None)
        word = failure_word(
            compiler.policy, fields.get("risk", "high"), fields.get("effects", ()), reversible=reversible
        )
        if word:
            fields["on_failure"] = word
    if compiler.around is not None and fields.get("on_failure") == "replan":
        fields["on_failure"] = "block"
    if fields.get("section") == "finally" or fields["kind"] in _GATES or compiler.around is not None:
        return
    if fields.get("on_failure") == "replan":
        fields["replan"] = "any"
    elif (
        compiler.llm is not None and "on_failure" not in fields and compiler.llm.replan_on_failure != "never"
    ):
        fields["replan"] = compiler.llm.replan_on_failure
