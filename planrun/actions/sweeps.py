"""Whether what reads whole folders, or what fits a pattern, meets a file with secrets: by the tree as it is now."""

from __future__ import annotations

import os

from planrun.actions.gitconfig import roots
from planrun.risk.sensitive import fits, looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.risk.names import Sweep

MAX_FILES = 50_000
"""Names that are looked at for one command; a larger tree may hold anything."""
# What an index of packages has, anybody may read.
_PUBLIC = frozenset((".git", "node_modules", "site-packages", "__pycache__"))
_WILD = frozenset("*?[")
_CREDENTIALS = (b"extraheader", b"password", b"token")
_MAX_INDEX = 1 << 26


class _Budget:
    """How many more names may be looked at."""

    def __init__(self) -> None:
        self.left = MAX_FILES


def secret_met(sweeps: Sequence[Sweep], workspace: str) -> str:
    """Return the first file with the name of a secret that is read, or `more than N files`; "" when there is none."""
    budget = _Budget()
    for folder, pattern, scope in sweeps:
        if scope == "addresses":
            if _config_holds_credentials(workspace, of_addresses=True):
                return ".git/config"
            continue
        found = _expanded(workspace, "", pattern.split("/"), budget) if scope == "paths" else None
        if found is None:
            found = _below(workspace, folder, pattern, scope, budget)
        for path in found:
            if not budget.left:
                return f"more than {MAX_FILES} files"
            place = os.path.join(workspace, path)
            is_secret = looks_secret(path) or (
                os.path.islink(place) and looks_secret(os.path.realpath(place))
            )
            if is_secret and (scope != "tracked" or _is_tracked(workspace, path)):
                return path
        if scope == "all" and not folder and _config_holds_credentials(workspace):
            return ".git/config"
    return ""


def _entries(workspace: str, folder: str, budget: _Budget) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(workspace, folder)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)[: budget.left]
    except OSError:
        return []
    budget.left -= len(found)
    return found


def _below(workspace: str, folder: str, pattern: str, scope: str, budget: _Budget) -> Iterator[str]:
    """Yield the files below a folder, or the file itself, that a pattern fits by their own names."""
    last = pattern.lower().rpartition("/")[2]
    pending = [folder]
    if os.path.isfile(os.path.join(workspace, folder)):
        yield folder
        return
    while pending:
        here = pending.pop()
        for entry in _entries(workspace, here, budget):
            path = f"{here}/{entry.name}" if here else entry.name
            if scope == "visible" and entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _PUBLIC:
                    pending.append(path)
            elif fits(entry.name.lower(), last):
                yield path


def _expanded(workspace: str, folder: str, parts: list[str], budget: _Budget) -> Iterator[str]:
    """Yield the files that bash makes of a pattern, part by part."""
    part, *rest = parts
    if _WILD.isdisjoint(part):
        names = [part]
    else:
        found = [entry.name for entry in _entries(workspace, folder, budget)]
        names = [name for name in found if fits(name, part) and (name[:1] != "." or part[:1] == ".")]
    for name in names:
        path = f"{folder}/{name}" if folder else name
        if rest:
            yield from _expanded(workspace, path, rest, budget)
        elif os.path.isfile(os.path.join(workspace, path)):
            yield path


def _is_tracked(workspace: str, path: str) -> bool:
    """Whether git may keep a file: its index names it, or cannot be read."""
    for root in roots(workspace):
        try:
            with open(os.path.join(root.gitdir, "index"), "rb") as file:
                data = file.read(_MAX_INDEX)
        except OSError:
            continue
        is_plain = data[4:8] in (b"\0\0\0\2", b"\0\0\0\3")  # a later version shortens names
        if not is_plain or len(data) == _MAX_INDEX or os.fsencode(path) + b"\0" in data:
            return True
    return False


def _config_holds_credentials(workspace: str, *, of_addresses: bool = False) -> bool:
    data = b""
    for root in roots(workspace):  # a linked working tree has its settings above its own folder of git
        for path in ("config", "../../config"):
            try:
                with open(os.path.join(root.gitdir, path), "rb") as file:
                    data += file.read(1 << 16).lower()
            except OSError:
                continue
    for line in data.splitlines():
        scheme, _, rest = line.partition(b"://")
        user = rest.partition(b"/")[0].rpartition(b"@")[0]
        if b":" in user or (user and scheme.endswith((b"http", b"https"))):  # `ssh://git@host` has none
            return True
    return not of_addresses and any(word in data for word in _CREDENTIALS)
