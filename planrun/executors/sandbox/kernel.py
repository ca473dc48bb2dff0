"""System calls that Python has no function for: namespaces, mounts, capabilities, Landlock and seccomp.

Numbers and structures are those of the manual pages unshare(2), mount_setattr(2), capset(2), landlock(7), seccomp(2).
All functions raise OSError.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.syscall.restype = ctypes.c_long

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_NETWORK = 0x00020000, 0x08000000, 0x10000000, 0x40000000
BIND, RECURSIVE, PRIVATE = 0x1000, 0x4000, 0x40000
DETACH = 2
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 1, 2, 4
_AT_RECURSIVE, _AT_EMPTY_PATH = 0x8000, 0x1000
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2 = 428, 429, 437
_CLONE_TREE, _FROM_AND_TO_DESCRIPTORS = 1, 0x4 | 0x40
_NO_SYMLINKS = 4  # RESOLVE_NO_SYMLINKS, which includes the links of /proc
_CLONE_PARENT, _SIGCHLD = 0x8000, 17
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CLONE = {"x86_64": 56, "aarch64": 220}
MACHINES = tuple(_CLONE)
"""The processors for which planrun has a filter of system calls."""
_MOUNT_SETATTR, _CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 442, 444, 445, 446
_SET_DUMPABLE, _SET_SECCOMP, _DROP_BOUNDING, _SET_NO_NEW_PRIVILEGES, _AMBIENT = 4, 22, 24, 38, 47
_FILTER_MODE, _CLEAR_AMBIENT = 2, 4
# chown, dac_override, fowner, fsetid: what root needs to work with files of other users in its own workspace.
_KEPT_CAPABILITIES = (0, 1, 3, 4)
_ADMINISTRATOR = 1 << 21 | 1 << 12  # CAP_SYS_ADMIN, CAP_NET_ADMIN
_CAPABILITY_VERSION = 0x20080522

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL_RIGHTS = (1 << 16) - 1
READ = _EXECUTE | _READ_FILE | _READ_FOLDER
WRITE = _ALL_RIGHTS & ~_MAKE_CHAR & ~_MAKE_BLOCK
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_SCOPES = 1 | 2  # abstract Unix sockets, signals
OLDEST_ABI = 6
"""The first version of Landlock that keeps signals and abstract sockets inside: Linux 6.12."""
_VERSION = 1


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _system_call(what: str, number: int, *words: int | bytes | None) -> int:
    values = [ctypes.c_long(word) if isinstance(word, int) else word for word in words]
    return _check(_LIBRARY.syscall(ctypes.c_long(number), *values), what)


def landlock_abi() -> int:
    """Return the version of Landlock; 0: the kernel has none, or it is off."""
    try:
        return _system_call("landlock", _CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def clone_sibling() -> int:
    """Fork, with the caller's parent as the parent of the new process; return 0 in it, its id here."""
    return _system_call("clone", _CLONE[os.uname().machine], _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)


def unshare(flags: int) -> None:
    """Leave namespaces."""
    _check(_LIBRARY.unshare(flags), "unshare")


def is_administrator() -> bool:
    """Return whether this process may change mounts and networks; root of a container usually may not."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        held = next(int(line.split()[1], 16) for line in file if line.startswith("CapEff:"))
    return held & _ADMINISTRATOR == _ADMINISTRATOR


def map_own_user(uid: int, gid: int) -> None:
    """Keep user and group in a new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(fd, text.encode())
        os.close(fd)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount, or bind with the flag BIND."""
    result = _LIBRARY.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, f"mount {target}")


def unmount(target: str) -> None:
    """Take a mount away, however busy it is."""
    _check(_LIBRARY.umount2(os.fsencode(target), DETACH), f"umount {target}")


def open_path(path: str) -> int:
    """Return a descriptor of what an absolute path without any symbolic link names, for binding it."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
    return _system_call(f"open {path}", _OPENAT2, -100, os.fsencode(path), how, len(how))


