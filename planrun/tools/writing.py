"""Files written as a whole: what stands under a name is the old file or the new one, whenever the process ends."""

from __future__ import annotations

import os
import stat

from planrun.sha256 import sha256
from planrun.tools.ground import kind_of
from planrun.tools.refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.tools.ground import Place

MAX_READ = 64 << 20  # bytes of a file that is read as a whole
_BLOCK = 1 << 20
_NAMELESS = getattr(os, "O_TMPFILE", 0)


def read_whole(place: Place, most: int = MAX_READ) -> bytes:
    """Return the bytes of a file; raises Refusal when there are more than `most`."""
    fd = place.open_file()
    try:
        size = os.fstat(fd).st_size
        if size > most:
            raise Refusal(f"{place.path}: it has {size:,} bytes, more than {most:,}")
        data = b"".join(blocks(fd, most + 1))
    finally:
        os.close(fd)
    if len(data) > most:
        raise Refusal(f"{place.path}: it has more than {most:,} bytes")
    return data


def blocks(fd: int, most: int = 1 << 62) -> Iterable[bytes]:
    """Yield what can be read from a descriptor, until about `most` bytes."""
    left = most
    while left > 0 and (block := os.read(fd, min(_BLOCK, left))):
        left -= len(block)
        yield block


def existing(place: Place) -> os.stat_result | None:
    """Return the regular file that is to be replaced; None when there is none. Raises Refusal for anything else."""
    status = place.status()
    if status is None or stat.S_ISREG(status.st_mode):
        return status
    hint = "; name the file that it leads to" if stat.S_ISLNK(status.st_mode) else ""
    raise Refusal(f"{place.path}: it is {kind_of(status.st_mode)}, which is not written to{hint}")


def put(place: Place, data: Iterable[bytes], mode: int, *, replace: bool) -> tuple[int, str]:
    """Write a file as a whole and return its size and sha256; `mode`: its permissions.

    Without `replace` it is an error when something stands there already.
    """
    fd, temporary = _begun(place, mode)
    try:
        size, digest = _filled(fd, data)
        os.fchmod(fd, mode)
        os.fsync(fd)
        if not temporary and not replace:
            _link(fd, place, place.name)
            return size, digest
        if not temporary:
            temporary = _temporary(place)
            _link(fd, place, temporary)
        if replace:
            os.rename(temporary, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        else:
            os.link(temporary, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd, follow_symlinks=False)
            os.unlink(temporary, dir_fd=place.fd)
        temporary = ""
        return size, digest
    except FileExistsError:
        raise Refusal(f"{place.path}: it is there already") from None
    finally:
        os.close(fd)
        if temporary:
            _forget(place, temporary)


def permissions(status: os.stat_result | None, *, executable: bool) -> int:
    """Return the permissions of a new file: those of the old one, else what the umask leaves."""
    if status is None:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    else:
        mode = status.st_mode & 0o777
    return mode | ((mode & 0o444) >> 2) if executable else mode


def _begun(place: Place, mode: int) -> tuple[int, str]:
    """Open a file without a name where the file system has such; returns it, and else its name for now."""
    if _NAMELESS:
        try:
            flags = os.O_WRONLY | _NAMELESS | os.O_CLOEXEC
            return os.open(".", flags, mode & 0o777 | 0o200, dir_fd=place.fd), ""
        except OSError:  # a file system that has none, which only trying tells
            pass
    name = _temporary(place)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, mode & 0o777 | 0o200, dir_fd=place.fd), name


def _filled(fd: int, data: Iterable[bytes]) -> tuple[int, str]:
    digest, size = sha256(), 0
    for block in data:
        digest.update(block)
        size += len(block)
        while block:
            block = block[os.write(fd, block) :]  # noqa: PLW2901 - what is left of it
    return size, str(digest.hexdigest())


def _link(fd: int, place: Place, name: str) -> None:
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=place.fd, follow_symlinks=True)


def _temporary(place: Place) -> str:
    chance = os.urandom(6).hex()
    return f".{place.name[:60].encode('ascii', 'ignore').decode()}.{chance}.tmp"


def _forget(place: Place, name: str) -> None:
    try:
        os.unlink(name, dir_fd=place.fd)
    except OSError:
        return
