"""The steps of a run as the page shows them: rows of the timeline, attempts with their logs, failures, test cases."""

from __future__ import annotations

from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.closing import place, reason
from planrun.reports.document import load, needs_of
from planrun.reports.elements import forgiven
from planrun.reports.escape import excerpt, line
from planrun.reports.facts import seconds
from planrun.reports.policies import decision, risk_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState

LOG_BYTES = 12 * 1024
"""Of the log of an attempt that failed or was cut short: head and tail."""
PASSED_BYTES = 4 * 1024
"""Of the log of an attempt that completed."""
PATCH_BYTES = 64 * 1024
ALL_LOGS = 4 * 1024 * 1024
CASES = 2000
"""Test cases that are listed on a page; failed ones come first."""
_CASE_CHARS = 4000
_SCRIPT_CHARS = 4000
_NEEDS = 20
_LONG = 20  # lines from which on a log is scrolled


class Attempt(Record):
    """One attempt: what is known of it, and head and tail of its log; `heading`: "" where the step's row says it."""

    n: int
    heading: str
    rows: tuple[tuple[str, str], ...]
    log: str
    is_long: bool  # so that it is scrolled
    has_log: bool  # or may still get one
    patch: str  # of an agent


class Case(Record):
    """A test case that a step reported."""

    name: str
    status: str  # passed, failed, error, skipped
    where: str
    message: str
    text: str
    seconds: str


class Tests(Record):
    """The test cases of a step; `left_out` are in the run's folder only."""

    text: str
    cases: tuple[Case, ...]
    left_out: int = 0


class Details(Record):
    """All that is shown of a step when it is opened."""

    step: str
    rows: tuple[tuple[str, str], ...]
    needs: tuple[str, ...]
    more_needs: int
    script: str
    attempts: tuple[Attempt, ...]
    tests: Tests | None
    is_open: bool


class Pages:
    """Reads what the page shows of each step; logs and test cases share their limits, failures first."""

    def __init__(self, state: RunState, rundir: str, *, scripts: bool, is_large: bool) -> None:
        self.state, self.rundir, self.scripts, self.is_large = state, rundir, scripts, is_large
        self.logs, self.cases = ALL_LOGS, CASES
        self.needs = needs_of(state)
        steps = [*facts.listed(state), *state.undoing.values()]
        bad = [step for step in steps if step.status not in ("completed", "skipped")]
        names = dict.fromkeys([step.step.id for step in (*bad, *steps)])
        read = {name: self._attempts(state.steps[name]) for name in names}
        tests = {name: self._tests(state.steps[name]) for name in names}
        self.details = [
            self._details(step, read[step.step.id], tests[step.step.id])
            for step in steps
            if _is_shown(step, is_large=is_large)
        ]

    def _details(self, step: StepState, attempts: tuple[Attempt, ...], tests: Tests | None) -> Details:
        needs = self.needs.get(step.step.id, ())
        return Details(
            step=step.step.id,
            rows=tuple(self._rows(step)),
            needs=tuple(needs[:_NEEDS]),
            more_needs=max(0, len(needs) - _NEEDS),
            script=self._script(step),
            attempts=attempts,
            tests=tests,
            is_open=step.status == "failed" and not forgiven(self.state, step),
        )

    def _script(self, step: StepState) -> str:
        text = step.step.action.written() if self.scripts else ""
        return text if len(text) <= _SCRIPT_CHARS else text[:_SCRIPT_CHARS] + "…"

    def _rows(self, step: StepState) -> Iterator[tuple[str, str]]:
        """Yield what is known of a step besides its attempts: name and text."""
        if step.status == "failed" and self.state.tolerance(step.step.id):
            own = forgiven(self.state, step)
            yield "Tolerated", "the run does not fail because of it" if own else "by the plan; this run fails"
        if step.status not in ("completed", "running", "pending"):
            yield "Reason", reason(step) if step.status == "failed" else facts.sentence(step)
        if step.step.origin != "file":
            author = "the plan; chosen or moved by a search" if step.step.origin == "searched" else "a model"
            yield "Written by", f"{author} ({step.step.origin})"
        if not self.is_large or step.status != "completed":
            if step.step.line:
                yield "Plan", place(self.state, step)
            if risk := risk_of(step):
                why = line(step.step.risk_reason) if self.scripts else ""  # it quotes the command
                yield "Risk", f"{risk} ({why})" if why else risk
        if decided := decision(step):
            yield (
                "Policy",
                f"{decided['answer']} by {line(decided['rule'])}" if decided["rule"] else decided["answer"],
            )
        if step.restored:
            yield "Cache", facts.reused(step)
        yield from [("Criterion", line(text)) for text in step.step.criteria]
        for name, value in list(step.outputs.items())[:50]:
            yield f"Output {line(str(name), 100)}", load("extras").shown_value(value)

    def _attempts(self, step: StepState) -> tuple[Attempt, ...]:
        return tuple([self._attempt(step, attempt) for attempt in step.attempts])

    def _attempt(self, step: StepState, attempt: AttemptState) -> Attempt:
        ended, log = attempt.ended, attempt.started.log
        passed = attempt.status == "completed"
        text = ""
        if log and self.logs > 0 and (ended is None or ended.log_bytes):
            limit = min(self.logs, PASSED_BYTES if passed else LOG_BYTES)
            text = excerpt(self.rundir, log, limit, whole=log).rstrip()
            self.logs -= len(text)
        only = len(step.attempts) == 1
        return Attempt(
            n=attempt.n,
            heading="" if only and passed else _heading(attempt, only=only),
            rows=tuple(_known_of(attempt)),
            log=text,
            has_log=bool(log),
            patch=shown_patch(self.rundir, ended.patch if ended else None),
            is_long=text.count("\n") > _LONG or len(text) > _LONG * 100,
        )

    def _tests(self, step: StepState) -> Tests | None:
        if step.step.reports is None:
            return None
        module = load("testcases")
        summary = module.reported(step)
        if not summary:
            return None
        known: list[tuple[int, Case]] = []
        try:
            for _, cases in module.kept(self.rundir, str(summary.get("file", ""))):
                known += [_case(case) for case in cases]
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            return Tests(
                text=f"{module.sentence(summary)}; the cases are not in the run's folder any more", cases=()
            )
        known.sort(key=lambda pair: pair[0])
        shown = known[: self.cases]
        self.cases -= len(shown)
        return Tests(
            text=module.sentence(summary),
            cases=tuple([case for _, case in shown]),
            left_out=len(known) - len(shown),
        )


