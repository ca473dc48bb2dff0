"""What a plan means: every problem beyond its shape, in one pass, each with its place.

A tree with problems in its shape is looked at all the same, as far as it can be understood.
The rule for reading values of other steps stands in `planrun.plan.check.edges`.
"""

from __future__ import annotations

from planrun.plan.check.edges import Availability, add_condition_links, check_cycles, check_links
from planrun.plan.keys.checked import Checked, step_count
from planrun.plan.keys.formulas import OPEN, Formulas
from planrun.plan.keys.outline import Outline, RawStep, members, scalar
from planrun.plan.keys.table import PLAN, STEP, module, modules_of
from planrun.plan.keys.top import RESERVED, declared_secrets, limit_of
from planrun.plan.problems import in_order
from planrun.plan.tables import ACTIONS
from planrun.plan.yaml.file import BOUNDS
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.keys.outline import Included

_ACTIONS = frozenset(ACTIONS)
_LITERAL = tuple([key for key, row in STEP.items() if row.holds == "literal"])  # shown, and never filled in


def validate(root: Node, file: str, source: bytes, included: Included, *, sound: bool = True) -> Checked:
    """Check what a plan means; `source` are the bytes that `root` was read from, `sound` says that its shape is.

    `included` has the plans that it uses.
    """
    return validated(Outline(root, file, source, sound=sound), included)


def validated(outline: Outline, included: Included) -> Checked:
    """Check what the plan of an outline means; `included` has the plans that it uses."""
    root = outline.root
    modules = modules_of(outline.keys) | modules_of(root.value if root.kind == MAPPING else (), PLAN)
    defaults = root.get("defaults")
    if defaults is not None and defaults.get("sandbox") is not None:
        modules |= {"sandbox"}
    _check_ids(outline)
    _each("take", _TAKEN, modules, outline, included)
    outline.schemas, outline.matching = included.schemas, included.matching
    formulas = Formulas(outline, included.parsed)
    check_links(outline)
    add_condition_links(outline, formulas)
    check_cycles(outline)
    params = _fragments(outline, root.get("params"), "parameter")
    outputs = {
        raw.id: _fragments(outline, raw.keys["outputs"], "output")
        for raw in outline.steps
        if "outputs" in raw.keys
    }
    checked = Checked(outline, formulas, params, outputs)
    _each("find", _FOUND, modules, checked)
    if formulas.listed:
        _check_formulas(checked)
    _each("check", _CHECKED, modules, checked)
    if outline.sound:
        for raw in outline.steps:
            if _ACTIONS.isdisjoint(raw.keys):
                hint = "add `run` or another action, write it with `planrun expand`, or execute with --skip-abstract"
                outline.report("W305", f'step "{raw.id}" has no action', raw.at, hint, severity="warning")
    _check_texts(outline)
    most, count = limit_of(outline.root, "max_steps"), step_count(outline)
    if 0 < BOUNDS.steps < min(count, most + 1):
        message = f"the plan has {count:,} steps; the settings of the project allow {BOUNDS.steps:,}"
        outline.report(
            "E240", message, outline.root.key("steps"), "see `limits: {plan_steps: N}` in .planrun.yml"
        )
    elif count > most:
        limits = outline.root.get("limits")
        given = scalar(limits.get("max_steps")) if limits is not None else None
        message = f"the plan has {count:,} steps; `max_steps` allows {most:,}"
        outline.report(
            "E240", message, given or outline.root.key("steps"), f"set `limits: {{max_steps: {count}}}`"
        )
    if "search" in modules:
        from planrun.plan.check.parts import check_parts  # few plans have parts

        check_parts(checked, included, validated)
    included.schemas, included.matching, included.parsed = outline.schemas, outline.matching, formulas.parsed
    checked.problems = in_order(outline.problems)
    return checked


# The functions of the modules that the table of keys names, in the order in which they are called. `take` completes
# steps before expressions are read, `find` finds what expressions may read, `check` reports what is wrong.
_TAKEN = ("containers", "uses")
_FOUND = ("gates", "tools", "agents", "uses", "instances")
_CHECKED = (
    "gates",
    "policy",
    "checks",
    "containers",
    "services",
    "top",
    "files",
    "rollback",
    "notify",
    "mcp",
    "collaboration",
    "sandbox",
    "search",
    "hooks",
)


def _each(function: str, order: tuple[str, ...], modules: frozenset[str], *given: object) -> None:
    """Call a function of each of the modules that a plan needs, and load no other."""
    for name in order:
        if name in modules:
            getattr(module(name), function)(*given)


