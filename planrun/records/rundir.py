"""The folders of a run: `.planrun/runs/<run>/` with its ledger, plan, logs and outputs.

It also lists the runs of a workspace, and finds one by its id.
"""

from __future__ import annotations

import os
import time

from planrun.errors import InvalidInput, RecordsLost
from planrun.records.ledger import GENESIS, NEW, Ledger, fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HOME = ".planrun"
LEDGER = "ledger.jsonl"
PLAN = "plan.yml"
OUTPUTS = "outputs"
SCRIPTS = "scripts"
FILES = "plan.files"
"""Files of the plans that a run's plan uses."""
PLACED = "placed"
"""In `.planrun`: names the existing copies of scripts."""
RESERVE = "reserve"
RUNS = "runs"
CANCEL = "cancel"
"""In the folder of a run: the process that `planrun cancel` is ending."""
_COMPARED = 200  # newest runs whose ids are compared with an unknown one


def home(workspace: str) -> str:
    """Return `.planrun` of a workspace, created with mode 0700 and excluded from version control.

    A symbolic link is refused: the author of a checkout could redirect the records anywhere.
    """
    folder = os.path.join(workspace, HOME)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if os.path.isdir(folder) and not os.path.islink(folder):
            _remove_foreign_access(folder)
            if not os.path.exists(os.path.join(folder, RUNS)):  # its creator was killed at once
                _exclude_from_git(folder)
            return folder
        what = "a symbolic link" if os.path.islink(folder) else "no folder"
        raise RecordsLost(f"cannot keep records in {folder}: it is {what}") from None
    except OSError as error:
        raise RecordsLost(f"cannot make {folder}: {error.strerror}") from None
    _exclude_from_git(folder)
    return folder


def _remove_foreign_access(folder: str) -> None:
    """Remove the permissions of other users, which a folder from an archive or a cache may have."""
    try:
        status = os.stat(folder, follow_symlinks=False)
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            os.chmod(folder, 0o700)
    except OSError:  # a read-only disk; a later write reports that
        return


def _exclude_from_git(folder: str) -> None:
    """Exclude a folder from version control; concurrent starts write the same content."""
    path = os.path.join(folder, ".gitignore")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"*\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise RecordsLost(f"cannot write to {folder}: {error.strerror}") from None


def new_run_id() -> str:
    """Return an id that sorts by time: `20260131-093000-1f2e3d`, UTC.

    The last part: 12 bits of the second's fraction, so that `last` is right within one second, and 12 random bits.
    """
    now = time.time()
    chance = int.from_bytes(os.urandom(2), "big") & 0xFFF
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{int(now % 1 * 4096):03x}{chance:03x}"


def create(folder: str, run: str, plan: bytes) -> str:
    """Create the folder of a new run with the exact bytes of its plan; return its path. A failure leaves no files."""
    path = os.path.join(folder, RUNS, run)
    try:
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            os.mkdir(os.path.join(folder, RUNS), 0o700)
            os.mkdir(path, 0o700)
        os.mkdir(os.path.join(path, "logs"), 0o700)
        os.mkdir(os.path.join(path, OUTPUTS), 0o700)
        write_new(os.path.join(path, PLAN), plan)
    except OSError as error:
        discard(path)
        raise RecordsLost(f"the records cannot be written: {path}: {error.strerror}") from None
    return path


def discard(path: str) -> None:
    """Remove the folder of a run that failed before its first event."""
    for name in (LEDGER, PLAN):
        _quietly(os.unlink, os.path.join(path, name))
    for folder in (SCRIPTS, FILES):
        for name in _entries(os.path.join(path, folder)):
            _quietly(os.unlink, os.path.join(path, folder, name))
    for name in ("logs", OUTPUTS, SCRIPTS, FILES, ""):
        _quietly(os.rmdir, os.path.join(path, name))


def open_ledger(path: str, *, seq: int = 0, head: str = GENESIS, beside: Sequence[str] = ()) -> Ledger:
    """Open the ledger of the run in the folder `path`, with the workspace lock held; raises RecordsLost.

    With its first events everything is synced that a resume needs: the copy of the plan, `beside`, and the names of
    the folders; in the first run of a workspace up to the workspace.
    """
    if seq:
        for name in ("logs", OUTPUTS):
            try:
                os.mkdir(os.path.join(path, name), 0o700)
            except FileExistsError:
                continue
            except OSError as error:
                raise RecordsLost(f"the records cannot be written: {path}: {error.strerror}") from None
    above = os.path.dirname(path)
    home = os.path.dirname(above)
    reserve = os.path.join(home, RESERVE)
    beside = (*beside, os.path.join(path, PLAN), path, above)
    if not os.path.exists(reserve):
        beside = (*beside, home, os.path.dirname(home))
        reserve += NEW
        fill(reserve)
    return Ledger(
        os.path.join(path, LEDGER),
        seq=seq,
        head=head,
        reserve=reserve,
        beside=beside,
    )


def write_new(path: str, data: bytes, *, sync: bool = False) -> None:
    """Write a new file with mode 0600; raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _quietly(remove: Callable[[str], None], path: str) -> None:
    try:
        remove(path)
    except OSError:  # the error that prevented its creation is the one to report
        return


def runs(workspace: str) -> Iterator[str]:
    """Yield the ids of all runs in a workspace, newest first."""
    folder = os.path.join(workspace, HOME, RUNS)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in sorted(names, reverse=True):
        if os.path.exists(os.path.join(folder, name, LEDGER)):
            yield name


def _above(workspace: str) -> str:
    """Return the hint where a folder above, up to the root of the repository, has runs: its plan was run from here."""
    folder = os.path.abspath(workspace)
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
        if os.path.isdir(os.path.join(folder, HOME, RUNS)):
            return f"; {folder} has some: planrun -C {os.path.relpath(folder, workspace)} VERB"
    return ""


def find(workspace: str, run: str) -> str:
    """Return the folder of a run by its id, the start of it, or `last`; raises InvalidInput."""
    known = list(runs(workspace))
    matches = known[:1] if run == "last" else [name for name in known if name.startswith(run)]
    if run in matches:
        matches = [run]
    if len(matches) == 1:
        return os.path.join(workspace, HOME, RUNS, matches[0])
    if not known:
        raise InvalidInput(f"no runs in this folder{_above(workspace)}")
    if not matches:
        near = next(
            (
                name
                for name in known[:_COMPARED]
                if len(run) == len(name) and sum(a != b for a, b in zip(run, name, strict=True)) <= 2
            ),
            "",
        )
        hint = f'did you mean "{near}"?' if near else f"the newest is {known[0]}; to list all: planrun runs"
        raise InvalidInput(f'no run "{run}"; {hint}')
    raise InvalidInput(f'"{run}" could be {len(matches)} runs: {", ".join(matches[:5])}')
