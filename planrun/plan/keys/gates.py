"""What `ask` and `decide` mean: the answers that a gate accepts, and every problem beyond its shape."""

from __future__ import annotations

from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.fragments import check_fragment, check_within, read_fragment
from planrun.plan.keys.outline import members
from planrun.plan.kinds.question import Ask, Decide, Option
from planrun.plan.schema.forms import as_bool, as_duration, to_data
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.values import show, sorted_data, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.formulas import Formulas
    from planrun.plan.keys.outline import Outline, RawStep

ANSWER = "answer"  # the output of every gate
_NARROWING = ("type", "enum", "pattern", "minimum", "maximum")
_NEED_A_TYPE = ("pattern", "minimum", "maximum")
# Keys of a step that say nothing about a question, and what to do instead.
_MEANINGLESS = {
    "retries": "a question is asked once",
    "idempotent": "a question changes nothing",
    "timeout": "write `timeout` inside `ask` or `decide`",
    "idle_timeout": "write `timeout` inside `ask` or `decide`",
    "secrets": "no process is started",
    "env": "no process is started",
    "env_file": "no process is started",
    "shell": "no process is started",
    "workdir": "no process is started",
    "outputs": f"its only output is `{ANSWER}`",
}


class Gate:
    """A gate of the plan: `fragment` is the JSON Schema of its answer, `values` those of the options of a decision."""

    __slots__ = ("_keys", "fragment", "id", "kind", "multiple", "node", "options", "values")

    def __init__(self, raw: RawStep) -> None:
        self.id = raw.id
        self.kind = "ask" if "ask" in raw.keys else "decide"
        self.node = raw.keys[self.kind]
        listed = self.node.get("options")
        self.options: list[Node] = listed.value if listed is not None and listed.kind == SEQUENCE else []
        self.values = [_value(option) for option in self.options]
        self._keys = {_key(value) for value in self.values}
        multiple = self.node.get("multi_select")
        self.multiple = multiple is not None and multiple.kind == SCALAR and multiple.value.lower() == "true"
        if self.kind == "ask":
            self.fragment = (
                read_fragment(_part(self.node, _NARROWING)) if self.is_typed else {"type": "boolean"}
            )
        elif self.multiple:
            self.fragment = {"type": "array"}
        else:
            types = {type_of(value) for value in self.values}
            self.fragment = {"type": types.pop() if len(types) == 1 else "any"}

    @property
    def is_typed(self) -> bool:
        """Whether a value is asked for, and not yes or no."""
        return self.node.get("type") is not None or self.node.get("enum") is not None

    def answer(self, node: Node) -> Any:
        """Return the answer that a node of the plan is; one of several choices may stand without a list."""
        if self.kind == "ask":
            return to_data(node, self.fragment["type"])
        found = to_data(node)
        return [found] if self.multiple and not isinstance(found, list) else found

    def refusal(self, outline: Outline, node: Node) -> tuple[str, str] | None:
        """Return why the gate does not accept an answer (as a clause), and a hint; None when it does."""
        given = self.answer(node)
        if self.kind == "ask":
            problem = check_within(outline, self.fragment, given)
            return (problem, "") if problem else None
        chosen = given if self.multiple else [given]
        for value in chosen:
            if _key(value) not in self._keys:
                known = [known for known in self.values if isinstance(known, str)]
                hint = outline.nearest(value, known) if isinstance(value, str) else ""
                options = ", ".join(show(known) for known in self.values[:8])
                return f"is not an option: {show(value)}", hint or f"valid options: {options}"
        if len({_key(value) for value in chosen}) < len(chosen):
            return "lists an option twice", ""
        return None

    def record(self, formulas: Formulas, timeout: Node | None) -> Ask | Decide:
        """Return the action that the gate is once it was found right; `timeout` where it has none of its own."""
        node = self.node.value
        timeout = node.get("timeout", timeout)
        fields: dict[str, Any] = {"question": formulas.text(node["question"])}
        if "header" in node:
            fields["header"] = node["header"].value
        if timeout is not None:
            fields["timeout"] = as_duration(timeout.value)
        if "default" in node:
            fields["default"] = (self.answer(node["default"]),)
        if self.kind == "ask":
            if self.is_typed:
                fields["schema"] = self.fragment
            return Ask(**fields)
        if "multi_select" in node and as_bool(node["multi_select"]):
            fields["multi_select"] = True
        fields["options"] = tuple([_option(option, formulas) for option in self.options])
        return Decide(**fields)