def bind(source: str, target: str, *, writable: bool) -> None:
    """Show a path at another one, with the mounts in it; neither has a symbolic link on its way, at any moment."""
    what = open_path(source)
    try:
        flags = _CLONE_TREE | os.O_CLOEXEC | _AT_EMPTY_PATH | _AT_RECURSIVE
        tree = _system_call(f"open_tree {source}", _OPEN_TREE, what, b"", flags)
    finally:
        os.close(what)
    try:
        _close_mount(tree, "", _AT_EMPTY_PATH | _AT_RECURSIVE, writable=writable)
        where = open_path(target)
        try:
            words = (tree, b"", where, b"", _FROM_AND_TO_DESCRIPTORS)
            _system_call(f"mount {target}", _MOVE_MOUNT, *words)
        finally:
            os.close(where)
    finally:
        os.close(tree)


def close_mount(target: str, *, writable: bool = False, recursive: bool = True) -> None:
    """Forbid setuid programs and devices, and unless said otherwise writing, in a mount and those in it."""
    _close_mount(-100, target, _AT_RECURSIVE if recursive else 0, writable=writable)


def _close_mount(fd: int, target: str, depth: int, *, writable: bool) -> None:
    flags = _NO_SETUID | _NO_DEVICES | (0 if writable else _READ_ONLY)
    attributes = struct.pack("=QQQQ", flags, 0, 0, 0)
    words = (fd, os.fsencode(target), depth, attributes, len(attributes))
    _system_call(f"mount_setattr {target}", _MOUNT_SETATTR, *words)


def pivot_root(new: str, old: str) -> None:
    """Change the root of all that this process sees."""
    _system_call("pivot_root", _PIVOT_ROOT[os.uname().machine], os.fsencode(new), os.fsencode(old))


def forbid_new_privileges() -> None:
    """Have setuid programs and file capabilities give nothing, for good."""
    _check(_LIBRARY.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")


def drop_capabilities(*, root: bool) -> None:
    """Drop every capability for good; root keeps those that concern files of other users."""
    kept = _KEPT_CAPABILITIES if root else ()
    for number in range(64):
        if number not in kept and _LIBRARY.prctl(_DROP_BOUNDING, number, 0, 0, 0) < 0:
            break  # beyond the last one of this kernel
    _LIBRARY.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    mask = sum(1 << number for number in kept)
    header = struct.pack("=II", _CAPABILITY_VERSION, 0)
    words = struct.pack("=IIIIII", mask, mask, 0, 0, 0, 0)
    _check(_LIBRARY.capset(header, words), "capset")


def restrict(readable: Iterable[str], writable: Iterable[str], files: Iterable[int]) -> None:
    """Allow reading below some paths, all below others, and writing to open files; all else is refused by Landlock.

    Signals to processes outside and abstract sockets of others are refused as well, and so is tracing them.
    """
    attributes = struct.pack("=QQQ", _ALL_RIGHTS, 0, _SCOPES)
    rules = _system_call("landlock", _CREATE_RULESET, attributes, len(attributes), 0)
    for paths, rights in ((readable, READ), (writable, WRITE)):
        for path in paths:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            is_folder = os.path.isdir(path)
            _allow(rules, fd, rights if is_folder else rights & _OF_FILES)
            os.close(fd)
    for fd in files:
        _allow(rules, fd, _WRITE_FILE | _READ_FILE | _TRUNCATE)
    _system_call("landlock", _RESTRICT_SELF, rules, 0)
    os.close(rules)


def restrict_sockets() -> None:
    """Refuse signals to processes outside and abstract sockets of others, and nothing else."""
    attributes = struct.pack("=QQQ", 0, 0, _SCOPES)
    rules = _system_call("landlock", _CREATE_RULESET, attributes, len(attributes), 0)
    _system_call("landlock", _RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, fd: int, rights: int) -> None:
    _system_call("landlock", _ADD_RULE, rules, 1, struct.pack("=Qi", rights, fd), 0)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def install(program: bytes) -> None:
    """Install a filter of system calls, for good."""
    loaded = _Program(len(program) // 8, program)
    _check(_LIBRARY.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(loaded), 0, 0), "seccomp")
