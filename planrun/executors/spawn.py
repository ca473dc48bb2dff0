"""Start one process with its own session, default signals and no inherited descriptors; explain failures exactly."""

from __future__ import annotations

# `_signal` and not `signal`: see wait.py.
import _signal
import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.executors.direct import DirectStart, DirectStarts
    from planrun.executors.mark import Marks
    from planrun.executors.sandbox.launcher import Sandboxes
    from planrun.model.job import Job

    FileAction = tuple[int, int, int] | tuple[int, int, str, int, int]

# Descriptors of this process are listed here, on Linux and on macOS.
_OWN_DESCRIPTORS = "/dev/fd"
_EXHAUSTED = {
    errno.EAGAIN: "no further process is allowed (see ulimit -u)",
    errno.ENOMEM: "there is not enough memory",
    errno.EMFILE: "planrun has too many files open (see ulimit -n)",
    errno.ENFILE: "the system has too many files open",
}


_SHELLS = ("sh", "bash")


class SpawnFailed(Exception):
    """A process could not be started; the text is one line for users.

    `passing`: processes, memory or descriptors were exhausted, which may be temporary.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class Launcher:
    """Starts processes from this one, which must have a single thread: it changes to another `cwd` and back.

    Closed descriptors among 0 to 2 are opened on /dev/null, so that no file of planrun gets their numbers;
    all other descriptors are closed on exec from now on, also those that planrun inherited.
    """

    def __init__(self, marks: Marks, *, always_shell: bool = False) -> None:
        self._marks = marks
        self._always_shell = always_shell
        self._shells: dict[tuple[str, str], str] = {}
        self._direct: DirectStarts | None = None
        self.sandboxes: Sandboxes | None = None  # needed by jobs with a sandbox only
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        self._stdin = (os.POSIX_SPAWN_DUP2, null, 0)
        self._null = null
        # O_PATH: planrun may lack the permission to read its working directory.
        self._home = os.open(".", os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY))
        try:
            self._home_name = os.getcwd()
        except OSError:  # it was removed; then every `cwd` is another one
            self._home_name = ""
        # A child would inherit ignored signals: those of Python and of nohup. SIGIO: see logs.py.
        ignored_signals = [
            signum for signum in _signal.valid_signals() if _signal.getsignal(signum) == _signal.SIG_IGN
        ]
        self._defaults = [_signal.SIGIO, *ignored_signals]
        for name in os.listdir(_OWN_DESCRIPTORS):
            _close_on_exec(int(name))

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._null)
        os.close(self._home)

    def spawn(self, job: Job, output: list[FileAction], mark: int) -> tuple[int, str]:
        """Start the job's process with `output` done to its descriptors 1 and 2; return its process id.

        With it comes the path of the program that started in place of the shell; "" when argv started as it is.
        The process inherits `mark`, if there are marks: set later, its first children might lack it.

        Raises SpawnFailed.
        """
        program = self._program(job)
        if job.sandbox is not None and job.sandbox.backend != "none":
            return self._confined(job, output, (program, mark))
        changes_folder = job.cwd != self._home_name
        if changes_folder:
            _enter(job.cwd)
        self._marks.apply(mark)
        try:
            found = self._direct_start(job)
            if found:
                words, path, env = found
                try:
                    return self._start(path, words, env, output), path
                except (OSError, ValueError):
                    pass  # bash says what is wrong, or runs a script that has no #! line
            return self._start(program, job.argv, job.env, output), ""
        except (OSError, ValueError) as error:
            raise SpawnFailed(_why(error, job, program), passing=is_passing(error)) from None
        finally:
            self._marks.apply(0)
            if changes_folder:
                os.fchdir(self._home)

    def _direct_start(self, job: Job) -> DirectStart | None:
        """Return how the job starts without its shell; None: it needs it."""
        if not job.may_omit_shell or self._always_shell:
            return None
        if self._direct is None:
            from planrun.executors.direct import DirectStarts  # not for plans whose steps name their shell

            self._direct = DirectStarts()
        return self._direct.find(job.argv[-1], job.env)

    def _confined(self, job: Job, output: list[FileAction], how: tuple[str, int]) -> tuple[int, str]:
        """Start the job in its sandbox; `how`: the program, and the mark. Raises SpawnFailed."""
        from planrun.executors.sandbox.launcher import StartFailed  # few plans have sandboxes
        from planrun.executors.sandbox.view import Refused

        program, mark = how
        if self.sandboxes is None:
            raise SpawnFailed("planrun cannot start a step in a sandbox here")
        outputs, opened = _outputs(output)
        fds = (self._null, *outputs)
        try:
            found = self._direct_start(job)
            if found:
                words, path, env = found
                try:
                    return self.sandboxes.spawn(job.but(env=env), path, words, fds, mark), path
                except (StartFailed, Refused):
                    pass  # bash says what is wrong
            return self.sandboxes.spawn(job, program, job.argv, fds, mark), ""
        except Refused as error:
            raise SpawnFailed(str(error)) from None
        except StartFailed as failure:
            cause = OSError(failure.number, os.strerror(failure.number))
            why = f"cannot enter the sandbox: {failure.text}" if failure.text else _why(cause, job, program)
            raise SpawnFailed(why, passing=is_passing(cause)) from None
        except ValueError as unfit:  # a surrogate in a word
            raise SpawnFailed(_why(unfit, job, program)) from None
        finally:
            for fd in opened:
                os.close(fd)

    def _start(self, path: str, argv: tuple[str, ...], env: dict[str, str], output: list[FileAction]) -> int:
        return os.posix_spawn(
            path,
            argv,
            env,
            file_actions=[self._stdin, *output],
            setsid=True,
            setsigmask=(),
            setsigdef=self._defaults,
        )

    def _program(self, job: Job) -> str:
        """Find the program; shells are cached for each PATH, since nearly every step starts one."""
        name = job.argv[0]
        if name not in _SHELLS:
            return _program(job)
        path = job.env.get("PATH", os.defpath)
        shell = self._shells.get((name, path))
        if shell is None or not os.access(shell, os.X_OK):
            shell = self._shells[name, path] = _program(job)
        return shell


def _outputs(actions: list[FileAction]) -> tuple[tuple[int, int], list[int]]:
    """Return the descriptors for 1 and 2 after some actions, and those that were opened for it."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for action in actions:
        if action[0] == os.POSIX_SPAWN_DUP2:
            found[int(action[2])] = found.get(action[1], action[1])
        else:
            fd = os.open(str(action[2]), int(action[3]) | os.O_CLOEXEC, action[4])  # type: ignore[misc]
            opened.append(fd)
            found[action[1]] = fd
    return (found[1], found[2]), opened


