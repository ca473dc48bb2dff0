"""planrun's side of sandboxes: it makes the view of a step, has the starter start it, and looks at what it left."""

from __future__ import annotations

import _signal
import _socket
import errno
import marshal
import os
import struct
import sys

from planrun.executors.sandbox.view import Refused, View, control_names, direct, view_of
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from planrun.executors.sandbox.view import Site
    from planrun.model.job import Job, Outcome
    from planrun.model.plan import Sandbox


_PROXYING_MAIN = (
    "import sys; sys.path.insert(0, sys.argv[1]); from planrun.executors.sandbox.proxy import main; main()"
)


def _spawned(main: str, root: str) -> tuple[_socket.socket, int]:
    """Start a process of planrun's own in a session of its own; return the socket to it and its id. Raises OSError."""
    ours, theirs = _socket.socketpair()
    null = os.open(os.devnull, os.O_RDWR)
    ignored = [number for number in _signal.valid_signals() if _signal.getsignal(number) == _signal.SIG_IGN]
    try:
        pid = os.posix_spawn(
            sys.executable,
            (sys.executable, "-I", "-S", "-c", main, root),
            {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), _SOCKET),
                *[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)],
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=ignored,
        )
    except OSError:
        ours.close()
        raise
    finally:
        os.close(null)
        theirs.close()
    return ours, pid


class Proxy:
    """A process with one listening socket for each running step; it ends when stop() is called or this process ends."""

    def __init__(self, root: str) -> None:
        self._socket, self._pid = _spawned(_PROXYING_MAIN, root)
        self._number = 0

    def open(self, listener: int, hosts: tuple[str, ...]) -> int:
        """Serve a listening socket, which is closed here, for these hosts; return the number to close it with."""
        self._number += 1
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))]
        try:
            self._send({"open": self._number, "hosts": hosts}, rights)
        finally:
            os.close(listener)
        return self._number

    def close(self, number: int) -> None:
        """Serve a step no longer."""
        self._send({"close": number}, [])

    def _send(self, message: dict[str, object], rights: list[tuple[int, int, bytes]]) -> None:
        data = marshal.dumps(message)
        try:
            self._socket.sendmsg([struct.pack("=I", len(data)) + data], rights)
        except OSError:  # it was killed: the step reaches no host
            return

    def stop(self) -> None:
        """End it."""
        self._socket.close()
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # already reaped by the embedding program
            return


_SOCKET = 3  # as in starter.py
_PORT = 3128  # as in starter.py
_MAIN = (
    "import sys; sys.path.insert(0, sys.argv[1]); from planrun.executors.sandbox.starter import main; main()"
)
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

# Variables that name sockets outside, which a sandboxed step does not have.
_UNREACHABLE = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("DOCKER_HOST", "CONTAINER_HOST"),
)
_PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy")
_REFUSALS = (
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Network is unreachable",
)
_MORE_REFUSALS = ("Could not resolve host", "Temporary failure in name resolution", "403 Forbidden")
_MOST_STARTERS = 8
GUIDE = "docs/how-to/sandbox.md"


