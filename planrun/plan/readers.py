"""Where the plans come from that a plan uses: files inside its root, or copies. HOT for the plans that use some.

A file is named by its path relative to the folder of the plan that is run, `..` and all. The root is the working folder
when that plan lies in it or below, else the plan's own folder: nothing outside is ever opened.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.plan.yaml.file import read_source
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    # From a path to the bytes there; raises NotIncluded.
    Reader = Callable[[str], bytes]


SHIPPED = "planrun:"  # before the name of a template that comes with planrun
_TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "templates")


class NotIncluded(Exception):
    """A file that cannot be used; the text says why, as a clause."""


class Disk:
    """The files below the root of the plan in `file`."""

    def __init__(self, file: str) -> None:
        self._folder = _real(os.path.dirname(file) or ".")
        here = _real(".")
        self._is_here = _inside(self._folder, here)
        self._root = here if self._is_here else self._folder

    def __call__(self, path: str) -> bytes:
        """Return the bytes of a file; raises NotIncluded."""
        if path.startswith(SHIPPED):
            return shipped(path)
        lexical = os.path.normpath(os.path.join(self._folder, path))
        if not _inside(lexical, self._root):
            raise NotIncluded(f"it is outside {self._called}")
        real = _real(lexical)
        if not _inside(real, self._root):
            raise NotIncluded(f"a symbolic link leads outside {self._called}")
        try:
            return read_source(real)
        except InvalidPlan as error:
            raise NotIncluded(str(error.problems[0].message).removeprefix("cannot read the plan: ")) from None

    @property
    def _called(self) -> str:
        return "the working directory" if self._is_here else "the plan's directory"


def shipped(path: str) -> bytes:
    """Return the bytes of a template that comes with planrun; raises NotIncluded."""
    name = path.removeprefix(SHIPPED)
    try:
        if name in {each.removesuffix(".yml") for each in os.listdir(_TEMPLATES)}:
            return read_source(os.path.join(_TEMPLATES, f"{name}.yml"))
    except (OSError, InvalidPlan):
        pass
    raise NotIncluded("unknown template")


def copies(files: Mapping[str, bytes]) -> Reader:
    """Return a reader of what was read before, and of nothing else."""

    def read(path: str) -> bytes:
        found = files.get(path)
        if found is None:
            raise NotIncluded("it is not in the recorded files of the plan")
        return found

    return read


def read_again(known: Iterable[tuple[str, str]], read: Reader) -> dict[str, bytes] | None:
    """Return the contents of files by path; None when one of them has not the sha256 that is `known` of it."""
    found: dict[str, bytes] = {}
    for path, digest in known:
        try:
            data = read(path)
        except NotIncluded:
            return None
        if sha256(data).hexdigest() != digest:
            return None
        found[path] = data
    return found


def hashes(files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Return paths of files with their sha256."""
    return [(path, str(sha256(data).hexdigest())) for path, data in files.items()]


def paths(file: str, files: Iterable[str]) -> dict[str, str]:
    """Return the paths of files by what people call them."""
    return {shown(file, path): path for path in files}


def shown(file: str, path: str) -> str:
    """Return what people call a file that the plan in `file` uses."""
    if path.startswith(SHIPPED):
        return path
    return os.path.normpath(os.path.join(os.path.dirname(file), path))


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # the working folder is gone, or this is no name
        return os.path.normpath(path)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
