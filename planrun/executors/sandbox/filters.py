"""The filter of system calls of a sandboxed step, as a program for seccomp(2).

It refuses what reaches past files and network: mounts and namespaces, kernel modules and keys, io_uring (which would
go round this filter), access to the memory of others, how the kernel treats them, handles of files, and sockets of
families that no namespace holds. Debuggers may trace their own children: Landlock and process namespaces keep them
inside.
"""

from __future__ import annotations

import errno
import struct

# By name, the numbers on x86_64 and on aarch64; -1: it has none. From the tables of Linux.
_REFUSED = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "sethostname": (170, 161), "setdomainname": (171, 162), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89),
    "settimeofday": (164, 170), "adjtimex": (159, 171), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "iopl": (172, -1), "ioperm": (173, -1), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "syslog": (103, 116), "vhangup": (153, 58), "perf_event_open": (298, 241), "bpf": (321, 280),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, -1), "memfd_secret": (447, 447),
    "process_mrelease": (448, 448),
}  # fmt: skip
_CLONE, _CLONE3, _IOCTL, _SOCKET = (56, 220), (435, 435), (16, 29), (41, 198)
_PRLIMIT, _SETRLIMIT = (302, 261), (160, 164)
# How the kernel treats a process, by the id in the first argument: 0, the caller, is allowed alone. A filter cannot
# know which ids are the step's own, so it may not name those either.
_OF_PROCESS = {
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
# The same, with a kind before the id: processes, groups, and all of a user, which are never only the step's.
_OF_KIND = {"setpriority": ((141, 140), 2), "ioprio_set": ((251, 30), 3)}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # the column, AUDIT_ARCH
_X32 = 0x40000000  # system calls of another interface, with other numbers
_NAMESPACES = 0x7E020000  # the flags of clone(2) for each of them
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into a terminal
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_LOCKS = 10  # RLIMIT_LOCKS, by which planrun marks its processes

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # places in struct seccomp_data


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refuse(error: int = errno.EPERM) -> bytes:
    return _step(_RETURN, _ERROR | error)


def _argument(number: int, *, high: bool = False) -> bytes:
    return _step(_LOAD, _ARGUMENTS + 8 * number + (4 if high else 0))


def _block(number: int, steps: bytes) -> bytes:
    """Return the steps for one system call, which end in an answer; all others go on behind them."""
    return _step(_EQUAL, number, 0, len(steps) // 8) + steps


def _is_one_of(values: tuple[int, ...], found: bytes, otherwise: bytes) -> bytes:
    """Return steps that answer `found` where the loaded word is one of some values."""
    tests = b"".join([_step(_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)])
    return tests + otherwise + found


def program(machine: str) -> bytes:
    """Return the filter for a processor, as an array of struct sock_filter; raises KeyError for an unknown one."""
    column, audit = _MACHINES[machine]
    allow, refuse = _step(_RETURN, _ALLOW), _refuse()
    steps = (
        _step(_LOAD, _MACHINE) + _step(_EQUAL, audit, 1, 0) + _refuse(errno.ENOSYS) + _step(_LOAD, _NUMBER)
    )
    if machine == "x86_64":
        steps += _step(_AT_LEAST, _X32, 0, 1) + _refuse(errno.ENOSYS)
    steps += _block(_SOCKET[column], _argument(0) + _is_one_of(_FAMILIES, allow, _refuse(errno.EAFNOSUPPORT)))
    steps += _block(
        _CLONE3[column], _refuse(errno.ENOSYS)
    )  # its flags are in memory; libraries then use clone
    steps += _block(_CLONE[column], _argument(0) + _step(_ANY_BIT, _NAMESPACES, 0, 1) + refuse + allow)
    steps += _block(_IOCTL[column], _argument(1) + _is_one_of(_TERMINAL, refuse, allow))
    steps += _block(_SETRLIMIT[column], _argument(0) + _step(_EQUAL, _LOCKS, 0, 1) + refuse + allow)
    steps += _block(_PRLIMIT[column], _prlimit(allow, refuse))
    is_self = _step(_EQUAL, 0, 1, 0) + refuse + allow
    for numbers in _OF_PROCESS.values():
        steps += _block(numbers[column], _argument(0) + is_self)
    for numbers, user in _OF_KIND.values():
        steps += _block(
            numbers[column], _argument(0) + _step(_EQUAL, user, 0, 1) + refuse + _argument(1) + is_self
        )
    for numbers in _REFUSED.values():
        if numbers[column] >= 0:
            steps += _step(_EQUAL, numbers[column], 0, 1) + refuse
    return steps + allow


def _prlimit(allow: bytes, refuse: bytes) -> bytes:
    """Return steps that let a process read all limits, and set only its own, except for planrun's mark."""
    is_reading = (
        _argument(2) + _step(_EQUAL, 0, 0, 3) + _argument(2, high=True) + _step(_EQUAL, 0, 0, 1) + allow
    )
    of_others = _argument(0) + _step(_EQUAL, 0, 1, 0) + refuse
    return is_reading + of_others + _argument(1) + _step(_EQUAL, _LOCKS, 0, 1) + refuse + allow
