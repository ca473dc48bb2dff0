"""Compare a plan that a model wrote with the reviewed one: nothing else changes, guards stay, ceilings hold.

The loader has read the new plan like any file. Its text is compared with that of the previous plan, so that no value of
a model can become a key. Then every policy in force decides about each step that a model wrote or moved; values
that are unknown before the step starts count as the riskiest.
"""

from __future__ import annotations

import json

from planrun.actions.environment import looks_secret
from planrun.approval.assess import as_written
from planrun.approval.policies import facts_of
from planrun.approval.rules import decide, in_force
from planrun.expressions.parse import parse as parse_expression
from planrun.expressions.tree import ExpressionError, spelled
from planrun.llm.drafts import PIECES, Fault
from planrun.llm.plantext import AT_THE_END
from planrun.model import graph
from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.plan.keys.outline import Outline
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import MAPPING, SCALAR
from planrun.planner.conversation import Refused
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.llm.drafts import Form
    from planrun.model.plan import Plan, Step
    from planrun.plan.yaml.node import Node

    Keys = dict[str, Any]  # the keys of a step in the text, with their values

_LONGEST_REASON = 600  # characters


class Bounds(Record):
    """The limits of a draft.

    `before`: the current plan. `failed`: steps whose failure is replanned. `pending`: steps that have not started,
    including those that wait for an answer. `made_of`: maps each new step's id to the abstract step that it expands.
    Steps in none of them cannot change. `inherited`: names of credentials that every step sees.
    """

    before: Plan
    layers: Layers
    context: Mapping[str, Any] = {}
    failed: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    made_of: Mapping[str, str] = {}
    inherited: tuple[str, ...] = ()
    # Parts of the reviewed plan, as plain data, by the id of the new step that each became.
    parts: Mapping[str, Mapping[str, Any]] = {}
    form: Form = PIECES  # of the answer: the keys that a model may write
    # Commands of reviewed steps that verify new steps of a model, by the id of these.
    checks: Mapping[str, Sequence[Any]] = {}


def inspect_parts(plan: Plan, new: Sequence[str], bounds: Bounds) -> tuple[dict[str, str], ...]:
    """Return the refusals for a plan to which a search added the steps `new`: nothing else may change.

    Those in `bounds.parts` are parts of the reviewed plan, the others were written by a model.
    """
    changed = tuple(_changes(plan, new, bounds))
    if changed:
        return changed
    own = [name for name in new if name not in bounds.parts]
    faults = [*_misplaced(plan, new, bounds), *_unguarded(plan, new, bounds)]
    if pried := [
        fault for at, name in enumerate(new) if name in own for fault in _prying(plan, at, name, bounds)
    ]:
        faults = pried
    if faults:
        at = int(faults[0].path[6:-1].partition("]")[0]) if faults[0].path.startswith("steps[") else 0
        return (_refusal(new[at], f"bounds:{faults[0].rule}", faults[0].message),)
    return (*_unmarked(plan, new, bounds), *_denied(plan, new, bounds))


def inspect_candidates(
    plan: Plan, new: Sequence[str], bounds: Bounds
) -> tuple[list[Fault], tuple[dict[str, str], ...]]:
    """Return the faults and refusals of steps that a model offers to a search, in a plan that has all of them.

    A policy that denies one says nothing of the others.
    """
    if changed := tuple(_changes(plan, new, bounds)):
        return [], changed
    faults = [fault for at, name in enumerate(new) for fault in _prying(plan, at, name, bounds)]
    return [*_misplaced(plan, new, bounds), *faults], tuple(_denied(plan, new, bounds))


def inspect(plan: Plan, new: Sequence[str], bounds: Bounds) -> Refused | list[Fault] | None:
    """Return the objections to a plan with the steps `new`, in the order of the draft; None: there are none.

    A refusal is final. A model can repair faults, but not skip them. The origins of the steps are those with which the
    plan would run.
    """
    changed = list(_changes(plan, new, bounds))
    if changed:  # the written text contains more than the draft: refuse it in any case
        return Refused(refusals=tuple(changed))
    prying = [fault for at, name in enumerate(new) for fault in _prying(plan, at, name, bounds)]
    faults = [*_misplaced(plan, new, bounds), *prying, *_unguarded(plan, new, bounds)]
    if faults:
        return faults
    refusals = (*_unmarked(plan, new, bounds), *_denied(plan, new, bounds))
    return Refused(refusals=refusals) if refusals else None


