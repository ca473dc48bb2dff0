"""Which runs are counted: found in workspaces, in folders that CI kept, or one by one; broken ones are named."""

from __future__ import annotations

import os
from stat import S_ISREG

from planrun.app.statistics.traces import Trace
from planrun.errors import InternalError, InvalidInput
from planrun.model.record import Record
from planrun.records.reading import read_ledger
from planrun.records.rundir import HOME, LEDGER, RUNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.model.events import Event

MAX_BYTES = 512 << 20  # of one ledger; 100,000 steps need 60 MiB
# What a ledger that is no ledger does to code that believes it.
_MISFITS = (InternalError, AttributeError, KeyError, TypeError, ValueError, IndexError)


class Broken(Record):
    """A run that is not counted, and why."""

    folder: str
    why: str


class Wanted(Record):
    """Which runs count: the newest `most` (0: all) of a plan's name or file ("": any) since a moment ("": ever)."""

    most: int = 0
    plan: str = ""
    since: str = ""  # RFC 3339 UTC

    def takes(self, trace: Trace) -> bool:
        """Whether a run is of the plan that is wanted."""
        named = (str(trace.plan.get("name", "")), str(trace.plan.get("file", "")))
        return (
            not self.plan or self.plan in named or os.path.normpath(self.plan) in map(os.path.normpath, named)
        )


class Gathering:
    """The runs of some places, newest first, read one at a time; `broken` grows while they are."""

    def __init__(self, places: Sequence[str]) -> None:
        self.broken: list[Broken] = []
        self.folders = sorted(_folders(places), key=os.path.basename, reverse=True)

    def traces(self, wanted: Wanted) -> Iterator[tuple[str, Trace]]:
        """Yield folder and trace of each run that counts; what cannot be counted is added to `broken`.

        A run without an end counts as far as it got, whatever became of its process.
        """
        left = wanted.most or len(self.folders)
        for folder in self.folders:
            if not left:
                return
            trace = self.trace(folder)
            if trace is None or not wanted.takes(trace):
                continue
            if wanted.since and trace.started < wanted.since:
                continue
            left -= 1
            yield folder, trace

    def trace(self, folder: str) -> Trace | None:
        """Return the trace of the run in a folder; None when it cannot be counted, which `broken` then says."""
        try:
            trace = Trace().fold(_read(os.path.join(folder, LEDGER)))
        except OSError as error:
            self.broken.append(Broken(folder=folder, why=str(error.strerror)))
        except InvalidInput as error:
            self.broken.append(Broken(folder=folder, why=str(error)))
        except _MISFITS:
            self.broken.append(Broken(folder=folder, why="not a ledger"))
        else:
            if trace.run:
                return trace
            self.broken.append(Broken(folder=folder, why="nothing is on record"))
        return None


def _read(path: str) -> Sequence[Event]:
    """Return the events of a ledger; raises OSError, InvalidInput."""
    status = os.stat(path)
    if not S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        raise InvalidInput("its ledger is no file, or far too large")
    reading = read_ledger(path)
    if reading.condition in ("altered", "truncated"):
        raise InvalidInput(f"{reading.condition} at line {reading.line}: {reading.detail}")
    return reading.events


def _folders(places: Sequence[str]) -> list[str]:
    """Return the folders of runs in some places, each once; raises InvalidInput for a place that cannot be read."""
    found: dict[str, str] = {}
    for place in places:
        for folder in _in(place):
            found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def _in(place: str) -> list[str]:
    """A place may be a workspace, its `.planrun`, a folder of runs, or the folder of one run."""
    if os.path.lexists(os.path.join(place, LEDGER)):
        return [place]
    for inner in (os.path.join(place, HOME, RUNS), os.path.join(place, RUNS), place):
        try:
            names = os.listdir(inner)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidInput(f"cannot read {inner}: {error.strerror}") from None
        folders = [os.path.join(inner, name) for name in names]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, LEDGER))]
    raise InvalidInput(f"no such folder: {place}")
