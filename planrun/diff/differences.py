"""The difference of two plans, as records: every output format is made of these.

The difference of two values of plain data, as changes with the path that leads to each.

Which step of an old plan is which step of a new one: by its id, or, under another id, by what it does.
"""

from __future__ import annotations

from bisect import bisect_left

from planrun.model.record import Record
from planrun.plan.compile.canonical import plain
from planrun.plan.keys.table import PLAN_FIELDS, fields_for
from planrun.reports.describe import order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Literal

    from planrun.model.plan import Plan, Step

    Sign = Literal["+", "-", "~"]


# Keys of a plan or a step for people only: they change nothing that runs.
PROSE = frozenset((*fields_for("people"), *fields_for("people", table=PLAN_FIELDS)))


class Change(Record):
    """One item that is new (`+`), gone (`-`) or changed (`~`), by its path in the plan language.

    `path` are the keys that lead to it: `("env", "LEVEL")`. `old` and `new` are plain data as the plan language
    writes them, durations and expressions as texts; None where there is none.
    """

    path: tuple[str, ...]
    sign: Sign
    old: Any = None
    new: Any = None
    note: str = ""  # a fact that the two values do not show

    @property
    def key(self) -> str:
        """The path as people write it: `env.LEVEL`."""
        return ".".join(self.path)


class StepChange(Record):
    """A step that is new, gone, or different in the two plans: then `changes` list what is different.

    `renamed`: it has another id and is the same except for `changes`. `after`: the step that it
    follows now, where its place among those that stayed is another; "" for the first place; None where it kept its
    place. For a step that is new or gone, `changes` are all its keys.
    """

    old: Step | None
    new: Step | None
    changes: tuple[Change, ...] = ()
    after: str | None = None

    @property
    def step(self) -> Step:
        """The step as it is, or as it was when it is gone."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def kind(self) -> Literal["added", "removed", "renamed", "changed"]:
        """The kind of change in one word."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "renamed" if self.old.id != self.new.id else "changed"

    @property
    def matters(self) -> bool:
        """Whether more has changed than the texts for people."""
        return self.kind != "changed" or any(change.path[0] not in PROSE for change in self.changes)

    @property
    def riskier(self) -> bool:
        """Whether the risk class, its reason or the effects of the step changed."""
        if self.old is None or self.new is None:
            return False
        return (self.old.risk, self.old.effects) != (self.new.risk, self.new.effects)


class Difference(Record):
    """All that is different: `plan` about its head, `policy` about its policy, `steps` in the order of the new plan.

    `laxer` are sentences that say where the new policy allows more than the old one.
    """

    plan: tuple[Change, ...] = ()
    policy: tuple[Change, ...] = ()
    laxer: tuple[str, ...] = ()
    steps: tuple[StepChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plan or self.policy or self.steps)

    def of(self, kind: str) -> list[StepChange]:
        """Return the steps of one kind: added, removed, renamed or changed."""
        return [step for step in self.steps if step.kind == kind]


ORDER = "another order"
# Keys whose entries are listed one by one, also where there were none before.
_PARTS = frozenset(
    (key,)
    for key in (
        "env",
        "params",
        "limits",
        "llm",
        "outputs",
        "policy",
        "depends_on",
        "retries",
        "ask",
        "decide",
    )
)


def changes(old: Mapping[str, Any], new: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield what two mappings do not have in common, in the order of the new one, then of the old one."""
    for key in joined(new, old):
        place = (*path, key)
        if place in _PARTS and not (old.get(key) and new.get(key)):
            yield from changes(old.get(key, {}), new.get(key, {}), place)
        elif key not in old:
            yield Change(path=place, sign="+", new=new[key])
        elif key not in new:
            yield Change(path=place, sign="-", old=old[key])
        elif not same(old[key], new[key]):
            yield from _changed(place, old[key], new[key])


def _changed(path: tuple[str, ...], old: Any, new: Any) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        found = list(changes(old, new, path))
        yield from found or [Change(path=path, sign="~", old=old, new=new, note=ORDER)]
    elif isinstance(old, list) and isinstance(new, list) and path[-1] != "exec":
        gone, added = _without(old, new), _without(new, old)
        if not gone and not added:
            yield Change(path=path, sign="~", old=old, new=new, note=ORDER)
        for sign, items in (("-", gone), ("+", added)):
            yield from [_item(path, sign, item) for item in items]  # type: ignore[arg-type]  # one of both
        kept = _without(old, gone), _without(new, added)
        if (gone or added) and not same(*kept):
            yield Change(path=path, sign="~", old=kept[0], new=kept[1], note=ORDER)
    else:
        yield Change(path=path, sign="~", old=old, new=new)


def _item(path: tuple[str, ...], sign: Sign, item: Any) -> Change:
    return Change(path=path, sign=sign, **{"old" if sign == "-" else "new": item})


def _without(items: list[Any], others: list[Any]) -> list[Any]:
    """Return items that the others do not have, each as often as it is missing there."""
    counts: dict[str, int] = {}
    for item in others:
        counts[_exact(item)] = counts.get(_exact(item), 0) + 1
    found = []
    for item in items:
        counts[_exact(item)] = counts.get(_exact(item), 0) - 1
        if counts[_exact(item)] < 0:
            found.append(item)
    return found


def same(old: Any, new: Any) -> bool:
    """Whether two values are the same, the order of their keys and the difference of 1, 1.0 and true included."""
    return _exact(old) == _exact(new)


def _exact(value: Any) -> str:
    return ascii(value)


def joined(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return all names once: those of the first in their order, then those that only the second has."""
    return list(dict.fromkeys([*first, *second]))


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
            offers.setdefault((_action_text(step), ascii(edges_of(step, {}))), []).append(step)
    wanted = {name for name, step in after.items() if name not in before or _moved_on(before[name], step)}
    names: dict[str, str] = dict.fromkeys(wanted, "")
    # The dependencies of a step may have other ids, too: they are matched first.
    for name in order(new) if wanted and offers else ():
        step = after[name]
        fitting = offers.get((_action_text(step), ascii(edges_of(step, names))), ()) if name in wanted else ()
        if fitting:
            match = next((one for one in fitting if one.title == step.title), fitting[0])
            fitting.remove(match)
            names[name] = match.id
    return {name: was for name, was in names.items() if was and name != was}


def edges_of(step: Step, names: Mapping[str, str]) -> list[str]:
    """Return the unordered edges of a step; `names` gives old ids by new ones, "" for what was not there."""
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
    return new.id.isdigit() and _action_text(old) != _action_text(new)


def _action_text(step: Step) -> str:
    """Return what a step does as a text; an abstract step has only its title and description."""
    texts = (step.title, step.description) if step.kind == "abstract" else ()
    return ascii((step.section, step.kind, plain(step)["action"], texts))


def moved(ids: list[str], was: list[str]) -> dict[str, str]:
    """Return those of `ids` placed differently in `was`, which holds the same ids, each with the one before it.

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