def find(checked: Checked) -> None:
    """Find the gates of a plan, as far as they can be understood, and add their answers to the outputs."""
    for step in checked.outline.steps:
        if step.is_gate and step.keys["ask" if "ask" in step.keys else "decide"].kind == MAPPING:
            gate = checked.gates[step.id] = Gate(step)
            checked.outputs[step.id] = {ANSWER: gate.fragment}


def check(checked: Checked) -> None:
    """Report keys that a gate does not use, options that look the same, and defaults that it refuses."""
    outline = checked.outline
    for gate in checked.gates.values():
        raw = outline.by_id[gate.id]
        for key, hint in _MEANINGLESS.items():
            if key in raw.keys:
                message = f'`{key}` does not apply to `{gate.kind}` in step "{raw.id}"'
                outline.report("E252", message, raw.node.key(key), hint)
        _check_literals(outline, gate)
        if gate.kind == "ask":
            _check_ask(outline, gate)
        else:
            _check_decide(outline, gate)


def _check_ask(outline: Outline, gate: Gate) -> None:
    node = gate.node
    for key in _NEED_A_TYPE:
        if key in node.value and not gate.is_typed:
            message = f'"{key}" in "ask" of step "{gate.id}" requires "type"'
            outline.report("E102", message, node.key(key), "without `type` and `enum` it asks for yes or no")
    fragment = dict(gate.fragment)
    default = node.get("default")
    if default is not None:
        fragment["default"] = gate.answer(default)
    check_fragment(
        outline, f'the answer to step "{gate.id}"', _part(node, (*_NARROWING, "default")), fragment
    )


def _check_decide(outline: Outline, gate: Gate) -> None:
    labels: dict[str, Node] = {}
    values: dict[str, Node] = {}
    for option, value in zip(gate.options, gate.values, strict=True):
        label = option.get("label")
        if label is None or label.kind != SCALAR:
            continue
        place = option.get("value") or label
        for seen, key, text, node in (
            (labels, _unspaced(label.value), f'the label "{label.value}"', label),
            (values, _key(_unspaced(value)), f"the value {show(value)}", place),
        ):
            first = seen.setdefault(key, node)
            if first is not node:
                related = ((first.line, first.col, "first defined here"),)
                same = first.value == node.value
                how = "have" if same else "differ only in whitespace:"
                message = f'two options of step "{gate.id}" {how} {text}'
                outline.report("E250", message, node, related=related)
                break
    default = gate.node.get("default")
    refused = gate.refusal(outline, default) if default is not None and outline.sound else None
    if refused and default is not None:
        outline.report("E251", f'the default of step "{gate.id}" {refused[0]}', default, refused[1])


def _unspaced(value: Any) -> Any:
    """Return a text without what people do not see: blanks around it, and how many stand between words."""
    return " ".join(value.split()) if isinstance(value, str) else value


def _check_literals(outline: Outline, gate: Gate) -> None:
    """Warn of templates in what is shown and given as it is written."""
    for key, node in _literals(gate):
        if node.kind == SCALAR and OPEN in node.value:
            message = f"`{key}` is used as written: interpolations are not evaluated"
            outline.report("W301", message, node, severity="warning")


def _literals(gate: Gate) -> Iterator[tuple[str, Node]]:
    for key in ("header", "default"):
        if key in gate.node.value:
            yield key, gate.node.value[key]
    for option in gate.options:
        yield from ((key, node) for key, node in members(option) if key != "when")


def _value(option: Node) -> Any:
    """Return the value of an option: its label when it has none of its own."""
    given = option.get("value")
    if given is not None:
        return to_data(given)
    label = option.get("label")
    return label.value if label is not None and label.kind == SCALAR else ""


def _key(value: Any) -> str:
    """Return what two values have in common exactly when they are the same: 1 and true are not."""
    return ascii(sorted_data(value))


def _option(node: Node, formulas: Formulas) -> Option:
    fields: dict[str, Any] = {"label": node.value["label"].value, "value": _value(node)}
    if "description" in node.value:
        fields["description"] = node.value["description"].value
    if "when" in node.value:
        fields["when"] = formulas.tree(node.value["when"])
    return Option(**fields)


def _part(node: Node, names: tuple[str, ...]) -> Node:
    """Return a mapping with some of its keys only, at the same place."""
    part = Node(
        MAPPING, {key: value for key, value in node.value.items() if key in names}, node.line, node.col
    )
    part.keys = node.keys
    return part


def _action(checked: Checked, step: RawStep, _node: Node) -> dict[str, Any]:
    defaults = checked.outline.root.get("defaults")
    timeout = defaults.get("decision_timeout") if defaults is not None else None
    return {"action": checked.gates[step.id].record(checked.formulas, timeout)}


COMPILE = {"ask": _action, "decide": _action}
