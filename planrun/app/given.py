"""Policy and approval files as a command line names them: files of this checkout, or of a commit (`COMMIT:PATH`).

What is read from a commit cannot be changed by what is checked out, as a pull request has it changed; a file of the
checkout that says something else is named, since somebody may believe that it counts.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from planrun.app.revisions import find_entries, in_commit, is_file, path_from_root
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.source.approvalfile import read_json
from planrun.source.file import read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1000  # files that one pattern may name


class Given(Record):
    """A file that was given: as it was named, its bytes, and the full name of the commit that it was read from.

    `ignored`: why the file of the same path in this checkout does not count; empty when it is the same.
    """

    name: str
    data: bytes
    commit: str = ""
    ignored: str = ""


def read_given(name: str, noun: str) -> Given:
    """Return the file that `name` names; `noun` says what is in it. Raises InvalidInput, InvalidPlan."""
    if is_file(name):
        # A policy's problems have codes, as a plan's have; an approval that cannot be read is a wrong command line.
        return Given(
            name=name, data=read_source(name, noun) if noun == "policy" else read_json(name, f"an {noun}")
        )
    commit, path, data = in_commit(name)
    if data is None:
        raise InvalidInput(f"there is no {noun} at {name}")
    return Given(name=name, data=data, commit=commit, ignored=_ignored(path, data))


def all_given(pattern: str, noun: str) -> list[Given]:
    """Return the files that a path names whose last part may be a pattern of `*`, `?` and `[…]`; maybe none.

    A path that is no pattern, or names a file as it stands, is that file. Raises InvalidInput, InvalidPlan.
    """
    folder, last = _parted(pattern)
    if not is_pattern(last) or (is_file(pattern) and os.path.lexists(pattern)):
        return [read_given(pattern, noun)]
    found = _in_folder(folder, last) if is_file(pattern) else _committed(pattern)
    return [read_given(name, noun) for name in _counted(pattern, found)]


def not_committed(pattern: str) -> Iterator[str]:
    """Yield why files of this checkout do not count that a pattern in a commit would name, and the commit lacks."""
    folder, last = _parted(pattern)
    if is_file(pattern):
        return
    if not is_pattern(last):
        return
    known = {name.partition(":")[2] for name in _committed(pattern)}
    ref, _, path = pattern.partition(":")
    here = _in_checkout(path_from_root(path).rpartition("/")[0])
    for name in _names(here, last):
        inside = f"{folder.partition(':')[2]}/{name}".lstrip("/")
        if inside not in known:
            yield f"{os.path.normpath(os.path.join(here, name))} is not in {_short(ref)}, and has no effect"


def _parted(pattern: str) -> tuple[str, str]:
    folder, _, last = pattern.rpartition("/")
    if not folder and not is_file(pattern):
        folder, _, last = pattern.rpartition(":")
        folder = f"{folder}:"
    if is_pattern(folder.partition(":")[2] if not is_file(pattern) else folder):
        raise InvalidInput(f"only the last part of a path may be a pattern: {pattern}")
    return folder, last


def is_pattern(text: str) -> bool:
    """Say whether the last part of a path stands for several names."""
    return any(char in text for char in "*?[")


def _counted(pattern: str, found: list[str]) -> list[str]:
    if len(found) > _MOST:
        raise InvalidInput(f"{pattern} names {len(found)} files; at most {_MOST} are read")
    return found


def _in_folder(folder: str, last: str) -> list[str]:
    """Return the files of this checkout that a pattern names; a colon in one is no commit."""
    found = [os.path.join(folder, name) for name in _names(folder, last)]
    return [name if is_file(name) else f"./{name}" for name in found]


def _names(folder: str, last: str) -> list[str]:
    """Return the names in a folder of this checkout that fit; hidden ones only where the pattern begins so."""
    try:
        names = os.listdir(folder or ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot look for {last} in {folder}: {error}") from None
    return sorted(name for name in names if _fits(name, last))


def _fits(name: str, last: str) -> bool:
    return fnmatchcase(name, last) and (last.startswith(".") or not name.startswith("."))


def _committed(pattern: str) -> list[str]:
    """Return the files of a commit that a pattern names, each as `COMMIT:PATH`."""
    folder, last = _parted(pattern)
    ref, _, inside = folder.partition(":")
    start = f"{inside}/" if inside and inside != "/" else ""
    names = [path.rpartition("/")[2] for path in find_entries(f"{ref}:{start}")]
    return [f"{ref}:{start}{name}" for name in sorted(names) if _fits(name, last)]


def _ignored(path: str, data: bytes) -> str:
    """Why the file of this checkout does not count, where it is not what the commit has."""
    here = _in_checkout(path_from_root(path))
    if not os.path.lexists(here):
        return f"{here} is gone from this checkout, and holds nevertheless"
    try:
        same = read_json(here, "it") == data
    except (InvalidInput, InvalidPlan):
        same = False
    return "" if same else f"{here} of this checkout is another, and has no effect"


def _in_checkout(path: str) -> str:
    """Return where a path of the repository stands, from this folder."""
    prefix = path_from_root("./")
    return os.path.relpath(path or ".", prefix or ".")


def _short(ref: str) -> str:
    return ref[:12] if len(ref) >= 40 and ref.isalnum() else ref
