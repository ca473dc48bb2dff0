"""The keys `matrix` and `foreach`: the instances of a step, as far as the file alone defines them, and their checks."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.evaluate import name_of
from planrun.model.groups import MAX_PRODUCT, combine, describes, short, size, spelled_value, unnameable
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.outline import Outline, RawStep, members
from planrun.plan.keys.top import limit_of
from planrun.plan.kinds import QUESTIONS
from planrun.plan.schema.forms import to_data
from planrun.plan.tables import ACTIONS
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Tree
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.formulas import Formulas

KEYS = ("matrix", "foreach")
WORDS = ("include", "exclude", "max_parallel", "fail_fast")
"""Keys of a matrix that are no axes."""
MAX_INSTANCES = 20_000  # of all steps of a plan: each is a step of its own in every record
MAX_COMPARED = (
    1_000_000  # combinations times entries of `include` and `exclude`, of all steps of a plan: a second
)
_ACTIONS = frozenset(ACTIONS).difference(QUESTIONS)


class Instances:
    """The instances of one step; `made`: what makes each, None where that is known when the step runs.

    Each of `made` has `instance`, and `matrix` or `item`. `axes`, `include` and `exclude` are of a matrix: lists of
    values, or the node of the expression that gives one. `items` and `key` are those of a list.
    """

    def __init__(self, raw: RawStep, form: str) -> None:
        self.raw = raw
        self.form = form
        self.node = raw.keys[form]
        self.made: list[dict[str, Any]] | None = None
        self.axes: dict[str, list[Any] | Node] = {}
        self.include: list[dict[str, Any]] = []
        self.exclude: list[dict[str, Any]] = []
        self.items: Node | None = None
        self.key: Node | None = None
        held = self.node
        self.fail_fast: Node | None = held.get("fail_fast")
        self.max_parallel: Node | None = held.get("max_parallel")

    @property
    def may_lack(self) -> bool:
        """Whether a certain instance may not have run although the group completed."""
        return self.made is None or reads_values(self.raw)

    @property
    def names(self) -> dict[str, None]:
        """The axes of its matrix, and what else `include` adds."""
        return dict.fromkeys([*self.axes, *[name for entry in self.include for name in entry]])

    @property
    def calls(self) -> list[str] | None:
        """What `by` calls each instance; None where that is not known."""
        if self.made is None:
            return None
        return [short(each["instance"], each.get("matrix", {})) for each in self.made]


def find(checked: Checked) -> None:
    """Find the instances of each step that has any, and report what is wrong with them."""
    checked.groups = _instances(checked.outline, checked.formulas)
    outline = checked.outline
    groups = checked.groups
    for raw in outline.unique:
        for link in raw.links:
            if link.form != "same":
                continue
            own, other = groups.get(raw.id), groups.get(link.on)
            if own and other and own.made is not None and other.made is not None:
                known = {each["instance"] for each in other.made}
                missing = [each["instance"] for each in own.made if each["instance"] not in known]
                if missing:
                    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
                    names = ", ".join([f'"{name}"' for name in missing[:3]])
                    message = f'step "{link.on}" has no instance {names}{more}, which "{raw.id}" has'
                    outline.report("E286", message, link.node, "both steps need the same instances")


def _instances(outline: Outline, formulas: Formulas) -> dict[str, Instances]:
    found: dict[str, Instances] = {}
    budget = _Budget(outline)
    for raw in outline.unique:
        forms = [key for key in KEYS if key in raw.keys]
        if not forms or outline.is_full:
            continue
        key = raw.node.key(forms[0])
        if len(forms) > 1:
            message = f'"matrix" and "foreach" are mutually exclusive in step "{raw.id}"'
            outline.report("E118", message, raw.node.key(forms[1]), "a list can be an axis of the matrix")
        if raw.is_gate:
            hint = "ask in a separate step and depend on it"
            outline.report(
                "E284", f'step "{raw.id}" is `ask` or `decide`, which cannot have instances', key, hint
            )
        elif outline.sound and not any(name in raw.keys for name in _ACTIONS):
            outline.report("E284", f'step "{raw.id}" has no action and cannot have instances', key)
        word = raw.keys.get("on_failure")
        if word is not None and word.value == "replan":
            message = f'step "{raw.id}" has instances, so `on_failure: replan` is not allowed'
            outline.report("E284", message, word, "write another value, or remove it")
        each = found[raw.id] = Instances(raw, forms[0])
        if forms[0] == "matrix":
            # Matrices.
            for name, node in members(each.node):
                if name == "include":
                    each.include = _entries(node)
                elif name == "exclude":
                    each.exclude = _entries(node)
                elif name not in WORDS:
                    each.axes[name] = to_data(node) if node.kind == SEQUENCE else node
            _combine(outline, each, budget)
        else:
            _read_list(outline, each)
            _number(outline, each, formulas)
        raw.instances = len(each.made or ())
        if each.made is not None and not budget.allows(each):
            break
    return found


def reads_values(raw: RawStep) -> bool:
    """Say whether the condition of a step is about each instance, and not about all."""
    return raw.condition is not None and any(
        reference.path[0] in ("matrix", "item") for reference in references(raw.condition)
    )


class _Budget:
    """The limit on the instances of all steps of a plan together."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._instances = self._compared = 0

    def allows(self, each: Instances) -> bool:
        """Say whether the plan may have the instances of one more step."""
        self._instances += len(each.made or ())
        if self._instances <= MAX_INSTANCES:
            return True
        message = f"the steps of the plan have more than {MAX_INSTANCES:,} instances"
        self._outline.report("E241", message, each.node)
        return False

    def affords(self, each: Instances, combinations: int) -> bool:
        """Say whether combinations can be held against what is to be left out and added."""
        self._compared += combinations * (1 + len(each.include) + len(each.exclude))
        if self._compared <= MAX_COMPARED:
            return True
        message = "the matrices of the plan have too many combinations and entries"
        self._outline.report("E241", message, each.node)
        return False


