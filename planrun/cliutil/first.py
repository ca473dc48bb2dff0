"""planrun as process 1, as in a container without an init: it reaps processes that lost their parent.

Such a process becomes a child of process 1. If planrun waited for any child itself, it would take exit codes of its
steps, sandboxes and libraries from whoever waits for them. So process 1 only reaps and passes signals on, and the
command line runs in its child.
"""

from __future__ import annotations

import os
import signal

_FROM_KERNEL = 0x80  # SI_KERNEL of sigaction(2): a terminal sent it, to the child as well


def leave_first_process() -> None:
    """Return in a child process; process 1 itself ends with the child, with its exit code or 128 + signal.

    Without effect where no process can be started.
    """
    every = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, every)
    try:
        child = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    code = None
    while code is None:
        got = signal.sigwaitinfo(every)
        if got.si_signo == signal.SIGCHLD:
            code = _reaped(child)
        elif got.si_code != _FROM_KERNEL:
            try:
                os.kill(child, got.si_signo)
            except OSError:  # it has ended
                pass
    os._exit(code)


def _reaped(child: int) -> int | None:
    """Reap all children that have ended; returns the exit code of the command line once it has."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            found = os.waitstatus_to_exitcode(status)
            code = found if found >= 0 else 128 - found
