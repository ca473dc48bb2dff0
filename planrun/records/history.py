"""How long the steps of a plan took in its last runs: one small file a plan, made from ledgers, and never needed.

`.planrun/history/<key>` is text: a line that says what it is, the ids of the runs, oldest first, and a line for each
step: the median of its seconds, one cell a run, its id. A cell is `-` where the step did not run to an end of its own,
else `c` (completed), `k` (completed, flaky) or `f` (failed) and the seconds. Whatever is wrong with a file, it counts
as missing, and nobody is told: a run is the same without it, only less well ordered. The writer holds the workspace.

What a step says of its own progress: the last line of the file that `$PLANRUN_PROGRESS` names.

A line is a number from 0 to 1, or per cent as in `42%`, and what people may read besides. Steps append lines; nobody
waits for them, and nothing depends on them.
"""

from __future__ import annotations

import os
from stat import S_ISREG  # os has loaded it already

from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.plan import Plan
    from planrun.model.state import RunState

FOLDER = "history"
RUNS_KEPT = 10
"""How many runs are remembered: durations change with the code that they are about."""
MAX_BYTES = 16 << 20  # of one file; 100,000 steps need 9 MiB
_FORM = "planrun history 1"
_NONE = "-"
_MARKS = {"completed": "c", "flaky": "k", "failed": "f"}
_LETTERS = {mark: word for word, mark in _MARKS.items()}


class Past(Record):
    """What became of one step in one run: `completed`, `flaky` or `failed`, and its seconds, attempts added up."""

    ending: str
    seconds: float


class History(Record):
    """The last runs of a plan; `cells` has one text a run for each step, as in the file."""

    runs: tuple[str, ...] = ()
    cells: Mapping[str, tuple[str, ...]] = {}

    def with_run(self, run: str, pasts: Mapping[str, Past]) -> History:
        """Return the history with what became of a run, in place of what it said of that run before."""
        runs = tuple(sorted({*self.runs, run}))[-RUNS_KEPT:]
        if run not in runs:
            return self
        found: dict[str, tuple[str, ...]] = {}
        for name in {**self.cells, **pasts}:
            old = dict(zip(self.runs, self.cells.get(name, ()), strict=False))
            old[run] = _cell(pasts[name]) if name in pasts else _NONE
            cells = tuple([old.get(known, _NONE) for known in runs])
            if cells.count(_NONE) < len(cells) and name.isprintable():
                found[name] = cells
        return History(runs=runs, cells=found)

    def samples(self, step: str) -> list[Past]:
        """Return what became of a step in those of the runs in which it ran, oldest first."""
        return [_past(cell) for cell in self.cells.get(step, ()) if cell != _NONE]


def path_of(home: str, plan: Plan) -> str:
    """Return the file of a plan in a workspace's `.planrun`: the same for all its versions under one name and path."""
    workspace = os.path.dirname(home)
    file = os.path.normpath(os.path.join(workspace, plan.file))
    named = f"{plan.name}\0{file.removeprefix(workspace + os.sep)}"
    return os.path.join(home, FOLDER, sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:32])


def estimates(path: str) -> dict[str, float]:
    """Return the median of each step's seconds, of those that completed; empty where there is no sound file.

    It reads the beginnings of lines alone, since every run of a plan with several steps does it.
    """
    found: dict[str, float] = {}
    try:
        for row in _rows(path)[1:]:
            median, _, rest = row.partition("\t")
            if median != _NONE:
                found[rest.partition("\t")[2]] = _seconds(median)
    except ValueError:
        return {}
    return found


def read(path: str) -> History:
    """Return the history in a file; an empty one where there is no sound file."""
    try:
        runs, *rows = _rows(path)
        names = tuple(runs.split())
        cells: dict[str, tuple[str, ...]] = {}
        for row in rows:
            middle, texts, name = row.split("\t", 2)
            cells[name] = tuple(texts.split(" "))
            known = [_seconds(cell[1:]) for cell in cells[name] if cell != _NONE and cell[0] in _LETTERS]
            if (
                len(cells[name]) != len(names)
                or not known
                or len(known) + cells[name].count(_NONE) < len(names)
            ):
                return History()
            if middle != _NONE:
                _seconds(middle)
    except (ValueError, IndexError):
        return History()
    return History(runs=names, cells=cells)


