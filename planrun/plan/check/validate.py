"""What a plan means: every problem beyond its shape, in one pass, each with its place.

A tree with problems in its shape is looked at all the same, as far as it can be understood.
The rule for reading values of other steps stands in `planrun.plan.check.edges`.
"""

from __future__ import annotations

from planrun.plan.check.edges import add_condition_links, check_cycles, check_links
from planrun.plan.keys.formulas import OPEN, Formulas
from planrun.plan.keys.outline import Outline, RawStep, members, scalar
from planrun.plan.keys.top import RESERVED, check_secrets, declared_secrets, limit_of
from planrun.plan.problems import in_order
from planrun.plan.schema.tables import ACTIONS
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Type
    from planrun.plan.includes import IncludedPlans
    from planrun.plan.keys.gates import Gate
    from planrun.plan.keys.instances import Instances
    from planrun.plan.problems import Problem

_FILES = frozenset(("inputs", "produces", "writes", "cache", "reports"))
_ACTIONS = frozenset(ACTIONS)
_PROOFS = frozenset(("expect", "verify", "verify_timeout", "criteria"))
LITERAL_KEYS = ("title", "owner")  # shown in reports, and never filled in


class Checked:
    """A plan whose meaning was looked at: all problems in file order, and what the compiler goes on with."""

    __slots__ = (
        "formulas", "gates", "gives", "groups", "outline", "outputs", "params", "problems", "services",
    )  # fmt: skip

    def __init__(
        self,
        outline: Outline,
        formulas: Formulas,
        params: dict[str, dict[str, Any]],
        outputs: dict[str, dict[str, dict[str, Any]]],
    ) -> None:
        self.outline = outline
        self.formulas = formulas
        self.params = params
        self.outputs = outputs
        self.gates: dict[str, Gate] = {}
        self.groups: dict[str, Instances] = {}
        self.gives: dict[str, Type] = {}  # the types of the plan's own outputs, as far as they are known
        self.services: frozenset[str] = frozenset()
        self.problems: list[Problem] = []

    @property
    def count(self) -> int:
        """How many steps run at most, as far as that is known; instances that are not known count as one step."""
        return _count(self.outline)

    @property
    def known(self) -> int:
        """How many steps are known to run: those that reports count, each instance and no group."""
        return self.count - len(self.later)

    @property
    def later(self) -> tuple[str, ...]:
        """The steps whose instances are known when they run."""
        found = [draft.id for draft in self.outline.drafts if draft.id in self.groups and not draft.instances]
        for draft in self.outline.drafts:
            if draft.used is not None and draft.used.checked is not None:
                found += [f"{draft.id}/{name}" for name in draft.used.checked.later]
        return tuple(found)


def validate(root: Node, file: str, source: bytes, shelf: IncludedPlans, *, sound: bool = True) -> Checked:
    """Check what a plan means; `source` are the bytes that `root` was read from, `sound` says that its shape is.

    `shelf` has the plans that it uses.
    """
    return validated(Outline(root, file, source, sound=sound), shelf)


