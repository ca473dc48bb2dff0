"""The dependency graph: order, levels, cycles, reach and longest remaining path over the steps of one section.

Every function takes a `Waits`: step id -> ids it waits for, in file order, every id being a key.
All are iterative and O(V + E), except that `order` pays V log V when the file is not in order already
and `reach` works on blocks of targets.
"""

from __future__ import annotations

from planrun.model.groups import unrolled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planrun.model.plan import Step

    Waits = Mapping[str, Sequence[str]]

BLOCK = 8192  # targets that `reach` carries in one pass: at most 1 KiB a step, 100 MiB for 100,000 steps


def waits(steps: Iterable[Step]) -> dict[str, tuple[str, ...]]:
    """Return the waiting relation of the steps of one section; edges that leave the section are left out.

    An `ok` or `completed` edge on x also waits for every handler that recovers x: only they decide
    whether a failed x counts. Where `on_failure: continue` has decided that, no step waits for a handler.
    A member of a group waits for what the group waits for, and the group for its members.
    """
    steps = tuple(steps)
    handlers: dict[str, list[str]] = {}
    for step in steps:
        for failed in step.recovers:
            handlers.setdefault(failed, []).append(step.id)
    if handlers:
        for step in steps:
            if step.on_failure == "continue":
                handlers.pop(step.id, None)
    if any([step.group for step in steps]):  # noqa: C419 - half the time
        return wait_links(unrolled(steps), handlers)
    if handlers:
        return wait_links(
            {step.id: [(edge.on, edge.kind) for edge in step.edges] for step in steps}, handlers
        )
    inside = {step.id for step in steps}
    return {
        step.id: tuple(dict.fromkeys([edge.on for edge in step.edges if edge.on in inside])) for step in steps
    }


