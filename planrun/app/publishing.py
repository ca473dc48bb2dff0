"""Publish a run for a team: a small record when it starts, and record, ledger, plan and logs when it ends or waits.

Everything is masked already, as it is in the records. A place that does not answer never fails a run: the first
failure is the last try, and `planrun publish RUN` sends it later.
"""

from __future__ import annotations

import getpass
import json
import os

from planrun.app.summaries import resting_status, summarized
from planrun.errors import PlanrunError
from planrun.model.events import RunStarted
from planrun.opening import open_record
from planrun.places.place import open_place
from planrun.records.machine import machine
from planrun.records.reading import read_ledger
from planrun.records.rundir import FILES, HOME, LEDGER, PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from planrun.app.summaries import Row
    from planrun.places.place import Place
    from planrun.records.reading import Reading

RECORDS, RUNS = "records", "runs"
"""Keys: `records/<run>.json`, and `runs/<run>/…` with the files of the run's folder."""
MOST = 16 << 20
"""Bytes of a log that is sent; larger ones are named in the record."""
_PATIENCE = 10.0  # seconds for one answer
# The page of the job, as CI systems name it.
_LINKS = ("CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "BUILD_URL")


class Publisher:
    """Sends one run to a place; `problem` says why something was not sent."""

    def __init__(self, place: Place) -> None:
        self.problem = ""
        self._place = place

    def started(self, rundir: str) -> None:
        """Send the record of a run that runs now."""
        self._try(lambda: self._record(rundir, "running", ()))

    def rests(self, rundir: str) -> None:
        """Send the record and the files of a run that ended or waits."""
        self._try(lambda: self._whole(rundir))

    def close(self) -> None:
        """Release the connection."""
        self._place.close()

    def _try(self, call: Callable[[], None]) -> None:
        if self.problem:
            return
        try:
            call()
        except PlanrunError as error:
            self.problem = str(error)
        except OSError as error:
            self.problem = f"{error.filename}: {error.strerror}"

    def _whole(self, rundir: str) -> None:
        run = os.path.basename(rundir)
        left_out = []
        for name in _names(rundir):
            path = os.path.join(rundir, name)
            if os.path.getsize(path) > MOST and name.startswith("logs/"):
                left_out.append(name)
                continue
            fd = open_record(path)
            try:
                self._place.send(f"{RUNS}/{run}/{name}", fd)
            finally:
                os.close(fd)
        self._record(rundir, "", left_out)

    def _record(self, rundir: str, status: str, left_out: list[str] | tuple[str, ...]) -> None:
        run = os.path.basename(rundir)
        data = record_of(run, read_ledger(os.path.join(rundir, LEDGER)), status)
        data["left_out"] = list(left_out)
        self._place.write(f"{RECORDS}/{run}.json", json.dumps(data, indent=1).encode())


def publisher_of(url: str, stopped: Callable[[], bool] | None = None) -> Publisher:
    """Return what publishes runs at a folder or URL; raises InvalidInput for a wrong one."""
    place = open_place(url, limit=_PATIENCE, stopped=stopped)
    place.require()
    return Publisher(place)


def record_of(run: str, reading: Reading, status: str) -> dict[str, Any]:
    """Return the record of a run; `status`: "" as its ledger says."""
    row: Row = summarized(run, reading, status or resting_status(reading) or reading.condition)
    first = reading.events[0] if reading.events else None
    plan = first.plan if isinstance(first, RunStarted) else {}
    environ = os.environ
    context = first.context if isinstance(first, RunStarted) else {}
    link = next((environ[name] for name in _LINKS if environ.get(name)), "")
    if not link and environ.get("GITHUB_RUN_ID"):
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        link = f"{server}/{repository}/actions/runs/{environ['GITHUB_RUN_ID']}"
    origin = {"ref": context.get("ref") or None, "sha": context.get("sha") or None, "link": link or None}
    return {
        "schema_version": 1,
        "run": run,
        "status": row.status,
        "plan": {"name": row.plan, "file": row.file, "digest": plan.get("digest", "")},
        "started_at": row.started_at or None,
        "duration_s": row.duration,
        "exit_code": row.exit_code,
        "failed": list(row.failed),
        "waiting": [{"step": step or None, "kind": kind} for step, kind in row.waiting],
        "head": reading.head,
        "machine": machine(),
        "user": _user(),
        "folder": os.getcwd(),
        **origin,
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.geteuid())


def _names(rundir: str) -> Iterator[str]:
    """Yield the files of a run that reports and logs are made from; the ledger comes last."""
    names = sorted(os.listdir(rundir))
    yield from [
        name for name in names if name == PLAN or (name.startswith("plan.v") and name.endswith(".yml"))
    ]
    for folder in (FILES, "logs"):
        for above, folders, files in os.walk(os.path.join(rundir, folder)):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(above, name)
                if not os.path.islink(path):
                    yield os.path.relpath(path, rundir)
    yield LEDGER


def home_of(folder: str) -> str:
    """Return where the runs are in a workspace."""
    return os.path.join(folder, HOME, "runs")