def _refusal(step: str, rule: str, reason: str) -> dict[str, str]:
    return {"step": line(step, 100), "rule": rule, "reason": line(reason, _LONGEST_REASON)}


# Reviewed steps do not change.


def _changes(plan: Plan, new: Sequence[str], bounds: Bounds) -> Iterator[dict[str, str]]:
    """Yield a refusal for each difference from the previous plan besides new steps."""
    head, steps = _keys_of(plan)
    head_before, steps_before = _keys_of(bounds.before)
    if head != head_before:
        keys = ", ".join([key for key in {**head_before, **head} if head.get(key) != head_before.get(key)])
        yield _refusal("", "bounds:plan", f"what is reviewed for the whole plan would change: {keys}")
    fresh, made = set(new), set(bounds.made_of.values())
    for name, keys_before in steps_before.items():
        if name not in made and steps.get(name) != keys_before:
            yield _refusal(name, "bounds:reviewed", "a step that was reviewed would change")
    for name in steps.keys() - steps_before.keys() - fresh:
        yield _refusal(name, "bounds:new", "a step that nobody wrote would be added")
    yield from _copied(plan, bounds)
    for name in [name for name in new if name not in bounds.parts]:
        yield from _added(name, steps.get(name), steps_before, bounds)


def _copied(plan: Plan, bounds: Bounds) -> Iterator[dict[str, str]]:
    """Yield a refusal for each new step that is not the reviewed part with edges alone."""
    root, _ = parse(plan.source, plan.file)
    assert root is not None  # it has been loaded
    written = {raw.id: raw for raw in Outline(root, plan.file, plan.source).steps}
    for name, part in bounds.parts.items():
        keys = {key: to_data(node) for key, node in written[name].keys.items()} if name in written else {}
        ours = {key: value for key, value in keys.items() if key not in ("id", "depends_on", "replaces")}
        if (
            ours != {key: value for key, value in part.items() if key != "id"}
            or written[name].section != "steps"
        ):
            yield _refusal(name, "bounds:part", "it would differ from the part that was reviewed")


def _added(
    name: str, new: Keys | None, before: Mapping[str, Keys], bounds: Bounds
) -> Iterator[dict[str, str]]:
    """Yield the keys of a new step that neither a model may write nor the replaced step had."""
    origin = bounds.made_of.get(name, "")
    given = before.get(origin, {}) if origin else {"": "steps"}
    if new is None or (name in before and name != origin):
        yield _refusal(name, "bounds:new", "a new step has the id of another one, or is not there")
        return
    written = bounds.form.written
    extra = [key for key, value in new.items() if key not in written and given.get(key) != value]
    if name in bounds.checks and _texts(new.get("verify")) == _texts(bounds.checks[name]):
        extra.remove("verify")
    elif name in bounds.checks:
        extra.append("verify")
    missing = [key for key in given if key not in written and key not in new]
    if (
        name != origin
    ):  # only the last of them completes the recovery of another step, and what the whole provides
        missing = [key for key in missing if key not in ("recovers", *AT_THE_END)]
    if "condition" in given and given["condition"] not in (new.get("condition"), _inner(new, given)):
        missing.append("condition")
    if extra or missing:
        keys = ", ".join(key or "section" for key in [*extra, *missing])
        yield _refusal(name, "bounds:keys", f"it would have other values than a reviewer gave: {keys}")


def _texts(value: Any) -> Any:
    """Return texts and lists of texts, as they are written or as data, without how they are quoted."""
    if isinstance(value, tuple):
        return value[0]
    return [_texts(each) for each in value] if isinstance(value, list) else value


