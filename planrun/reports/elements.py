"""The elements of a JUnit file: dialects, suites, names of the ends of a step, and text in XML."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports.escape import line
from planrun.reports.facts import attempt_sentence, option, sentence, status_of
from planrun.reports.policies import asked, grounds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState


class Dialect(Record):
    """The elements that a reader's schema allows."""

    wrapped: bool = True  # the suite stands inside of `testsuites`
    totals: str = ""  # attributes of `testsuites`: "", "some" (no skipped, no timestamp) or "all"
    host: bool = True  # hostname, id and package of the suite
    places: bool = False  # file and line of a case
    case_time: bool = False  # timestamp of a case
    reruns: bool = True  # flaky and rerun elements
    case_out: bool = True  # system-out of a case
    suite_out: bool = False  # empty system-out and system-err at the end of the suite
    skip_type: bool = True


DIALECTS: dict[str, Dialect] = {
    "default": Dialect(totals="all", places=True, case_time=True),
    "jenkins-xunit": Dialect(totals="some"),
    "surefire": Dialect(wrapped=False, host=False, case_time=True, skip_type=False),
    "ant": Dialect(reruns=False, case_out=False, suite_out=True, skip_type=False),
}


class Suite(Record):
    """A suite of the file: `cases` are its elements; `left_out` did not fit."""

    name: str
    at: str
    time: float
    numbers: dict[str, int]
    flakes: int
    cases: tuple[str, ...]
    left_out: int = 0
    problem: str = ""  # why its cases are not there


# failure: the command said no; error: there is no judgement. The type names are a fixed list, since GitLab
# runs them through a type cast in which `integer`, `date`, `file` or `yaml` rewrite the text.
TYPES: dict[str, tuple[str, str]] = {
    "exit": ("failure", "ExitStatus"),
    "verify": ("failure", "CheckFailed"),
    "outputs": ("failure", "InvalidOutputs"),
    "timeout": ("error", "Timeout"),
    "idle_timeout": ("error", "IdleTimeout"),
    "spawn": ("error", "NotStarted"),
    "refused": ("error", "Refused"),
    "planning": ("error", "NotExpanded"),
    "denied": ("failure", "Denied"),
    "budget": ("error", "BudgetExceeded"),
    "lost": ("error", "WorkerLost"),
}
OTHER = ("error", "StepError")
_SKIPS = {"skipped": "Skipped", "blocked": "Blocked", "cancelled": "Cancelled"}


def verdict(step: StepState) -> tuple[str, str]:
    """Return element and type of a step: `("", "")` when it passed.

    After retries the first failed attempt decides. A step that the ledger leaves running is an error: a run
    that was killed must not look green. What never ran, or was paused between two attempts, is skipped.
    """
    status = step.status
    if status == "completed":
        return "", ""
    if status == "failed":
        failed = failed_attempts(step)
        first = failed[0].ended if failed else None
        return TYPES.get(first.reason if first else step.reason, OTHER)
    if status == "running":
        return TYPES["lost"]
    return "skipped", "Waiting" if step.at_gate else _SKIPS.get(status, "NotRun")


def forgiven(state: RunState, step: StepState) -> bool:
    """Whether a step failed and the run does not fail because of it, so that no reader may turn a job red.

    With --strict, and for what a deadline ended or what aborted the run, it does fail.
    """
    if step.status != "failed" or not state.tolerance(step.step.id) or option(state, "strict"):
        return False
    ending = state.ending
    return ending is None or (ending.why != "deadline" and ending.step != step.step.id)


def failed_attempts(step: StepState) -> list[AttemptState]:
    """The attempts since it last became pending that failed or were lost, in order."""
    return [
        attempt
        for attempt in step.tries
        if attempt.ended is not None and attempt.ended.status in ("failed", "lost")
    ]


def flaky_attempts(step: StepState) -> list[AttemptState]:
    """The failed attempts of a step that passed in the end."""
    if len(step.attempts) < 2 or not step.flaky:
        return []
    return [attempt for attempt in failed_attempts(step) if attempt.status == "failed"]


def message(state: RunState, step: StepState) -> str:
    """The line that states why a step did not pass; never empty."""
    if step.status in _SKIPS:
        return f"{step.status}: {sentence(step)}"
    if step.status == "failed":
        failed = failed_attempts(step)
        return attempt_sentence(failed[0].ended) if len(failed) > 1 else sentence(step)
    if step.status == "running":
        return "was still running when the records end"
    if step.at_gate:
        return f"waiting for {step.reason}" + (f": {question}" if (question := _asked(step)) else "")
    if step.status == "paused":
        return f"paused: attempt {len(step.attempts)} failed, and the run was paused before the next one"
    rests = {"paused": "is paused", "waiting": "waits for an answer"}.get(status_of(state), "ended before it")
    return f"not run: the run {rests}"


def _asked(step: StepState) -> str:
    """The question and its reason in one line; empty where no gate is open."""
    opened = step.asked
    if opened is None:
        return ""
    return grounds(opened) if opened.kind == "approval" else asked(opened)


ATTRIBUTE_CHARS = 1000
# Surefire's schema is a sequence; the other readers take any order.
ORDER = (
    "failure",
    "rerunFailure",
    "flakyFailure",
    "skipped",
    "error",
    "rerunError",
    "flakyError",
    "system-out",
)


def escape(clean: str) -> str:
    """Escape character data that `reports.clean` went over; raw control characters are not XML."""
    if "&" in clean:
        clean = clean.replace("&", "&amp;")
    if "<" in clean:
        clean = clean.replace("<", "&lt;")
    return clean.replace(">", "&gt;") if ">" in clean else clean


def quoted(raw: str) -> str:
    """Clean any text into one line of at most 1,000 characters and quote it as an attribute's value."""
    text = escape(line(raw, ATTRIBUTE_CHARS))
    return '"' + (text.replace('"', "&quot;") if '"' in text else text) + '"'


def element(tag: str, attributes: str, clean: str) -> str:
    """Return an element with text; `attributes` are escaped and start with a blank."""
    return f"<{tag}{attributes}>{escape(clean)}</{tag}>\n"
