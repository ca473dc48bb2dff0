"""Orders of steps that mean the same: how long each would take, and the one in which the longest path comes first.

Another order of the steps in a plan's text: whole lines move, and no byte of them changes.

A step takes the comments directly above it along. What would mean something else afterwards is refused: a file whose
steps stand between brackets, count by position, or share anchors across the new order.
"""

from __future__ import annotations

from heapq import heappop, heappush

from planrun.model import graph
from planrun.plan.compile.canonical import plain
from planrun.plan.edit.page import EditError, Page, with_comments
from planrun.plan.load import load_bytes
from planrun.plan.yaml.document import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planrun.model.graph import Waits


def by_longest_path(before: Waits, names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return steps so that each follows what it waits for, otherwise that with the longest path left first."""
    rank = graph.weights(before, seconds)
    order = {name: (-rank[name], at) for at, name in enumerate(names)}
    open_ = {name: len(before[name]) for name in order}
    after = graph.reverse(before)
    ready = sorted([(order[name], name) for name in order if not open_[name]])
    found = []
    while ready:
        name = heappop(ready)[1]
        found.append(name)
        for other in after[name]:
            open_[other] -= 1
            if not open_[other]:
                heappush(ready, (order[other], other))
    return found


def makespan(before: Waits, names: Sequence[str], seconds: Mapping[str, float], places: int) -> float:
    """Return the seconds that steps take as a run without records starts them, `places` at once.

    Such a run takes all steps for equally long, and starts first what most others wait behind, then by the file.
    """
    rank = graph.weights(before, {})
    order = {name: (-rank[name], at) for at, name in enumerate(names)}
    open_ = {name: len(before[name]) for name in names}
    after = graph.reverse(before)
    ready = [(order[name], name) for name in names if not open_[name]]
    ready.sort()
    running: list[tuple[float, str]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < places:
            name = heappop(ready)[1]
            heappush(running, (now + seconds[name], name))
        now, ended = heappop(running)
        for other in after[ended]:
            open_[other] -= 1
            if not open_[other]:
                heappush(ready, (order[other], other))
    return now


def savings(
    before: Waits, seconds: Mapping[str, float], edges: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """Return for each edge, (step, one it waits for), by how many seconds the longest path is shorter without it.

    `seconds` has every step. Only the edges of one longest path can save anything. Any other path passes the place of
    such an edge in a topological order by another edge, or lies on one side of it.
    """
    found = dict.fromkeys(edges, 0.0)
    names, after = graph.order(before), graph.reverse(before)
    to_end = graph.weights(before, seconds)
    from_start = _from_start(before, names, seconds)
    longest = max(to_end.values(), default=0.0)
    path = _longest(names, after, to_end)
    after_it = [0.0]  # the longest path among the last n steps
    for name in reversed(names):
        after_it.append(max(after_it[-1], to_end[name]))
    place = {name: at for at, name in enumerate(names)}
    crossing: list[
        tuple[float, int, tuple[str, str]]
    ] = []  # the longest paths through edges that begin at or before
    before_it = 0.0
    for at, name in enumerate(names):
        before_it = max(before_it, from_start[name])
        for other in after[name]:
            heappush(crossing, (-from_start[name] - to_end[other], place[other], (other, name)))
        edge = (path.get(name, ""), name)
        if edge in found:
            around = max(before_it, after_it[len(names) - at - 1], _around(crossing, at, edge))
            found[edge] = longest - around
    return found


def _from_start(before: Waits, names: Sequence[str], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return for each step the longest path that ends with it, in seconds."""
    found: dict[str, float] = {}
    for name in names:
        found[name] = seconds[name] + max([found[other] for other in before[name]], default=0.0)
    return found


def _longest(
    names: Sequence[str], after: Mapping[str, Sequence[str]], to_end: Mapping[str, float]
) -> dict[str, str]:
    """Return one longest path, each of its steps with the next one."""
    found: dict[str, str] = {}
    name = max(names, key=to_end.__getitem__, default="")
    while name and after[name]:
        found[name] = max(after[name], key=to_end.__getitem__)
        name = found[name]
    return found


def _around(crossing: list[tuple[float, int, tuple[str, str]]], at: int, edge: tuple[str, str]) -> float:
    """Return the longest path that passes a place by another edge; edges that end there are dropped."""
    own = None
    while crossing and (crossing[0][1] <= at or crossing[0][2] == edge):
        entry = heappop(crossing)
        if entry[1] > at:
            own = entry
    found = -crossing[0][0] if crossing else 0.0
    if own is not None:
        heappush(crossing, own)
    return found


def reorder_steps(data: bytes, file: str, names: Sequence[str]) -> bytes:
    """Return a plan's text with the steps under `steps:` in the order of `names`, which has each of them once.

    Raises InvalidPlan when the plan is none, and EditError when its text does not lend itself to it.
    """
    page = Page(data, file)
    listing = page.listing("steps")
    steps = page.steps["steps"]
    if listing.is_flow:
        raise EditError(f"{file}: steps in brackets cannot be moved; write them as a block list")
    for raw in steps:
        if "id" not in raw.keys:
            raise EditError(
                f'{file}:{raw.at.line}: step "{raw.id}" has no id, and its position would change; give it an id'
            )
    if sorted(names) != sorted(raw.id for raw in steps):
        raise EditError(f"{file}: the order must list exactly the steps of the file")
    made = (data[:3] if data.startswith(b"\xef\xbb\xbf") else b"") + _moved(
        page, [raw.id for raw in steps], names
    ).encode("utf-8")
    _check(page, made, names)
    return made


def _moved(page: Page, now: Sequence[str], names: Sequence[str]) -> str:
    text, entries = page.text, page.listing("steps").entries
    starts = [with_comments(text, entry.dash) for entry in entries]
    ends = [*starts[1:], page.end_of_steps()]
    if any(end < start for start, end in zip(starts, ends, strict=True)):
        raise EditError(f"{page.file}: two steps are on one line")
    chunks = {name: text[start:end] for name, start, end in zip(now, starts, ends, strict=True)}
    gaps = {name: chunk[len(chunk.rstrip()) :] for name, chunk in chunks.items()}
    bodies = {name: chunk.rstrip() for name, chunk in chunks.items()}
    # The empty lines stay where they are: they part places of the list, not steps.
    shown = [bodies[name] + gaps[place] for name, place in zip(names, now, strict=True)]
    return text[: starts[0]] + "".join(shown) + text[ends[-1] :]


def _check(page: Page, made: bytes, names: Sequence[str]) -> None:
    """Raise EditError unless every step, and all beside the steps, is what it was, in the order of `names`."""
    tree, problems = parse(made, page.file)
    what = problems[0].message if tree is None or problems else ""
    if not what:
        plan = load_bytes(made, page.file, cache=False)
        before = {step.id: plain(step) for step in page.plan.everything()}
        after = {step.id: plain(step) for step in plan.everything()}
        written = [step.id for step in plan.main() if step.id in set(names)]
        if before != after or plain(page.plan) != plain(plan):
            what = "a step would change"
        elif written != list(names):
            what = "the order would change"
    if what:
        raise EditError(f"{page.file}: the steps cannot be moved: {what}; nothing was written")