def _inner(new: Keys, given: Keys) -> Any:
    """Return the reviewed condition if the new one begins with it and can only be stricter, else None."""
    theirs, ours = given["condition"], new.get("condition")
    begin, end = f"({theirs[0]}) and (", ")"
    if not (isinstance(ours, tuple) and ours[0].startswith(begin) and ours[0].endswith(end)):
        return None
    try:
        parse_expression(
            ours[0][len(begin) : -len(end)]
        )  # separately: `a) or (b` would cancel the part before it
    except ExpressionError:
        return None
    return theirs


def _keys_of(plan: Plan) -> tuple[Keys, dict[str, Keys]]:
    """Return the head of a plan's text, and the keys of each step, with its section under the empty name."""
    root, _ = parse(plan.source, plan.file)
    assert root is not None  # it has been loaded
    drafts = Outline(root, plan.file, plan.source).steps
    head = {key: _data(node) for key, node in root.value.items() if key not in ("steps", "finally")}
    # The position of a step without an id depends on the steps before it; the resulting `id` is compared.
    steps = {
        draft.id: {"": draft.section, **{key: _data(node) for key, node in draft.keys.items() if key != "id"}}
        for draft in drafts
    }
    return head, steps


def _data(node: Node) -> Any:
    """Return a value as it is written; whether a scalar is quoted is part of it."""
    if node.kind == SCALAR:
        return (node.value, node.plain)
    if node.kind == MAPPING:
        return {key: _data(value) for key, value in node.value.items()}
    return [_data(value) for value in node.value]


# Faults that the model must repair.


def _misplaced(plan: Plan, new: Sequence[str], bounds: Bounds) -> Iterator[Fault]:
    """Yield faults of replaced steps, and of steps without an action; the loader checks ids."""
    steps = {step.id: step for step in plan.steps}
    for at, name in enumerate(new):
        if steps[name].kind == "abstract":
            message = "there is no script, and the step could not be started"
            yield Fault(path=f"steps[{at}].run", rule="empty", message=message)
        yield from _replaced(at, steps[name], bounds)


def _replaced(at: int, step: Step, bounds: Bounds) -> Iterator[Fault]:
    kinds = {known.id: known for known in bounds.before.steps}
    may = bounds.failed | bounds.pending
    for other in step.replaces:
        path, known = f"steps[{at}].replaces", kinds.get(other)
        if other not in may:
            message = f"{other} has ended or is running; nothing about it can change"
        elif known is None or known.section != "steps":
            message = f"{other} is none of the steps that may be replaced"
        elif known.action.guards and other not in bounds.failed:
            message = f"{other} guards what comes after it and stays; name it in `keep`"
        else:
            continue
        yield Fault(path=path, rule="replaces", message=message, allowed=_replaceable(kinds.values(), bounds))


def _replaceable(steps: Iterable[Step], bounds: Bounds) -> tuple[str, ...]:
    may = bounds.failed | bounds.pending
    return tuple(
        [
            step.id
            for step in steps
            if step.id in may
            and step.section == "steps"
            and (not step.action.guards or step.id in bounds.failed)
        ]
    )


_TEXTS = {
    "condition": "condition",
    "run": "action",
    "ready": "verify",
    "produces": "produces",
    "matrix": "matrix",
}
"""The fields of a step in which a model may write expressions, by the key that it writes."""


def _prying(plan: Plan, at: int, name: str, bounds: Bounds) -> Iterator[Fault]:
    """Yield a fault for each expression of a step that would put a credential, or unnamed variables, into a text."""
    step = next(step for step in plan.steps if step.id == name)
    for key, field in _TEXTS.items():
        for path in _paths(getattr(step, field)) if key in bounds.form.written else ():
            if path[0] == "env" and (len(path) < 2 or looks_secret(str(path[1])) or path[1] in plan.secrets):
                message = f"{spelled(path)} may hold a secret, which is no value for an expression"
                yield Fault(path=f"steps[{at}].{key}", rule="secret", message=message)


