"""The folders of a run: `.planrun/runs/<run>/` with its ledger, plan, logs and outputs."""

from __future__ import annotations

import os
import time

from planrun.errors import InvalidInput, RecordsLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = ".planrun"
LEDGER = "ledger.jsonl"
PLAN = "plan.yml"
OUTPUTS = "outputs"


def home(workspace: str) -> str:
    """Return `.planrun` of a workspace, made with mode 0700 and kept out of version control."""
    folder = os.path.join(workspace, HOME)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return folder
    except OSError as error:
        raise RecordsLost(f"cannot make {folder}: {error.strerror}") from None
    try:
        _write(os.path.join(folder, ".gitignore"), b"*\n")
    except OSError as error:
        raise RecordsLost(f"cannot write to {folder}: {error.strerror}") from None
    return folder


def new_run_id() -> str:
    """Return an id that sorts by time: `20260131-093000-1f2e3d`, UTC.

    The last part is 12 bits of the second's fraction, so that `last` is right for runs of one second, and 12 of chance.
    """
    now = time.time()
    chance = int.from_bytes(os.urandom(2), "big") & 0xFFF
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{int(now % 1 * 4096):03x}{chance:03x}"


def create(folder: str, run: str, plan: bytes) -> str:
    """Make the folder of a new run with the exact bytes of its plan; returns its path."""
    path = os.path.join(folder, "runs", run)
    try:
        os.makedirs(os.path.join(folder, "runs"), 0o700, exist_ok=True)
        os.mkdir(path, 0o700)
        os.mkdir(os.path.join(path, "logs"), 0o700)
        os.mkdir(os.path.join(path, OUTPUTS), 0o700)
        _write(os.path.join(path, PLAN), plan)
    except OSError as error:
        raise RecordsLost(f"cannot write the run's records: {path}: {error.strerror}") from None
    return path


def runs(workspace: str) -> Iterator[str]:
    """Yield the ids of all runs in a workspace, newest first."""
    folder = os.path.join(workspace, HOME, "runs")
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in sorted(names, reverse=True):
        if os.path.exists(os.path.join(folder, name, LEDGER)):
            yield name


def find(workspace: str, run: str) -> str:
    """Return the folder of a run by its id, the start of it, or `last`; raises InvalidInput."""
    known = list(runs(workspace))
    matches = known[:1] if run == "last" else [name for name in known if name.startswith(run)]
    if run in matches:
        matches = [run]
    if len(matches) == 1:
        return os.path.join(workspace, HOME, "runs", matches[0])
    if not known:
        raise InvalidInput("there are no runs in this folder")
    if not matches:
        raise InvalidInput(f'no run "{run}"; the newest is {known[0]}')
    raise InvalidInput(f'"{run}" could be {len(matches)} runs: {", ".join(matches[:5])}')


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
