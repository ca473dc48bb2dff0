"""From problems of a plan's text back to what a model wrote: `plan.yml:14:5` becomes `steps[2].depends_on[0]`."""

from __future__ import annotations

from bisect import bisect_right

from planrun.llm.faults import Fault
from planrun.source.document import MAPPING, SEQUENCE, read_tree
from planrun.source.outline import EDGE_KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planrun.source.node import Node
    from planrun.source.problems import Problem

_STATUSES = (
    *("pending", "running", "waiting", "paused", "completed", "failed", "skipped", "blocked", "cancelled"),
)
WHOLE = "$"
"""The path of what concerns the answer as a whole."""


def faults_of(
    problems: Iterable[Problem], data: bytes, positions: Mapping[int, int], ids: Sequence[str]
) -> list[Fault]:
    """Return the errors among problems as faults of the answer that the plan in `data` was made of.

    `positions`: where in the plan's `steps` a step of the answer stands, from 0, to where it stands in the answer.
    `ids`: all that a step may be called, for references to steps that there are not. The rule is the problem's code.
    """
    places = sorted(_places(data, positions))
    starts = [place for place, _ in places]
    found: dict[Fault, None] = {}
    for problem in problems:
        if problem.severity == "error":
            at = bisect_right(starts, (problem.line, problem.col))
            path = places[at - 1][1] if at else WHOLE
            fault = Fault(path=path, rule=problem.code, message=problem.text, allowed=_allowed(problem, ids))
            found[fault] = None
    return list(found)


def _allowed(problem: Problem, ids: Sequence[str]) -> tuple[str, ...]:
    known: dict[str, Sequence[str]] = {"E202": ids, "E216": _STATUSES, "E105": EDGE_KINDS}
    return tuple(known.get(problem.code, ()))


def _places(data: bytes, positions: Mapping[int, int]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the beginning of every value, with the path of what it was in the answer."""
    yield (1, 1), WHOLE
    root, _, _ = read_tree(data, "")
    steps = root.get("steps") if root is not None else None
    if root is None or steps is None or steps.kind != SEQUENCE:
        return
    for key in root.keys.values():
        yield (key.line, key.col), WHOLE
    for position, step in enumerate(steps.value):
        path = f"steps[{positions[position]}]" if position in positions else WHOLE
        yield (step.line, step.col), path
        if path != WHOLE and step.kind == MAPPING:
            yield from _inside(step, path)


def _inside(step: Node, path: str) -> Iterator[tuple[tuple[int, int], str]]:
    for name, value in step.value.items():
        key = step.keys[name]
        yield (key.line, key.col), f"{path}.{name}"
        yield (value.line, value.col), f"{path}.{name}"
        entries = (
            value.keys.values() if value.kind == MAPPING else value.value if value.kind == SEQUENCE else ()
        )
        for number, entry in enumerate(entries):
            yield (entry.line, entry.col), f"{path}.{name}[{number}]"