class StartFailed(Exception):
    """The starter could not start a step: a number of errno, and where; `text` is empty for an error of execve."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number
        self.text = text


class _Running(Record):
    view: View
    names: dict[str, str]  # of what controls later work in the workspace; of links, their targets
    proxy: int  # its number at the proxy; -1: none
    alone: list[bool]  # whether all attempts beside it were sandboxed, too


class Sandboxes:
    """The sandboxed attempts of one executor."""

    def __init__(self, site: Site | None) -> None:
        self._site = site
        self._starters: dict[
            object, Starter
        ] = {}  # by what they see, the one that was used last behind the others
        self._proxy: Proxy | None = None
        self._running: dict[str, _Running] = {}
        self._kept: set[str] = set()  # folders that stand in the workspace so that no step makes them

    def spawn(self, job: Job, program: str, argv: tuple[str, ...], fds: tuple[int, ...], mark: int) -> int:
        """Start a job's process in its sandbox; raises StartFailed, Refused."""
        sandbox, site = job.sandbox, self._site
        if sandbox is None or site is None:
            raise Refused("planrun does not know the workspace of this step, and starts it in no sandbox")
        view = view_of(sandbox, site, job)
        names = control_names(site.workspace)
        inodes = self._put_up(view.kept)
        try:
            starter = self._starter_for(job, sandbox, view, inodes)
            pid, listener = starter.start(request_of(job, sandbox, (view, site), (program, argv), mark), fds)
        except StartFailed as error:
            self._check_program(error, view, program)
            raise
        number = -1
        if listener >= 0:
            if self._proxy is None:
                self._proxy = Proxy(_ROOT)
            number = self._proxy.open(listener, sandbox.hosts)
        self._running[job.step] = _Running(view=view, names=names, proxy=number, alone=[True])
        return pid

    def _starter_for(self, job: Job, sandbox: Sandbox, view: View, inodes: tuple[int, ...]) -> Starter:
        """Return a starter that sees what this job is to see; raises StartFailed."""
        assert self._site is not None
        key: tuple[object, ...] = (sandbox.backend, sandbox.network, view.mounts, view.known, inodes)
        if sandbox.processes is not None:  # they are counted in a namespace
            key = (*key, job.step, job.attempt, job.part)
        starter = self._starters.pop(key, None) or Starter(setup_of(sandbox, view, self._site))
        self._starters[key] = starter
        if len(self._starters) > _MOST_STARTERS:
            self._starters.pop(next(iter(self._starters))).close()
        return starter

    @staticmethod
    def _check_program(error: StartFailed, view: View, program: str) -> None:
        """Raise Refused for a program that exists, but not in the view."""
        shown = any(program == path or program.startswith(f"{path}/") for _, path, _ in view.mounts)
        if error.number == errno.ENOENT and not error.text and not shown and os.path.exists(program):
            raise Refused(
                f"the sandbox does not show {program}: add its folder to `sandbox: {{read: […]}}`"
            ) from None

    def note(self, job: Job) -> None:
        """Note a job that starts: what appears in the workspace from now on may be of one without a sandbox."""
        if job.sandbox is None:
            for running in self._running.values():
                running.alone[0] = False

    def ended(self, job: Job, outcome: Outcome, others: Collection[Job]) -> Outcome:
        """Look at what an attempt left that it may not make, and say where the sandbox may be why it failed."""
        running = self._running.pop(job.step, None)
        sandbox = job.sandbox
        if running is None or sandbox is None:
            return outcome
        if running.proxy >= 0 and self._proxy is not None:
            self._proxy.close(running.proxy)
        alone = running.alone[0] and all(other.sandbox is not None for other in others)
        made = [] if job.copy else self._made(running, sandbox)
        if made:
            return outcome.but(
                status="failed" if outcome.status == "completed" else outcome.status,
                reason="refused" if outcome.status == "completed" else outcome.reason,
                message=self._take_away(made, job, running, alone=alone),
            )
        if outcome.status == "failed" and outcome.reason == "exit" and (word := _refusal(job, outcome)):
            what = f"level {sandbox.level}, network {sandbox.network}"
            note = f'the sandbox ({what}) may be why ("{word}"): see {GUIDE}'
            return outcome.but(notes=(*outcome.notes, note))
        return outcome

    def _made(self, running: _Running, sandbox: Sandbox) -> list[str]:
        site = self._site
        if site is None or sandbox.level == "read-only":
            return []
        free = (*map(str, sandbox.write), *self._kept)
        now = control_names(site.workspace)
        links = {name for name, target in running.names.items() if target and name not in now}
        made = links | {name for name, target in now.items() if running.names.get(name) != target}
        paths = {name: f"{site.workspace}/{name}" for name in made}
        return sorted(
            [n for n, path in paths.items() if not any(f"{path}/".startswith(f"{each}/") for each in free)]
        )

    def _take_away(self, names: list[str], job: Job, running: _Running, *, alone: bool) -> str:
        """Move what a step made in the workspace, and may not, beside its log; return the message."""
        assert self._site is not None
        assert job.sandbox is not None
        listed = " and ".join(names)
        why = f"made {listed} in the workspace, which controls later work"
        if not alone:
            return f"the step, or one beside it, {why}; look at it, and delete it if it is not yours"
        folder = f"{job.log.removesuffix('.log')}.refused"
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            for name in names:
                path = f"{self._site.workspace}/{name}"
                if os.path.lexists(path):
                    os.rename(path, f"{folder}/{name.replace('/', '_')}")
                if target := running.names.get(name):  # a link that it replaced
                    os.symlink(target, path)
        except OSError as error:
            return f"the step {why}, and it cannot be moved away: {error.strerror}"
        where = os.path.relpath(folder, self._site.workspace)
        allows = f"sandbox: {{level: {job.sandbox.level}, write: [{names[0]}]}}"
        return f"the step {why}: moved to {where}; `{allows}` allows it"

    def _put_up(self, paths: tuple[str, ...]) -> tuple[int, ...]:
        """Make folders that stand in the workspace until the end of the run; return their inodes.

        A mount is lost with the folder it is on, so none of them may be another one at the next attempt.
        """
        for path in paths:
            try:
                os.mkdir(path, 0o755)
            except FileExistsError:
                continue
            except OSError as error:
                raise Refused(f"the sandbox cannot keep {path}: {error.strerror}") from None
            self._kept.add(path)
        return tuple([os.lstat(path).st_ino for path in (*paths, *self._kept) if os.path.lexists(path)])

    def close(self) -> None:
        """End the starter and the proxy."""
        self._running.clear()
        for path in self._kept:
            try:
                os.rmdir(path)
            except OSError:  # it is another one by now
                continue
        for starter in self._starters.values():
            starter.close()
        if self._proxy is not None:
            self._proxy.stop()