def shown_patch(rundir: str, patch: Mapping[str, Any] | None) -> str:
    """Return the patch of an agent, of a long one its beginning and end; it holds no secret, or it is not kept."""
    path = str(patch["path"]) if patch else ""
    return excerpt(rundir, path, PATCH_BYTES, whole=path).rstrip() if path else ""


def _is_shown(step: StepState, *, is_large: bool) -> bool:
    """Whether there is more to say of a step than its row; in a large run a step that passed has to have output."""
    if is_large and step.status == "completed" and len(step.attempts) == 1 and not step.step.reports:
        ended = step.attempts[0].ended
        return bool(ended and (ended.log_bytes or ended.checks or ended.notes or step.outputs))
    return bool(step.attempts or step.status not in ("pending", "skipped") or step.step.criteria)


def _heading(attempt: AttemptState, *, only: bool) -> str:
    ended = attempt.ended
    text = "passed" if ended and ended.status == "completed" else facts.attempt_sentence(ended)
    spent = f" in {seconds(ended.duration)}" if ended else ""
    number = "" if only else f"Attempt {attempt.n}: "
    return f"{number}{text}{spent}, started {attempt.started.at[11:19]}"


def _known_of(attempt: AttemptState) -> Iterator[tuple[str, str]]:
    ended = attempt.ended
    if ended is None:
        return
    if ended.exit_code:
        yield "Exit code", str(ended.exit_code)
    if ended.error and facts.classified(ended.error):
        rule = f", rule {line(ended.error.get('rule', ''))}" if ended.error.get("rule") else ""
        yield "Error class", line(ended.error.get("class", "")) + rule
    if ended.delay:
        yield "Next attempt after", seconds(ended.delay)
    for check in ended.checks:
        mark = facts.ICONS["completed" if check.get("ok") else "failed"]
        yield "Check", f"{mark} {line(str(check.get('name', '')))}: {line(str(check.get('message', '')))}"
    yield from [("Note", line(note)) for note in ended.notes]
    used = {name: value for name, value in ended.usage.items() if value}
    if used:
        yield "Usage", ", ".join([f"{facts.amount_of(value)} {name}" for name, value in used.items()])


def _case(case: Mapping[str, Any]) -> tuple[int, Case]:
    """Return a test case and its place in the list: what failed first."""
    status, message, text = "passed", "", ""
    if "result" in case:
        status, _, message, text = map(str, case["result"])
    flaky = any(str(each[0]).startswith("flaky") for each in case.get("again", ()))
    at = f":{int(case['line'])}" if "line" in case else ""
    name = ".".join(filter(None, [line(str(case["class"])), line(str(case["name"]))]))
    shown = Case(
        name=name,
        status={"failure": "failed"}.get(status, "flaky" if flaky and status == "passed" else status),
        where=line(str(case["file"])) + at if case.get("file") else "",
        message=line(message) or line(text.strip().partition("\n")[0]),
        text=text.strip()[:_CASE_CHARS] if status in ("failure", "error") else "",
        seconds=f"{float(case['time']):.3f}s",
    )
    order = ("failed", "error", "flaky", "skipped", "passed")
    return order.index(shown.status) if shown.status in order else 0, shown