def _paths(tree: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the names that an expression, a template or a record of such reads."""
    if isinstance(tree, tuple) and len(tree) == 4 and tree[0] == "path":
        yield tree[3]
    elif isinstance(tree, Record):
        yield from _paths(tuple(vars(tree).values()))
    elif isinstance(tree, tuple | list | dict):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _paths(part)


def _unguarded(plan: Plan, new: Sequence[str], bounds: Bounds) -> Iterator[Fault]:
    """Yield a fault for each guard that a step, or its successor, would no longer wait for."""
    guards = {
        step.id for step in bounds.before.steps if step.action.guards and step.id in bounds.pending
    } - bounds.failed
    if not guards:
        return
    before, after = _guards_of(bounds.before, guards), _guards_of(plan, guards)
    numbers = {name: at for at, name in enumerate(new)}
    steps = {step.id: step for step in plan.steps}
    gone = {other for step in plan.steps for other in step.replaces}
    for name, step in steps.items():
        if name in numbers:
            stands_for = {*step.replaces, bounds.made_of.get(name, "")}
            needed = set().union(*[before.get(other, frozenset()) for other in stands_for])
        elif name in bounds.pending and name not in gone:
            needed = set(before.get(name, ()))
        else:
            continue
        for guard in sorted(needed - after[name]):
            if name in numbers:
                path, what = f"steps[{numbers[name]}].depends_on", "what it replaces"
            else:
                path, what = "steps", name
            message = f"{guard} guards {what}: {name} has to wait for it, itself or by another step"
            yield Fault(path=path, rule="guard", message=message)


def _guards_of(plan: Plan, guards: set[str]) -> dict[str, frozenset[str]]:
    """Return which guards each step waits for, directly or not."""
    waits = graph.waits(plan.main())
    found: dict[str, frozenset[str]] = {step.id: frozenset() for step in plan.cleanup()}
    for name in graph.order(waits):
        own = [found[other] | ({other} & guards) for other in waits[name]]
        found[name] = frozenset().union(*own)
    return found


# Policies.


def told_limits(layers: Layers, most_steps: int = 0) -> list[str]:
    """Return what a model is told of the policies in force, the levels and every rule, and how much it may write."""
    rows = [f"Policy in force: {in_force(layers)}."]
    for policy in [*[ceiling.policy for ceiling in layers.ceilings], layers.plan or Policy()]:
        for rule in policy.rules:
            match = {name: list(value) for name, value in vars(rule.match).items() if value}
            rows.append(f"- {rule.verb} {json.dumps(match)}")
    return [*rows, *([f"Write at most {most_steps} steps."] if most_steps else [])]


def _arranged(plan: Plan, new: Sequence[str], bounds: Bounds) -> set[str]:
    """Return the new steps and, if some replace others, the remaining steps after them."""
    names = set(new)
    if bounds.failed:
        waits = graph.waits(plan.main())
        for name in graph.order(waits):
            if not names.isdisjoint(waits[name]):
                names.add(name)
    gone = {other for step in plan.steps for other in step.replaces}
    return {name for name in names - gone if name in new or name in bounds.pending}


def _unmarked(plan: Plan, new: Sequence[str], bounds: Bounds) -> Iterator[dict[str, str]]:
    """Yield a refusal for a step that a model wrote or moved, and that would count as the user's."""
    arranged = _arranged(plan, new, bounds)
    for step in plan.steps:
        if step.id in arranged and step.origin == "file":
            yield _refusal(step.id, "bounds:origin", "a model wrote or arranged it, and it does not say so")


def _denied(plan: Plan, new: Sequence[str], bounds: Bounds) -> Iterator[dict[str, str]]:
    """Yield a refusal for each step that a policy denies."""
    arranged = _arranged(plan, new, bounds)
    for step in plan.steps:
        if step.id in arranged:
            found = {**as_written(step, bounds.layers), "inherited": bounds.inherited}
            if step.open_risk:  # if values are missing, rules are also matched against the text
                found["is_understood"] = False
            decision = decide(facts_of(step, bounds.context, found), bounds.layers)
            if decision.answer == "deny":
                stays = "" if step.id in new else "; it stays, and would now come after a new step"
                yield _refusal(step.id, decision.rule, decision.reason + stays)
