"""Copies of reviewed scripts: created beside the originals right before a process starts, and removed when it ended.

They are beside the originals because scripts load files near them: `dirname "$0"`, `__file__`, `require`.
The name of a copy is random, so no other process can have created it. Git ignores the copies, since release
scripts require a clean work tree.
"""

from __future__ import annotations

import errno
import os

from planrun.model.job import DIGITS, PREFIX, original
from planrun.plan.yaml.file import NotRegular, hash_of, read_script
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.job import Job, Outcome, Script

    # A replacement in argv: index, start, end, text.
    Edit = tuple[int, int, int, str]

_CHANCE = DIGITS // 2  # bytes
_LONGEST = 200  # characters of a name that are kept where its folder does not matter
# No file can be created in the folder: the script then runs from another one.
_CLOSED = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG))
_QUOTES = "\"'`\u2019\u201d\u00bb"
_END = 4096  # bytes of a log that are searched for errors
_NOT_EXECUTABLE = 126  # the exit code of shells, env and timeout
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@:+=,-%")
_UNLISTED: set[str] = set()  # folders whose git exclude file was checked


class CopyFailed(Exception):
    """A copy could not be created; the text is one line for users."""


class ScriptCopies:
    """The copies for one attempt: `argv` names them, `notes` report deviations.

    `listing`: a file that names them before they are created, for the cleanup after a kill; "" for none.
    """

    __slots__ = ("_created", "_listing", "_makes_executable", "_prefix", "_same", "_scripts", "argv", "notes")

    def __init__(self, job: Job, listing: str = "") -> None:
        """Create the copies of a job's scripts, or none of them; raises CopyFailed."""
        self._prefix = f"{PREFIX}{os.urandom(_CHANCE).hex()}-"
        self._created: dict[str, os.stat_result] = {}
        self._listing = listing
        self.notes: list[str] = []
        self._scripts = job.scripts
        self._same: set[str] = set()  # scripts that still had their reviewed content
        # `chmod +x x.sh && ./x.sh`: the original is not executable yet, but the copy must be.
        self._makes_executable = "chmod" in job.argv[-1]
        edits: list[Edit] = []
        try:
            for script in job.scripts:
                edits += self._place(script, job.argv)
        except OSError as error:
            self.remove()
            raise CopyFailed(f"cannot put copies of scripts in place: {error.strerror}") from None
        except BaseException:
            self.remove()
            raise
        argv = job.argv
        words = list(argv)
        for index, start, end, text in sorted(edits, reverse=True):  # from the end, so that offsets stay true
            words[index] = words[index][:start] + text + words[index][end:]
        self.argv = tuple(words)

    def remove(self) -> None:
        """Remove the copies, but not files that replaced one; note scripts that changed meanwhile."""
        for script in self._scripts:
            if script.name in self._same and hash_of(script.file) not in ("", script.sha256):
                self.notes.append(f"{script.name} changed while the step ran; what ran is the reviewed copy")
        self._same.clear()
        for path, ours in self._created.items():
            try:
                if os.path.samestat(ours, os.stat(path, follow_symlinks=False)):
                    os.unlink(path)
            except OSError:  # it was removed, or its folder was
                continue
        self._created.clear()

    def explained(self, outcome: Outcome, log: str) -> Outcome:
        """Return the outcome of the attempt, whose message names the scripts that could not be executed."""
        message = original(outcome.message)
        refused = [script.name for script in self._scripts if not os.access(script.file, os.X_OK)]
        if outcome.exit_code == _NOT_EXECUTABLE and refused:
            from planrun.opening import open_record  # most runs make no copies

            try:
                with open(open_record(log), "rb") as file:
                    file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
                    text = file.read(_END).decode("utf-8", "replace")
            except OSError:  # nothing was written
                text = ""
            kept = []
            for name in refused:
                copy = self._prefix + os.path.basename(name)
                ends = [
                    line.rpartition(copy)[2].lstrip(_QUOTES) for line in text.splitlines() if copy in line
                ]
                if any(end.startswith(": ") and ":" not in end[1:] for end in ends):
                    kept.append(name)
            refused = kept
            if refused:
                message += f": not executable: {', '.join(refused)}"
        elif not message.startswith("not executable: "):
            refused = []
        if refused:
            message += f"; run chmod +x {' '.join(map(_quoted, refused))}"
        return outcome.but(message=message) if message != outcome.message else outcome

    def _place(self, script: Script, argv: tuple[str, ...]) -> list[Edit]:
        data = _verified(script)
        now = hash_of(script.file)
        if now == script.sha256:
            self._same.add(script.name)
        else:
            what = "changed" if now else "was removed"
            self.notes.append(f"{script.name} {what} after the run began; what ran is the reviewed copy")
        try:
            self._beside(script, data)
        except OSError as error:
            if error.errno not in _CLOSED:
                raise
            why = error.strerror
        else:
            return [
                (index, at, at, self._prefix if "/" in argv[index][start:at] else f"./{self._prefix}")
                for index, start, _, at in script.words
            ]
        path = os.path.join(
            os.path.dirname(script.source), self._prefix + script.name[-_LONGEST:].replace("/", "-")
        )
        self._write(path, script, data)
        self.notes.append(
            f"{script.name} ran from the run's directory, because no file can be created beside it: {why}"
        )
        text = _quoted(path) if script.kind == "text" else path
        return [(index, start, end, text) for index, start, end, _ in script.words]

    def _beside(self, script: Script, data: bytes) -> None:
        """Put a copy beside the script; for a link beside its target, and another link beside the link.

        Interpreters differ in which of both folders they look around in.
        """
        root = os.path.realpath(script.file[: -len(script.name)])
        folder = _folder(os.path.dirname(script.file), root)
        name = os.path.join(folder, self._prefix + os.path.basename(script.file))
        target = os.path.realpath(script.file)
        if not os.path.islink(script.file) or not os.path.isfile(target):
            self._write(name, script, data)
            return
        copy = os.path.join(_folder(os.path.dirname(target), root), self._prefix + os.path.basename(target))
        self._write(copy, script, data)
        if name not in self._created:
            self._announce(name, script)
            os.symlink(os.path.relpath(copy, folder), name)
            self._created[name] = os.stat(name, follow_symlinks=False)

    def _write(self, path: str, script: Script, data: bytes) -> None:
        if path in self._created:  # two names of one file
            return
        self._announce(path, script)
        try:
            mode = os.stat(script.file).st_mode & 0o777
        except OSError:
            mode = 0o755
        if self._makes_executable:
            mode |= 0o100
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self._created[path] = os.fstat(fd)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fchmod(fd, mode | 0o400)
        finally:
            os.close(fd)

    def _announce(self, path: str, script: Script) -> None:
        """Name a copy before it is there."""
        folder = os.path.dirname(path)
        if folder not in _UNLISTED:
            _UNLISTED.add(folder)
            unlist(folder)
        if self._listing:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._listing, flags, 0o600)
            try:
                os.write(fd, os.fsencode(f"{path}\0{script.source}\0"))
            finally:
                os.close(fd)


