"""Groups of steps: their members, the status of a group, and the combinations of a matrix. Pure.

A matrix follows GitHub's rules: the combinations of all axes, the last axis changing fastest; without those that an
entry of `exclude` describes, in part or in full; then each entry of `include` is added to every combination whose axes
it does not change, or is a combination of its own, which later entries do not extend. A later entry may change what an
earlier one added.
"""

from __future__ import annotations

from planrun.model.plan import Edge
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from planrun.model.lifecycle import Tolerance
    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState

    Combination = dict[str, Any]

_FOLDER = (
    100  # characters of a folder's name: with an ending it has to stay below the 255 bytes of a file name
)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def undo_id(step: str, number: int = 1) -> str:
    """Return what undoes a step is called, by its place in a list; no step of a plan can be called so."""
    return f"undo:{step}" if number == 1 else f"undo:{step}:{number}"


def folder_of(name: str) -> str:
    """Return the folder for the records of a step: its id or, where that is no plain word, one like it and a hash."""
    if len(name) <= _FOLDER and _PLAIN.issuperset(name):
        return name
    plain = "".join([letter if letter in _PLAIN else "_" for letter in name])[: _FOLDER - 9]
    return f"{plain}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def member(group: Step, template: Step, made: Mapping[str, Any]) -> Step:
    """Return one member of a group; `made` is its `instance`, and `matrix` or `item`, as the event has them."""
    name = f"{group.id}[{made['instance']}]"
    instance = made["instance"]
    same = group.grouping.same if group.kind == "group" else ()
    fields: dict[str, Any] = {
        "id": name,
        "group": group.id,
        "instance": made["instance"],
        "line": group.line,
        "col": group.col,
        "edges": (
            Edge(on=group.id, kind="open"),
            *tuple([Edge(on=f"{on}[{instance}]", kind=kind) for on, kind in same]),
        ),
        "folder": folder_of(name),
    }
    if "matrix" in made:
        fields["matrix"] = made["matrix"]
    if "item" in made:
        fields["item"] = (made["item"],)
    return template.but(**fields)


def unfold(plan: Plan, group: Step, items: Sequence[Mapping[str, Any]]) -> Plan:
    """Return a plan in which a group has members, one for each item, right behind it; earlier ones are gone."""
    assert group.grouping.template is not None
    made = [member(group, group.grouping.template, item) for item in items]
    if group.id in group.grouping.template.conflicts:  # its members change the same files
        made = [_beside_none(each, group, made) for each in made]
    opened = group.but(action=group.grouping.but(members=tuple([each.id for each in made])))
    steps: list[Step] = []
    for step in plan.steps:
        if step.id == group.id:
            steps += [opened, *made]
        elif step.group != group.id:
            steps.append(step)
    return plan.but(steps=tuple(steps))


def _beside_none(step: Step, group: Step, made: Sequence[Step]) -> Step:
    """Return a member that runs beside no other one: what stands for its group stands for those."""
    others = [name for name in step.conflicts if name != group.id]
    return step.but(conflicts=(*others, *[each.id for each in made if each.id != step.id]))


def unrolled(steps: Sequence[Step]) -> dict[str, list[tuple[str, str]]]:
    """Return the edges as pairs of id and kind, as if there were no groups around their members.

    A member waits for what its group waits for, and the group for its members.
    """
    by_id = {step.id: step for step in steps}
    found: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        pairs: dict[tuple[str, str], None] = {}
        waiting = list(step.edges)
        while waiting:
            edge = waiting.pop(0)
            other = by_id.get(edge.on)
            if edge.kind in ("open", "same") and other is not None and other.kind == "group":
                waiting += other.edges
            else:
                pairs[edge.on, edge.kind] = None
        if step.kind == "group":
            pairs.update({(name, "done"): None for name in step.grouping.members})
        found[step.id] = list(pairs)
    return found


def number_of(count: int, later: Sequence[str]) -> str:
    """Return a number of steps for people: each instance counts and no group; `later`: whose are not known yet."""
    more = f" and the instances of {', '.join(later[:3])}" if later else ""
    more += f" and {len(later) - 3} more" if len(later) > 3 else ""
    return f"{count} step{'' if count == 1 else 's'}{more}"


def unknown(steps: Iterable[Step]) -> list[str]:
    """Return the groups whose members are known when they are opened."""
    return [step.id for step in steps if step.kind == "group" and not step.grouping.members]


def waited_for(steps: Sequence[Step]) -> dict[str, list[tuple[str, str]]]:
    """Return what each step waits for as pairs of id and kind: a member what its group waits for, not the group."""
    if not any(step.group for step in steps):
        return {step.id: [(edge.on, edge.kind) for edge in step.edges] for step in steps}
    members = {step.id: step.grouping.members for step in steps if step.kind == "group"}
    return {
        name: [pair for pair in pairs if pair[0] not in members.get(name, ())]
        for name, pairs in unrolled(steps).items()
    }


def drawn(steps: Sequence[Step]) -> list[tuple[str, str, str]]:
    """Return the edges as they are drawn, as (from, to, kind): before a group come its members."""
    if not any(step.group for step in steps):
        return [(edge.on, step.id, edge.kind) for step in steps for edge in step.edges]
    members = {step.id: step.grouping.members for step in steps if step.kind == "group"}
    return [
        (on, name, "ok" if on in members.get(name, ()) else kind)
        for name, pairs in unrolled(steps).items()
        for on, kind in pairs
        if name not in members or on in members[name] or not members[name]
    ]


