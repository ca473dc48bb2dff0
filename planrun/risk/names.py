"""The files that a program reads and writes besides those that its words spell out.

A rule names what its program does with names by a word: `writes="into"` for cp, `reads="below"` for grep. Names that
are known in part are patterns: `split x out` writes `out*`.
"""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.controls import NAMES
from planrun.risk.levels import high
from planrun.risk.sensitive import looks_secret, may_be, may_be_secret
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.risk.levels import Finding
    from planrun.risk.table import Use

Sweep = tuple[str, str, str]
"""What is read that no word names: a folder of the workspace, a pattern, and which files below the folder fit it.

`all` of them, `visible` ones, those that git has `tracked`, by their own names, or the `paths` that bash makes of it;
`addresses`: those of git's configuration.
"""

_FOLDERS = ("-t", "--target-directory")
_TO_ITSELF = ("-T", "--no-target-directory")
_WHOLE = ("-r", "-R", "-a", "--recursive", "--archive")
_LINKS = ("-l", "-s", "--link", "--symbolic-link")
_TO_STDOUT = ("-c", "--stdout", "--to-stdout", "-O", "-p", "-t", "-l", "--list", "--test")
_KEEPS = ("-k", "-n", "-O", "--keep-old-files", "--skip-old-files", "--to-stdout")
_PACKED = names_in("gz z bz2 bz xz lzma zst zstd lz4 tgz taz tbz tbz2 txz tzst")
_COPIES = (".orig", ".bak", ".old", ".save", "~")
_INCLUDES = ("--include", "-g", "--glob", "--iglob")
_HIDDEN = frozenset(("-.", "--hidden", "-u", "--unrestricted", "-uu", "-uuu"))
_RECURSES = frozenset(("-r", "-R", "--recursive", "--dereference-recursive"))
_PATTERNS = frozenset(("-e", "-f", "--regexp", "--file", "--files"))
# Options with which programs print names and numbers only.
_COUNTS = frozenset(("-q", "--quiet", "--brief", "--files", "-l", "--files-with-matches", "-c", "--count"))
# Options with which `git log` prints what changed in each file.
_PATCHES = names_in("-p -u --patch -U --unified --patch-with-stat --binary --cc -c -L --word-diff")
# Types of files that rg knows and that hold code and documents only.
_TYPES = names_in("py js ts go rust java ruby c cpp md markdown html css sh php")


def _given(use: Use, *names: str) -> list[str]:
    return [value or "" for name, value in use.options if name in names]


def _has(use: Use, names: tuple[str, ...]) -> bool:
    return any(name in names for name, _ in use.options)


def written(use: Use, how: str) -> Iterator[str]:
    """Yield the names that a program writes, from those it is given: as paths from its folder, perhaps as patterns.

    `into`: it puts files into a folder under their names. `parts`: it cuts one into many. `unpacked`: without the
    ending of a packed one. `backup`: copies with another ending. `archive`: whatever an archive holds, below a folder.
    """
    if how == "into":
        folders = _given(use, *_FOLDERS)
        sources = use.operands if folders or len(use.operands) == 1 else use.operands[:-1]
        for folder in folders or ["." if len(use.operands) == 1 else use.operands[-1]]:
            for source in sources:
                name = source.rstrip("/").rpartition("/")[2]
                # BSD takes `cp -R x/` for what is in the folder.
                is_content = name in (".", "..") or source[-1:] == "/" or _has(use, _TO_ITSELF)
                yield f"{folder}/*" if is_content and _has(use, _WHOLE) else f"{folder}/{name}"
    elif how == "parts":
        prefix = (_given(use, "-f", "--prefix") or use.operands[1:2] or ["x"])[0]
        yield f"{prefix}*{''.join(_given(use, '--additional-suffix'))}"
    elif how == "unpacked" and not _has(use, _TO_STDOUT):
        for name in use.operands[:1] if use.words[0].value == "lz4" else use.operands:
            stem, _, end = name.rpartition(".")
            yield stem + (".tar" if end.startswith("t") else "") if stem and end in _PACKED else f"{name}.out"
    elif how == "backup":
        for end in filter(None, _given(use, "-i", "--in-place", "-z", "--suffix")):
            is_sed = use.words[0].value == "sed"
            names = use.operands[not _given(use, "-e", "--expression") :] if is_sed else use.operands[:1]
            yield from [name + end for name in names or ([] if end in _COPIES else ["*"])]
    elif how == "archive" and not _has(use, _KEEPS):
        folder = (_given(use, "-C", "--directory", "-d") or ["."])[-1]
        names = use.operands[0 if use.words[0].value == "tar" else 1 :]
        yield from [f"{folder}/{name}" for name in names] or [f"{folder}/*"]


