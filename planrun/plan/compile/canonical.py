"""The canonical form of a plan, and its digest.

The canonical form is what the plan means, as one line of plain data for the plan and each step, in the ASCII form
that `ascii()` gives: keys sorted, every default resolved and then left out, so that a written default and a missing
key are the same. Places in the file, comments, the order of keys, the way a value is quoted and the folder of the
file do not show in it. (JSON would be read by more, and costs ten times as much for a large plan.)
"""

from __future__ import annotations

from planrun.model.plan import Check, Group, Plan, Step
from planrun.model.record import Record
from planrun.plan.keys.table import FORMS, PLAN_FIELDS, STEP_FIELDS
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Action, Edge, Param, Text, Tree
    from planrun.plan.keys.table import Key

FORM = "planrun-plan-1"  # goes up when the same plan gets another canonical form


def _uncounted(table: dict[str, Key]) -> frozenset[str]:
    return frozenset([name for name, row in table.items() if not row.digest])


# Where a thing stands and how it was written is not what it means, and what is found out about an action follows from
# it, and from what this version of planrun knows. The steps of a plan have lines of their own.
_LEFT_OUT = {
    Step: _uncounted(STEP_FIELDS),
    Plan: _uncounted(PLAN_FIELDS),
}
_PLACES = frozenset(("file", "line", "col", "number", "source"))  # of all other records


def digest(plan: Plan) -> str:
    """Return the sha256 of the canonical form, hex; the plan's own `digest` plays no part."""
    found = sha256(FORM.encode())
    found.update(ascii(plain(plan)).encode())
    for step in plan.steps:
        found.update(b"\n")
        found.update(ascii(_record(step)).encode())
    return str(found.hexdigest())


def plain(value: Any) -> Any:
    """Return a value as JSON data: records as mappings without defaults, keys sorted, trees without places."""
    if isinstance(value, Record):
        return _record(value)
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def _record(record: Record) -> dict[str, Any]:
    kind = type(record)
    if isinstance(record, Check):
        return {"": "Check", "kind": record.kind, "value": _CHECKED[record.kind](record.value)}
    fields: dict[str, Any] = {"": kind.__name__}
    left_out = _LEFT_OUT.get(kind, _PLACES)
    for name, item in sorted(vars(record).items()):
        if name in left_out:
            continue
        if name in _FORMS:
            if item:
                fields[name] = _FORMS[name](item)
        elif item != (default := getattr(kind, name, None)):
            found = plain(item)
            if not isinstance(default, Record) or found != plain(default):
                fields[name] = found
    return fields


def _text(value: Text) -> Any:
    """Return a text as it is, a template as a list of texts and trees."""
    if isinstance(value, str):
        return value
    return [part if isinstance(part, str) else _tree(part[0]) for part in value[1]]


def _texts(values: tuple[Text, ...]) -> list[Any]:
    return [_text(value) for value in values]


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Return texts by name, or schemas by name, as `outputs` are those of a plan or of a step."""
    return {
        name: plain(value) if isinstance(value, dict) else _text(value)
        for name, value in sorted(values.items())
    }


def _tree(tree: Tree) -> list[Any]:
    """Return a node of an expression without offset and length: they change with every space before it."""
    if tree[0] in ("const", "path"):
        return [tree[0], *tree[3:]]
    return [tree[0], *[_branch(part) for part in tree[3:]]]


def _branch(part: Any) -> Any:
    if not isinstance(part, tuple):
        return part
    return [_tree(item) for item in part] if not part or isinstance(part[0], tuple) else _tree(part)


def _edges(edges: tuple[Edge, ...]) -> list[str]:
    """Return edges as texts, in an order of their own: which one is written first says nothing."""
    return sorted([f"{edge.kind} {edge.on}" for edge in edges])


def _action(action: Action) -> dict[str, Any]:
    if action.kind == "group":
        return _group(action)  # type: ignore[arg-type]
    if not action.digested:
        return _record(action)
    fields = {name: _FORMS.get(name, plain)(getattr(action, name)) for name in action.digested}
    return {"": action.in_digest or type(action).__name__, **fields}


def _group(group: Group) -> dict[str, Any]:
    """Return what a group is made of; its axes keep their order, which its members have."""
    fields = _record(group.but(items=(), axes={}, key=None))
    if group.items:
        fields["items"] = _tree(group.items)
    if group.key is not None:
        fields["key"] = _tree(group.key)
    if group.axes:
        fields["axes"] = [
            [name, _tree(values) if isinstance(values, tuple) else values]
            for name, values in group.axes.items()
        ]
    return fields


def _arguments(value: Any) -> Any:
    """Return arguments of a tool, or what another plan is given: templates may stand at any depth."""
    if isinstance(value, dict):
        return {name: _arguments(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_arguments(item) for item in value]
    return {"": _text(value)} if isinstance(value, tuple) else value


def _params(params: tuple[Param, ...]) -> list[Any]:
    """Return parameters by name: which one is written first says nothing."""
    return [_record(param) for param in sorted(params, key=lambda param: param.name)]


# What is no plain data, by the form of its field; what is empty is left out.
_BY_FORM: dict[str, Callable[[Any], Any]] = {
    "action": _action,
    "template": _text,
    "templates": _texts,
    "named": _named,
    "fragments": _named,
    "tree": _tree,
    "arguments": _arguments,
    "names": sorted,  # all or none: which one is written first says nothing
    "commands": lambda actions: [_action(action) for action in actions],
    "hooks": lambda hooks: [[hook.when, hook.timeout, hook.fatal, _action(hook.action)] for hook in hooks],
    "params": _params,
    "edges": _edges,
}
_FORMS = {name: _BY_FORM[form] for name, form in FORMS.items() if form in _BY_FORM}
# By the kind of a check.
_CHECKED: dict[str, Callable[[Any], Any]] = {
    "files_exist": _texts,
    "writable": _texts,
    "commands_on_path": _texts,
    "env_set": _texts,
    "dependencies_completed": sorted,
    "json_schema": _named,
    "that": _tree,
}
