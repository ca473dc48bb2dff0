"""Start an entry of a queue: the words of its command, whether its plan is still the one queued, its process."""

from __future__ import annotations

import os

from planrun.app.queueing.outcomes import began
from planrun.app.queueing.settling import folder_of, records_of
from planrun.app.queueing.workers import Gated
from planrun.clock import SystemClock
from planrun.model.queued import EntryEnded, EntryStarted
from planrun.model.record import Record
from planrun.records.rundir import new_run_id
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.queued import Entry
    from planrun.records.queuefile import Change, QueueFile

EXECUTE_ONLY = frozenset(
    ("--param", "--only", "--from", "--until", "--skip", "--tag", "--skip-abstract", "--locked")
)
"""Options of `execute` that a run keeps by itself when it goes on; `resume` has none, or means another thing."""
PATIENCE = "24h"
"""How long an entry waits for a run in its folder that is not of this queue, unless it says otherwise itself."""
_WAIT = "--wait-lock"


class Command(Record):
    """What an entry comes to now; `told`: what only its process is to know."""

    verb: str
    run: str
    words: tuple[str, ...]
    told: str = ""


def command_of(file: QueueFile, entry: Entry) -> Command | str:
    """Return the command that an entry comes to, or why it cannot start."""
    options = entry.added.options
    if not any(word.startswith(_WAIT) for word in options) and "PLANRUN_WAIT_LOCK" not in os.environ:
        options = (*options, f"{_WAIT}={PATIENCE}")
    if entry.run and began(records_of(file.workspace, entry)):
        kept = [word for word in options if word.partition("=")[0] not in EXECUTE_ONLY]
        return Command(verb="resume", run=entry.run, words=("resume", *kept, "--", entry.run))
    path = os.path.join(file.workspace, entry.added.plan)
    if entry.added.sha256:
        found = _sha256(path)
        if found != entry.added.sha256:
            return "its plan was removed" if found is None else "its plan changed since it was queued"
    run = new_run_id()
    plan = _from(path, folder_of(file.workspace, entry))
    told = f"{run}:{entry.added.sha256}"
    return Command(verb="execute", run=run, words=("execute", *options, "--", plan), told=told)


def start(file: QueueFile, change: Change, entry: Entry, *, apart: bool) -> Gated | None:
    """Record that an entry starts and return its process, which waits to be released; None when it cannot start.

    `apart`: it runs beside others, so what it prints goes to a file of its own.
    """
    command = command_of(file, entry)
    at = SystemClock().stamp()
    if isinstance(command, str):
        change.add(EntryEnded(at=at, entry=entry.number, status="failed", reason=command))
        return None
    try:
        child = _spawn(file, entry, command, apart=apart)
    except OSError as error:
        reason = f"its process could not be made: {error.filename or 'sh'}: {error.strerror}"
        change.add(EntryEnded(at=at, entry=entry.number, status="failed", reason=reason))
        return None
    try:
        worker = dict(vars(child.worker))
        change.add(EntryStarted(at=at, entry=entry.number, verb=command.verb, run=command.run, worker=worker))
    except BaseException:
        child.dismiss()
        raise
    return child


def _spawn(file: QueueFile, entry: Entry, command: Command, *, apart: bool) -> Gated:
    folder = folder_of(file.workspace, entry)
    if not apart:
        return Gated(command.words, folder, command.told, None)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(file.output(entry.number), flags, 0o600), "ab") as output:
        return Gated(command.words, folder, command.told, output)


def _sha256(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return str(sha256(file.read()).hexdigest())
    except OSError:
        return None


def _from(path: str, folder: str) -> str:
    """Return a path as somebody in a folder would write it."""
    relative = os.path.relpath(path, folder)
    return os.path.abspath(path) if relative.split(os.sep, 1)[0] == ".." else relative
