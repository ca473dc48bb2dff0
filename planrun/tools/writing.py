"""write, edit and apply_patch of agents."""

from __future__ import annotations

import difflib

from planrun.model.agenttools import MAX_WRITE
from planrun.tools import git
from planrun.tools.files import encoded, text_of
from planrun.tools.ground import Refusal, existing, permissions, put, read_whole
from planrun.tools.reading import put as say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground, Place

_SHOWN = 60  # lines of a difference


def write(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Write a whole file."""
    data = encoded(args["content"])
    if len(data) > MAX_WRITE:
        raise Refusal(f"{args['path']}: more than {MAX_WRITE:,} bytes are not written")
    with ground.writable(args["path"], "make") as place:
        status = existing(place)
        before = read_whole(place, 16 * MAX_WRITE) if status is not None else b""
        put(place, [data], permissions(status, executable=False), replace=True)
        what = "changed" if status is not None else "made"
        say([f"{what} {place.path}: {len(data)} bytes", *_difference(before, data)])
    return {}


def edit(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Replace a text that stands in a file exactly once, or every one."""
    with ground.writable(args["path"]) as place:
        status = existing(place)
        if status is None:
            raise Refusal(f"{place.path}: there is no such file; `write` makes one")
        before = read_whole(place, 16 * MAX_WRITE)
        after = encoded(_edited(place, text_of(place, before), args))
        if len(after) > 16 * MAX_WRITE:
            raise Refusal(f"{place.path}: it would become too large")
        put(place, [after], permissions(status, executable=False), replace=True)
        say([f"changed {place.path}", *_difference(before, after)])
    return {}


def _edited(place: Place, text: str, args: dict[str, Any]) -> str:
    old, new = args["old"], args["new"]
    count = text.count(old)
    if not count:
        raise Refusal(
            f"{place.path}: the text does not stand in it; read the file, and copy the text exactly"
        )
    if count > 1 and not args.get("all", False):
        raise Refusal(f"{place.path}: the text stands in it {count} times; name more of the lines around it")
    if old == new:
        raise Refusal(f"{place.path}: both texts are the same")
    return text.replace(old, new)


def apply_patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Apply a unified diff: all of it, or nothing."""
    git.apply_patch(ground, {"patch": args["patch"]})
    return {}


def _difference(before: bytes, after: bytes) -> list[str]:
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    lines = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
    more = [f"[{len(lines) - _SHOWN} more lines]"] if len(lines) > _SHOWN else []
    return [*lines[:_SHOWN], *more]
