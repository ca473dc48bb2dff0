"""Which file was meant by a path that does not exist: the nearest of the files that git lists."""

from __future__ import annotations

import posixpath

from planrun.model.record import Record
from planrun.plan.problems import distance
from planrun.plan.revisions import listed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST = 3
"""How many paths are suggested."""
MAX_FILES = 20_000
"""Files whose names are compared by letters; of a larger repository the others count only by the same name."""
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
    alike: dict[str, list[str]] = {why: [] for why in _RANKS}
    names: dict[str, str] = {}  # how each name of a file is like the wanted one: names repeat in a repository
    for number, file in enumerate(files):
        if number >= MAX_FILES and file.rpartition("/")[2] != wanted.rpartition("/")[2]:
            continue
        if why := _likeness(wanted, file, names):
            alike[why].append(file)
    suggestions: list[Suggestion] = []
    for why, paths in alike.items():
        if len(suggestions) >= MOST:
            break
        rows = [Suggestion(path=path, why=why, edits=distance(wanted, path, LONGEST)) for path in paths]
        suggestions += sorted(rows, key=lambda row: (row.edits, row.path))
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


def _likeness(wanted: str, file: str, names: dict[str, str]) -> str:
    """Return how a file is like a path, as `Suggestion.why`; "" when it is not. `names`: what was found out before."""
    if file == wanted or not file:
        return ""
    name = file.rpartition("/")[2]
    why = names.get(name)
    if why is None:
        why = names[name] = _likeness_of_names(wanted.rpartition("/")[2], name)
    if why == "ending":  # a name alone says little: such a file is meant in the same folder only
        return why if wanted.rpartition("/")[0] == file.rpartition("/")[0] else ""
    return why


def _likeness_of_names(ours: str, theirs: str) -> str:
    if ours == theirs:
        return "folder"
    if ours.lower() == theirs.lower():
        return "case"
    limit = min(_MOST_EDITS, max(1, len(ours) // 4))
    if distance(ours, theirs, limit + 1) <= limit:
        return "slip"
    stem = posixpath.splitext(ours)[0]
    return "ending" if stem and stem == posixpath.splitext(theirs)[0] else ""
