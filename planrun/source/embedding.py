"""A plan in use becomes steps of the plan that uses it: a group, and the used plan's own with its id before theirs."""

from __future__ import annotations

from planrun.model.groups import folder_of
from planrun.model.plan import Edge, Group, Step
from planrun.source.bounds import limits_of
from planrun.source.node import MAPPING, SCALAR, Node
from planrun.source.outline import members
from planrun.source.shape import to_data
from planrun.source.unfolding import worst

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.compile import Compiler
    from planrun.source.outline import Draft


def embedded(compiler: Compiler, draft: Draft, inner: Compiler, path: str) -> list[Step]:
    """Return the group that a step with `uses` becomes, and behind it its members.

    `inner` has the plan that it uses, from the file at `path`.
    """
    steps = inner.steps()
    group = _group(compiler, draft, inner)
    assert isinstance(group.action, Group)
    main = tuple([step.id for step in steps if not step.group and step.section == "steps"])
    place = _Place(group, path, main)
    inside = [place.embedded(step) for step in steps]
    named = tuple([step.id for step in inside if step.group == group.id])
    return [worst(group.but(action=group.action.but(members=named)), inside), *inside]


def _group(compiler: Compiler, draft: Draft, inner: Compiler) -> Step:
    """Return the group of a step; `inner` has compiled the plan that it uses."""
    fields = compiler.place(draft)
    fields["kind"] = "group"
    compiler.words_of(draft, fields)
    root = inner.root
    found = {
        "file": draft.keys["uses"].value,
        "given": {
            name: _given(compiler, value, inner.params[name]["type"])
            for name, value in members(draft.keys.get("with"))
        },
        "params": inner.param_list(),
        "outputs": inner.texts(root.get("outputs")),
        "env": inner.texts(root.get("env")),
        "env_file": inner.words(root.get("env_file")),
        "max_parallel": limits_of(root.get("limits")).max_parallel,
    }
    fields["action"] = Group(form="uses", **{key: value for key, value in found.items() if value})
    return Step(**fields)


def _given(compiler: Compiler, node: Node, wanted: str = "") -> Any:
    """Return a value as data in which templates, which are tuples, may stand anywhere."""
    if node.kind == SCALAR:
        text = compiler.formulas.text(node)
        return to_data(node, wanted) if isinstance(text, str) else text
    if node.kind == MAPPING:
        return {name: _given(compiler, value) for name, value in node.value.items()}
    return [_given(compiler, value) for value in node.value]


class _Place:
    """Where steps of a used plan go: into a group; `main` are those that its cleanup waits for."""

    def __init__(self, group: Step, path: str, main: tuple[str, ...]) -> None:
        self._group = group
        self._path = path
        self._before = f"{group.id}/"
        self._cleanup = tuple([Edge(on=self._before + name, kind="done") for name in main])

    def embedded(self, step: Step) -> Step:
        """Return a step of the used plan as a member of the group, or of a group in it."""
        name = self._before + step.id
        fields: dict[str, Any] = {
            "id": name,
            "group": self._before + step.group if step.group else self._group.id,
            "edges": self._edges(step),
            "folder": folder_of(name),
            "file": step.file or self._path,
        }
        if self._group.section != step.section:
            fields["section"] = self._group.section
        for key in ("recovers", "replaces"):
            if named := getattr(step, key):
                fields[key] = self._all(named)
        if isinstance(step.action, Group):
            template = step.action.template
            fields["action"] = step.action.but(
                members=self._all(step.action.members),
                same=tuple([(self._before + on, kind) for on, kind in step.action.same]),
                template=template and self.embedded(template),
            )
        return step.but(**fields)

    def _edges(self, step: Step) -> tuple[Edge, ...]:
        own = tuple([Edge(on=self._before + edge.on, kind=edge.kind) for edge in step.edges])
        if step.group:
            return own
        opened = Edge(on=self._group.id, kind="open")
        return (opened, *own) if step.section == "steps" else (opened, *self._after_all(own), *own)

    def _after_all(self, own: tuple[Edge, ...]) -> tuple[Edge, ...]:
        """Return the edges of cleanup: it comes when all else has ended, however that was."""
        named = {edge.on for edge in own}
        return tuple([edge for edge in self._cleanup if edge.on not in named])

    def _all(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([self._before + name for name in names])
