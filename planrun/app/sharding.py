"""Split the steps of a plan into shards for several machines; the same on each of them, for the same plan and timings.

Steps that depend on each other stay together. With `legs`, the instances of a group are split: what the group depends
on runs in each shard that has one of them, and what depends on the group in none, since it needs them all.
"""

from __future__ import annotations

import json
import os
from re import fullmatch

from planrun.errors import InvalidInput
from planrun.model import graph
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan.problems import name_hint
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan, Step

HISTORY = "history"
"""The word for the timings of this folder in place of a file."""
MOST = 1000  # shards
_MAX_BYTES = 64 << 20  # of a file with timings
_UNKNOWN = 1.0  # seconds of a step where no step's are known
# Where CI systems say which of several equal jobs this is: number, total, and the number of the first.
_PLACES = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),  # GitLab
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    ("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1),  # Azure
)


class Request(Record):
    """What the caller asks for: shard `number` of `of`; 0: only the split as a whole."""

    number: int
    of: int
    legs: tuple[str, ...] = ()
    timings: str = ""  # a ledger.json, or `history`; empty: all steps take the same time

    @property
    def name(self) -> str:
        """The shard as it is written."""
        return f"{self.number}/{self.of}"


class Shard(Record):
    """The steps of one shard in file order, and the seconds that they are expected to take one after the other."""

    steps: tuple[str, ...]
    seconds: float


class Split(Record):
    """A split: its shards, the steps that run in each of them (`each`), and those that run in none (`after`)."""

    shards: tuple[Shard, ...]
    each: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    units: int = 0  # how many parts could be split

    @property
    def digest(self) -> str:
        """What all shards of one split have in common; another split has another one."""
        whole = [[list(shard.steps) for shard in self.shards], list(self.each), list(self.after)]
        return sha256(dumps(whole).encode("utf-8", "surrogateescape")).hexdigest()


def request(text: str, legs: Sequence[str], timings: str, environ: Mapping[str, str]) -> Request:
    """Return what `N/M`, or `auto` in a job that is one of several, asks for; raises InvalidInput."""
    name = _of_job(environ) if text == "auto" else text
    match = fullmatch(r"(\d{1,6})/(\d{1,6})", name)
    if match is None:
        raise InvalidInput(f'--shard takes N/M, such as 2/4, or auto; not "{text}"')
    number, of = int(match[1]), int(match[2])
    if not 1 <= number <= of <= MOST:
        raise InvalidInput(f"--shard takes N/M with N from 1 to M, and M up to {MOST}; not {name}")
    return Request(number=number, of=of, legs=tuple(legs), timings=timings)


def _of_job(environ: Mapping[str, str]) -> str:
    for place, total, first in _PLACES:
        number, count = environ.get(place, ""), environ.get(total, "")
        if number.isdecimal() and count.isdecimal():
            return f"{int(number) + 1 - first}/{count}"
    names = ", ".join([place for place, _, _ in _PLACES])
    raise InvalidInput(f"--shard auto: no variable says which of several jobs this is ({names}); write N/M")


def selection(plan: Plan, wanted: Request, home: str) -> dict[str, list[str]]:
    """Return one shard as a selection, with what `planrun merge` compares; `home`: the folder `.planrun`."""
    found = split(plan, wanted, seconds_of(plan, wanted.timings, home))
    steps = found.shards[wanted.number - 1].steps
    by_id = {step.id: step for step in plan.main()}
    needed = graph.ancestors(graph.waits(plan.main()), steps) if steps else set()
    before = [name for name in found.each if name in needed and name in by_id]
    return {
        "only": [*before, *steps],
        "shard": [wanted.name, found.digest],
        "steps": list(steps),
        "each": list(found.each),
        "after": list(found.after),
    }


