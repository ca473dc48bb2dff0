"""Read the repository of a plan: runs none of its code, follows no link, and opens no private file."""

from __future__ import annotations

import os
import stat

from planrun.llm.projectfile import project_file
from planrun.llm.repository import Repository, is_ours, is_private, is_told
from planrun.plan.project import project
from planrun.plan.revisions import listed_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from planrun.llm.projectfile import ProjectFile

MAX_PATHS = 20_000
MAX_DEPTH = 8  # levels of folders where git does not list the files
MAX_READ = 16 * 1024  # bytes of one file
_SKIPPED = frozenset(
    (
        *(
            ".git",
            ".hg",
            ".svn",
            ".planrun",
            "planrun-out",
            "node_modules",
            "__pycache__",
            ".venv",
            "venv",
            ".tox",
            ".mypy_cache",
        ),
        *(".pytest_cache", ".ruff_cache", "target", "dist", "build", ".idea", ".vscode"),
    )
)


def read_repository(folder: str = ".", without: Collection[str] = ()) -> Repository:
    """Return the facts about the project in a folder; unreadable files are left out.

    `without`: files and folders that are left out as well, as the caller names them.
    """
    listed = listed_files(folder)
    paths = list(_walk(folder)) if listed is None else listed
    hidden = {os.path.relpath(path, folder) for path in without}
    wanted = [path for path in paths if not (is_ours(path) or is_private(path) or _is_below(path, hidden))]
    kept = sorted({path for path in wanted if path.isprintable()})
    shown = tuple(kept[:MAX_PATHS])
    texts = {path: text for path in shown if is_told(path) and (text := _head(folder, path)) is not None}
    return Repository(paths=shown, texts=texts, complete=len(kept) <= MAX_PATHS, git=listed is not None)


def project_memory(mask: Callable[[str], str], folder: str = "") -> ProjectFile | None:
    """Return what people wrote about the project in a folder for models, masked; None where there is no such file.

    Raises InvalidInput, InvalidPlan.
    """
    found = project_file(project(folder).memory_file, folder)
    return found.but(text=mask(found.text)) if found else None


def _is_below(path: str, folders: Collection[str]) -> bool:
    if path in folders:
        return True
    at = path.find("/")
    while at > 0:
        if path[:at] in folders:
            return True
        at = path.find("/", at + 1)
    return False


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a folder, those of the upper levels first, up to a limit."""
    level = [""]
    left = MAX_PATHS + 1  # one more, to detect that there are more
    for _ in range(MAX_DEPTH):
        below = []
        for inner in level:
            try:
                with os.scandir(os.path.join(folder, inner)) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                path = f"{inner}/{entry.name}" if inner else entry.name
                if entry.is_dir(follow_symlinks=False):
                    below += [] if entry.name in _SKIPPED else [path]
                elif entry.is_file(follow_symlinks=False):
                    yield path
                    left -= 1
                if not left:
                    return
        level = below


def _head(folder: str, path: str) -> str | None:
    """Return the beginning of a regular file; None for anything else."""
    whole = os.path.join(folder, path)
    if os.path.realpath(os.path.dirname(whole)) != os.path.normpath(
        os.path.join(os.path.realpath(folder), os.path.dirname(path))
    ):
        return None  # a link points elsewhere
    try:
        # Do not follow a link, and do not block on a pipe.
        file = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        return os.read(file, MAX_READ).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(file)
