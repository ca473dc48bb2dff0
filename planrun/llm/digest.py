"""A repository told to a model in a few thousand characters: always the same text for the same files.

Everything that comes from the repository is data and stands in data blocks, also the names of its files.
"""

from __future__ import annotations

from planrun.llm.repository import commands, is_ci, is_readme, is_told, languages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.llm.repository import Repository

MAX_TREE = 5500  # characters of the tree
MAX_FOLDER = 12  # files of one folder that are named
MAX_LANGUAGES = 6
MAX_TEXTS = 12  # files whose beginnings are told
MAX_README = 3000  # characters
MAX_FILE = 1500


def parts(repository: Repository) -> Iterator[tuple[str, str, int]]:
    """Yield what is told of a repository: name of the part, its text, and how many characters it may have."""
    yield "overview", _overview(repository), 2000
    yield "tree", "\n".join(tree(repository.paths)), 6000
    told = sorted(
        filter(is_told, repository.texts), key=lambda path: (not is_readme(path), is_ci(path), path)
    )
    for path in told[:MAX_TEXTS]:
        most = MAX_README if is_readme(path) else MAX_FILE
        yield f"file {path}", repository.texts[path][:most], most


def _overview(repository: Repository) -> str:
    counted = f"{len(repository.paths)} files" + (
        "" if repository.complete else ", and more that were not listed"
    )
    spoken = ", ".join([f"{name} ({count})" for name, count in languages(repository.paths)[:MAX_LANGUAGES]])
    rows = [counted, f"languages: {spoken or 'none that are known'}"]
    rows += [f"{found.use} command named by {found.file}: {found.run}" for found in commands(repository)]
    rows += [f"CI: {path}" for path in repository.paths if is_ci(path)][:MAX_FOLDER]
    return "\n".join(rows)


def tree(paths: tuple[str, ...]) -> list[str]:
    """Return the files folder by folder, the upper levels first: what does not fit is counted."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    rows = []
    for folder in sorted(folders, key=lambda name: (name.count("/") + bool(name), name)):
        names = sorted(folders[folder])
        more = f" and {len(names) - MAX_FOLDER} more" if len(names) > MAX_FOLDER else ""
        rows.append(f"{folder or '.'}/: {' '.join(names[:MAX_FOLDER])}{more}")
    return list(_fitting(rows))


def _fitting(rows: list[str]) -> Iterator[str]:
    room = MAX_TREE
    for number, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            yield f"and {len(rows) - number} more folders"
            return
        yield row
