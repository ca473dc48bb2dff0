"""A plan that extends another one: the trees of both as one tree, of which each node still has its own file."""

from __future__ import annotations

from planrun.plan.keys.outline import Origins, Outline, members
from planrun.plan.schema.tables import ACTIONS, COMPANIONS
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.plan.includes import Shelf
    from planrun.plan.problems import Problem

KEY = "extends"
MAX_CHAIN = 5  # files in a chain of `extends`, the last one included
_BY_KEY = frozenset(
    ("env", "params", "defaults", "limits", "outputs", "llm", "containers", "decisions", "agents")
)
_SECTIONS = ("steps", "finally")


class Extended:
    """What a plan with `extends` becomes: `root` and `origins` are of the merged tree, None without a valid base."""

    __slots__ = ("origins", "problems", "root")

    def __init__(self, root: Node | None, origins: Origins | None, problems: list[Problem]) -> None:
        self.root = root
        self.origins = origins
        self.problems = problems


def extended(root: Node, file: str, data: bytes, shelf: Shelf) -> Extended:
    """Return the tree of a plan merged with that of its base; the base's own problems are left on the shelf."""
    own = Outline(root, file, data)
    place = root.value[KEY]
    found = shelf.base(own, place)
    if found is None:
        return Extended(None, None, own.problems)
    base, origins = found
    if "policy" in base.value and "policy" in root.value:
        message = "the plan that this one extends has a policy, and nothing may replace it"
        hint = "leave it out here; a stricter one is given by `--policy`"
        own.report("E294", message, root.keys["policy"], hint)
    return Extended(_plan(base, root), origins, own.problems)


def origins_of(base: Node, place: tuple[str, str, str], data: bytes, inner: Origins | None) -> Origins:
    """Return the files of all nodes below `base`; `inner` has those that its own base brought along."""
    places = dict(inner.places) if inner else {}
    for node in _nodes(base):
        places.setdefault(id(node), place)
    sources = {**(inner.sources if inner else {}), place[1]: data}
    return Origins(places, sources, (base, *(inner.kept if inner else ())))


def _nodes(root: Node) -> Iterator[Node]:
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.kind == MAPPING:
            yield from node.keys.values()
            waiting += node.value.values()
        elif node.kind == SEQUENCE:
            waiting += node.value


def _plan(base: Node, own: Node) -> Node:
    """Return the merged tree of two plans; it stands where `own` does."""
    found = _merged(base, own)
    for key in own.value:
        theirs, ours = base.get(key), own.value[key]
        if theirs is None:
            continue
        if key in _BY_KEY and theirs.kind == ours.kind == MAPPING:
            found.value[key] = _merged(theirs, ours)
        elif key in _SECTIONS and theirs.kind == ours.kind == SEQUENCE:
            found.value[key] = _steps(theirs, ours)
        elif key == "secrets" and theirs.kind == ours.kind == SEQUENCE:
            known = {_secret(node) for node in ours.value}
            kept = [node for node in theirs.value if _secret(node) not in known]
            found.value[key] = Node(SEQUENCE, [*kept, *ours.value], ours.line, ours.col)
    return found


def _merged(base: Node, own: Node) -> Node:
    """Return a mapping with the keys of two; those of `own` win."""
    found = Node(MAPPING, {**base.value, **own.value}, own.line, own.col)
    found.keys = {**base.keys, **own.keys}
    return found


def _steps(base: Node, own: Node) -> Node:
    """Return the steps of a base, those with an id of `own` changed, and behind them the other ones of `own`."""
    changes: dict[str, Node] = {}
    known = {_id(step) for step in base.value} - {""}
    added = []
    for step in own.value:
        name = _id(step)
        if name in known and name not in changes:
            changes[name] = step
        else:
            added.append(step)
    steps = [_step(step, changes[_id(step)]) if _id(step) in changes else step for step in base.value]
    return Node(SEQUENCE, [*steps, *added], own.line, own.col)


def _step(base: Node, own: Node) -> Node:
    """Return a step with keys replaced; another action takes the place of the base's and of what belongs to it."""
    acts = set(ACTIONS)
    left = dict(members(base))
    if not acts.isdisjoint(own.value):
        gone = acts.difference(own.value)
        gone |= {key for key, of in COMPANIONS.items() if of in acts and of not in own.value}
        left = {key: node for key, node in left.items() if key not in gone}
    bare = Node(MAPPING, left, base.line, base.col)
    bare.keys = {key: base.keys[key] for key in left}
    return _merged(bare, own)


def _secret(node: Node) -> str:
    named = node.get("name") if node.kind == MAPPING else node
    return str(named.value) if named is not None and named.kind == SCALAR else ""


def _id(step: Node) -> str:
    node = step.get("id")
    return str(node.value) if node is not None and node.kind == SCALAR else ""
