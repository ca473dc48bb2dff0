"""The words of bwrap(1) for a view."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.sandbox.view import View
    from planrun.model.plan import Sandbox

FILTER, EMPTY = 9, 100
"""The descriptors from which bwrap reads the filter of system calls, and the first hidden file; the next follow it."""
_CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
_WORDS = {"ro": "--ro-bind", "rw": "--bind"}


def words_of(program: str, view: View, sandbox: Sandbox, cwd: str, *, root: bool) -> tuple[str, ...]:
    """Return the words before those of the command; `root`: planrun runs as root, which needs no user namespace.

    The environment of bwrap itself is that of the step: the step can read it in /proc/1/environ.
    """
    words = [program, "--unshare-ipc", "--unshare-pid", "--seccomp", str(FILTER)]
    if sandbox.network == "none":
        words.append("--unshare-net")
    if root:
        words += ["--cap-drop", "ALL"]
        for name in _CAPABILITIES:
            words += ["--cap-add", name]
    closed, empty = ["/"], 0
    for verb, path, source in view.all_mounts():
        if verb in _WORDS:
            words += [_WORDS[verb], source, path]
        elif verb == "dir":
            words += ["--tmpfs", path]
        elif verb == "link":
            words += ["--symlink", source, path]
        elif verb == "hide":
            words += ["--ro-bind-data", str(EMPTY + empty), path]
            empty += 1
        else:
            words += ["--tmpfs", path]
            closed.append(path)
    words += ["--proc", "/proc", "--dev", "/dev"]
    for path in (*closed, "/proc"):
        words += ["--remount-ro", path]
    return (*words, "--chdir", cwd, "--")
