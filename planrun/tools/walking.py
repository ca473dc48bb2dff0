"""Folders for the tools of agents: opened below the workspace, walked without following links."""

from __future__ import annotations

import os
import stat

from planrun.tools.ground import GIT, RECORDS, Refusal, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.tools.ground import Ground

SKIPPED = frozenset((RECORDS, GIT, "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache"))
"""Folders that searches leave out."""
HIDDEN = "PLANRUN_AGENT_HIDDEN"
"""Folders of reports and recordings, as seen from the workspace, separated by colons: what planrun writes itself."""
MOST_FILES = 50_000  # that one search looks at
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """An open folder of the workspace; `path` is relative to the workspace, "" for all of it."""

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path


def is_hidden(path: str) -> bool:
    """Whether a path belongs to planrun, or to the inside of git."""
    own = [each for each in os.environ.get(HIDDEN, "").split(":") if each]
    return path in (RECORDS, GIT) or any(path == each or path.startswith(f"{each}/") for each in own)


def shown_names(folder: int, path: str) -> list[str]:
    """Return the names in an open folder, without what belongs to planrun or to git, in order."""
    return sorted(name for name in os.listdir(folder) if not is_hidden(f"{path}/{name}" if path else name))


def folder_of(ground: Ground, args: dict[str, Any]) -> Folder:
    """Open the folder that a call names, or the workspace; raises Refusal."""
    path = str(args.get("path") or "").strip()
    if path in ("", ".", "./", "/"):
        return Folder(os.open(ground.top, _FOLDER), "")
    words_of(path)  # of an absolute path, or one that leads upwards, its own message
    with ground.readable(path) as place:
        status = place.status()
        if status is None:
            raise Refusal(f"{path}: there is no such folder")
        if not stat.S_ISDIR(status.st_mode):
            raise Refusal(f"{path}: it is no folder")
        return Folder(os.open(place.name, _FOLDER, dir_fd=place.fd), place.path)


def files_below(folder: Folder) -> Iterator[tuple[str, int, str]]:
    """Yield path, open folder and name of each regular file below a folder, in order; links are left out."""
    count = 0
    top = folder.fd
    for within, folders, files, fd in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        base = "/".join(part for part in (folder.path, *within.split("/")) if part not in ("", "."))
        kept = [name for name in folders if name.lower() not in SKIPPED]
        folders[:] = sorted(name for name in kept if not is_hidden(f"{base}/{name}" if base else name))
        for name in sorted(files):
            count += 1
            if count > MOST_FILES:
                raise Refusal(f"there are more than {MOST_FILES:,} files; name a folder in `path`")
            try:
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode):
                yield f"{base}/{name}" if base else name, fd, name
