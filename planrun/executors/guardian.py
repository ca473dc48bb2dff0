"""The process that outlives planrun when planrun is killed, and then kills its steps."""

from __future__ import annotations

# `_signal` and not `signal`: see signals.py.
import _signal
import os

_SHELL = "/bin/sh"
_SCRIPT = os.path.join(os.path.dirname(__file__), "guardian.sh")
_DONE = b"done\n"
# It ignores them itself; blocked from its birth on they cannot end it before its first command.
_DEAF_TO = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


class Guardian:
    """A shell that waits on a pipe from this process; see guardian.sh for what it does when the pipe ends.

    It has a session, a parent and an environment of its own, so that what hits planrun's group, its tree of
    processes or everything with a CI system's cookie does not hit it. Where it cannot be started nobody guards.
    """

    __slots__ = ("_pid", "_pipe")

    def __init__(self, run: str, prefix: str, engine: str = "") -> None:
        """Start it; `run`: the id of the run, `prefix`: how the marks of its attempts begin, or empty;
        `engine`: what runs its containers, or empty.
        """
        reading, self._pipe = os.pipe()  # closed on exec: nobody but us can keep it open
        try:
            self._pid = os.posix_spawn(
                _SHELL,
                ("sh", _SCRIPT, run, prefix, engine),
                {**_where(engine), "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigmask=_DEAF_TO,
            )
        except OSError:
            self._pid = 0
        os.close(reading)

    def reap(self, options: int = os.WNOHANG) -> None:
        """Take the end of the process we started; the one that waits is its child and belongs to nobody here."""
        if self._pid:
            try:
                self._pid = 0 if os.waitpid(self._pid, options)[0] else self._pid
            except ChildProcessError:  # the program around us waits for any child
                self._pid = 0

    def dismiss(self) -> None:
        """Have it end without doing anything."""
        try:
            os.write(self._pipe, _DONE)
        except OSError:  # it is gone
            pass
        os.close(self._pipe)
        self.reap(0)


def _where(engine: str) -> dict[str, str]:
    """Return what tells the client of a container engine where that is."""
    if not engine:
        return {}
    from planrun.executors.containers import VARIABLES  # few runs have containers

    return {name: os.environ[name] for name in VARIABLES if name in os.environ}
