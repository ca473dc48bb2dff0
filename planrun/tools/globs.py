"""file.glob."""

from __future__ import annotations

import os
import stat

from planrun.tools.folders import each
from planrun.tools.ground import GIT, RECORDS, words_of
from planrun.tools.refusal import Refusal
from planrun.tools.results import plural, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MAX_LOOKED_AT = 1_000_000  # names
_ANY = "**"


def glob(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """List the files that fit one of the patterns."""
    search = _Search(args.get("max_files", 1000), hidden=args.get("hidden", False))
    root = os.open(ground.top, _LIST)
    try:
        folder = root
        for name in ground.base:
            inner = os.open(name, _LIST, dir_fd=folder)
            if folder != root:
                os.close(folder)
            folder = inner
        for pattern in each(args["patterns"]):
            search.below(folder, words_of(pattern), "")
        if folder != root:
            os.close(folder)
    finally:
        os.close(root)
    files = sorted(search.found)
    for path in files:
        say(path)
    say(plural(len(files), "file"))
    return {"files": files, "count": len(files)}


class _Search:
    """Files that fit, by their paths; nothing is found twice, links are listed and not followed."""

    def __init__(self, most: int, *, hidden: bool) -> None:
        self.found: set[str] = set()
        self._most = most
        self._hidden = hidden
        self._looked_at = 0

    def below(self, folder: int, pattern: list[str], path: str) -> None:
        """Look for what fits the words of a pattern below an open folder."""
        if len(pattern) == 1 and pattern[0] != _ANY:
            self._files(folder, pattern[0], path)
            return
        word, rest = pattern[0], pattern[1:]
        if word == _ANY:
            self.below(folder, rest or ["*"], path)
        for name in self._names(folder):
            if name.lower() in (GIT, RECORDS) or not self._fits(name, "*" if word == _ANY else word):
                continue
            try:
                inner = os.open(name, _LIST, dir_fd=folder)
            except OSError:  # no folder, a link, or closed to us
                continue
            try:
                self.below(inner, pattern if word == _ANY else rest, f"{path}{name}/")
            finally:
                os.close(inner)

    def _files(self, folder: int, word: str, path: str) -> None:
        for name in self._names(folder):
            if self._fits(name, word) and not stat.S_ISDIR(
                os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            ):
                self.found.add(path + name)
                if len(self.found) > self._most:
                    raise Refusal(f"more than {self._most:,} files fit; see `max_files`")

    def _names(self, folder: int) -> list[str]:
        names = os.listdir(folder)
        self._looked_at += len(names)
        if self._looked_at > MAX_LOOKED_AT:
            raise Refusal(f"there are more than {MAX_LOOKED_AT:,} names to look at")
        return names

    def _fits(self, name: str, word: str) -> bool:
        from fnmatch import fnmatchcase  # it loads `re`

        if name.startswith(".") and not self._hidden and not word.startswith("."):
            return False
        return fnmatchcase(name, word)
