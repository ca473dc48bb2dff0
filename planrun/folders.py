"""Folders for this user alone, whatever the umask."""

from __future__ import annotations

import os


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
