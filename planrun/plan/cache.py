"""Compiled plans kept between runs, by the content of their files. HOT: every start looks here first.

An entry is one file in the user's cache directory: a line that says what it is, the sha256 of the rest, and the
plan as plain data in `marshal` form, which is the fastest there is and must never read what another user
wrote. So directory and entry must belong to this user, and no other user may write them; nothing is reached through
a symbolic link; and a payload whose sha256 differs is not an entry. Whatever is wrong with an
entry or with the whole directory, the answer is the same: it is not in the cache.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys

from planrun import __version__
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_ENTRIES = 200
MAX_BYTES = 64 << 20  # of one entry; 100,000 steps need 30 MiB
_FORM = b"planrun compiled plan 12\n"
_ENDING = ".plan"
_MODE = 0o600
# The modules that decide what a file is compiled to, by folder.
_COMPILERS = {
    "plan": "includes readers tables templates",
    "plan/compile": "canonical compile conflicts groups risks step",
    "plan/keys": "agents checked checks collaboration containers files formulas fragments gates hooks instances "
    "mcp notify outline params policy rollback sandbox search services table tools top uses",
    "plan/kinds": "agent __init__ command question tool validate",
    "plan/schema": "forms shape",
    "plan/yaml": "document",
    "expressions": "grammar parse",
    "model": "agenttypes collaboration globs groups mcp notify plan planning policy search",
    "risk": "actions classifier",
}
_DIGEST = 32  # bytes of a sha256


def folder() -> str:
    """Return the directory for compiled plans, "" when the environment names none; it need not exist."""
    own = os.environ.get("PLANRUN_CACHE_DIR", "")
    if own:
        return os.path.join(os.path.abspath(own), "plans")
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # relative ones are to be ignored, says the XDG specification
        home = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "planrun", "plans") if os.path.isabs(home) else ""


def key_of(data: bytes, name: str) -> str:
    """Return the key of a plan: its bytes, limits and default name, and everything that can read or write an entry."""
    program = f"{__version__} {sys.hexversion} {marshal.version} {_stamp()} {name}\0"
    return str(sha256(program.encode("utf-8", "surrogatepass") + data).hexdigest())


def _stamp() -> str:
    """Return when this code was last changed, for those who work on it without a new version each time."""
    root = os.path.dirname(os.path.dirname(__file__))
    try:
        return str(
            [
                os.stat(f"{root}/{folder}/{name}.py").st_mtime_ns
                for folder, names in _COMPILERS.items()
                for name in names.split()
            ]
        )
    except OSError:
        return ""  # not a plain folder of files, so not a checkout


def read(key: str) -> Any:
    """Return the data of an entry, or None."""
    try:
        where = _open_folder()
    except OSError:
        return None
    try:
        payload = _read_entry(where, key)
        return marshal.loads(payload) if payload is not None else None  # noqa: S302 - only what this user wrote
    except (OSError, ValueError, EOFError, TypeError):
        return None
    finally:
        os.close(where)


def write(key: str, data: Any) -> None:
    """Keep data under a key, if that is possible; says nothing when it is not."""
    from planrun.folders import make_private  # plans are read more often than written

    try:
        make_private(folder())
        where = _open_folder()
    except OSError:
        return
    try:
        payload = marshal.dumps(data)
        _write_entry(where, key, _FORM + sha256(payload).digest() + payload)
        names = [name for name in os.listdir(where) if name.endswith((_ENDING, ".tmp"))]
        if not len(names) <= MAX_ENTRIES:
            names.sort(key=lambda name: os.stat(name, dir_fd=where, follow_symlinks=False).st_mtime_ns)
            for name in names[: len(names) - MAX_ENTRIES]:
                os.unlink(name, dir_fd=where)
    except (OSError, ValueError):
        return
    finally:
        os.close(where)


def _open_folder() -> int:
    """Open the directory; raises OSError when it is not this user's alone."""
    fd = os.open(folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _is_ours(os.fstat(fd)):
        os.close(fd)
        raise PermissionError(folder())
    return fd


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read_entry(where: int, key: str) -> bytes | None:
    """Return the payload of an entry that is ours and whole."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(key + _ENDING, flags, dir_fd=where)
    try:
        status = os.fstat(fd)
        if not (_is_ours(status) and status.st_mode == stat.S_IFREG | _MODE) or status.st_size > MAX_BYTES:
            return None
        data = b""
        while block := os.read(fd, status.st_size + 1):
            data = data + block if data else block
    finally:
        os.close(fd)
    at = len(_FORM) + _DIGEST
    payload = data[at:]
    if data[:at] != _FORM + sha256(payload).digest():
        return None
    return payload


def _write_entry(where: int, key: str, data: bytes) -> None:
    if len(data) > MAX_BYTES:
        return
    raw = f"{key}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(raw, flags, _MODE, dir_fd=where)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        os.unlink(raw, dir_fd=where)
        raise
    finally:
        os.close(fd)
    os.replace(raw, key + _ENDING, src_dir_fd=where, dst_dir_fd=where)
