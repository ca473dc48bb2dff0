"""The keys of the search: the facts of steps, and `search` at the top with the steps that it may take."""

from __future__ import annotations

from planrun.model.search import PRESETS, Search
from planrun.plan.keys.outline import entries, members
from planrun.plan.schema.forms import as_bool, as_duration, as_int
from planrun.plan.yaml.node import MAPPING, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node

FACTS = ("requires", "provides", "deletes")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@+-")
NOT_OF_PARTS = (
    *("depends_on", "condition", "recovers", "replaces", "matrix", "foreach", "uses", "service"),
    *("on_failure", "parallel"),
)
"""What a part cannot say: its facts decide when it starts, and it is one step."""


def _words(node: Node) -> tuple[str, ...]:
    return tuple([each.value for each in entries(node)])


_READ: dict[str, Callable[[Node], Any]] = {
    "goal": _words,
    "start": _words,
    "planning_timeout": lambda node: as_duration(node.value),
    "replan_on_failure": as_bool,
    **dict.fromkeys(
        ("beam_width", "mcts_iterations", "max_tree_depth", "max_tree_nodes", "seed", "candidates"), as_int
    ),
}


def search_of(node: Node) -> Search:
    """Return the settings of a plan, without its parts: what it does not say follows from the thoroughness."""
    given = {
        name: _READ[name](value) if name in _READ else value.value
        for name, value in members(node)
        if name != "parts"
    }
    preset = PRESETS[given.get("thoroughness", "normal")]
    fields = {**{name: value for name, value in preset.items() if name != "max_replans"}, **given}
    return Search(**{name: value for name, value in fields.items() if value != getattr(Search, name)})


def parts_of(root: Node) -> list[Node]:
    """Return the steps that a search may take, as they are written."""
    search = root.get("search") if root.kind == MAPPING else None
    parts = search.get("parts") if search is not None and search.kind == MAPPING else None
    return list(parts.value) if parts is not None and parts.kind == SEQUENCE else []


def check(checked: Checked) -> None:
    """Report names that are no facts, parts that a search could not take, and goals that nothing provides."""
    outline = checked.outline
    root = outline.root
    parts = [part for part in parts_of(root) if part.kind == MAPPING]
    for owner in (*[raw.node for raw in outline.steps], *parts):
        for key in FACTS:
            _check_facts(outline, owner.get(key) if owner.kind == MAPPING else None)
    search = root.get("search")
    known = set(_given(outline, parts))
    for raw in outline.steps:
        for node in entries(raw.keys.get("requires")):
            if node.value in outline.by_id and node.value not in known:
                message = f'"{node.value}" is the id of a step, and no fact that a step provides'
                outline.report("E302", message, node, f"to wait for the step: `depends_on: [{node.value}]`")
    if search is None or search.kind != MAPPING:
        return
    for key in ("goal", "start"):
        _check_facts(outline, search.get(key))
    for part in parts:
        _check_part(outline, part)
    for node in entries(search.get("goal")):
        if node.value not in known:
            hint = outline.nearest(node.value, known) or f"add `provides: {node.value}` to a step or a part"
            outline.report("E302", f'nothing provides the fact "{node.value}"', node, hint)


def _given(outline: Outline, parts: list[Node]) -> Iterator[str]:
    for owner in (*[raw.node for raw in outline.steps], *parts):
        if owner.kind == MAPPING:
            yield from _words(owner.get("provides")) if owner.get("provides") is not None else ()  # type: ignore[arg-type]
    search = outline.root.get("search")
    start = search.get("start") if search is not None and search.kind == MAPPING else None
    yield from _words(start) if start is not None else ()


def is_fact(name: str) -> bool:
    """Return whether a text can be the name of a fact."""
    return bool(name) and _LETTERS.issuperset(name) and len(name) <= 100


def _check_facts(outline: Outline, node: Node | None) -> None:
    for each in entries(node):
        if each.value and not is_fact(each.value):
            hint = "use letters, digits and `_ . / @ + -`, at most 100"
            outline.report("E302", f'"{each.value[:100]}" is not the name of a fact', each, hint)


def _check_part(outline: Outline, part: Node) -> None:
    for key in NOT_OF_PARTS:
        if key in part.value:
            hint = "its facts decide when it starts: `requires`, `provides`, `deletes`"
            outline.report("E302", f"`{key}` does not apply to a part", part.key(key), hint)
    for key, hint in (("id", "each part has an id"), ("provides", "name the facts that it provides")):
        if key not in part.value:
            outline.report("E102", f"`{key}` is missing in a part", part, hint)
