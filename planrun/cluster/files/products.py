"""What a step made on a worker, placed into planrun's workspace."""

from __future__ import annotations

import os
import shutil
from stat import S_ISDIR

from planrun.cluster.files.entries import LINK, PROGRAM, has_linked_folder, is_inside, umask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planrun.cluster.files.entries import Entry


class NotPlaced(Exception):
    """A product that cannot be placed; the message is a line for people."""


def place(
    root: str,
    rows: Sequence[tuple[str, Entry]],
    arrived: Mapping[str, str],
    is_declared: Callable[[str], bool],
) -> None:
    """Place files, each at once; `arrived`: the file that has the content, by digest. Raises NotPlaced.

    A worker names the paths: only those that the step declares are taken, and none through a link.
    """
    left = [entry[0] for _, entry in rows]
    for path, entry in rows:
        if not is_inside(path) or not is_declared(path) or has_linked_folder(root, path):
            raise NotPlaced(f"the worker sent {path}, which the step does not declare")
        left.remove(entry[0])
        try:
            _place(os.path.join(root, path), entry, arrived.get(entry[0], ""), is_last=entry[0] not in left)
        except OSError as error:
            raise NotPlaced(f"{path} cannot be placed in the workspace: {error.strerror}") from None


def _place(target: str, entry: Entry, arrived: str, *, is_last: bool) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target) and S_ISDIR(os.lstat(target).st_mode):
        os.rmdir(target)
    draft = os.path.join(os.path.dirname(target), f".planrun-{os.urandom(8).hex()}-placing")
    try:
        if entry[2] == LINK:
            os.symlink(entry[3], draft)
        else:
            if is_last:
                os.rename(arrived, draft)
            else:
                shutil.copyfile(arrived, draft)
            os.chmod(draft, (0o777 if entry[2] == PROGRAM else 0o666) & ~umask())
            os.utime(draft, ns=(entry[3], entry[3]))
        os.rename(draft, target)
    except OSError:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def remove(root: str, paths: Sequence[str], is_declared: Callable[[str], bool]) -> None:
    """Remove declared files that a step deleted."""
    for path in paths:
        if is_inside(path) and is_declared(path) and not has_linked_folder(root, path):
            try:
                os.unlink(os.path.join(root, path))
            except OSError:  # it is gone, or a folder took its place
                continue
