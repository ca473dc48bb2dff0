"""Copies of scripts kept out of what git lists, since release scripts look for a clean work tree before they go on."""

from __future__ import annotations

import os

PATTERN = b".planrun-" + b"[0-9a-f]" * 16 + b"-*"
_WHY = b"# copies of scripts that planrun runs, there as long as they run"
_MOST = 1 << 20  # bytes of the file that is added to


def unlist(folder: str) -> None:
    """Have git not list copies in the work tree around `folder`, by its own `info/exclude`; quietly."""
    found = _info(folder)
    if not found:
        return
    path = os.path.join(found, "exclude")
    try:
        os.makedirs(found, exist_ok=True)
        fd = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644
        )
        try:
            text = os.read(fd, _MOST)
            if PATTERN not in text.split(b"\n") and len(text) < _MOST:
                between = b"" if not text or text.endswith(b"\n") else b"\n"
                os.write(fd, between + _WHY + b"\n" + PATTERN + b"\n")
        finally:
            os.close(fd)
    except OSError:  # read-only, or a repository of somebody else
        return


def _info(folder: str) -> str:
    """Return the folder with git's own settings for a work tree; empty when there is none around `folder`."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return os.path.join(git, "info")
        if os.path.isfile(git):
            return _linked(git)
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _linked(file: str) -> str:
    """Return it for a linked work tree or a submodule, whose `.git` is a file."""
    try:
        git = _line(file).removeprefix("gitdir: ")
        git = os.path.join(os.path.dirname(file), git)
        common = os.path.join(git, "commondir")
        if os.path.isfile(common):
            git = os.path.join(git, _line(common))
        return os.path.join(git, "info") if os.path.isdir(git) else ""
    except (OSError, ValueError):
        return ""


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline(_MOST).rstrip("\n")
