"""Where expressions stand in a plan: each place with the kind of text that it holds."""

from __future__ import annotations

from planrun.plan.keys.outline import Draft, entries, members, produced, texts_in
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Places = Iterator[tuple[Node, str]]

LIST_CHECKS = ("files_exist", "writable", "commands_on_path", "env_set")
COMPLETED = "dependencies_completed"
ALL_COMPLETED = "all_completed"  # its form without a list


def of_plan(root: Node) -> Places:
    """Yield the places of a plan that belong to no step."""
    for node in entries(root.get("env_file")):
        yield node, "general"
    yield from _scalars(root.get("env"), "general")
    defaults = root.get("defaults")
    workdir = defaults.get("workdir") if defaults is not None else None
    for node in entries(workdir):
        yield node, "general"
    yield from _scalars(root.get("outputs"), "outputs")


def of_step(draft: Draft) -> Places:
    """Yield the places of a step but its script, in the order of the table below."""
    keys = draft.keys
    for key, places in _PLACES.items():
        if key in keys:
            yield from places(keys[key])
    if "tool" in keys:
        yield from _of_call(keys)


def _condition(node: Node) -> Places:
    if node.kind == SCALAR:
        yield node, "condition"


def _texts(node: Node) -> Places:
    for item in entries(node):
        yield item, "text"


def _produced(node: Node) -> Places:
    for pattern, _ in produced(node):
        yield pattern, "text"


def _env(node: Node) -> Places:
    yield from _scalars(node, "text")


def _checks(node: Node) -> Places:
    for item in node.value if node.kind == SEQUENCE else ():
        yield from _of_check(item, "that")


def _proofs(node: Node) -> Places:
    for item in node.value if node.kind == SEQUENCE else ():
        yield from _of_check(item, "proof")


def _of_call(keys: dict[str, Node]) -> Places:
    name = keys["tool"].value if "tool" in keys and keys["tool"].kind == SCALAR else ""
    if not name:
        return
    from planrun.model.tools import is_script  # few plans call tools

    for key, node in members(keys.get("args")):
        kind = "script" if is_script(name, key) else "text"
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if part.kind == SCALAR:
                yield part, kind
            else:
                waiting += reversed([*(part.value.values() if part.kind == MAPPING else part.value)])


def _within(node: Node) -> Places:
    for _, value in members(node):
        yield from _texts(value)


def _axes(node: Node) -> Places:
    for _, axis in members(node):
        if axis.kind == SCALAR:
            yield axis, "list"


def _items(node: Node) -> Places:
    items = node.get("items") if node.kind == MAPPING else node
    if items is not None and items.kind == SCALAR:
        yield items, "list"
    key = node.get("key")
    if key is not None and key.kind == SCALAR:
        yield key, "key"


def _given(node: Node) -> Places:
    for text in texts_in(node):
        yield text, "given"


def _of_gate(node: Node) -> Places:
    question = node.get("question")
    if question is not None and question.kind == SCALAR:
        yield question, "question"
    options = node.get("options")
    for option in options.value if options is not None and options.kind == SEQUENCE else ():
        when = option.get("when")
        if when is not None and when.kind == SCALAR:
            yield when, "when"


def _of_commands(node: Node) -> Places:
    for command in node.value if node.kind == SEQUENCE else [node]:
        if command.kind == SCALAR:
            yield command, "script"
        else:
            yield from ((word, "text") for word in entries(command))


def _ready(node: Node) -> Places:
    run = node.get("run")
    if run is not None and run.kind == SCALAR:
        yield run, "script"


def _container(node: Node) -> Places:
    from planrun.plan.keys.containers import places  # few steps run in one

    yield from places(node)


def _of_check(item: Node, kind: str) -> Places:
    """Yield what a check reads; `kind`: of its expression."""
    for name, node in members(item):
        if name == "that":
            if node.kind == SCALAR:
                yield node, kind
        elif name == "json_schema":
            named = (value for key, value in members(node) if key in ("file", "schema"))
            yield from ((value, "text") for value in named if value.kind == SCALAR)
        elif name == COMPLETED:
            listed = node.kind == SEQUENCE
            yield from ((value, COMPLETED if listed else ALL_COMPLETED) for value in entries(node))
        elif name in LIST_CHECKS:
            yield from ((value, "text") for value in entries(node))


def _scalars(node: Node | None, kind: str) -> Places:
    for _, value in members(node):
        if value.kind == SCALAR:
            yield value, kind


# Besides `run`, which is read first.
_PLACES: dict[str, Callable[[Node], Places]] = {
    "condition": _condition,
    "exec": _texts,
    "env_file": _texts,
    "workdir": _texts,
    "inputs": _texts,
    "produces": _produced,
    "writes": _texts,
    "cache": _within,
    "reports": _within,
    "env": _env,
    "validate": _checks,
    "expect": _proofs,
    "verify": _of_commands,
    "ready": _ready,
    "container": _container,
    "ask": _of_gate,
    "decide": _of_gate,
    "with": _given,
    "matrix": _axes,
    "foreach": _items,
}
WITH_FORMULAS = frozenset((*_PLACES, "tool"))