def validated(outline: Outline, shelf: IncludedPlans) -> Checked:
    """Check what the plan of an outline means; `shelf` has the plans that it uses."""
    root = outline.root
    _check_ids(outline)
    uses = _take_in(outline, shelf)
    outline.schemas, outline.matching = shelf.schemas, shelf.matching
    formulas = Formulas(outline, shelf.parsed)
    check_links(outline)
    add_condition_links(outline, formulas)
    check_cycles(outline)
    params = _fragments(outline, root.get("params"), "parameter")
    outputs = {
        draft.id: _fragments(outline, draft.keys["outputs"], "output")
        for draft in outline.drafts
        if "outputs" in draft.keys
    }
    gates = _gates(outline, outputs)
    if any(["tool" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.keys.tools import check_tools  # few plans call tools

        check_tools(outline, formulas, outputs)
    if uses:
        _check_used(outline, outputs)
    checked = Checked(outline, formulas, params, outputs)
    checked.gates, checked.groups = gates, _groups(outline, formulas)
    if formulas.listed:
        _check_formulas(checked)
    if gates:
        from planrun.plan.keys.gates import check_gates

        check_gates(outline, gates)
    if outline.root.get("policy") is not None:
        from planrun.plan.keys.policy import check_policy  # most plans have none

        check_policy(outline, gates)
    if any([not _PROOFS.isdisjoint(draft.keys) for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.keys.checks import check_proofs  # most plans have none

        check_proofs(outline)
    checked.services = _services(checked)
    check_secrets(outline)
    if any([not _FILES.isdisjoint(draft.keys) for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.keys.files import check_files  # most plans say nothing of files

        check_files(outline)
    if outline.undos:
        from planrun.plan.keys.rollback import check_undoing  # few plans undo anything

        check_undoing(outline, formulas, outputs)
    _check_actions(outline)
    _check_texts(outline)
    _check_limits(outline)
    shelf.schemas, shelf.matching, shelf.parsed = outline.schemas, outline.matching, formulas.parsed
    checked.problems = in_order(outline.problems)
    return checked


def _take_in(outline: Outline, shelf: IncludedPlans) -> bool:
    """Take in the plans and the shared containers that steps name; says whether there are plans."""
    if any(["container" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.keys.containers import take_shared  # most plans have none

        take_shared(outline)
    if not any(["uses" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        return False
    from planrun.plan.check.uses import take_used  # few plans use others

    take_used(outline, shelf)
    return True


def _fragments(outline: Outline, node: Node | None, what: str) -> dict[str, dict[str, Any]]:
    if node is None:
        return {}
    from planrun.plan.keys.fragments import check_fragments  # small plans have none, and start the sooner

    return check_fragments(outline, node, what)


def _groups(outline: Outline, formulas: Formulas) -> dict[str, Instances]:
    if not any(["matrix" in draft.keys or "foreach" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        return {}
    from planrun.plan.keys.instances import check_same, instances_of  # few plans have any

    groups = instances_of(outline, formulas)
    check_same(outline, groups)
    return groups


def _services(checked: Checked) -> frozenset[str]:
    outline = checked.outline
    if any(["container" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.keys.containers import check_containers  # most plans have none

        check_containers(outline, checked.formulas)
    if not any(["service" in draft.keys or "ready" in draft.keys for draft in outline.drafts]):  # noqa: C419 - half the time
        return frozenset()
    from planrun.plan.keys.services import check_services, services_of  # few plans have any

    check_services(outline, checked.groups)
    return services_of(outline)


def _check_used(outline: Outline, outputs: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Check what used plans are given, and add what they hand on to the outputs."""
    from planrun.plan.check.uses import check_given, outputs_of

    for draft in outline.drafts:
        if "uses" in draft.keys:
            check_given(outline, draft)
            found = outputs_of(draft)
            if found is not None:
                outputs[draft.id] = found


def _check_formulas(checked: Checked) -> None:
    from planrun.plan.check.edges import Availability  # small plans have no formulas
    from planrun.plan.check.quoting import check_quoting
    from planrun.plan.check.references import References

    outline, formulas = checked.outline, checked.formulas
    available = Availability(outline, _questions(formulas))
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
    if any([draft.used for draft in outline.drafts]):  # noqa: C419 - half the time
        from planrun.plan.check.uses import check_types

        check_types(formulas.listed, references)
    check_quoting(outline, formulas.listed)
    if any([formula.kind == "script" for formula in formulas.listed]):  # noqa: C419 - half the time
        from planrun.plan.check.quoting import check_unquoted  # most plans put no values into scripts

        check_unquoted(outline, formulas.listed, checked.params, checked.groups)


def _gates(outline: Outline, outputs: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Gate]:
    """Return the gates of a plan, and add their answers to the outputs."""
    if not any([draft.is_gate for draft in outline.drafts]):  # noqa: C419 - half the time
        return {}
    from planrun.plan.keys.gates import ANSWER, gates_of  # most plans have none

    gates = gates_of(outline)
    outputs.update({name: {ANSWER: gate.fragment} for name, gate in gates.items()})
    return gates


def _check_ids(outline: Outline) -> None:
    """Ids are unique in the whole file, also where a file system does not tell capitals from small letters."""
    seen: dict[str, RawStep] = {}
    for draft in outline.drafts:
        first = seen.setdefault(draft.id.casefold(), draft)
        if first is draft:
            continue
        if outline.is_full:
            return
        if first.id == draft.id:
            message = f'duplicate step id "{draft.id}", first on {outline.line_of(first.at)}'
        else:
            where = outline.line_of(first.at)
            message = f'the step ids "{draft.id}" and "{first.id}" ({where}) differ in capitals only'
        if "id" not in draft.keys or "id" not in first.keys:
            hint = "a step without an id is called by its position; give both an id"
        else:
            hint = "logs and records are kept by id"
        place = _value_place(draft)
        related = ((_value_place(first).line, _value_place(first).col, "the first one is here"),)
        outline.report("E201", message, place, hint, related=related)


def _value_place(draft: RawStep) -> Node:
    return scalar(draft.keys.get("id")) or draft.at


def _questions(formulas: Formulas) -> list[tuple[str, str]]:
    """Return who reads values of whom, as far as both exist."""
    known = formulas.outline.by_id
    return [
        (formula.owner.id, str(reference.path[1]))
        for formula in formulas.listed
        if formula.owner is not None
        for reference in formula.references
        if len(reference.path) > 2 and reference.path[0] == "steps" and reference.path[1] in known
    ]


def _check_actions(outline: Outline) -> None:
    """Warn of steps that do nothing yet: `planrun expand` fills them in, but a forgotten `run` looks the same."""
    if not outline.sound:
        return  # the action may be a misspelt key
    for draft in outline.drafts:
        if _ACTIONS.isdisjoint(draft.keys):
            hint = "add `run` or another action, have `planrun expand` write one, or execute with --skip-abstract"
            outline.report("W305", f'step "{draft.id}" has no action', draft.at, hint, severity="warning")


def _check_texts(outline: Outline) -> None:
    """Names of environment variables, empty words, and templates where nothing is filled in."""
    root = outline.root
    defaults = root.get("defaults")
    _check_env(outline, root)
    if defaults is not None:
        _check_words(outline, defaults)
    _check_words(outline, root)
    for draft in (*outline.drafts, *outline.undos):
        keys = draft.keys
        if "env" in keys:
            _check_env(outline, draft.node)
        if "shell" in keys or "workdir" in keys or "env_file" in keys:
            _check_words(outline, draft.node)
        for key in LITERAL_KEYS:
            if key in keys and keys[key].kind == SCALAR and OPEN in keys[key].value:
                message = f"`{key}` is shown as it is: nothing is filled in here"
                outline.report("W301", message, keys[key], severity="warning")


def _check_env(outline: Outline, node: Node) -> None:
    env = node.get("env")
    for name, _ in members(env):
        if name.startswith(RESERVED) and env is not None:
            outline.report("E230", f"the environment variable {name} is set by planrun itself", env.key(name))


def _check_words(outline: Outline, node: Node) -> None:
    for key in ("shell", "workdir", "env_file"):
        value = node.get(key)
        if value is None:
            continue
        words = value.value if value.kind not in (SCALAR, MAPPING) else [value]
        if not all(word.kind != SCALAR or word.value.strip() for word in words):
            outline.report("E113", f"`{key}` is empty", value, "leave it out for the default")
    shell = scalar(node.get("shell"))
    if shell is not None:
        try:
            shell_words(shell.value)
        except ValueError as error:
            outline.report("E231", f"`shell` cannot be split into words: {error}", shell)


def shell_words(text: str) -> tuple[str, ...]:
    """Return a command as words; raises ValueError for a quote that is never closed."""
    if not any(char in text for char in "'\"\\#"):
        return tuple(text.split())
    from shlex import split  # costs `re`; hardly a shell needs quotes

    try:
        return tuple(split(text))
    except ValueError as error:
        raise ValueError(str(error).lower()) from None


def _check_limits(outline: Outline) -> None:
    most, count = limit_of(outline.root, "max_steps"), _count(outline)
    if count > most:
        limits = outline.root.get("limits")
        given = scalar(limits.get("max_steps")) if limits is not None else None
        message = f"the plan has {count:,} steps; `max_steps` allows {most:,}"
        outline.report(
            "E240", message, given or outline.root.key("steps"), f"`limits: {{max_steps: {count}}}` allows it"
        )


def _count(outline: Outline) -> int:
    return sum([draft.used.count if draft.used else draft.instances or 1 for draft in outline.drafts])
