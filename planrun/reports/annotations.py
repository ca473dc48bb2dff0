"""Failures marked beside the plan, as a CI system shows them. Loaded by runs that have something to mark there."""

from __future__ import annotations

import os

from planrun.reports import facts
from planrun.reports.ci import from_checkout, vendor
from planrun.reports.document import part, parts_of
from planrun.reports.errorlines import failure
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Sections

OF_STEP = 10
"""Annotations of a kind that GitHub shows of a step of a job; the last one counts those that are left out."""
OF_JOB = 50
"""Annotations that GitHub shows of a job."""
COUNTING = 10  # of those of a job, for runs that count what they left out


class Limits:
    """How many annotations may still be written: on GitHub by all runs of the job together, elsewhere by this one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._own: list[str] = []
        self._step = line(environ.get("GITHUB_ACTION", ""))
        folder = environ.get("RUNNER_TEMP", "") if vendor(environ) == "github" else ""
        names = [environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")]
        job = "-".join(["".join([letter for letter in name if letter.isalnum()]) for name in names])
        self._file = os.path.join(folder, f"planrun-annotations-{job}") if folder else ""

    def take(self, kind: str, *, is_last: bool = False) -> bool:
        """Take one of a kind and return whether there was one; `is_last`: it counts what is left out."""
        try:
            if self._file:
                return self._take_shared(kind, is_last=is_last)
        except OSError:  # then each run counts for itself
            self._file = ""
        return self._may(kind, self._own, is_last=is_last)

    def _take_shared(self, kind: str, *, is_last: bool) -> bool:
        """Take one in the file that the runs of a job share; raises OSError."""
        import fcntl  # only jobs on GitHub need it

        fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            taken = os.pread(fd, 1 << 16, 0).decode("utf-8", "replace").splitlines()
            if not self._may(kind, taken, is_last=is_last):
                return False
            os.write(fd, f"{taken[-1]}\n".encode())
            return True
        finally:
            os.close(fd)

    def _may(self, kind: str, taken: list[str], *, is_last: bool) -> bool:
        row = f"{kind} {self._step}"
        if taken.count(row) >= OF_STEP - (not is_last) or len(taken) >= OF_JOB - COUNTING * (not is_last):
            return False
        taken.append(row)
        return True


class Annotations:
    """The annotations of one run."""

    def __init__(self, sections: Sections, rundir: str) -> None:
        self._sections = sections
        self._rundir = rundir
        self._unmarked: list[str] = []
        self._limits = Limits(os.environ)

    def failed(self, state: RunState, step: StepState) -> str:
        """Return the annotations of a failed step and of its test cases; "" once there are enough of a kind."""
        name = facts.name(step)
        tolerated = not facts.option(state, "strict") and state.tolerance(step.step.id) is not None
        kind, say = ("warning", self._sections.warning) if tolerated else ("problem", self._sections.problem)
        if not self._limits.take(kind):
            self._unmarked.append(name)
            return ""
        title = f"{name} {facts.details(step)}"
        shown = say(file_of(state, step), step.step.line, title, failure(self._rundir, step))
        if not step.step.reports:
            return shown
        places = part("testcases:TEST_CASES")["places"](step)
        return shown + "".join([say(*place) for place in places if self._limits.take(kind)])

    def rest(self, state: RunState) -> str:
        """Return an annotation that names the failed steps that have none of their own; "" without such steps."""
        more = self._unmarked
        if not more:
            return ""
        self._limits.take("problem", is_last=True)  # written in any case: the log shows it
        return self._sections.problem(file_of(state), 0, f"and {len(more)} more failed", ", ".join(more))


def problem(state: RunState, sections: Sections, title: str, message: str) -> str:
    """Return the annotation of a failure that is not one of a step."""
    return sections.problem(file_of(state), 0, title, message)


def notices(state: RunState, sections: Sections) -> str:
    """Return an annotation for each question that waits for an answer."""
    parts = [each["notices"] for each in parts_of(state) if "notices" in each]
    rows = [notice for rows in parts for notice in rows(state)]
    limits = Limits(os.environ)
    shown = [row for row in rows if limits.take("notice")]
    text = "".join([sections.notice(file_of(state), *notice) for notice in shown])
    if len(shown) == len(rows):
        return text
    limits.take("notice", is_last=True)
    run = line(state.started.run) if state.started else "last"
    title = f"and {len(rows) - len(shown)} more questions"
    return text + sections.notice(file_of(state), 0, title, f"planrun status {run} lists them")


def file_of(state: RunState, step: StepState | None = None) -> str:
    """Return the file of a step, or the plan's, as annotations count it: from the root of the checkout."""
    file = state.plan.file_of(step.step) if step else state.plan.file
    return line(from_checkout(file, os.environ))