def split(plan: Plan, wanted: Request, seconds: Mapping[str, float]) -> Split:
    """Return the split of a plan's steps; the longest parts are dealt first, each to the shard with least to do."""
    main = plan.main()
    order = {step.id: place for place, step in enumerate(main)}
    before = graph.waits(main)
    legs = _legs(plan, wanted.legs)
    split_up = {*wanted.legs, *[name for unit in legs for name in unit]}
    each, after = set[str](), set[str]()
    if legs:
        each = graph.ancestors(before, wanted.legs) - split_up
        after = graph.descendants(before, wanted.legs) - split_up - each
    left = [step.id for step in main if step.id not in each | after | split_up]
    units = legs + _connected(left, before)
    kinds = {step.id: step.kind for step in plan.main()}
    known = sorted([value for name, value in seconds.items() if name in kinds])
    usual = known[(len(known) - 1) // 2] if known else _UNKNOWN
    weights = {
        unit[0]: sum([seconds.get(name, 0.0 if kinds[name] == "group" else usual) for name in unit])
        for unit in units
    }
    totals, shares = [0.0] * wanted.of, [list[str]() for _ in range(wanted.of)]
    for unit in sorted(units, key=lambda unit: (-weights[unit[0]], order[unit[0]])):
        least = min(range(wanted.of), key=lambda place: (round(totals[place], 3), len(shares[place]), place))
        totals[least] += weights[unit[0]]
        shares[least] += unit
    shards = [
        Shard(steps=tuple(sorted(share, key=order.__getitem__)), seconds=round(total, 3))
        for share, total in zip(shares, totals, strict=True)
    ]
    return Split(
        shards=tuple(shards),
        each=tuple(sorted(each, key=order.__getitem__)),
        after=tuple(sorted(after, key=order.__getitem__)),
        units=len(units),
    )


def _legs(plan: Plan, groups: Iterable[str]) -> list[list[str]]:
    """Return the instances of these groups, each with the steps inside of it; raises InvalidInput without any."""
    by_id = {step.id: step for step in plan.main()}
    found: dict[str, list[str]] = {}
    for name in groups:
        step = by_id.get(name)
        if step is None:
            hint = name_hint(name, set(by_id), "steps")
            raise InvalidInput(f'--legs: no step "{name}" in the plan{f"; {hint}" if hint else ""}')
        members = _instances(step)
        if not members:
            can = [each.id for each in by_id.values() if _instances(each)]
            known = f"; steps that have: {', '.join(can)}" if can else ""
            raise InvalidInput(f'--legs: step "{name}" has no instances that are known before it runs{known}')
        found |= {member: [member] for member in members}
    for step in by_id.values():
        outer = step.group
        while outer in by_id and outer not in found:
            outer = by_id[outer].group
        if outer in found and step.id not in found:
            found[outer].append(step.id)
    return list(found.values())


def _instances(step: Step) -> tuple[str, ...]:
    return step.grouping.members if step.kind == "group" else ()


def _connected(names: Sequence[str], before: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the parts of these steps between which there is no edge, each in file order."""
    inside = set(names)
    roots = {name: name for name in names}

    def root(name: str) -> str:
        while roots[name] != name:
            roots[name] = roots[roots[name]]
            name = roots[name]
        return name

    for name in names:
        for other in before.get(name, ()):
            if other in inside:
                roots[root(name)] = root(other)
    parts: dict[str, list[str]] = {}
    for name in names:
        parts.setdefault(root(name), []).append(name)
    return list(parts.values())


def seconds_of(plan: Plan, timings: str, home: str) -> dict[str, float]:
    """Return what is known of the steps' seconds; empty without a source. Raises InvalidInput for a wrong file."""
    if not timings:
        return {}
    if timings == HISTORY:
        from planrun.records import history

        return history.estimates(history.path_of(home, plan))
    try:
        if os.path.getsize(timings) > _MAX_BYTES:
            raise InvalidInput(f"--timings: {timings} is too large for a ledger.json")
        with open(timings, "rb") as file:
            steps = json.loads(file.read())["steps"]
        return {
            step["id"]: _spent(step) for step in steps if step["status"] == "completed" and step["attempts"]
        }
    except OSError as error:
        raise InvalidInput(f"--timings: cannot read {timings}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidInput(f"--timings: {timings} is no ledger.json of a run") from None


def _spent(step: Mapping[str, Any]) -> float:
    attempts = step["attempts"]
    return round(sum([float(attempt["duration_s"] or 0) for attempt in attempts]), 3)
