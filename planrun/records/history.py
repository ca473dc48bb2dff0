"""The durations of a plan's steps in its last runs, in one small file per plan that can be rebuilt from ledgers.

`.planrun/history/<key>` is text: a line that says what it is, the ids of the runs, oldest first, and a line for each
step: the median of its seconds, one cell a run, its id. A cell is `-` where the step did not run to an end of its own,
else `c` (completed), `k` (completed, flaky) or `f` (failed) and the seconds. A damaged file
counts as missing, without a message: a run works without it, only in a less good order. The writer holds the
workspace lock.

It also reads the progress that a step reports: the last line of the file in `$PLANRUN_PROGRESS`. A line is a number
from 0 to 1, or a percentage such as `42%`, and an optional message. Progress is only displayed.
"""

from __future__ import annotations

import os
from stat import S_ISREG  # os has loaded it already

from planrun.folders import write_atomically
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from planrun.model.plan import Plan
    from planrun.model.state import RunState

FOLDER = "history"
RUNS_KEPT = 10
"""How many runs are kept: durations change with the code."""
MAX_BYTES = 16 << 20  # of one file; 100,000 steps need 9 MiB
_FORM = "planrun history 1"
_NONE = "-"
_MARKS = {"completed": "c", "flaky": "k", "failed": "f"}
LETTERS = {mark: word for word, mark in _MARKS.items()}
# The shape of cells: every digit is 0, every mark c.
_SHAPE = str.maketrans("123456789kf", "000000000cc")
_SHAPES = frozenset([f"c{'0' * digits}.000" for digits in range(1, 10)])


class Past(Record):
    """The end of one step in one run: `completed`, `flaky` or `failed`, and the seconds of all its attempts."""

    ending: str
    seconds: float


class History(Record):
    """The last runs of a plan; `cells` has the text of each step as in the file: a cell for every run."""

    runs: tuple[str, ...] = ()
    cells: Mapping[str, str] = {}

    def with_run(self, run: str, pasts: Mapping[str, Past]) -> History:
        """Return the history with a run added or replaced."""
        return self._with_cells(run, {name: _cell(past.ending, past.seconds) for name, past in pasts.items()})

    def with_state(self, run: str, state: RunState) -> History:
        """Return the history with a run that ended added or replaced."""
        return self._with_cells(run, dict(_cells_of(state)))

    def _with_cells(self, run: str, new: Mapping[str, str]) -> History:
        runs = tuple(sorted({*self.runs, run}))[-RUNS_KEPT:]
        if run not in runs:
            return self
        # Where the cell of each run stands among the old ones of a step, with the new one behind them.
        order = [-1 if each == run else self.runs.index(each) for each in runs]
        none = " ".join([_NONE] * len(self.runs))
        merged: dict[str, str] = {}
        for name in {**self.cells, **new}:
            row = [*self.cells.get(name, none).split(" "), new.get(name, _NONE)]
            cells = [row[place] for place in order]
            if cells.count(_NONE) < len(cells) and name.isprintable():
                merged[name] = " ".join(cells)
        return History(runs=runs, cells=merged)

    def samples(self, step: str) -> list[Past]:
        """Return how a step ended in the runs in which it ran, oldest first."""
        return [
            Past(ending=LETTERS[cell[0]], seconds=_seconds(cell[1:]))
            for cell in self.cells.get(step, _NONE).split(" ")
            if cell != _NONE
        ]


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
    medians: dict[str, float] = {}
    try:
        for row in _rows(path)[1:]:
            median, _, rest = row.partition("\t")
            if median != _NONE:
                medians[rest.partition("\t")[2]] = _seconds(median)
    except ValueError:
        return {}
    return medians


def read(path: str) -> History:
    """Return the history in a file; an empty one where there is no sound file."""
    try:
        runs, *rows = _rows(path)
        names = tuple(runs.split())
        cells: dict[str, str] = {}
        # A large plan has few shapes, and parsing every number takes five times as long.
        sound: set[str] = set()
        for row in rows:
            middle, texts, name = row.split("\t", 2)
            cells[name] = texts
            shape = texts.translate(_SHAPE)
            if shape not in sound:
                if not _is_sound(shape, len(names)):
                    return History()
                sound.add(shape)
            if middle != _NONE:
                _seconds(middle)
    except ValueError:
        return History()
    return History(runs=names, cells=cells)


