"""The difference of two values of plain data, as changes with the path that leads to each."""

from __future__ import annotations

from planrun.app.comparing.records import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.app.comparing.records import Sign

ORDER = "another order"
# Whose entries are told one by one, also where there were none before.
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
        yield from _of_lists(path, old, new)
    else:
        yield Change(path=path, sign="~", old=old, new=new)


def _of_lists(path: tuple[str, ...], old: list[Any], new: list[Any]) -> Iterator[Change]:
    """Yield the items that only one of two lists has; where there is none, they have another order."""
    gone, added = _without(old, new), _without(new, old)
    if not gone and not added:
        yield Change(path=path, sign="~", old=old, new=new, note=ORDER)
    for sign, items in (("-", gone), ("+", added)):
        yield from [_item(path, sign, item) for item in items]  # type: ignore[arg-type]  # one of both
    kept = _without(old, gone), _without(new, added)
    if (gone or added) and not same(*kept):
        yield Change(path=path, sign="~", old=kept[0], new=kept[1], note=ORDER)


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
    """Return all names once: those of the first as they stand, then those that only the second has."""
    return list(dict.fromkeys([*first, *second]))
