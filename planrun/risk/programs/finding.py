"""find: its tests only look, `-delete` is medium behind the name of a file, and what runs or writes is unknown."""

from __future__ import annotations

from planrun.risk import kinds, paths
from planrun.risk.levels import MEDIUM, Finding, high
from planrun.risk.options import Refused
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.table import Use

_PLAIN = names_in(
    "-print -print0 -true -false -empty -readable -writable -executable -depth -mount -xdev -noleaf -prune -quit"
    " -daystart -ls -nouser -nogroup -o -a -or -and -not ! ( ) , -d -nowarn -warn -ignore_readdir_race"
)
_VALUED = names_in(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -ctime -atime"
    " -mmin -cmin -amin -newermt -newerct -newerat -maxdepth -mindepth -perm -user -group -uid -gid -links -inum -printf"
    " -fstype -lname -ilname -used"
)
_FILES = names_in("-newer -anewer -cnewer -samefile")
_NAMES = names_in("-name -iname -path -ipath -wholename -iwholename -regex -iregex")
_EITHER = names_in("-o -or -not ! , -prune -true")
_WILD = frozenset("*?./[]")


def find(use: Use) -> Finding | None:
    """Look at the starting points and the expression of a find."""
    words = [arg.value or "" for arg in use.words[1:]]
    at = 0
    while at < len(words) and words[at] in ("-H", "-L", "-P"):
        at += 1
    starts = []
    while at < len(words) and words[at][:1] not in ("-", "(", "!", ","):
        starts.append(words[at])
        at += 1
    expression = words[at:]
    reason = _expression(use, expression)
    if reason:
        return high(reason)
    if "-delete" in expression:
        return _delete(use, starts or ["."], expression)
    return _starts(use, starts, "look")


def _starts(use: Use, starts: list[str], kind: str) -> Finding | None:
    for start in starts:
        try:
            kinds.examine(kind, start, use)
        except Refused as no:
            return high(no.reason, *no.effects)
    return None


def _expression(use: Use, words: list[str]) -> str:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _PLAIN or word == "-delete":
            continue
        if word not in _VALUED and word not in _FILES:
            return f"find {word}: a test that is not known, or that runs or writes something"
        if at >= len(words):
            return f"find {word}: its value is missing"
        if word in _FILES and paths.reading(words[at], use.cwd, use.ground):
            return f"{words[at]}: read outside the workspace"
        at += 1
    return ""


def _without_sets(pattern: str) -> str:
    """Leave out what stands in brackets, which is one letter of many."""
    left = ""
    while "[" in pattern:
        before, _, pattern = pattern.partition("[")
        left += before
        pattern = pattern[1:].partition("]")[2]
    return left + pattern


def _delete(use: Use, starts: list[str], words: list[str]) -> Finding | None:
    """`-delete` needs a name before it that says which files, and nothing that says otherwise."""
    if {"-L", "-H"} & {arg.value for arg in use.words}:
        return high("find -L -delete: follows links out of the workspace", "destroys")
    if set(words) & _EITHER:
        return high("find -delete: among alternatives, so that it may delete anything", "destroys")
    before = words[: words.index("-delete")]
    named = [
        before[at + 1]
        for at, word in enumerate(before[:-1])
        if word in _NAMES and set(_without_sets(before[at + 1])) - _WILD
    ]
    if not named:
        return high("find -delete: no name says which files", "destroys")
    if any(paths.control(name) or paths.secret(name) for name in named):
        return high(f"find -delete: {named[0]}: controls what runs later", "destroys")
    refused = _starts(use, starts, "inside")
    if refused is not None:
        return refused
    for start in starts:
        where, place = paths.locate(start, use.cwd, use.ground)
        if where == "inside" and place and paths.control(place):
            return high(f"{start}: controls what runs later", "destroys")
    return Finding(level=MEDIUM, reason=f"deletes {named[0]}", effects=("destroys",))