def is_passing(error: OSError | ValueError) -> bool:
    """Whether a resource is exhausted that other processes may release."""
    return isinstance(error, OSError) and error.errno in _EXHAUSTED


def which(name: str, path: str, cwd: str) -> tuple[str, bool]:
    """Find a program on a PATH as execvp does; ("", False) when there is none.

    Entries that are empty or relative are relative to `cwd`. The second value is whether the file is executable:
    one that is not is returned only when no other is found.
    """
    forbidden = ""
    for folder in path.split(":"):
        candidate = os.path.join(cwd, folder, name)
        try:
            mode = os.stat(candidate).st_mode  # first: most folders lack the program, and one call shows that
        except OSError:
            continue
        if not stat.S_ISDIR(mode) and os.access(candidate, os.X_OK):
            return candidate, True
        if not forbidden and stat.S_ISREG(mode):
            forbidden = candidate
    return forbidden, False


def _program(job: Job) -> str:
    name = job.argv[0]
    if "/" in name:
        return name
    path = job.env.get("PATH", os.defpath)
    program, executable = which(name, path, job.cwd) if name else ("", False)
    if not program:
        raise SpawnFailed(f'no program named "{name}" on PATH')
    if not executable:
        raise SpawnFailed(f'"{name}" on PATH is not executable: {program}')
    return program


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        why = {
            errno.ENOENT: "does not exist",
            errno.ENOTDIR: "is not a folder",
            errno.EACCES: "may not be entered",
        }.get(error.errno or 0, f"cannot be entered ({error.strerror})")
        raise SpawnFailed(f"working directory {why}: {folder}") from None
    except ValueError:
        raise SpawnFailed(f"working directory is not a path: {folder!r}") from None


def _close_on_exec(descriptor: int) -> None:
    if descriptor > 2:
        try:
            os.set_inheritable(descriptor, False)
        except OSError:  # the descriptor that listed the others
            return


def _why(error: OSError | ValueError, job: Job, program: str) -> str:
    """Explain in one line why a process could not be started."""
    if not isinstance(error, OSError):
        return f"cannot start {job.argv[0]!r}: {error}"  # a NUL byte, an impossible name in the environment
    if error.errno == errno.ENOENT:
        return _missing(program)
    if error.errno == errno.EACCES:
        return f"{'a folder, not a program' if os.path.isdir(program) else 'not executable'}: {program}"
    if error.errno == errno.ENOEXEC:
        return f"neither a program of this machine nor a script with a #! line: {program}"
    if error.errno == errno.E2BIG:
        words = max(len(os.fsencode(word)) + 1 for word in job.argv)
        sizes = {
            name: len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in job.env.items()
        }
        total = sum(len(os.fsencode(word)) + 1 for word in job.argv) + sum(sizes.values())
        longest = max(sizes, key=sizes.__getitem__, default="")
        variable = f", the longest variable, {longest}, {sizes[longest]}" if longest else ""
        return (
            f"arguments and environment are too long for the system: {total} bytes,"
            f" the longest argument {words}{variable}"
        )
    reason = _EXHAUSTED.get(error.errno or 0, error.strerror)
    return f"cannot start {job.argv[0]}: {reason}"


def _missing(program: str) -> str:
    try:
        with open(program, "rb") as file:
            first = file.read(256).split(b"\n", 1)[0]
    except FileNotFoundError:
        return f"no such program: {program}"
    except OSError as error:
        return f"cannot start {program}: {error.strerror}"
    if first.startswith(b"#!"):
        if first.endswith(b"\r"):
            return f"the file has Windows line ends: {program}; save it with LF, as `sed -i 's/\\r$//' FILE` does"
        interpreter = os.fsdecode(first[2:].strip().split(b" ", 1)[0])
        return f"the interpreter of {program} does not exist: {interpreter!r}"
    return f"the loader that {program} was built for does not exist"
