"""The process that starts sandboxed steps: it reads requests from a socket, and its children are planrun's.

It is a process of its own since a step's first moments are a copy of the process that forks it: this one is small, and
it never knew a secret of planrun's. It starts each child with CLONE_PARENT (clone(2)), so that planrun waits for the
step itself. It ends when planrun does.

A request is a length and a mapping in the form of `marshal`, and comes with the descriptors 0, 1 and 2 of the step. The
answer has the step's process id or an error, and the listening socket of its proxy where it has one.
"""

from __future__ import annotations

import _signal
import _socket
import errno
import fcntl
import gc
import marshal
import os
import resource
import stat
import struct

from planrun.executors.sandbox import kernel
from planrun.executors.sandbox.bubblewrap import EMPTY, FILTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = 3
"""The descriptor of the socket to planrun."""
PROXY_PORT = 3128
"""Where a step finds its proxy, in a network namespace of its own."""
_LIMITS = {
    "processes": resource.RLIMIT_NPROC,
    "memory": resource.RLIMIT_DATA,
    "file_size": resource.RLIMIT_FSIZE,
}
_IGNORED_BY_PYTHON = (13, 25)  # SIGPIPE, SIGXFSZ
_LOCKS = 10  # RLIMIT_LOCKS, the mark of a step: see planrun.executors.mark
_OLD = "/.old"  # the machine's own root, until the view is complete
_MASKS = "/.masks"
_OWN = "/.own"
_RECORDS = "/.records"  # planrun's own folder, until the view of an attempt is complete
_BASES = ("/tmp", "/run", "/mnt", "/var")  # noqa: S108 - where a file system is put up that becomes the root
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the attempt's own
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_WRITABLE_DEVICES = (*[f"/dev/{name}" for name in _DEVICES], "/dev/pts", _SHARED_MEMORY)
_LINKS = (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"))
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x41  # ioctl(2) of interfaces; IFF_UP and IFF_RUNNING


def main() -> None:
    """Take on a view, and start steps in it until planrun closes the socket."""
    os.set_inheritable(SOCKET, False)
    connection = _socket.socket(fileno=SOCKET)
    setup, _ = _receive(connection)
    if setup is None:
        return
    try:
        _settle(setup)
    except OSError as error:
        _send(connection, {"pid": 0, "errno": error.errno or errno.EINVAL, "message": f"enter {error}"}, [])
        return
    _send(connection, {"pid": 0}, [])
    gc.disable()  # nothing here lives long, and a collection would copy the memory of each child
    gc.freeze()
    while True:
        request, fds = _receive(connection)
        if request is None:
            return
        answer, listener = _start(setup, request, fds)
        for fd in fds:
            os.close(fd)
        _send(connection, answer, [listener] if listener >= 0 else [])
        if listener >= 0:
            os.close(listener)


def _receive(connection: _socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    head, ancillary, _, _ = connection.recvmsg(4, _socket.CMSG_SPACE(3 * 4), _socket.MSG_CMSG_CLOEXEC)
    fds = descriptors(ancillary)
    size = struct.unpack("=I", head)[0] if len(head) == 4 else 0
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return None, fds
        data += part
    return (marshal.loads(bytes(data)) if size else None), fds  # noqa: S302 - from planrun itself


def descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came with a message."""
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            found += struct.unpack(f"={len(data) // 4}i", data[: len(data) // 4 * 4])
    return found


def _send(connection: _socket.socket, answer: dict[str, Any], fds: list[int]) -> None:
    data = marshal.dumps(answer)
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"={len(fds)}i", *fds))] if fds else []
    connection.sendmsg([struct.pack("=I", len(data)) + data], rights)


def _start(setup: dict[str, Any], request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], int]:
    ours, theirs = _socket.socketpair()
    try:
        pid = kernel.clone_sibling()
    except OSError as error:
        return {"pid": 0, "errno": error.errno, "message": error.strerror}, -1
    if not pid:
        _become(setup, request, fds, theirs)  # does not return
    theirs.close()
    message = b""
    listeners: list[int] = []
    while True:  # until the socket was closed by the step's first program
        data, ancillary, _, _ = ours.recvmsg(4096, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        listeners += descriptors(ancillary)
        if not data:
            break
        message += data
    ours.close()
    message = message.removeprefix(b"L")
    answer: dict[str, Any] = {"pid": pid}
    if message:
        number, _, text = message.decode("utf-8", "replace").partition(" ")
        answer |= {"errno": int(number), "message": text}
    return answer, listeners[0] if listeners else -1


def _become(setup: dict[str, Any], request: dict[str, Any], fds: list[int], errors: _socket.socket) -> None:
    stage = "start"
    try:
        os.setsid()
        for number in _IGNORED_BY_PYTHON:
            _signal.signal(number, _signal.SIG_DFL)
        _take_descriptors(fds)
        mark = request["mark"]
        if mark:
            resource.setrlimit(_LOCKS, (mark, resource.getrlimit(_LOCKS)[1]))
        stage = "enter"
        _CONFINE[setup["backend"]](setup, request, errors)
        stage = "exec"
        os.execve(request["program"], request["argv"], request["env"])
    except BaseException as error:  # noqa: BLE001 - nothing may return from here
        number = getattr(error, "errno", None) or errno.EINVAL
        text = str(error) if stage != "exec" else ""
        errors.send(f"{number} {stage} {text}".encode())
    os._exit(127)


def _take_descriptors(fds: list[int]) -> None:
    """Put the received descriptors, which may stand in each other's places, at 0, 1 and 2."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in fds]
    for number, fd in enumerate(high):
        os.dup2(fd, number)
        os.close(fd)


def _settle(setup: dict[str, Any]) -> None:
    """Leave the namespaces of the machine, for good, and take on the view; bwrap does this for each step itself."""
    if setup["backend"] == "landlock":
        _isolate(setup["network"] != "any", kernel.NEW_MOUNTS)
        if setup["network"] != "any":
            _own_network(with_proxy=False)
        _look_at(setup["mounts"], setup["records"])
        paths = [path for _, path, _ in setup["mounts"]]
        setup["outermost"] = {path: _outermost(paths, path) for path in setup["private"]}


def _isolate(network: bool, flags: int) -> None:  # noqa: FBT001
    """Leave the namespaces of the machine: those of `flags`, of shared memory, and of the network if it is wanted."""
    flags |= kernel.NEW_IPC | (kernel.NEW_NETWORK if network else 0)
    uid, gid = os.geteuid(), os.getegid()
    if not uid and kernel.is_administrator():
        kernel.unshare(flags)
        return
    kernel.unshare(flags | kernel.NEW_USER)
    kernel.map_own_user(uid, gid)


def _serve_proxy(errors: _socket.socket) -> None:
    """Put up the socket on which the proxy is to listen, and pass it on."""
    listener = _own_network(with_proxy=True)
    assert listener is not None
    rights = struct.pack("=i", listener.fileno())
    errors.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    listener.close()


def _own_network(*, with_proxy: bool) -> _socket.socket | None:
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    interface = struct.pack("=16sH14s", b"lo", 0, b"")
    name, flags, rest = struct.unpack("=16sH14s", fcntl.ioctl(probe.fileno(), _GET_FLAGS, interface))
    fcntl.ioctl(probe.fileno(), _SET_FLAGS, struct.pack("=16sH14s", name, flags | _UP, rest))
    if not with_proxy:
        probe.close()
        return None
    probe.bind(("127.0.0.1", PROXY_PORT))
    probe.listen(64)
    return probe


def _limit(request: dict[str, Any]) -> None:
    for name, kind in _LIMITS.items():
        value = request["limits"].get(name)
        if value is not None:
            hard = resource.getrlimit(kind)[1]
            value += name == "processes"  # this process's parent in the namespace
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def _confine_by_landlock(setup: dict[str, Any], request: dict[str, Any], errors: _socket.socket) -> None:
    own_network = setup["network"] == "hosts"
    kernel.unshare(kernel.NEW_MOUNTS | (kernel.NEW_NETWORK if own_network else 0))
    if own_network:
        _serve_proxy(errors)
    _look_at_own(setup, request)
    os.chdir(request["cwd"])
    _limit(request)
    kernel.forbid_new_privileges()
    kernel.drop_capabilities(root=not os.geteuid())
    outputs = [fd for fd in (1, 2) if stat.S_ISREG(os.fstat(fd).st_mode)]
    writable = (*request["writable"], *_WRITABLE_DEVICES)
    kernel.restrict(["/"], [path for path in writable if os.path.exists(path)], outputs)
    kernel.install(setup["filter"])


def _confine_by_bubblewrap(setup: dict[str, Any], request: dict[str, Any], errors: _socket.socket) -> None:
    """Prepare what bwrap, the program that starts now, does not do itself."""
    _make_files(request["made"], "")
    if setup["network"] == "hosts" or (request["limits"].get("processes") and os.geteuid()):
        _isolate(setup["network"] != "any", 0)
    if setup["network"] == "hosts":
        _serve_proxy(errors)
    _limit(request)
    if setup["network"] == "any":
        kernel.forbid_new_privileges()
        kernel.restrict_sockets()
    fd = os.memfd_create("filter", 0)
    os.write(fd, setup["filter"])
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, FILTER)
    os.set_inheritable(FILTER, True)
    null = os.open(os.devnull, os.O_RDONLY)
    for number in range(request["argv"].count("--ro-bind-data")):
        os.dup2(null, EMPTY + number)
    os.close(null)


def _make_files(paths: list[str], above: str) -> None:
    for path in paths:
        os.close(os.open(above + path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


_CONFINE = {"landlock": _confine_by_landlock, "bubblewrap": _confine_by_bubblewrap}


def _look_at(mounts: list[tuple[str, str, str]], records: str) -> None:
    """Change the root of this process to a new file system with the mounts of a view; others see no change."""
    kernel.mount("none", "/", "", kernel.PRIVATE | kernel.RECURSIVE)
    base = next(path for path in _BASES if os.path.isdir(path) and not os.path.islink(path))
    kernel.mount("planrun", base, "tmpfs", 0, "mode=0755")
    os.chdir(base)
    os.mkdir(base + _OLD)
    kernel.pivot_root(".", _OLD[1:])
    os.chdir("/")
    before = os.umask(0o022)
    os.mkdir(_MASKS, 0o700)
    own = os.stat("/").st_dev
    masks = []
    for number, (verb, path, source) in enumerate(mounts):
        if verb == "link":
            _make_folder(os.path.dirname(path))
            os.symlink(source, path)
        elif verb == "dir":
            _make_folder(path)
            if os.stat(path).st_dev != own:  # it would be a folder of the machine
                os.mkdir(f"{_MASKS}/{number}")
                kernel.mount(f"{_MASKS}/{number}", path, "", kernel.BIND)
        elif verb == "mask":
            empty = f"{_MASKS}/{number}"
            os.mkdir(empty)
            _make_folder(path)
            kernel.mount(empty, path, "", kernel.BIND)
            masks.append(path)
        elif verb == "hide":
            os.close(os.open(f"{_MASKS}/{number}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o444))
            _bind(f"{_MASKS}/{number}", path)
        else:
            _bind(_OLD + source, path, writable=verb == "rw")
    os.mkdir("/proc")
    kernel.mount(f"{_OLD}/proc", "/proc", "", kernel.BIND | kernel.RECURSIVE)
    kernel.close_mount("/proc")
    _put_up_devices()
    for path in masks:
        kernel.close_mount(path, recursive=False)
    os.mkdir(_OWN)
    os.mkdir(_RECORDS)
    if records:
        kernel.mount(_OLD + records, _RECORDS, "", kernel.BIND)
    kernel.unmount(_OLD)
    os.rmdir(_OLD)
    os.umask(before)


def _look_at_own(setup: dict[str, Any], request: dict[str, Any]) -> None:
    """Put folders of this attempt's own over the private ones, and show what it may see of planrun's records."""
    before = os.umask(0o022)
    records = setup["records"]
    kernel.mount("planrun", _OWN, "tmpfs", 0, "mode=0755")
    hidden = [records] if records else []
    for number, path in enumerate([*request["private"], _SHARED_MEMORY, *hidden]):
        new = f"{_OWN}/{number}"
        os.mkdir(new)
        for inner in setup["outermost"].get(path, ()):
            _bind(inner, new + inner[len(path) :], writable=True)
        if path == records:
            _show_own(request, new)
        elif path != setup["home"]:
            os.chmod(new, 0o1777)  # noqa: S103 - of the attempt's own
        kernel.mount(new, path, "", kernel.BIND | kernel.RECURSIVE)
        if path == records:
            kernel.close_mount(path, recursive=False)
    os.mkdir(f"{_OWN}/empty")
    kernel.mount(f"{_OWN}/empty", _RECORDS, "", kernel.BIND)
    kernel.mount(f"{_OWN}/empty", _OWN, "", kernel.BIND)
    os.umask(before)


def _outermost(paths: list[str], above: str) -> list[str]:
    below = [path for path in paths if path.startswith(f"{above}/")]
    return [path for path in below if not any(path.startswith(f"{other}/") for other in below)]


def _show_own(request: dict[str, Any], folder: str) -> None:
    top = request["records"]
    _make_files([path[len(top) :] for path in request["made"]], _RECORDS)
    for verb, path, _ in request["own"]:
        inner = path[len(top) :]
        _bind(_RECORDS + inner, folder + inner, writable=verb == "rw")


def _bind(source: str, path: str, *, writable: bool = False) -> None:
    """Show a path of the machine; what it is put on is made where it does not exist."""
    if not os.path.lexists(path):
        if os.path.isdir(source):
            _make_folder(path)
        else:
            _make_folder(os.path.dirname(path))
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    kernel.bind(source, path, writable=writable)


def _make_folder(path: str) -> None:
    if not os.path.isdir(path):
        os.makedirs(path, 0o755, exist_ok=True)


def _put_up_devices() -> None:
    os.mkdir("/dev")
    for name in _DEVICES:
        if os.path.exists(f"{_OLD}/dev/{name}"):
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            kernel.mount(f"{_OLD}/dev/{name}", f"/dev/{name}", "", kernel.BIND)
    for name, end in _LINKS:
        os.symlink(f"/proc/self/fd{end}", f"/dev/{name}")
    os.mkdir(_SHARED_MEMORY)
    os.mkdir("/dev/pts")
    try:
        kernel.mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620")
        os.symlink("pts/ptmx", "/dev/ptmx")
    except OSError:  # a kernel or a container without it: the step has no pseudo-terminals
        return


if __name__ == "__main__":
    main()
