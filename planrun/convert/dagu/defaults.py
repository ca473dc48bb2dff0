"""What a Dagu file sets for all of its steps: `defaults`."""

from __future__ import annotations

from planrun.convert.dagu.variables import Keys, pairs_of, plain
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.convert.reader import Reader

_REPLACED = frozenset((
    "retrypolicy", "continueon", "repeatpolicy", "timeoutsec", "mailonerror", "signalonstop",
))  # fmt: skip


def with_defaults(step: Node, defaults: Node | None, reader: Reader) -> Node:
    """Return a step with what the file sets for all: its own values count, variables and preconditions are added."""
    if defaults is None or step.kind != MAPPING:
        return step
    keys = Keys(defaults, "`defaults`", reader)
    keys.refuse_unknown({*_REPLACED, "env", "preconditions", "agent"})
    members, places = dict(step.value), dict(step.keys)
    own = {plain(name): name for name in members}
    for name, value in keys.members():
        label = plain(name)
        at = own.get(label)
        if at is None:
            members[name], places[name] = value, defaults.key(name)
        elif label == "env":
            pairs = [*pairs_of(value, "`env`", reader), *pairs_of(members[at], "`env`", reader)]
            members[at] = _listed([_pair(key, each) for key, each in pairs], members[at])
        elif label == "preconditions":
            members[at] = _listed([*_items(value), *_items(members[at])], members[at])
        elif label == "agent" and value.kind == MAPPING and members[at].kind == MAPPING:
            merged = Node(MAPPING, {**value.value, **members[at].value}, members[at].line, members[at].col)
            merged.keys = {**value.keys, **members[at].keys}
            members[at] = merged
    found = Node(MAPPING, members, step.line, step.col)
    found.keys = places
    return found


def _pair(name: str, value: Node) -> Node:
    node = Node(MAPPING, {name: value}, value.line, value.col)
    node.keys = {name: value}
    return node


def _items(node: Node) -> list[Node]:
    return list(node.value) if node.kind == SEQUENCE else [node]


def _listed(items: list[Node], place: Node) -> Node:
    return Node(SEQUENCE, items, place.line, place.col) if items else Node(SCALAR, "", place.line, place.col)
