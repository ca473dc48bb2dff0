"""Which program a word names, found as bash finds it, and whom the folders on the way belong to."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG, S_ISVTX, S_IWOTH

_SHEBANG = 256  # bytes: what Linux reads of a first line


class Ground:
    """The workspace and what was found out about folders of the machine, for one look."""

    def __init__(self, workspace: str) -> None:
        self.workspace = os.path.realpath(workspace)
        self._below = self.workspace.rstrip("/") + "/"
        self._folders: dict[str, str] = {}

    def inside(self, path: str) -> bool:
        """Whether an absolute path is the workspace or below it, once links are followed or as it is written."""
        return any(
            found == self.workspace or found.startswith(self._below)
            for found in (os.path.realpath(path), os.path.normpath(path))
        )

    def blot(self, folder: str) -> str:
        """Say why a folder is not to be trusted; "" for the machine's own."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._blot(folder)
        return known

    def _blot(self, folder: str) -> str:
        if not folder.startswith("/"):
            return "a relative entry of PATH" if folder else "an empty entry of PATH"
        if self.inside(folder):
            return "in the workspace"
        real = os.path.realpath(folder)
        if _is_open(real):
            return f"in {folder}, which others can write"
        above = os.path.dirname(real)
        while len(above) > 1:
            if _is_open(above, except_sticky=True):
                return f"in {folder}, which others can exchange"
            above = os.path.dirname(above)
        return ""

    def trusted(self, folders: str) -> list[str]:
        """Return the folders of a list like PATH that exist and are nobody else's."""
        return [folder for folder in folders.split(":") if not self.blot(folder)]

    def find(self, name: str, path: str, cwd: str) -> tuple[str, str]:
        """Return where bash finds a program, and why that is not to be trusted; both empty: nowhere."""
        for folder in path.split(":"):
            place = os.path.join(cwd, folder, name)
            if is_program(place):
                return place, self.blot(folder) or self._blot_of_file(place)
        return "", ""

    def _blot_of_file(self, place: str) -> str:
        """Say why a program in a good folder is not to be trusted: by where its links lead, or who can write it."""
        real = os.path.realpath(place)
        if self.inside(real):
            return "a link into the workspace"
        return self.blot(os.path.dirname(real)) or ("a file that others can write" if _is_open(real) else "")


def is_program(place: str) -> bool:
    """Whether a path is a file that may be executed."""
    try:
        return S_ISREG(os.stat(place).st_mode) and os.access(place, os.X_OK)
    except (OSError, ValueError):
        return False


def interpreter(place: str) -> str:
    """Return the program that `#!/usr/bin/env NAME` of a script looks up on PATH; "" when it looks up none."""
    try:
        with open(place, "rb") as file:
            first = file.read(_SHEBANG)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].split(b"\n", 1)[0].split()
    if not words or words[0].rpartition(b"/")[2] != b"env":
        return ""
    names = [word for word in words[1:] if not word.startswith(b"-") and b"=" not in word]
    return os.fsdecode(names[0]) if names else ""


def _is_open(path: str, *, except_sticky: bool = False) -> bool:
    """Whether everybody can write a file or folder; what is not there can be written by those who can make it."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    if except_sticky and S_ISDIR(mode) and mode & S_ISVTX:
        return False
    return bool(mode & S_IWOTH)
