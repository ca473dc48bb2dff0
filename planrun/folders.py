"""Folders for this user alone, whatever the umask."""

from __future__ import annotations

import os

DEPENDENCIES = frozenset((".venv", "bower_components", "node_modules", "venv"))
"""Names of folders with installed packages, which projects do not keep in git."""
_DEPTH = 3  # folders below the workspace, as in a repository with several packages


def make_private(path: str) -> None:
    """Make a folder, and every missing one above it, with mode 0700; raises OSError.

    `os.makedirs` gives its mode to the last folder alone: under umask 002 others of the group could write above it.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if above in (path, ""):
            raise
        make_private(above)
        os.mkdir(path, 0o700)


def dependencies(top: str) -> list[str]:
    """Return the folders of installed packages in a workspace, relative to it; links are none."""
    found: list[str] = []
    below = [("", 1)]
    while below:
        within, depth = below.pop()
        try:
            with os.scandir(os.path.join(top, within)) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:  # it is gone, or nobody may read it
            continue
        found += [os.path.join(within, name) for name in names if name in DEPENDENCIES]
        if depth < _DEPTH:
            others = [name for name in names if name not in DEPENDENCIES and not name.startswith(".")]
            below += [(os.path.join(within, name), depth + 1) for name in others]
    return sorted(found)
