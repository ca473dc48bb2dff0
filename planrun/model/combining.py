"""What a matrix comes to: its combinations, in order, and what its instances are called. Pure.

GitHub's rules: the combinations of all axes, the last axis changing fastest; less those that an entry of `exclude`
describes, in part or in full; then each entry of `include` is added to every combination none of whose values on an
axis it would change, or else is a combination of its own, which later entries do not add to. What an entry added, a
later one may change.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Combination = dict[str, Any]

MAX_NAME = 200  # characters between the brackets of an id
MAX_PRODUCT = 4096  # combinations before `exclude`
_HARMFUL = frozenset(
    map(chr, (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)))
)


def same(left: Any, right: Any) -> bool:
    """Return whether two scalars are equal; nothing is converted, and true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def spelled(value: Any) -> str:
    """Return what a scalar is called in an id: a text as it is, the others as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def unnameable(name: str) -> str:
    """Say why a text cannot stand in an id, as a clause about it; empty when it can."""
    if len(name) > MAX_NAME:
        return f"has more than {MAX_NAME} characters"
    bad = next((letter for letter in name if letter in _HARMFUL or "\ud800" <= letter <= "\udfff"), "")
    return f"holds the control character U+{ord(bad):04X}" if bad else ""


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
    """Return name and values of each instance; the name tells the axes and, of what `include` made, all values."""
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
    return ",".join([f"{axis}={spelled(value)}" for axis, value in combination.items()])


def short(name: str, values: Mapping[str, Any]) -> str:
    """Return what `by` calls an instance of a matrix: where its name tells of one axis, the value alone."""
    alone = (spelled(value) for axis, value in values.items() if name == f"{axis}={spelled(value)}")
    return next(alone, name)
