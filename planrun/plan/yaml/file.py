"""Plans and scripts as bytes: regular files of at most 8 MiB, read so that nothing hangs or floods."""

from __future__ import annotations

import errno
import os
import stat

from planrun.errors import InvalidPlan
from planrun.sha256 import sha256

MAX_BYTES = 8 * 1024 * 1024


class BOUNDS:
    """The limits of plan files, which the settings of a project may change: `planrun.plan.project`."""

    size = 0  # bytes; 0: MAX_BYTES
    depth = 0  # levels of lists and mappings; 0: planrun.plan.yaml.document.MAX_DEPTH
    steps = 0  # 0: as many as the plan says


_BLOCK = 65536  # larger ones cost a mapping each, which no usual plan fills

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "part of the path is not a directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "too many levels of symbolic links",
    errno.ENAMETOOLONG: "file name too long",
    errno.ENXIO: "a socket or a device cannot be read",
    errno.EAGAIN: "not a regular file: reading would block",
}


def read_source(path: str, noun: str = "plan") -> bytes:
    """Read a plan file, or another one that `noun` names, of limited size in constant memory, at once or not at all.

    Raises InvalidPlan with one Problem for everything but a readable regular file.
    """
    try:
        # Before opening: opening a pipe or a tape device has effects of its own.
        _refuse_special(os.stat(path), path, noun)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            _refuse_special(os.fstat(fd), path, noun)  # again: it may have been swapped in between
            blocks: list[bytes] = []
            size = 0
            while block := os.read(fd, _BLOCK):  # files of /proc say size 0 and go on
                size += len(block)
                if size > _most(noun):
                    raise too_large(path, noun)
                blocks.append(block)
            return b"".join(blocks)
        finally:
            os.close(fd)
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or (error.strerror or "unknown error").lower()
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise refusal("E001", f"cannot read the {noun}: {reason}", path) from None
        from planrun.plan.yaml.near import near_names  # only a missing file pays for it

        raise refusal("E001", f"cannot read the {noun}: {reason}", path, near_names(path)) from None
    except ValueError:  # a NUL byte or a lone surrogate in the name
        raise refusal("E001", f"cannot read the {noun}: invalid file name", path) from None


def read_plan(path: str) -> tuple[bytes, str]:
    """Return a plan and the name of its file: `-` is standard input, `stdin` in messages; raises as `read_source`."""
    if path != "-":
        return read_source(path), path
    blocks, size = [], 0
    try:
        while block := os.read(0, _BLOCK):
            size += len(block)
            if size > _most("plan"):
                raise too_large("stdin")
            blocks.append(block)
    except OSError as error:
        raise refusal("E001", f"cannot read standard input: {error.strerror}", "stdin") from None
    return b"".join(blocks), "stdin"


def _refuse_special(status: os.stat_result, path: str, noun: str) -> None:
    for is_kind, what in _KINDS:
        if is_kind(status.st_mode):
            hint = "name a file in it" if is_kind is stat.S_ISDIR else ""
            raise refusal("E002", f"the {noun} must be a regular file, got {what}", path, hint)
    if status.st_size > _most(noun):
        raise too_large(path, noun)


def _most(noun: str) -> int:
    """Return how many bytes a file may have: only that of plans is a setting."""
    return (BOUNDS.size if noun == "plan" else 0) or MAX_BYTES


def too_large(path: str, noun: str = "plan") -> InvalidPlan:
    """Return the error for a file of too many bytes."""
    most = _most(noun)
    shown = f"{most >> 20} MiB" if most % (1 << 20) == 0 else f"{most >> 10} KiB"
    hint = "" if most == MAX_BYTES else "`limits: {plan_size: SIZE}` in .planrun.yml sets the limit"
    return refusal("E003", f"the {noun} is larger than {shown}", path, hint)


def refusal(code: str, message: str, path: str, hint: str = "") -> InvalidPlan:
    """Return the error that has one problem: that the file as a whole is not accepted."""
    from planrun.plan.problems import Problem  # only what is wrong pays for it

    return InvalidPlan([Problem(code=code, message=message, file=path, hint=hint)])


class NotRegular(Exception):
    """Something that is no file and no folder either; the text says what it is."""


def read_script(path: str) -> bytes:
    """Return the bytes of a file whose name is not followed; raises OSError, NotRegular, ValueError.

    A folder and a file that is too large are OSErrors with a text of their own.
    """
    _refuse(os.stat(path, follow_symlinks=False))  # before opening: opening a pipe has effects of its own
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW)
    try:
        _refuse(os.fstat(fd))
        blocks: list[bytes] = []
        size = 0
        while block := os.read(fd, _BLOCK):
            size += len(block)
            if size > MAX_BYTES:
                raise OSError(0, f"it has more than {MAX_BYTES >> 20} MiB")
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(fd)


def hash_of(path: str) -> str:
    """Return the sha256 of a script as it is now, links followed; empty when there is none that can be read."""
    try:
        return str(sha256(read_script(os.path.realpath(path))).hexdigest())
    except (OSError, ValueError, NotRegular):
        return ""


def _refuse(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OSError(0, "it is a folder")
    for is_kind, what in _KINDS:
        if is_kind(status.st_mode):
            raise NotRegular(what)