def _fragments(outline: Outline, node: Node | None, what: str) -> dict[str, dict[str, Any]]:
    if node is None:
        return {}
    from planrun.plan.keys.fragments import check_fragments

    return check_fragments(outline, node, what)


def _check_formulas(checked: Checked) -> None:
    from planrun.plan.check.quoting import check_quoting, check_unquoted
    from planrun.plan.check.references import References

    outline, formulas = checked.outline, checked.formulas
    known = formulas.outline.by_id
    questions = [
        (formula.owner.id, str(reference.path[1]))
        for formula in formulas.listed
        if formula.owner is not None
        for reference in formula.references
        if len(reference.path) > 2 and reference.path[0] == "steps" and reference.path[1] in known
    ]
    available = Availability(outline, questions)
    secrets = declared_secrets(outline.root)
    references = References(outline, checked.params, checked.outputs, secrets, checked.groups)
    for formula in formulas.listed:
        if outline.is_full:
            break
        references.check(formula, available)
    if outline.root.get("outputs") is not None:
        by_node = {id(formula.node): formula for formula in formulas.listed if formula.kind == "outputs"}
        checked.gives = {
            name: references.type_of(by_node[id(node)]) if id(node) in by_node else "string"
            for name, node in members(outline.root.get("outputs"))
        }
    if any([raw.used for raw in outline.steps]):  # noqa: C419 - half the time
        module("uses").check_types(checked, references.type_of)
    check_quoting(outline, formulas.listed)
    if any([formula.kind == "script" for formula in formulas.listed]):  # noqa: C419 - half the time
        check_unquoted(outline, formulas.listed, checked.params, checked.groups)


def _check_ids(outline: Outline) -> None:
    """Ids are unique in the whole file, ignoring case, since some file systems are case-insensitive."""
    seen: dict[str, RawStep] = {}
    for raw in outline.steps:
        first = seen.setdefault(raw.id.casefold(), raw)
        if first is raw:
            continue
        if outline.is_full:
            return
        if first.id == raw.id:
            message = f'duplicate step id "{raw.id}", first on {outline.line_of(first.at)}'
        else:
            where = outline.line_of(first.at)
            message = f'the step ids "{raw.id}" and "{first.id}" ({where}) differ only in case'
        if "id" not in raw.keys or "id" not in first.keys:
            hint = "a step without an id gets its position as id; give both an id"
        else:
            hint = "log files are named after ids; rename one"
        place = _value_place(raw)
        related = ((_value_place(first).line, _value_place(first).col, "first defined here"),)
        outline.report("E201", message, place, hint, related=related)


def _value_place(raw: RawStep) -> Node:
    return scalar(raw.keys.get("id")) or raw.at


def _check_texts(outline: Outline) -> None:
    """Names of environment variables, empty words, and templates where nothing is filled in."""
    root = outline.root
    defaults = root.get("defaults")
    _check_env(outline, root)
    if defaults is not None:
        _check_words(outline, defaults)
    _check_words(outline, root)
    for raw in (*outline.steps, *outline.undos):
        keys = raw.keys
        if "env" in keys:
            _check_env(outline, raw.node)
        if "shell" in keys or "workdir" in keys or "env_file" in keys:
            _check_words(outline, raw.node)
        for key in _LITERAL:
            if key in keys and keys[key].kind == SCALAR and OPEN in keys[key].value:
                message = f"`{key}` is shown as written: interpolations are not evaluated"
                outline.report("W301", message, keys[key], severity="warning")


def _check_env(outline: Outline, node: Node) -> None:
    env = node.get("env")
    for name, _ in members(env):
        if name.startswith(RESERVED) and env is not None:
            outline.report("E230", f"reserved environment variable {name}: planrun sets it", env.key(name))


def _check_words(outline: Outline, node: Node) -> None:
    for key in ("shell", "workdir", "env_file"):
        value = node.get(key)
        if value is None:
            continue
        words = value.value if value.kind not in (SCALAR, MAPPING) else [value]
        if not all(word.kind != SCALAR or word.value.strip() for word in words):
            outline.report("E113", f"`{key}` is empty", value, "remove it to use the default")
    shell = scalar(node.get("shell"))
    if shell is not None:
        try:
            shell_words(shell.value)
        except ValueError as error:
            outline.report("E231", f"`shell` cannot be split into words: {error}", shell)


def shell_words(text: str) -> tuple[str, ...]:
    """Return a command as words; raises ValueError for an unclosed quote."""
    if not any(char in text for char in "'\"\\#"):
        return tuple(text.split())
    from shlex import split  # costs `re`; hardly a shell needs quotes

    try:
        return tuple(split(text))
    except ValueError as error:
        raise ValueError(str(error).lower()) from None