def chain(state: RunState, name: str) -> Iterable[str]:
    """Yield the groups around a step, the innermost first."""
    group = state.steps[name].step.group
    while group:
        yield group
        group = state.steps[group].step.group


def gather(state: RunState, group: Step) -> tuple[str, str, str]:
    """Return status, reason and message that a group ends with, all members of which have ended.

    One failure makes it failed, whether that is tolerated within it or not, unless it is another plan, in which
    tolerated failures are that plan's own matter, or a member is blocked, which nothing tolerates. Without members
    it is skipped(empty).
    """
    members = [state.steps[name] for name in group.grouping.members]
    if not members:
        return "skipped", "empty", ""
    of = {
        status: [each for each in members if each.status == status]
        for status in ("failed", "cancelled", "blocked", "skipped", "completed")
    }
    if group.grouping.form == "uses":
        of["failed"] = [each for each in of["failed"] if state.tolerated_within(each.step.id) is None]
    elif of["blocked"] and all(state.tolerated_within(each.step.id) for each in of["failed"]):
        of["failed"] = []  # what is tolerated does not hide what a failure above the group blocked
    for status, reason in (("failed", "members"), ("cancelled", "members"), ("blocked", "upstream")):
        if of[status]:
            names = ", ".join([each.step.id for each in of[status][:5]])
            more = f" and {len(of[status]) - 5} more" if len(of[status]) > 5 else ""
            return status, _reason(of[status], reason), f"{names}{more}"
    if group.grouping.form != "uses" and any(each.reason == "tolerated" for each in of["skipped"]):
        return "skipped", "tolerated", ""
    if len(of["skipped"]) == len(members):
        return "skipped", _reason(of["skipped"], "upstream"), ""
    return "completed", "ran", ""


def answered(state: RunState, group: Step) -> Tolerance:
    """Say how the failure of a group is tolerated whose instances ask: as it was answered for all that failed."""
    failed = [name for name in group.grouping.members if state.steps[name].status == "failed"]
    found = {state.tolerated_within(name) for name in failed}
    if not found or None in found:
        return None
    return "skip" if "skip" in found else "continue"


def _reason(members: Sequence[Any], otherwise: str) -> str:
    """Return the reason that all members share; what they failed of is each one's own."""
    reasons = {each.reason for each in members}
    shared = members[0].status != "failed" and len(reasons) == 1
    return str(reasons.pop()) if shared else otherwise


def fan_in(state: RunState, group: Step) -> dict[str, Any]:
    """Return `all` and `by` of a group: outputs in the order of its members, and by instance."""
    members = [state.steps[name] for name in group.grouping.members]
    return {
        "all": {name: [each.outputs.get(name) for each in members] for name in group.outputs},
        "by": {short(each.step.instance, each.step.matrix): each.outputs for each in members},
    }


MAX_NAME = 200  # characters between the brackets of an id
MAX_PRODUCT = 4096  # combinations before `exclude`
_HARMFUL = frozenset(
    map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)))
)


def same(left: Any, right: Any) -> bool:
    """Return whether two scalars are equal; nothing is converted, and true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def spelled_value(value: Any) -> str:
    """Return the form of a scalar in an id: a text unchanged, others as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def unnameable(name: str) -> str:
    """Return why an id cannot contain a text, as a clause about it; empty when it can."""
    if len(name) > MAX_NAME:
        return f"has more than {MAX_NAME} characters"
    bad = next((letter for letter in name if letter in _HARMFUL or "\ud800" <= letter <= "\udfff"), "")
    return f"contains the control character U+{ord(bad):04X}" if bad else ""


def size(axes: Mapping[str, Sequence[Any]]) -> int:
    """Return how many combinations the axes have."""
    found = 1 if axes else 0
    for values in axes.values():
        found *= len(values)
    return found


def combine(
    axes: Mapping[str, Sequence[Any]],
    include: Sequence[Mapping[str, Any]] = (),
    exclude: Sequence[Mapping[str, Any]] = (),
) -> list[tuple[str, Combination]]:
    """Return name and values of each instance; the name has the axes and, for entries of `include`, all values."""
    original: list[Combination] = [{}] if axes else []
    for axis, values in axes.items():
        original = [{**before, axis: value} for before in original for value in values]
    kept = [found for found in original if not any(describes(each, found) for each in exclude)]
    named = [(_name(found), found) for found in kept]
    made: list[tuple[str, Combination]] = []
    for entry in include:
        on_axes = {axis: value for axis, value in entry.items() if axis in axes}
        fitting = [found for found in kept if describes(on_axes, found)]
        for found in fitting:
            found.update(entry)
        if not fitting:
            ordered = {axis: entry[axis] for axis in (*axes, *entry) if axis in entry}
            made.append((_name(ordered), ordered))
    return [*named, *made]


def describes(part: Mapping[str, Any], combination: Mapping[str, Any]) -> bool:
    """Return whether a combination has all these values."""
    return all(axis in combination and same(value, combination[axis]) for axis, value in part.items())


def _name(combination: Mapping[str, Any]) -> str:
    return ",".join([f"{axis}={spelled_value(value)}" for axis, value in combination.items()])


def short(name: str, values: Mapping[str, Any]) -> str:
    """Return what `by` calls an instance of a matrix: with one axis in its name, the value alone."""
    alone = (
        spelled_value(value) for axis, value in values.items() if name == f"{axis}={spelled_value(value)}"
    )
    return next(alone, name)
