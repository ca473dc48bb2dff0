"""The groups of a plan: steps with instances, and steps that use another plan, with their members."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.render import render, render_script, render_text
from planrun.model.groups import folder_of, member
from planrun.model.plan import Edge, Group, Step
from planrun.plan.compile.step import with_undos
from planrun.plan.keys.outline import members
from planrun.plan.keys.table import STEP_FIELDS, fields_with
from planrun.plan.keys.top import limits_of, params_of
from planrun.plan.schema.forms import as_bool, as_int, to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, Node
from planrun.risk.levels import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    from planrun.model.plan import Text, Tree
    from planrun.plan.compile.step import StepCompiler
    from planrun.plan.keys.instances import Instances
    from planrun.plan.keys.outline import RawStep


def embedded(compiler: StepCompiler, raw: RawStep, inner: StepCompiler, steps: list[Step]) -> list[Step]:
    """Return the group that a step with `uses` becomes, and behind it its members.

    `inner` compiled the plan that it uses, to these steps.
    """
    assert raw.used is not None
    group = _group(compiler, raw, inner)
    main = tuple([step.id for step in steps if not step.group and step.section == "steps"])
    place = _Place(group, raw.used.path, main)
    inside = [place.embedded(step) for step in steps]
    named = tuple([step.id for step in inside if step.group == group.id])
    return [worst(group.but(action=group.grouping.but(members=named)), inside), *inside]


def _group(compiler: StepCompiler, raw: RawStep, inner: StepCompiler) -> Step:
    """Return the group of a step; `inner` has compiled the plan that it uses."""
    fields = compiler.place(raw)
    fields["kind"] = "group"
    compiler.words_of(raw, fields)
    root = inner.root
    found = {
        "file": raw.keys["uses"].value,
        "given": {
            name: _given(compiler, value, inner.checked.params[name]["type"])
            for name, value in members(raw.keys.get("with"))
        },
        "params": params_of(inner.checked.params),
        "outputs": inner.formulas.texts(root.get("outputs")),
        "env": inner.formulas.texts(root.get("env")),
        "env_file": inner.formulas.words(root.get("env_file")),
        "max_parallel": limits_of(root.get("limits")).max_parallel,
    }
    fields["action"] = Group(form="uses", **{key: value for key, value in found.items() if value})
    return Step(**fields)


def _given(compiler: StepCompiler, node: Node, wanted: str = "") -> Any:
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
        if step.kind == "group":
            template = step.grouping.template
            fields["action"] = step.grouping.but(
                members=self._all(step.grouping.members),
                same=tuple([(self._before + on, kind) for on, kind in step.grouping.same]),
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


# What the group has from the step as written, besides conditions.
_OF_GROUP = fields_with("grouped")
# What belongs to the group alone.
_NOT_OF_MEMBERS = ("edges", "recovers", "replaces", "replan")
_FOUND = ("risk", "risk_reason", "effects", "open_risk")


def unfolded(compiler: StepCompiler, each: Instances) -> list[Step]:
    """Return the group of a step and, behind it, the members that are known."""
    fields = compiler.fields(each.raw)
    conditions: dict[str, Any] = {
        name: fields.pop(name) for name in ("condition", "condition_text") if name in fields
    }
    own = vars(compiler.finished(dict(fields)))
    made: dict[str, Any] = {name: own[name] for name in _OF_GROUP if name in own}
    template = {name: value for name, value in fields.items() if name not in _NOT_OF_MEMBERS}
    if conditions:
        same = frozenset([link.on for link in each.raw.links if link.form == "same"])
        is_of_members = reads_values(conditions["condition"], same)
        (template if is_of_members else made).update(conditions)
    action = _action(compiler, each)
    if each.made is None:
        found = compiler.finished(template)
        group = Step(**made, kind="group", action=action.but(template=found.but(replan="")))
        return [group.but(open_risk=True)]
    base = Step(**{**template, "kind": template["kind"]})
    members = [
        _finished(compiler, member(Step(**made, kind="group", action=action), base, values))
        for values in each.made
    ]
    group = Step(**made, kind="group", action=action.but(members=tuple([step.id for step in members])))
    return [worst(group, members), *members]


def _finished(compiler: StepCompiler, step: Step) -> Step:
    """Return a member with its values filled in, and the risk that it has with them."""
    scope = {"matrix": step.matrix, "item": step.item[0]} if step.item else {"matrix": step.matrix}
    found = compiler.finished(filled(vars(step), scope))
    return found.but(replan="") if found.replan else found


def filled(written: Mapping[str, Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a step with the values of an instance put into what it does and where."""
    fields = dict(written)

    def text_in(text: Text, *, script: bool = False) -> Text:
        return _filled(text, scope, script=script)

    def value_in(tree: Tree) -> Any:
        return _value(tree, scope)

    fields["action"] = fields["action"].filled(text_in, value_in)
    for name, value in fields.items():
        fill = _FILL.get(STEP_FIELDS[name].form)
        if fill is not None and value is not None:
            fields[name] = fill(value, scope)
    if "keeps" in fields:
        fields["keeps"] = tuple([each.but(path=_filled(each.path, scope)) for each in fields["keeps"]])
    if fields.get("reports") is not None:
        fields["reports"] = fields["reports"].but(junit=_all_filled(fields["reports"].junit, scope))
    if fields.get("rollback") is not None:
        undos = [Step(**filled(vars(undo), scope)) for undo in fields["rollback"].undos]
        fields["rollback"] = with_undos(fields["rollback"], undos)
    return fields


