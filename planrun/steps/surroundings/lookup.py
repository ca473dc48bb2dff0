"""Which program a word names, found as bash finds it, and whom the folders on the way belong to."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX, S_IWOTH

_KEPT: dict[tuple[str, str], tuple[list[tuple[str, int]], str]] = {}  # by workspace and folder: way, blot
_DEEP = 64  # components; of longer paths the whole is resolved at once
_SHEBANG = 256  # bytes: what Linux reads of a first line


class Ground:
    """The workspace and what was found out about folders of the machine, for one look: each is looked at once."""

    def __init__(self, workspace: str) -> None:
        self._modes: dict[str, int] = {}
        self._reals: dict[str, str] = {"/": "/"}
        self.workspace = self.real(workspace)
        self._below = self.workspace.rstrip("/") + "/"
        self._folders: dict[str, str] = {}

    def inside(self, path: str) -> bool:
        """Whether an absolute path is the workspace or below it, once links are followed or as it is written."""
        return any(
            found == self.workspace or found.startswith(self._below)
            for found in (self.real(path), os.path.normpath(path))
        )

    def real(self, path: str) -> str:
        """Return a path without links: `os.path.realpath`, which looks at the folders above again for each path."""
        known = self._reals.get(path)
        if known is None:
            known = self._reals[path] = self._resolved(path)
            self._reals[known] = known
        return known

    def _resolved(self, path: str) -> str:
        above, _, name = path.rpartition("/")
        if not path.startswith("/") or name in ("", ".", "..") or path.count("/") > _DEEP:
            return os.path.realpath(path)
        place = f"{self.real(above or '/').rstrip('/')}/{name}"
        return os.path.realpath(place) if S_ISLNK(self._mode(place)) else place

    def _mode(self, path: str) -> int:
        """Return the mode of a path that is not followed; 0: nothing is there."""
        known = self._modes.get(path)
        if known is None:
            try:
                known = os.lstat(path).st_mode
            except (OSError, ValueError):
                known = 0
            self._modes[path] = known
        return known

    def _is_open(self, real: str, *, except_sticky: bool = False) -> bool:
        """Whether everybody can write a file or folder; what is not there is for those who can make it.

        A link here leads in a circle, or was put there this moment: everybody's, then.
        """
        mode = self._mode(real)
        if except_sticky and S_ISDIR(mode) and mode & S_ISVTX:
            return False
        return bool(mode & S_IWOTH) or S_ISLNK(mode)

    def blot(self, folder: str) -> str:
        """Say why a folder is not to be trusted; "" for the machine's own."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._kept(folder)
        return known

    def _kept(self, folder: str) -> str:
        """Return what an earlier look found, if everything that it saw is the same now.

        That is kept of a folder without links on its way: of that, only the kinds and modes on the way decide.
        """
        kept = _KEPT.get((self.workspace, folder))
        if kept is not None and all([self._mode(place) == mode for place, mode in kept[0]]):  # noqa: C419 - half the time
            return kept[1]
        found = self._blot(folder)
        if folder.startswith("/") and self.real(folder) == folder:
            ends = [at for at, char in enumerate(folder) if char == "/"][1:]
            way = [(place, self._mode(place)) for place in (*[folder[:at] for at in ends], folder)]
            _KEPT[self.workspace, folder] = way, found
        return found

    def _blot(self, folder: str) -> str:
        if not folder.startswith("/"):
            return "a relative entry of PATH" if folder else "an empty entry of PATH"
        if self.inside(folder):
            return "in the workspace"
        real = self.real(folder)
        if self._is_open(real):
            return f"in {folder}, which others can write"
        above = os.path.dirname(real)
        while len(above) > 1:
            if self._is_open(above, except_sticky=True):
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
        real = self.real(place)
        if self.inside(real):
            return "a link into the workspace"
        return self.blot(os.path.dirname(real)) or (
            "a file that others can write" if self._is_open(real) else ""
        )


def is_program(place: str) -> bool:
    """Whether a path is a file that may be executed."""
    try:
        return S_ISREG(os.stat(place).st_mode) and os.access(place, os.X_OK)
    except (OSError, ValueError):
        return False


def interpreter(place: str) -> str:
    """Return the program that `#!/usr/bin/env NAME` of a script looks up on PATH; "" when it looks up none."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            first = os.read(fd, _SHEBANG)
        finally:
            os.close(fd)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].split(b"\n", 1)[0].split()
    if not words or words[0].rpartition(b"/")[2] != b"env":
        return ""
    names = [word for word in words[1:] if not word.startswith(b"-") and b"=" not in word]
    return os.fsdecode(names[0]) if names else ""
