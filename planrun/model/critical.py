"""The critical path of a run: from its last step back, at each step to the one it waited for that ended last."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Waits = Mapping[str, Sequence[str]]
    Times = Mapping[str, tuple[str, str]]


def critical_path(waits: Waits, ran: Times) -> list[str]:
    """Return the path that ends with the step that ended last, its first step first.

    `ran`: start and end, as stamps, of the steps that ran to an end; all of them are keys of `waits`.
    """
    if not ran:
        return []
    name = max(ran, key=lambda each: (ran[each][1], ran[each][0]))
    path = [name]
    while (name := _last_before(name, waits, ran)) and len(path) <= len(ran):
        path.append(name)
    return path[::-1]


def _last_before(name: str, waits: Waits, ran: Times) -> str:
    """Of the steps that one waits for, directly or through such as never ran, the one that ran and ended last."""
    best, seen, stack = "", {name}, list(waits[name])
    while stack:
        other = stack.pop()
        if other in seen:
            continue
        seen.add(other)
        if other not in ran:
            stack += waits.get(other, ())
        elif ran[other][1] <= ran[name][0] and (not best or ran[other][1] > ran[best][1]):
            best = other
    return best