def wait_links(
    links: Mapping[str, Iterable[tuple[str, str]]], handlers: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the waiting relation of edges, id -> (on, kind) pairs, and handlers, x -> ids that recover x."""
    found: dict[str, tuple[str, ...]] = {}
    for name, edges in links.items():
        before: dict[str, None] = {}
        for on, kind in edges:
            if on in links:
                before[on] = None
                if on in handlers and kind in ("ok", "completed"):
                    before.update(dict.fromkeys(handlers[on]))
        found[name] = tuple(before)
    return found


def reverse(before: Waits) -> dict[str, list[str]]:
    """Return the dependents of each step, in file order."""
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, needed in before.items():
        for other in needed:
            after[other].append(name)
    return after


def order(before: Waits) -> list[str]:
    """Return the steps in topological order.

    Of those that can go next, the first in the file comes first.
    Steps on a cycle, and those that wait for one, are missing from the list.
    """
    seen: set[str] = set()
    for name, needed in before.items():
        if needed and not seen.issuperset(needed):
            return _sorted(before)
        seen.add(name)
    return list(before)


def _sorted(before: Waits) -> list[str]:
    from heapq import heapify, heappop, heappush  # a plan in file order needs no heap

    names = list(before)
    place = {name: index for index, name in enumerate(names)}
    after = reverse(before)
    open_edges = [len(before[name]) for name in names]
    ready = [index for index, count in enumerate(open_edges) if not count]
    heapify(ready)
    found: list[str] = []
    while ready:
        name = names[heappop(ready)]
        found.append(name)
        for other in after[name]:
            index = place[other]
            open_edges[index] -= 1
            if not open_edges[index]:
                heappush(ready, index)
    return found


def levels(before: Waits) -> list[list[str]]:
    """Return the steps by level: the first waits for nothing, each other one for a step of the level above.

    Within a level they stand in file order; steps behind a cycle are missing.
    """
    depth: dict[str, int] = {}
    for name in order(before):
        depth[name] = 1 + max((depth[other] for other in before[name]), default=-1)
    found: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name in before:
        if name in depth:
            found[depth[name]].append(name)
    return found


def find_cycles(before: Waits, most: int = 20) -> list[list[str]]:
    """Return one cycle for each knot of steps that wait for each other, the shortest through its first step.

    Each is a path on which every step waits for the next and the last for the first.
    At most `most` come back, in file order.
    """
    reached = set(order(before))
    if len(reached) == len(before):
        return []
    place = {name: index for index, name in enumerate(before)}
    found: list[list[str]] = []
    for knot in _knots(before, reached):
        start = min(knot, key=place.__getitem__)
        found.append(_shortest(before, start, frozenset(knot)))
    found.sort(key=lambda path: place[path[0]])
    return found[:most]


def _knots(before: Waits, reached: set[str]) -> list[list[str]]:
    """Return the strongly connected sets of more than one step, or of one that waits for itself.

    Looked for among the steps that `order` did not reach: a search along the waiting leaves an order of ends,
    and searches against the waiting, from the last end to the first, fill one knot each.
    """
    after = reverse(before)
    found: list[list[str]] = []
    taken = set(reached)
    for root in reversed(_ends(before, reached)):
        if root in taken:
            continue
        taken.add(root)
        knot = [root]
        for name in knot:  # grows while it is walked
            fresh = [other for other in dict.fromkeys(after[name]) if other not in taken]
            taken.update(fresh)
            knot.extend(fresh)
        if len(knot) > 1 or root in before[root]:
            found.append(knot)
    return found


def _ends(before: Waits, reached: set[str]) -> list[str]:
    """Return the steps in the order in which a depth-first search along the waiting is finished with them."""
    found: list[str] = []
    seen = set(reached)
    for root in before:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(before[root]))]
        while path:
            name, rest = path[-1]
            fresh = next((other for other in rest if other not in seen), None)
            if fresh is None:
                found.append(name)
                path.pop()
            else:
                seen.add(fresh)
                path.append((fresh, iter(before[fresh])))
    return found


def _shortest(before: Waits, start: str, knot: frozenset[str]) -> list[str]:
    """Return the shortest cycle through `start`, every step of which lies in `knot`."""
    came_from: dict[str, str] = {}
    front = [start]
    while front:
        following: list[str] = []
        for name in front:
            for other in before[name]:
                if other == start:
                    path = [name]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if other in knot and other not in came_from:
                    came_from[other] = name
                    following.append(other)
        front = following
    return [start]  # a knot always has a way back to its steps


def ancestors(before: Waits, ids: Iterable[str]) -> set[str]:
    """Return the given steps and everything they wait for, directly or through others."""
    found = set(ids)
    stack = list(found)
    while stack:
        fresh = [other for other in before[stack.pop()] if other not in found]
        found.update(fresh)
        stack.extend(fresh)
    return found


def descendants(before: Waits, ids: Iterable[str]) -> set[str]:
    """Return the given steps and everything that waits for them, directly or through others."""
    return ancestors(reverse(before), ids)


def weights(before: Waits, seconds: Mapping[str, float], default: float = 1.0) -> dict[str, float]:
    """Return for each step the longest path from its start to the end of the section, in seconds.

    `seconds` holds known durations; a step without one weighs `default`. Steps behind a cycle are missing.
    """
    found: dict[str, float] = {}
    behind: dict[str, float] = {}  # the longest path that starts behind a step
    for name in reversed(order(before)):
        path = found[name] = seconds.get(name, default) + behind.pop(name, 0.0)
        for other in before[name]:
            if path > behind.get(other, 0.0):
                behind[other] = path
    return found


def reach(
    sequence: Sequence[str],
    links: Mapping[str, Iterable[tuple[str, bool]]],
    wanted: Mapping[str, Iterable[str]],
) -> set[tuple[str, str]]:
    """Answer many questions "does y reach x" at once, as the set of pairs (y, x) that hold.

    `sequence` is a topological order, `links` maps a step to (earlier step, whether it counts itself):
    through a link that does not count, only what lies behind it is reached. `wanted` maps y to its questions.
    Targets are taken in blocks as bits of one integer a step, so that no plan costs V * E.
    """
    targets = list(dict.fromkeys(x for asked in wanted.values() for x in asked))
    found: set[tuple[str, str]] = set()
    for at in range(0, len(targets), BLOCK):
        bits = {name: 1 << index for index, name in enumerate(targets[at : at + BLOCK])}
        seen: dict[str, int] = {}
        for name in sequence:
            mask = 0
            for other, counts in links.get(name, ()):
                mask |= seen.get(other, 0)
                if counts and other in bits:
                    mask |= bits[other]
            if mask:
                seen[name] = mask
                if name in wanted:
                    found.update([(name, x) for x in wanted[name] if mask & bits.get(x, 0)])
    return found


def implied(before: Waits, edges: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the edges, (step, one it waits for), that another path between the same steps makes redundant."""
    wanted: dict[str, list[str]] = {}
    for name, other in edges:
        wanted.setdefault(name, []).append(other)
    links: dict[str, list[tuple[str, bool]]] = {}
    sequence: list[str] = []
    asked: dict[str, list[str]] = {}
    for name in order(before):
        links[name] = [(other, True) for other in before[name]]
        sequence.append(name)
        if (
            name in wanted
        ):  # asked apart: an edge proves nothing about itself, only what lies behind others does
            question = name + "\0"  # in no id
            links[question] = [(other, False) for other in before[name]]
            sequence.append(question)
            asked[question] = wanted[name]
    return {(question[:-1], other) for question, other in reach(sequence, links, asked)}