def write(path: str, history: History) -> bool:
    """Write a history in the place of what is there, at once or not at all; says whether it could be written."""
    rows = [_FORM, " ".join(history.runs)]
    for name, cells in history.cells.items():
        done = sorted([_seconds(cell[1:]) for cell in cells if cell[0] in "ck"])
        rows.append(f"{_text(median(done)) if done else _NONE}\t{' '.join(cells)}\t{name}")
    part = f"{path}.part"
    try:
        data = ("\n".join(rows) + "\n").encode()
        try:
            _put(part, data)
        except FileNotFoundError:
            os.mkdir(os.path.dirname(path), 0o700)
            _put(part, data)
        os.rename(part, path)
    except (OSError, UnicodeError):  # a full disk, a name that is no text: it can be made anew at any time
        return False
    return True


def record(path: str, run: str, state: RunState) -> None:
    """Remember a run that ended; one that was resumed takes the place of what it was before."""
    write(path, read(path).with_run(run, pasts_of(state)))


def pasts_of(state: RunState) -> dict[str, Past]:
    """Return what became of the steps of a run that ran to an end of their own; services never do."""
    found: dict[str, Past] = {}
    for name, step in state.steps.items():
        tries = step.tries
        if not tries or step.status not in ("completed", "failed") or step.step.service is not None:
            continue
        seconds = sum([attempt.ended.duration for attempt in tries if attempt.ended])
        found[name] = Past(ending="flaky" if step.reason == "flaky" else step.status, seconds=seconds)
    return found


def median(ordered: list[float]) -> float:
    """Return the middle of sorted numbers, the lower one of two: a duration that was there, and not one in between."""
    return ordered[(len(ordered) - 1) // 2]


def _rows(path: str) -> list[str]:
    """Return the lines after the first; raises ValueError for whatever is no file of ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise ValueError("no such file") from None
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise ValueError("not a file of ours")
        data = os.read(fd, status.st_size)
    except OSError:
        raise ValueError("it cannot be read") from None
    finally:
        os.close(fd)
    form, *rows, last = data.decode().split("\n")
    if form != _FORM or last or not rows:
        raise ValueError("not a file of ours")
    return rows


def _put(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)


def _cell(past: Past) -> str:
    return _MARKS[past.ending] + _text(past.seconds)


def _past(cell: str) -> Past:
    """Return what a cell says that was looked at."""
    return Past(ending=_LETTERS[cell[0]], seconds=_seconds(cell[1:]))


def _text(seconds: float) -> str:
    return f"{seconds:.3f}"


def _seconds(text: str) -> float:
    """Return the seconds that a text spells; raises ValueError, also for what is no length of time."""
    seconds = float(text)
    if not 0 <= seconds < 1e9:
        raise ValueError("not a duration")
    return seconds


ENDING = ".progress"
"""How the name of the file goes on after that of the attempt's outputs."""
_LAST = 4096  # bytes that are looked at
_MESSAGE = 200  # characters


class StepProgress(Record):
    """How far a step says that it is; `share` from 0 to 1."""

    share: float
    message: str = ""


def read_progress(rundir: str, folder: str, attempt: int) -> StepProgress | None:
    """Return what an attempt said last; None when it said nothing that can be understood."""
    path = os.path.join(rundir, "outputs", f"{folder}.{attempt}{ENDING}")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            return None
        data = os.pread(fd, _LAST, max(0, status.st_size - _LAST))
    except OSError:
        return None
    finally:
        os.close(fd)
    return _last(data.decode("utf-8", "replace"))


def _last(text: str) -> StepProgress | None:
    """Return what the last whole line says that is one."""
    lines = text.split("\n")
    for line in reversed(lines[:-1]):  # what follows the last line end is still being written
        number, _, message = line.strip().partition(" ")
        share = _share(number)
        if share is not None:
            return StepProgress(share=share, message=message.strip()[:_MESSAGE])
    return None


def _share(text: str) -> float | None:
    digits, scale = (text[:-1], 100.0) if text.endswith("%") else (text, 1.0)
    if not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 20:
        return None
    return min(1.0, float(digits) / scale)
