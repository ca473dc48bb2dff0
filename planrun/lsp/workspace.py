"""Plans of the folder that are not open in the editor, as far as a search finds them in a moment."""

from __future__ import annotations

import os
import time

from planrun.lsp.analysis import from_disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lsp.analysis import Analysis

MOST_PLANS = 200
"""Files that are read as plans."""
_MOST_NAMES = 50_000  # of files and folders that are looked at
_LARGEST = 1 << 20  # bytes of a file
_LIMIT = 2.0  # seconds
_NOT_OURS = frozenset(("node_modules", "venv", "__pycache__", "dist", "build", "target", "vendor"))


def plans_with(word: str, folder: str, encoding: str, besides: frozenset[str]) -> Iterator[Analysis]:
    """Yield the YAML files below a folder that contain a word, but not those that are known."""
    found = 0
    until = time.monotonic() + _LIMIT
    for path in _yaml_files(folder):
        if found >= MOST_PLANS or time.monotonic() > until:
            return
        if path in besides or not _contains(path, word.encode()):
            continue
        analysis = from_disk(path, encoding)
        if analysis is not None:
            found += 1
            yield analysis


def _yaml_files(root: str) -> Iterator[str]:
    """Yield files of the folder, without hidden folders and those of tools; through no link."""
    looked = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted([name for name in folders if name[0] != "." and name not in _NOT_OURS])
        looked += len(folders) + len(files)
        if looked > _MOST_NAMES:
            return
        for name in sorted(files):
            if name.endswith((".yml", ".yaml")):
                yield os.path.join(folder, name)


def _contains(path: str, word: bytes) -> bool:
    try:
        if os.path.getsize(path) > _LARGEST:
            return False
        with open(path, "rb") as file:
            return word in file.read()
    except OSError:
        return False
