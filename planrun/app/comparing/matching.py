"""Which step of an old plan is which step of a new one: by its id, or, under another id, by what it does."""

from __future__ import annotations

from planrun.app.describing import order
from planrun.source.canonical import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.plan import Plan, Step


def renamed(old: Plan, new: Plan) -> dict[str, str]:
    """Return the old id by the new one of steps with the same action and the same edges under another id.

    An id that says nothing but the place of a step in the list is no name: a step that moved to another number is
    one with another id, and what took its number is another step.
    """
    before = {step.id: step for step in old.steps}
    after = {step.id: step for step in new.steps}
    offers: dict[tuple[str, str], list[Step]] = {}
    for step in old.steps:
        if step.id not in after or _moved_on(step, after[step.id]):
            offers.setdefault((_deed(step), ascii(edges_of(step, {}))), []).append(step)
    wanted = {name for name, step in after.items() if name not in before or _moved_on(before[name], step)}
    names: dict[str, str] = dict.fromkeys(wanted, "")
    # What a step waits for may have another id, too: that is known before.
    for name in order(new) if wanted and offers else ():
        step = after[name]
        fitting = offers.get((_deed(step), ascii(edges_of(step, names))), ()) if name in wanted else ()
        if fitting:
            match = next((one for one in fitting if one.title == step.title), fitting[0])
            fitting.remove(match)
            names[name] = match.id
    return {name: was for name, was in names.items() if was and name != was}


def edges_of(step: Step, names: Mapping[str, str]) -> list[str]:
    """Return the edges of a step in no order; `names` gives old ids by new ones, "" for what was not there."""
    found = []
    for edge in step.edges:
        on = names.get(edge.on, edge.on) or f"new {edge.on}"  # no id has a space
        kind = "ok" if edge.kind == "open" else edge.kind  # as it is written
        found.append(f"{kind} {on}")
    return sorted(found)


def old_names(was: Mapping[str, str]) -> dict[str, str]:
    """Return old ids by new ones for `edges_of`: an id that another step has now names one that was not there."""
    return {**dict.fromkeys(was.values(), ""), **was}


def _moved_on(old: Step, new: Step) -> bool:
    return new.id.isdigit() and _deed(old) != _deed(new)


def _deed(step: Step) -> str:
    """Return what a step does as a text; a step that does nothing yet is known by what it is called."""
    told = (step.title, step.description) if step.kind == "abstract" else ()
    return ascii((step.section, step.kind, plain(step)["action"], told))


def moved(ids: list[str], was: list[str]) -> dict[str, str]:
    """Return those of `ids` that stand elsewhere than in `was`, which holds the same ids, each with the one before it.

    As few as have to move to make one order of the other.
    """
    place = {name: number for number, name in enumerate(was)}
    kept = _rising([place[name] for name in ids])
    found = {}
    for number, name in enumerate(ids):
        if place[name] not in kept:
            found[name] = ids[number - 1] if number else ""
    return found


def _rising(numbers: list[int]) -> set[int]:
    """Return the longest rising subsequence."""
    from bisect import bisect_left

    ends: list[int] = []  # the smallest end of a rising sequence of each length
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    found: set[int] = set()
    last: int | None = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found
