"""Which file was meant by a path that does not exist: the nearest of the files that git lists."""

from __future__ import annotations

import posixpath

from planrun.model.record import Record
from planrun.plan.revisions import listed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST = 3
"""How many paths are suggested."""
MAX_FILES = 50_000
"""Files that are looked at: of a larger repository the first ones."""
LONGEST = 500
"""Characters of a path; a longer one is compared with nothing."""
_MOST_EDITS = 3


class Suggestion(Record):
    """A file that may have been meant. `why`: the same name in another folder, another ending or case, or a slip.

    `edits`: single characters that were added, left out, changed or swapped, of the whole path.
    """

    path: str
    why: str
    edits: int

    @property
    def is_certain(self) -> bool:
        """Whether the name itself is right."""
        return self.why == "folder"


_RANKS = ("folder", "case", "slip", "ending")


def files_of(folder: str) -> list[str]:
    """Return the files of a checkout, from its folder, without what git ignores; none without a repository."""
    return listed_files(folder) or []


def predicted(path: str, files: Iterable[str], root: str = "") -> tuple[Suggestion, ...]:
    """Return the files that may have been meant, the likeliest first.

    `root`: the folder of the files; a path inside of it counts from there.
    """
    wanted = _relative(path, root)
    if not wanted or len(wanted) > LONGEST:
        return ()
    suggestions = []
    for number, file in enumerate(files):
        if number >= MAX_FILES:
            break
        if why := _likeness(wanted, file):
            suggestions.append(Suggestion(path=file, why=why, edits=edits(wanted, file, LONGEST)))
    suggestions.sort(key=lambda each: (_RANKS.index(each.why), each.edits, each.path))
    return tuple(suggestions[:MOST])


def certain(suggestions: Sequence[Suggestion]) -> str:
    """Return the one path that was surely meant: the only file of this name; "" when there is none."""
    sure = [each.path for each in suggestions if each.is_certain]
    return sure[0] if len(sure) == 1 else ""


def _relative(path: str, root: str) -> str:
    if root and path.startswith(f"{root.rstrip('/')}/"):
        path = path[len(root.rstrip("/")) + 1 :]
    found = posixpath.normpath(path.strip()) if path.strip() else ""
    return "" if found in (".", "..", "/") else found.lstrip("/")


def _likeness(wanted: str, file: str) -> str:
    """Return how a file is like a path, as `Suggestion.why`; "" when it is not."""
    if file == wanted or not file:
        return ""
    ours, theirs = posixpath.basename(wanted), posixpath.basename(file)
    if ours == theirs:
        return "folder"
    if ours.lower() == theirs.lower():
        return "case"
    limit = min(_MOST_EDITS, max(1, len(ours) // 4))
    if abs(len(ours) - len(theirs)) <= limit and edits(ours, theirs, limit) <= limit:
        return "slip"
    stem = posixpath.splitext(ours)[0]
    is_near = posixpath.dirname(wanted) == posixpath.dirname(file)
    return "ending" if is_near and stem and stem == posixpath.splitext(theirs)[0] else ""


def edits(one: str, other: str, limit: int) -> int:
    """Return how many edits lead from one text to another; more than `limit` counts as `limit` + 1.

    An edit adds, leaves out or changes a character, or swaps two that stand side by side.
    """
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for number, char in enumerate(one, 1):
        earlier, before, row = before, row, [number]
        for at, letter in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (char != letter))
            if number > 1 and at > 1 and char == other[at - 2] and one[number - 2] == letter:
                cost = min(cost, earlier[at - 2] + 1)
            row.append(cost)
        if min(row) > limit and (not before or min(before) > limit):
            return limit + 1
    return min(row[-1], limit + 1)
