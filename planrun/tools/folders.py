"""file.move, file.remove, file.mkdir."""

from __future__ import annotations

import os
import stat

from planrun.tools.ground import GIT, RECORDS
from planrun.tools.refusal import Refusal
from planrun.tools.results import plural, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground, Place

_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def move(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Give a file or folder another name; what stands there is replaced only when the call says so."""
    with ground.writable(args["path"]) as source, ground.writable(args["to"], "make") as place:
        if source.status() is None:
            raise Refusal(f"{source.path}: there is no such file")
        _keep_whole(source)
        there = place.status()
        if there is not None and (not args.get("overwrite", False) or stat.S_ISDIR(there.st_mode)):
            raise Refusal(f"{place.path}: it is there already")
        os.rename(source.name, place.name, src_dir_fd=source.fd, dst_dir_fd=place.fd)
        say(f"moved {source.path} to {place.path}")
    return {}


def remove(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Remove files, and folders where the call says so."""
    removed = 0
    for path in each(args["paths"]):
        try:
            place = ground.writable(path)
        except Refusal as refusal:
            if args.get("missing_ok", False) and "no such folder" in str(refusal):
                continue
            raise
        with place:
            removed += _remove_one(place, args)
    say(f"removed {plural(removed, 'entry').replace('entrys', 'entries')}")
    return {"removed": removed}


def mkdir(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Make folders."""
    made = 0
    for path in each(args["paths"]):
        with ground.writable(path, "make") as place:
            status = place.status()
            if status is None:
                os.mkdir(place.name, 0o777, dir_fd=place.fd)
                made += 1
            elif not stat.S_ISDIR(status.st_mode):
                raise Refusal(f"{place.path}: it is there already, and no folder")
            say(f"{'made' if status is None else 'found'} {place.path}")
    return {"made": made}


def each(value: Any) -> list[str]:
    """Return one or several as a list."""
    return value if isinstance(value, list) else [value]


def _remove_one(place: Place, args: dict[str, Any]) -> int:
    status = place.status()
    if status is None:
        if args.get("missing_ok", False):
            return 0
        raise Refusal(f"{place.path}: there is no such file")
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(place.name, dir_fd=place.fd)
        return 1
    if not args.get("recursive", False):
        raise Refusal(f"{place.path}: it is a folder; `recursive: true` removes it with all that is in it")
    _keep_whole(place)
    _remove_below(place.name, place.fd, status.st_dev)
    return 1


def _keep_whole(place: Place) -> None:
    """Raise Refusal for a folder that holds a repository or planrun's records: they would go with it."""
    _look_below(place.name, place.fd, place.path)


def _look_below(name: str, folder: int, path: str) -> None:
    try:
        fd = os.open(name, _LIST, dir_fd=folder)
    except OSError:  # it is no folder, or none that can be looked into: removing it will tell
        return
    try:
        for inner in os.listdir(fd):
            if inner.lower() in (GIT, RECORDS):
                raise Refusal(f"{path}/{inner}: it would go, too, and is not for tools")
            _look_below(inner, fd, f"{path}/{inner}")
    finally:
        os.close(fd)


def _remove_below(name: str, folder: int, device: int) -> None:
    """Remove a folder with all that is in it; nothing is followed out of it."""
    fd = os.open(name, _LIST, dir_fd=folder)
    try:
        if os.fstat(fd).st_dev != device:
            raise Refusal(f"{name}: another file system is mounted there")
        for inner in os.listdir(fd):
            status = os.stat(inner, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _remove_below(inner, fd, device)
            else:
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=folder)