def _verified(script: Script) -> bytes:
    """Return the bytes that were reviewed, from the run's own copy."""
    try:
        data = read_script(script.source)
    except (OSError, NotRegular) as error:
        reason = getattr(error, "strerror", None) or error
        raise CopyFailed(
            f"the run's copy of {script.name} cannot be read: {script.source}: {reason}"
        ) from None
    if sha256(data).hexdigest() != script.sha256:
        raise CopyFailed(f"the run's copy of {script.name} was altered: {script.source}")
    return data


def _folder(path: str, root: str) -> str:
    """Return a folder with its links followed; raises OSError when it is not in the workspace."""
    folder = os.path.realpath(path)
    if folder != root and not folder.startswith(root.rstrip("/") + "/"):
        raise OSError(errno.EACCES, "its folder leads out of the workspace")
    return folder


def _quoted(path: str) -> str:
    """Return a path as one word of a shell."""
    return path if _PLAIN.issuperset(path) else "'" + path.replace("'", "'\\''") + "'"


def clear(listing: str) -> None:
    """Remove the copies of a killed planrun: files that the listing names and that hold a script's bytes."""
    from planrun.opening import read_record  # most runs find no listing

    try:
        names = [os.fsdecode(name) for name in read_record(listing).split(b"\0")]
    except OSError:
        return
    for path, source in zip(names[::2], names[1::2], strict=False):
        _remove_copy(path, source)
    try:
        os.unlink(listing)
    except OSError:
        return


def _remove_copy(path: str, source: str) -> None:
    if not os.path.basename(path).startswith(PREFIX):
        return
    try:
        if os.path.islink(path):
            if os.path.basename(os.readlink(path)).startswith(PREFIX):
                os.unlink(path)
        elif read_script(source).startswith(read_script(path)):  # planrun may have been killed while it wrote
            os.unlink(path)
    except (OSError, NotRegular):
        return


PATTERN = b".planrun-" + b"[0-9a-f]" * 16 + b"-*"
_WHY = b"# copies of scripts that planrun runs, there as long as they run"
_MOST = 1 << 20  # bytes of the file that is added to


def unlist(folder: str) -> None:
    """Make git ignore copies in the work tree around `folder`, by its `info/exclude`; errors are ignored."""
    info = _info(folder)
    if not info:
        return
    path = os.path.join(info, "exclude")
    try:
        os.makedirs(info, exist_ok=True)
        fd = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644
        )
        try:
            text = os.read(fd, _MOST)
            if PATTERN not in text.split(b"\n") and len(text) < _MOST:
                between = b"" if not text or text.endswith(b"\n") else b"\n"
                os.write(fd, between + _WHY + b"\n" + PATTERN + b"\n")
        finally:
            os.close(fd)
    except OSError:  # read-only, or the repository of another user
        return


def _info(folder: str) -> str:
    """Return the folder with git's own settings for a work tree; empty when there is none around `folder`."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return os.path.join(git, "info")
        if os.path.isfile(git):
            return _linked(git)
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _linked(file: str) -> str:
    """Return it for a linked work tree or a submodule, whose `.git` is a file."""
    try:
        git = _line(file).removeprefix("gitdir: ")
        git = os.path.join(os.path.dirname(file), git)
        common = os.path.join(git, "commondir")
        if os.path.isfile(common):
            git = os.path.join(git, _line(common))
        return os.path.join(git, "info") if os.path.isdir(git) else ""
    except (OSError, ValueError):
        return ""


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline(_MOST).rstrip("\n")
