"""Two texts line by line, as a unified diff with little around each change, in bounded time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    # "…" stands for lines that are the same in both and left out; its text says how many.
    Row = tuple[Literal["+", "-", " ", "…"], str]

CONTEXT = 2  # lines before and after a change
_LARGEST = 500 * 500  # pairs of lines of one text in which common ones are looked for
_ALL = 2_000_000  # likewise, of all texts of one comparison


class Texts:
    """Compares texts; what one comparison may cost is shared by all of them.

    Lines in the middle of a very large change are told as all gone and all new.
    """

    def __init__(self) -> None:
        self._left = _ALL

    def rows(self, old: str, new: str) -> list[Row]:
        """Return the lines that are gone and new, with the lines around them."""
        before, after = old.split("\n"), new.split("\n")
        start = _common(before, after)
        # What is counted from the start is not counted from the end again.
        end = _common(before[start:][::-1], after[start:][::-1])
        gone, added = before[start : len(before) - end], after[start : len(after) - end]
        rows: list[Row] = [(" ", line) for line in before[:start]]
        rows += self._middle(gone, added)
        rows += [(" ", line) for line in before[len(before) - end :]]
        return list(_shortened(rows))

    def _middle(self, gone: list[str], added: list[str]) -> Iterator[Row]:
        cost = len(gone) * len(added)
        if not gone or not added or cost > min(_LARGEST, self._left):
            yield from [("-", line) for line in gone]
            yield from [("+", line) for line in added]
            return
        from difflib import SequenceMatcher  # few changes have a middle

        self._left -= cost
        for what, i, j, k, m in SequenceMatcher(None, gone, added).get_opcodes():
            if what == "equal":
                yield from [(" ", line) for line in gone[i:j]]
                continue
            yield from [("-", line) for line in gone[i:j]]
            yield from [("+", line) for line in added[k:m]]


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the lines that both begin with."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _shortened(rows: list[Row]) -> Iterator[Row]:
    """Leave out lines that are far from every change; where only one would be, it stays."""
    near: set[int] = set()
    for number, (sign, _line) in enumerate(rows):
        if sign != " ":
            near.update(range(number - CONTEXT, number + CONTEXT + 1))
    left_out = 0
    for number, row in enumerate(rows):
        alone = number - 1 in near and number + 1 in near and not left_out
        if number in near or alone:
            if left_out:
                yield ("…", _counted(left_out))
                left_out = 0
            yield row
        else:
            left_out += 1
    if left_out:
        yield ("…", _counted(left_out))


def _counted(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'} the same"