def _refusal(job: Job, outcome: Outcome) -> str:
    """Return the words in the last output of a failed attempt that a sandbox causes; "" for none."""
    try:
        with open(job.log, "rb") as file:
            file.seek(max(0, outcome.log_bytes - 4096))
            tail = file.read(8192).decode("utf-8", "replace").lower()
    except OSError:
        return ""
    return next((word for word in (*_REFUSALS, *_MORE_REFUSALS) if word.lower() in tail), "")


def environment_of(job: Job, sandbox: Sandbox) -> dict[str, str]:
    """Return the environment of a job as its sandbox has it."""
    env = {name: value for name, value in job.env.items() if name not in _UNREACHABLE}
    env |= {name: "/tmp" for name in ("TMPDIR", "TMP", "TEMP") if name == "TMPDIR" or name in env}  # noqa: S108
    if "PATH" in env:
        env["PATH"] = direct(env["PATH"])
    if sandbox.network == "hosts":
        env |= dict.fromkeys(_PROXIES, f"http://127.0.0.1:{_PORT}")
        named = {host.rpartition(":")[0] or host for host in sandbox.hosts}
        own = [name for name in ("localhost", "127.0.0.1", "::1") if name not in named]
        env |= dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(own))
    return env


def setup_of(sandbox: Sandbox, view: View, site: Site) -> dict[str, Any]:
    """Return what a starter takes on for all its steps, as plain data."""
    from planrun.executors.sandbox.filters import program as filter_of

    return {
        "backend": sandbox.backend,
        "network": sandbox.network,
        "mounts": view.mounts,
        "private": view.private,
        "home": site.home,
        "records": site.records,
        "filter": filter_of(os.uname().machine),
    }


def request_of(
    job: Job, sandbox: Sandbox, seen: tuple[View, Site], command: tuple[str, tuple[str, ...]], mark: int
) -> dict[str, Any]:
    """Return what a starter is to start, as plain data; `seen`: from where, `command`: the program and its words."""
    program, argv = command
    if program.startswith("/"):
        program = os.path.join(direct(os.path.dirname(program)), os.path.basename(program))
    view, site = seen
    if sandbox.backend == "bubblewrap":
        import shutil  # few machines use it

        from planrun.executors.sandbox.bubblewrap import words_of

        bwrap = shutil.which("bwrap") or "bwrap"
        argv = (*words_of(bwrap, view, sandbox, job.cwd, root=not os.geteuid()), program, *argv[1:])
        program = bwrap
    limits = {name: getattr(sandbox, name) for name in ("processes", "memory", "file_size")}
    return {
        "program": program,
        "argv": argv,
        "env": environment_of(job, sandbox),
        "cwd": job.cwd,
        "mark": mark,
        "made": view.made,
        "own": view.own,
        "private": view.private,
        "records": site.records,
        "writable": view.writable,
        "limits": {name: value for name, value in limits.items() if value is not None},
    }


class Starter:
    """A process that starts sandboxed steps of one view, see starter.py; it ends with close() or this process.

    Raises StartFailed.
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        try:
            self._socket, self._pid = _spawned(_MAIN, _ROOT)
        except OSError as error:
            raise StartFailed(error.errno or 0, f"the starter for sandboxes: {error.strerror}") from None
        try:
            self.start(setup, ())
        except StartFailed:
            self.close()
            raise

    def start(self, request: dict[str, Any], fds: tuple[int, ...]) -> tuple[int, int]:
        """Start a process; return its id and its listening socket, -1 for none. Raises StartFailed."""
        data = marshal.dumps(request)
        rights = struct.pack(f"={len(fds)}i", *fds)
        try:
            self._socket.sendmsg(
                [struct.pack("=I", len(data))],
                [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if fds else [],
            )
            self._socket.sendall(data)
            answer, listeners = self._answer()
        except OSError as error:
            raise StartFailed(error.errno or errno.EPIPE, "the starter for sandboxes was killed") from None
        if "errno" in answer:
            if answer["pid"]:
                os.waitpid(answer["pid"], 0)
            for fd in listeners:
                os.close(fd)
            stage, _, text = answer["message"].partition(" ")
            raise StartFailed(answer["errno"], "" if stage == "exec" else text or stage)
        return answer["pid"], listeners[0] if listeners else -1

    def _answer(self) -> tuple[dict[str, Any], list[int]]:
        head, ancillary, _, _ = self._socket.recvmsg(4, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
        if len(head) != 4:
            raise OSError(errno.EPIPE, "ended")
        listeners = [
            struct.unpack("=i", data[:4])[0]
            for level, kind, data in ancillary
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS
        ]
        size = struct.unpack("=I", head)[0]
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise OSError(errno.EPIPE, "ended")
            data += part
        answer: dict[str, Any] = marshal.loads(bytes(data))  # noqa: S302 - from a process of our own
        return answer, listeners

    def close(self) -> None:
        """Let it end."""
        self._socket.close()
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:  # already reaped by the embedding program
            return