def _given_names(use: Use) -> set[str]:
    return {name for name, _ in use.options}


def judge_written(use: Use, how: str) -> Finding | None:
    """Return why a program must not write one of its names; take note of the others."""
    if how == "into" and _has(use, _LINKS) and use.words[0].value == "cp":
        for source in use.operands:
            if reason := paths.writing(source, use.cwd, use.ground):
                return high(f"a link to {reason}", "writes")
    if how == "unpacked" and {"-N", "--name"} & _given_names(use):
        return high("unpacks under a name that the file itself holds", "writes")
    for name in written(use, how):
        if reason := unwritable(name, use, is_archive=how == "archive"):
            return high(reason, "writes")
        folder, _, last = name.rpartition("/")
        place = paths.locate(folder if last == "*" else name, use.cwd, use.ground)[1]
        use.trace.writes.append(place)
        is_folder = last == "*" or (how == "into" and _has(use, _WHOLE))
        use.trace.overwrites.append(f"{place or '.'}/" if is_folder else place)
        if how == "archive":
            use.trace.overwrites.append(f"{place or '.'}/")
    return None


def unwritable(name: str, use: Use, *, is_archive: bool = False) -> str:
    """Say why a name, or every name that fits a pattern, must not be written."""
    folder, _, last = name.rpartition("/")
    if last == "*":
        where = paths.locate(folder, use.cwd, use.ground)
        if where == ("inside", "") and not is_archive:
            return f"{folder}: whatever a folder holds, over the whole workspace"
        return paths.writing(folder, use.cwd, use.ground)
    if "*" in last and (may_be(last, NAMES) or may_be_secret(last)):
        return f"{name}: may be a name that controls what runs later"
    return paths.writing(name, use.cwd, use.ground)


def read(use: Use, how: str) -> Iterator[Sweep]:
    """Yield what a program reads that no word names: the files below a folder, or those that fit a pattern.

    `below`: with an option as for grep, or always as for rg. `packs`: all of it goes into one file, under another name.
    `tracked`: what git keeps. `patches`: the same, where the history is printed with its changes. `addresses`: of
    remotes, which may hold credentials.
    """
    if how == "addresses":
        yield "", "", how
        return
    given = _given_names(use)
    name = use.words[0].value or ""
    if how in ("tracked", "patches"):
        if _COUNTS.isdisjoint(given) if how == "tracked" else not _PATCHES.isdisjoint(given):
            yield "", "*", "tracked"
        return
    recurses = (
        name == "rg" or how == "packs" or not _RECURSES.isdisjoint(given) or "recurse" in _given(use, "-d")
    )
    kinds = _given(use, "-t", "--type") if name == "rg" else []
    if (
        not recurses
        or (how == "below" and not _COUNTS.isdisjoint(given))
        or (kinds and _TYPES.issuperset(kinds))
    ):
        return
    scope = "visible" if name == "rg" and _HIDDEN.isdisjoint(given) else "all"
    patterns = [pattern for pattern in _given(use, *_INCLUDES) if not pattern.startswith("!")] or ["*"]
    names_all = name in ("diff", "tar") or not _PATTERNS.isdisjoint(given)
    for folder in (use.operands if names_all else use.operands[1:]) or ["."]:
        where, place = paths.locate(folder, use.cwd, use.ground)
        fixed = place.partition("*")[0].partition("?")[0].partition("[")[0]
        top = place if fixed == place else fixed.rpartition("/")[0]
        yield from [(top, pattern, scope) for pattern in patterns if where == "inside"]


def chooses_secrets(pattern: str) -> bool:
    """Whether a filter or a pathspec of git names secrets, however it is written: `*.env`, `:(top).env`."""
    if pattern.startswith(("!", ":!", ":^")) or "exclude" in pattern.partition(")")[0]:
        return False
    if pattern.startswith(":"):
        pattern = pattern[1:].partition(")")[2] if pattern[1:2] == "(" else pattern.lstrip(":/")
    return looks_secret(pattern) or may_be_secret(pattern)