def _entries(node: Node) -> list[dict[str, Any]]:
    entries = node.value if node.kind == SEQUENCE else ()
    return [to_data(entry) if entry.kind == MAPPING else {} for entry in entries]


def _combine(outline: Outline, each: Instances, budget: _Budget) -> None:
    node = each.node
    if not outline.sound or node.kind != MAPPING:
        return
    if not each.axes and not each.include:
        outline.report("E113", f'"matrix" in step "{each.raw.id}" has no axis', node)
        return
    before = len(outline.problems)
    for name, value in each.axes.items():
        _check_axis(outline, name, value, node.value[name])
    for key in ("include", "exclude"):
        listed = each.node.get(key)
        for entry in listed.value if listed is not None else ():
            _check_literal(outline, entry, f"`{key}`")
            for name in entry.value if key == "exclude" else ():
                if name not in each.axes:
                    hint = outline.nearest(name, each.axes) or f"known axes: {', '.join(each.axes)}"
                    outline.report("E282", f'unknown axis "{name}" in the matrix', entry.key(name), hint)
    axes = {name: values for name, values in each.axes.items() if isinstance(values, list)}
    if len(axes) < len(each.axes) or len(outline.problems) > before:
        return
    count = size(axes)
    if count > MAX_PRODUCT:
        message = f'the matrix of step "{each.raw.id}" has {count:,} combinations before `exclude`'
        outline.report("E280", message, node, f"at most {MAX_PRODUCT:,} are allowed")
        return
    if not budget.affords(each, count):
        return
    found = combine(axes, each.include, each.exclude)
    _check_matched(outline, each, axes)
    if _is_named(outline, each, [name for name, _ in found], node):
        each.made = [{"instance": name, "matrix": values} for name, values in found]


def _check_axis(outline: Outline, name: str, value: list[Any] | Node, node: Node) -> None:
    if isinstance(value, Node):
        _check_whole(outline, node, f'the axis "{name}"')
        return
    for item in node.value:
        _check_literal(outline, item, f'the axis "{name}"')


def _check_whole(outline: Outline, node: Node, what: str) -> None:
    if OPEN not in node.value:
        outline.report(
            "E101",
            f"{what}: expected a list, got a string",
            node,
            "write [a, b], or ${{ … }} that gives a list",
        )