def _is_sound(shape: str, count: int) -> bool:
    """Return whether a shape is that of so many cells, at least one of them with a number."""
    cells = shape.split(" ")
    known = [cell for cell in cells if cell != _NONE]
    return len(cells) == count and bool(known) and _SHAPES.issuperset(known)


def write(path: str, history: History) -> bool:
    """Replace the history file atomically; return whether that succeeded."""

    def fill(out: BinaryIO) -> None:  # by rows: the whole of it is many times its size
        out.write(f"{_FORM}\n{' '.join(history.runs)}\n".encode())
        out.writelines(
            f"{_median(cells)}\t{cells}\t{name}\n".encode() for name, cells in history.cells.items()
        )

    try:
        try:
            write_atomically(path, fill, mode=0o600)
        except FileNotFoundError:
            os.mkdir(os.path.dirname(path), 0o700)
            write_atomically(path, fill, mode=0o600)
    except (OSError, UnicodeError):  # a full disk, an invalid name: the file can be rebuilt at any time
        return False
    return True


def record(path: str, run: str, state: RunState) -> None:
    """Add a run that ended; a resumed run replaces its earlier entry."""
    write(path, read(path).with_state(run, state))


def _cells_of(state: RunState) -> Iterator[tuple[str, str]]:
    """Yield the steps of a run that ended by themselves, with their cells; services never do."""
    for name, step in state.steps.items():
        tries = step.tries
        if not tries or step.status not in ("completed", "failed") or step.step.service is not None:
            continue
        seconds = sum([attempt.ended.duration for attempt in tries if attempt.ended])
        yield name, _cell("flaky" if step.reason == "flaky" else step.status, seconds)


def _median(cells: str) -> str:
    """Return the median of the seconds of those that completed, the lower of two: a duration that occurred, no mean."""
    texts = [cell[1:] for cell in cells.split(" ") if cell[0] in "ck"]
    if not texts:
        return _NONE
    texts.sort()
    texts.sort(key=len)  # in the order of numbers: all have three decimals
    return texts[(len(texts) - 1) // 2]


def _rows(path: str) -> list[str]:
    """Return the lines after the first; raises ValueError for any other file."""
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


def _cell(ending: str, seconds: float) -> str:
    return f"{_MARKS[ending]}{seconds:.3f}"


def _seconds(text: str) -> float:
    """Parse seconds; raises ValueError, also for negative or infinite numbers."""
    seconds = float(text)
    if not 0 <= seconds < 1e9:
        raise ValueError("not a duration")
    return seconds


ENDING = ".progress"
"""The suffix of the progress file, after the name of the attempt's outputs file."""
_LAST = 4096  # bytes read from the end of the file
_MESSAGE = 200  # characters


class StepProgress(Record):
    """The progress of a step; `share` from 0 to 1."""

    share: float
    message: str = ""


def read_progress(rundir: str, folder: str, attempt: int) -> StepProgress | None:
    """Return the last valid progress of an attempt; None when there is none."""
    from planrun.opening import open_record  # only the page of a run and `status` read it

    path = os.path.join(rundir, "outputs", f"{folder}.{attempt}{ENDING}")
    try:
        fd = open_record(path)
    except OSError:
        return None
    try:
        data = os.pread(fd, _LAST, max(0, os.fstat(fd).st_size - _LAST))
    except OSError:
        return None
    finally:
        os.close(fd)
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    for line in reversed(lines[:-1]):  # text after the last line end is incomplete
        number, _, message = line.strip().partition(" ")
        digits, scale = (number[:-1], 100.0) if number.endswith("%") else (number, 1.0)
        if not digits.replace(".", "", 1).isdecimal() or not digits.isascii() or len(digits) > 20:
            share = None
        else:
            share = min(1.0, float(digits) / scale)
        if share is not None:
            return StepProgress(share=share, message=message.strip()[:_MESSAGE])
    return None
