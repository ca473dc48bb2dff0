"""The key `hooks`: commands before and after each step that starts a process."""

from __future__ import annotations

from planrun.model.plan import Hook
from planrun.plan.keys.outline import scalar
from planrun.plan.kinds.command import Exec, Run
from planrun.plan.schema.forms import as_duration
from planrun.plan.yaml.node import MAPPING, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from planrun.plan.keys.checked import Checked

MAX_HOOKS = 10
"""Of one plan: each is a process more for every step."""
_OPEN = "${{"
_KEYS: tuple[tuple[str, Literal["before", "after"]], ...] = (
    ("before_step", "before"),
    ("after_step", "after"),
)


def _nodes(root: Node) -> Iterator[tuple[Literal["before", "after"], Node]]:
    held = root.get("hooks")
    if held is None or held.kind != MAPPING:
        return
    for key, when in _KEYS:
        node = held.get(key)
        if node is not None:
            listed = node.value if node.kind == SEQUENCE else [node]
            yield from [(when, each) for each in listed if each.kind == MAPPING]


def check(checked: Checked) -> None:
    """Report hooks without a command, or with two, and interpolations, which are not evaluated in them."""
    outline = checked.outline
    nodes = [node for _, node in _nodes(outline.root)]
    if len(nodes) > MAX_HOOKS:
        outline.report(
            "E241", f"too many hooks: {len(nodes)}; at most {MAX_HOOKS} are allowed", nodes[MAX_HOOKS]
        )
    for node in nodes:
        named = [key for key in ("run", "exec") if key in node.value]
        if len(named) != 1:
            what = "has two commands" if named else "has no command"
            outline.report("E209", f"a hook {what}", node, "write exactly one of `run` and `exec`")
        for key in named:
            words = node.value[key].value if node.value[key].kind == SEQUENCE else [node.value[key]]
            for word in words:
                if scalar(word) is not None and _OPEN in word.value:
                    hint = "a hook reads PLANRUN_STEP, PLANRUN_ATTEMPT, PLANRUN_STATUS and others"
                    outline.report("E300", "interpolations are not evaluated in `hooks`", word, hint)


def hooks_of(root: Node) -> tuple[Hook, ...]:
    """Return the hooks of a plan in which `check` found nothing wrong, those before a step first."""
    return tuple([_hook(when, node) for when, node in _nodes(root)])


def _hook(when: Literal["before", "after"], node: Node) -> Hook:
    fields: dict[str, Any] = {"when": when}
    if "run" in node.value:
        fields["action"] = Run(script=node.value["run"].value)
    else:
        fields["action"] = Exec(argv=tuple([word.value for word in node.value["exec"].value]))
    if "timeout" in node.value:
        fields["timeout"] = as_duration(node.value["timeout"].value)
    if "on_failure" in node.value and node.value["on_failure"].value == "fail":
        fields["fatal"] = True
    return Hook(**fields)
