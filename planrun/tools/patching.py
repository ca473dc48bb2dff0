"""Apply the patch of an agent to the workspace: all of it, or nothing, also when the process is killed in between.

First everything is done in a folder of the run: the files as they are, then the patch by git. What does not fit is
found there, and nothing was changed. What each file becomes is written down before the first one is written; each is
replaced atomically. A second call goes on from there: it leaves out what has its new content already.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys

from planrun.folders import write_atomically
from planrun.sha256 import sha256
from planrun.tools.copies import leads_out
from planrun.tools.git import Git
from planrun.tools.ground import Refusal, permissions, plural, put, read_whole, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground, Place

CONFLICT = 3
"""The exit code when the patch does not fit what is in the workspace now."""
_TARGETS = "targets.json"
_LINK, _EXECUTABLE = "120000", "100755"


class Conflict(Exception):
    """The workspace has other content than the patch expects."""


def apply(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Apply the file `patch`, which has the hash `sha256` and changes `files`; `stage` is a folder for it alone."""
    with open(args["patch"], "rb") as file:
        data = file.read()
    if str(sha256(data).hexdigest()) != args["sha256"]:
        raise Refusal("the patch was changed since it was reviewed")
    try:
        targets = _targets(ground, args, data)
        for path, target in targets.items():
            _settle(ground, args["stage"], path, target)
    except Conflict as conflict:
        say(f"conflict: {conflict}; nothing was changed")
        sys.exit(CONFLICT)
    for each in args["files"]:
        say(f"{each['op']} {each['path']}")
    say(f"applied: {plural(len(targets), 'file')}")
    return {}


def _targets(ground: Ground, args: dict[str, Any], data: bytes) -> dict[str, dict[str, Any]]:
    """Return what each file is to become, from an earlier call or made now."""
    stage = args["stage"]
    name = os.path.join(stage, _TARGETS)
    try:
        with open(name, encoding="utf-8") as file:
            found: dict[str, dict[str, Any]] = json.load(file)
        return found
    except (OSError, ValueError):
        shutil.rmtree(stage, ignore_errors=True)
    tree = os.path.join(stage, "tree")
    os.makedirs(tree, 0o700)
    before = {each["path"]: _staged(ground, tree, each["path"]) for each in args["files"]}
    os.environ["GIT_CEILING_DIRECTORIES"] = stage  # it is no part of a repository
    git = Git(tree, "drivers")
    for check in (["--check"], []):
        words = ("apply", "-p1", "--whitespace=nowarn", *check, "-")
        if git.ask(*words, given=data).code:
            raise Conflict("the patch does not fit the files as they are now")
    targets = {each["path"]: _target(tree, each, before[each["path"]]) for each in args["files"]}
    write_atomically(name, json.dumps(targets).encode(), mode=0o600, sync=True)
    return targets


def _staged(ground: Ground, tree: str, path: str) -> str:
    """Copy a file of the workspace as it is now, and return its hash; "" when there is none."""
    try:
        with ground.writable(path) as place:
            known = _now(place)
    except Refusal as refusal:
        if not str(refusal).endswith("there is no such folder"):
            raise
        known = None
    if known is None:
        return ""
    data, mode = known
    target = os.path.join(tree, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if stat.S_ISLNK(mode):
        os.symlink(os.fsdecode(data), target)
    else:
        with open(target, "xb") as file:
            file.write(data)
        os.chmod(target, mode & 0o777 | 0o600)
    return str(sha256(data).hexdigest())


def _now(place: Place) -> tuple[bytes, int] | None:
    """Return content and mode of a file or link; None when there is none. Raises Conflict for anything else."""
    status = place.status()
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(os.readlink(place.name, dir_fd=place.fd)), status.st_mode
    if not stat.S_ISREG(status.st_mode):
        raise Conflict(f"{place.path} is no file")
    return read_whole(place), status.st_mode


def _target(tree: str, each: dict[str, Any], before: str) -> dict[str, Any]:
    path = os.path.join(tree, each["path"])
    if not os.path.lexists(path):
        return {"before": before, "after": "", "mode": ""}
    is_link = os.path.islink(path)
    if is_link:
        data = os.fsencode(os.readlink(path))
        if leads_out(each["path"], os.fsdecode(data)):
            raise Refusal(f"{each['path']}: it is a link that leads out of the workspace")
    else:
        with open(path, "rb") as file:
            data = file.read()
    return {"before": before, "after": str(sha256(data).hexdigest()), "mode": each["mode"]}


def _settle(ground: Ground, stage: str, path: str, target: dict[str, Any]) -> None:
    """Give one file its new content, unless it has it."""
    with ground.writable(path, "make") as place:
        known = _now(place)
        now = str(sha256(known[0]).hexdigest()) if known else ""
        if now == target["after"] and (known is None or _has_mode(known[1], target["mode"])):
            return
        if now not in (target["before"], target["after"]):
            raise Conflict(f"{place.path} was changed while the patch was applied")
        if not target["after"]:
            os.unlink(place.name, dir_fd=place.fd)
            return
        source = os.path.join(stage, "tree", path)
        if target["mode"] == _LINK:
            goal = os.readlink(source)
            temporary = f".{place.name[:60]}.{os.urandom(6).hex()}.tmp"
            os.symlink(goal, temporary, dir_fd=place.fd)
            os.rename(temporary, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
            return
        with open(source, "rb") as file:
            data = file.read()
        status = place.status()
        kept = status if status is not None and stat.S_ISREG(status.st_mode) else None
        mode = permissions(kept, executable=target["mode"] == _EXECUTABLE)
        if target["mode"] != _EXECUTABLE:
            mode &= ~0o111
        put(place, [data], mode, replace=True)


def _has_mode(mode: int, wanted: str) -> bool:
    if wanted == _LINK:
        return stat.S_ISLNK(mode)
    return stat.S_ISREG(mode) and bool(mode & 0o100) == (wanted == _EXECUTABLE)
