"""What this machine can confine steps with, found out by trying: a sandboxed process is started and refused things."""

from __future__ import annotations

import os
import shutil
import sys

from planrun.executors.sandbox.launcher import Starter, StartFailed, request_of, setup_of
from planrun.executors.sandbox.view import Refused, Site, view_of
from planrun.model.job import Job
from planrun.model.plan import Sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BACKENDS = ("landlock", "bubblewrap")
_SHELL = "/bin/sh"
# It must fail to see planrun's environment, and what it writes must not come to stand outside; 0: it did.
_TRIAL = """
(: > "$PROBE_FILE") 2>/dev/null
(: < "/proc/$PPID/environ") 2>/dev/null && [ "$PROBE_BACKEND" = landlock ] && exit 4
grep -q '^Seccomp:.2' /proc/self/status || exit 5
exit 0
"""
_EXITS = {3: "it could write outside", 4: "it could read the environment of another process", 5: "no filter"}
_KNOWN: dict[str, str] = {}  # why a backend does not work, once it was tried
_IN_CONTAINERS = (
    "namespaces are refused, as in most containers; run planrun outside,"
    " or start the container with --security-opt seccomp=unconfined"
)
_USER_NAMESPACES = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


def find(wanted: str = "auto", sandboxes: Iterable[Sandbox] = ()) -> tuple[str, str]:
    """Return the backend that can enforce some sandboxes, and "" with the reasons where none can."""
    reasons = []
    for backend in BACKENDS if wanted == "auto" else (wanted,):
        missing = why_not(backend) or next(filter(None, [unfit(backend, each) for each in sandboxes]), "")
        if not missing:
            return backend, ""
        reasons.append(f"{backend}: {missing}")
    return "", "; ".join(reasons)


def unfit(backend: str, sandbox: Sandbox) -> str:
    """Return why a backend that works cannot enforce a sandbox; "" if it can."""
    if sandbox.processes is not None and not os.geteuid():
        return "`processes` has no effect for root; run planrun as another user"
    if backend == "bubblewrap" and sandbox.network == "any":
        from planrun.executors.sandbox.kernel import OLDEST_ABI, landlock_abi

        if landlock_abi() < OLDEST_ABI:
            return "`network: any` needs Landlock of Linux 6.12 as well, for abstract sockets"
    return ""


def why_not(backend: str) -> str:
    """Return why a backend does not work here, with what to change; "" if it does. It is tried once."""
    if backend not in _KNOWN:
        _KNOWN[backend] = _missing(backend)
    return _KNOWN[backend]


def _missing(backend: str) -> str:
    if sys.platform != "linux":
        return f"sandboxes need Linux, and this is {sys.platform}"
    from planrun.executors.sandbox import kernel

    machine = os.uname().machine
    if machine not in kernel.MACHINES:
        return f"planrun has no filter of system calls for {machine}"
    if backend == "landlock" and (abi := kernel.landlock_abi()) < kernel.OLDEST_ABI:
        if not abi:
            return (
                "the kernel has no Landlock, or it is off (Linux 6.12 or later; see lsm= of its command line)"
            )
        return (
            f"the kernel's Landlock is too old (version {abi}); version {kernel.OLDEST_ABI} is in Linux 6.12"
        )
    if backend == "bubblewrap" and not shutil.which("bwrap"):
        return "bwrap is not on PATH; install bubblewrap"
    return _tried(backend)


def _tried(backend: str) -> str:
    mark = os.path.join(os.path.expanduser("~"), f".planrun-probe-{os.getpid()}")
    env = {"PATH": os.defpath, "PROBE_FILE": mark, "PROBE_BACKEND": backend}
    job = Job(step="", attempt=0, argv=(_SHELL, "-c", _TRIAL), env=env, cwd="/", log="", timeout=0)
    sandbox = Sandbox(level="read-only", backend=backend)
    try:
        status = _status(job, sandbox)
    except (StartFailed, Refused) as error:
        return _explained(str(error))
    code = os.waitstatus_to_exitcode(status)
    if os.path.lexists(mark):
        os.unlink(mark)
        code = 3
    if code:
        return _explained(_EXITS.get(code, "a process in it fails to start"))
    return ""


def _status(job: Job, sandbox: Sandbox) -> int:
    site = Site(workspace="/usr/bin")  # it is everywhere, and soon searched
    view = view_of(sandbox, site, job)
    starter = Starter(setup_of(sandbox, view, site))
    null = os.open(os.devnull, os.O_RDWR)
    try:
        pid, _ = starter.start(
            request_of(job, sandbox, (view, site), (_SHELL, job.argv), 0), (null, null, null)
        )
        return os.waitpid(pid, 0)[1]
    finally:
        os.close(null)
        starter.close()


def _explained(error: str) -> str:
    try:
        with open(_USER_NAMESPACES, encoding="ascii") as file:
            restricted = file.read().strip() == "1"
    except (OSError, ValueError):
        restricted = False
    if restricted and os.geteuid():
        return (
            f"{error}: this system restricts user namespaces; allow them:"
            " sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        )
    try:
        with open("/proc/sys/user/max_user_namespaces", encoding="ascii") as file:
            none_allowed = file.read().strip() == "0"
    except (OSError, ValueError):
        none_allowed = False
    if none_allowed:
        return f"{error}: user namespaces are off; allow them: sudo sysctl -w user.max_user_namespaces=10000"
    if any(call in error for call in ("unshare", "mount", "pivot_root")):
        return f"{error}: {_IN_CONTAINERS}"
    return error