def worst(group: Step, members: list[Step]) -> Step:
    """Return a group that is as risky as the riskiest of its members."""
    fields = {name: value for name, value in vars(group).items() if name not in _FOUND}
    if not members:
        return Step(**fields, risk="read-only", risk_reason="starts no process")
    worst = max(members, key=lambda step: rank(step.risk))
    return Step(**fields, **{name: value for name, value in vars(worst).items() if name in _FOUND[:4]})


def _action(compiler: StepCompiler, each: Instances) -> Group:
    fields: dict[str, Any] = {"form": each.form}
    if same := [link for link in each.raw.links if link.form == "same"]:
        served = compiler.checked.services
        fields["same"] = tuple(
            [(link.on, "open" if link.on in served and link.kind == "ok" else link.kind) for link in same]
        )
    if each.max_parallel is not None:
        fields["max_parallel"] = as_int(each.max_parallel)
    if each.fail_fast is not None and as_bool(each.fail_fast):
        fields["fail_fast"] = True
    if each.made is not None:
        return Group(**fields)
    if each.form == "foreach":
        assert each.items is not None
        fields["items"] = _expression(compiler, each.items)
        if each.key is not None:
            fields["key"] = compiler.formulas.tree(each.key)
        return Group(**fields)
    fields["axes"] = {
        name: _expression(compiler, values) if isinstance(values, Node) else values
        for name, values in each.axes.items()
    }
    if each.include:
        fields["include"] = tuple(each.include)
    if each.exclude:
        fields["exclude"] = tuple(each.exclude)
    return Group(**fields)


def _expression(compiler: StepCompiler, node: Node) -> Tree:
    """Return the tree of a text that is one interpolation."""
    template = compiler.formulas.text(node)
    assert isinstance(template, tuple)
    found: Tree = template[1][0][0]
    return found


def reads_values(value: Text, same: Collection[str] = ()) -> bool:
    """Say whether an expression or template reads the values of an instance, or of that of the same name in `same`."""
    return any(
        read.path[0] in ("matrix", "item") or (read.path[0] == "steps" and read.path[1] in same)
        for read in references(value)
    )


def _filled(value: Text, scope: Mapping[str, Any], *, script: bool = False) -> Text:
    """Return a text with the values of an instance put in, as far as they are allowed there.

    What is refused stays as it is, and is refused again when the step starts.
    """
    if isinstance(value, str) or not reads_values(value):
        return value
    parts = tuple([part if isinstance(part, str) else _part(part, scope, script=script) for part in value[1]])
    whole: list[Any] = []
    for part in parts:
        if isinstance(part, str) and whole and isinstance(whole[-1], str):
            whole[-1] += part
        else:
            whole.append(part)
    return whole[0] if len(whole) == 1 and isinstance(whole[0], str) else ("template", tuple(whole))


def _all_filled(values: tuple[Text, ...], scope: Mapping[str, Any]) -> tuple[Text, ...]:
    return tuple([_filled(value, scope) for value in values])


# How the values of an instance are put into the texts of a field, by its form.
_FILL: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "template": _filled,
    "templates": _all_filled,
    "named": lambda texts, scope: {name: _filled(text, scope) for name, text in texts.items()},
}


def _value(value: Tree, scope: Mapping[str, Any]) -> Any:
    """Return the value of a template that is made of nothing but the values of an instance, else the template."""
    if any(read.path[0] not in ("matrix", "item") for read in references(value)):
        return value
    try:
        return render(value, dict(scope))
    except EvaluationError:
        return value


def _part(part: tuple[Tree, str], scope: Mapping[str, Any], *, script: bool) -> str | tuple[Tree, str]:
    """Return the resulting text of an interpolation that reads only the values of the instance."""
    if any(reference.path[0] not in ("matrix", "item") for reference in references(part[0])):
        return part
    try:
        return (render_script if script else render_text)(("template", (part,)), dict(scope))
    except EvaluationError:
        return part