def _check_literal(outline: Outline, node: Node, what: str) -> None:
    """Report interpolations among written values: they would be taken for text."""
    if node.kind == SCALAR:
        if OPEN in node.value:
            hint = "make the whole list one `${{ … }}`"
            outline.report("E285", f"interpolations are not evaluated in {what}", node, hint)
        return
    for item in node.value.values() if node.kind == MAPPING else node.value:
        _check_literal(outline, item, what)


def _check_matched(outline: Outline, each: Instances, axes: dict[str, list[Any]]) -> None:
    """Report what `exclude` leaves out and the axes do not have."""
    listed = each.node.get("exclude")
    if listed is None:
        return
    every = [values for _, values in combine(axes)]
    for entry, node in zip(each.exclude, listed.value, strict=True):
        if not any(describes(entry, values) for values in every):
            missing = ", ".join(f"{name}: {spelled_value(value)}" for name, value in entry.items())
            hint = "; ".join(_nearest_value(outline, axes[name], value) for name, value in entry.items())
            outline.report("E282", f"no combination of the matrix has {missing}", node, hint.strip("; "))


def _nearest_value(outline: Outline, values: list[Any], wanted: Any) -> str:
    alike = next((value for value in values if spelled_value(value) == spelled_value(wanted)), None)
    if alike is None:
        return outline.nearest(spelled_value(wanted), [spelled_value(value) for value in values])
    if type(alike) is type(wanted):
        return ""
    return f"{spelled_value(wanted)} is a string in one place and not in the other"


# Lists.


def _read_list(outline: Outline, each: Instances) -> None:
    node = each.node
    items = node.get("items") if node.kind == MAPPING else node
    each.key = node.get("key") if node.kind == MAPPING else None
    each.items = items
    if items is not None and items.kind == SCALAR and outline.sound:
        _check_whole(outline, items, "`foreach`")


def _number(outline: Outline, each: Instances, formulas: Formulas) -> None:
    items = each.items
    if not outline.sound or items is None or items.kind != SEQUENCE:
        return
    before = len(outline.problems)
    _check_literal(outline, items, "`foreach`")
    most = limit_of(outline.root, "max_items")
    if len(items.value) > most:
        message = f'`foreach` of step "{each.raw.id}" has {len(items.value):,} items'
        outline.report(
            "E280",
            message,
            items,
            f"at most {most:,} are allowed; `limits: {{max_items: N}}` raises the limit",
        )
        return
    key = formulas.known(each.key) if each.key is not None else None
    if each.key is not None and (key is None or any(read.path[0] != "item" for read in references(key))):
        return  # reported where it is read
    values = [to_data(item) for item in items.value]
    names = [_name(outline, value, key, place) for value, place in zip(values, items.value, strict=True)]
    if len(outline.problems) == before and _is_named(outline, each, names, items, tuple(items.value)):
        each.made = [{"instance": name, "item": value} for name, value in zip(names, values, strict=True)]


def _name(outline: Outline, item: Any, key: Tree | None, place: Node) -> str:
    """Return what an item is called, and report one that has no name."""
    try:
        return name_of(item, key)
    except EvaluationError as error:
        outline.report("E283", f"the item {error}", place)
        return ""


def _is_named(
    outline: Outline, each: Instances, names: list[str], node: Node, places: tuple[Node, ...] = ()
) -> bool:
    """Report too many instances, or instances with the same id."""
    most = limit_of(outline.root, "max_items")
    if len(names) > most:
        message = f'step "{each.raw.id}" has {len(names):,} instances'
        outline.report(
            "E280",
            message,
            node,
            f"at most {most:,} are allowed; `limits: {{max_items: N}}` raises the limit",
        )
        return False
    seen: set[str] = set()
    for at, name in enumerate(names):
        place = places[at] if places else node
        wrong = unnameable(name)
        if wrong:
            outline.report("E283", f"the name of instance {at + 1} {wrong}", place)
            return False
        if name in seen:
            message = f'duplicate instance name "{name}" in step "{each.raw.id}"'
            outline.report("E281", message, place)
            return False
        seen.add(name)
    return True
