"""Which process is at the other end of a connection: a step of a run must not answer gates, here neither."""

from __future__ import annotations

import os

from planrun.executors.owners import from_step
from planrun.executors.tree import HAS_PROC
from planrun.serve.access import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCAL = "0100007F"  # 127.0.0.1, as /proc/net/tcp has it on little-endian machines
_LOCALS = (_LOCAL, "7F000001")


def refuse_steps_at(client_port: int, own_port: int) -> None:
    """Refuse a connection from a step of any run, and one whose process is not known; raises Refused."""
    if not HAS_PROC:
        return
    inode = _inode(client_port, own_port)
    pids = list(_holders(inode)) if inode else []
    if not pids:
        raise Refused(403, "the process that answers is not known: it is another user's; use planrun approve")
    if any(from_step(pid) for pid in pids):
        raise Refused(403, "a step of a run cannot answer gates")


def _inode(client_port: int, own_port: int) -> str:
    """Return the inode of the client's socket; "" where the kernel lists none."""
    try:
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [row.split() for row in file.readlines()[1:]]
    except OSError:
        return ""
    for row in rows:
        local, remote = row[1].split(":"), row[2].split(":")
        if (
            local[0] in _LOCALS
            and remote[0] in _LOCALS
            and (int(local[1], 16), int(remote[1], 16)) == (client_port, own_port)
        ):
            return row[9]
    return ""


def _holders(inode: str) -> Iterator[int]:
    """Yield the processes that have a socket open, as far as this user may see."""
    wanted = f"socket:[{inode}]"
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            opened = os.listdir(f"/proc/{name}/fd")
            if any(_target(f"/proc/{name}/fd/{fd}") == wanted for fd in opened):
                yield int(name)
        except OSError:  # it ended, or is another user's
            continue


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
