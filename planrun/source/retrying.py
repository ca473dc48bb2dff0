"""When a failed attempt is repeated, as a plan says it."""

from __future__ import annotations

from planrun.model.plan import Retry
from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.source.outline import members
from planrun.source.shape import as_duration, as_int, as_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
