"""Files of the same repository that a workflow names: other workflows, and actions made of steps."""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.source.document import read_tree
from planrun.source.file import read_source
from planrun.source.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.source.node import Node

MAX_DEPTH = 10  # files that use each other, as GitHub has it
_MARK = f"{os.sep}.github{os.sep}workflows{os.sep}"


def local_path(file: str, uses: str) -> str:
    """Return the path of what `./…` names, from the root of the repository; "" for anything else.

    `file` is the file that names it, or one of the same repository.
    """
    name = uses.strip().partition("@")[0]
    if not name.startswith(("./", "$/")) or ".." in name.split("/"):
        return ""
    whole = os.path.abspath(file)
    for mark in (_MARK, f"{os.sep}.github{os.sep}actions{os.sep}"):
        if mark in whole:
            return os.path.join(os.path.relpath(whole.rpartition(mark)[0]), name[2:])
    return os.path.join(os.path.dirname(file), name[2:])


def read_local(path: str) -> Node | None:
    """Return the content of a local file; None when there is none, or no mapping in it."""
    try:
        root, problems, complete = read_tree(read_source(path, "file"), path, "file")
    except InvalidPlan:
        return None
    return root if root is not None and not problems and complete and root.kind == MAPPING else None


def read_action(folder: str) -> tuple[str, Node | None]:
    """Return path and content of the action in a folder; None when there is none."""
    for name in ("action.yml", "action.yaml"):
        path = os.path.join(folder, name)
        root = read_local(path)
        if root is not None:
            return path, root
    return "", None
