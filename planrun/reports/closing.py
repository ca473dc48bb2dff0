"""The end of a run that did not simply complete: what failed and why, what did not run, and what to do next."""

from __future__ import annotations

from shlex import quote

from planrun.model.record import Record
from planrun.reports import causes, facts
from planrun.reports.document import load, parts_of, rows_of
from planrun.reports.elements import forgiven
from planrun.reports.errorlines import error_line, hint
from planrun.reports.escape import line, tail
from planrun.reports.facts import icon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Look

DETAILED = 10  # failed steps that are shown with their last lines
_SLOWEST = 5
_NEAR = 20  # lines: what was printed no further up is still on the screen
_FEW = 4  # lines that are read at a glance
_ROW = 300  # characters of a line of output


class Ending(Record):
    """The end of a run as a console shows it."""

    state: RunState
    look: Look
    rundir: str
    printed: Mapping[str, int] = {}
    """How many lines the console wrote since it showed the output of a step; without an entry it did not show it."""


def ending(end: Ending) -> Iterator[str]:
    """Yield how a run ended or why it stopped, before its reports are written."""
    state, look = end.state, end.look
    parts, verdict = parts_of(state), facts.status_of(state)
    failed = [
        step for step in facts.listed(state) if step.status == "failed" and step.step.section != "rollback"
    ]
    counted = [step for step in failed if not forgiven(state, step)]
    rows = [
        *_failures(end, "Failed", counted),
        *_failures(end, "Tolerated", [step for step in failed if forgiven(state, step)]),
    ]
    if not look.quiet:
        rows += [f"{row}\n" for row in causes.rows(state)]
        rows += _slowest(end)
        if rows:
            yield "\n"
    yield from rows
    # Nothing else names the run where the console is quiet.
    run = f", run {line(state.started.run)}" if look.quiet and state.started else ""
    yield f"{icon(look, verdict)} {facts.verdict(state)}{run}\n"
    for each in parts:
        for heading, message, title in each["failures"](state) if "failures" in each else ():
            yield f"{icon(look, 'failed')} {heading}: {message}\n"
            if title and look.sections:
                yield load("annotations").problem(state, look.sections, title, message)
    if objection := facts.objection(state):  # a run that ends with exit code 1 must not look like a success
        yield f"{icon(look, 'failed')} failed: {objection}\n"
    if not look.quiet:
        yield from [f"{row}\n" for row in rows_of(parts, "ending", state)]
        withheld = state.started.options.get("env_left_out") if state.started else ()
        if withheld and (failed or look.verbose):  # a variable that is missing may be why
            yield f"  not passed to steps (inherit_env: safe): {facts.names(withheld)}\n"


def next_steps(end: Ending) -> Iterator[str]:
    """Yield what stands below all else: questions as annotations, or the commands that help most."""
    state, look = end.state, end.look
    waits = facts.is_waiting(state)
    if waits and look.sections:
        yield load("annotations").notices(state, look.sections)
    if look.quiet or waits or not state.started or state.status not in ("failed", "cancelled", "paused"):
        return
    # A person reads it now; a log may be read when this is no longer the newest run.
    run = "last" if look.style == "live" else line(state.started.run)
    if step := _worth_reading(end):
        yield f"  to see the whole output: planrun logs {run} {quote(facts.name(step))}\n"
    yield f"  {facts.to_continue(state, run)}\n"


def reason(step: StepState) -> str:
    """Return why a step failed in a few words: `exit code 1, logic error (tests failed), 2 attempts, 3.2s`."""
    parts = [f"{facts.sentence(step)} ({line(step.rule)})" if step.rule else facts.sentence(step)]
    last = facts.last(step)
    error = last.ended.error if last and last.ended else None
    if error and error.get("class") not in (None, "", "unknown"):
        kind, _, rule = error.get("rule", "").partition(":")
        # Any other rule is the exit code or the reason itself.
        matched = f" ({line(rule)})" if kind == "text" else ""
        parts.append(f"{line(error.get('class', ''))} error{matched}")
    if len(step.tries) > 1:
        parts.append(f"{len(step.tries)} attempts")
    if step.tries:
        parts.append(facts.seconds(facts.duration(step)))
    return ", ".join(parts)


def place(state: RunState, step: StepState) -> str:
    """Return the place of a step in its plan: `plans/ci.yml:12`."""
    return f"{line(state.plan.file_of(step.step))}:{step.step.line}"


def failed_checks(step: StepState) -> Iterator[str]:
    """Yield a clean line for each check of the last attempt that does not hold, unless it is the reason itself."""
    last, why = facts.last(step), facts.sentence(step)
    for check in last.ended.checks if last and last.ended else ():
        shown = f"{line(str(check.get('name', '')))}: {line(str(check.get('message', '')))}"
        if not check.get("ok") and shown != why:
            yield f"check failed: {shown}"


def _failures(end: Ending, heading: str, failed: Sequence[StepState]) -> Iterator[str]:
    if not failed:
        return
    yield f"{heading}:\n"
    # The fewer there are, the more of each.
    count = 10 if len(failed) <= 3 else 5 if len(failed) <= DETAILED else 1
    for step in failed[: 2 * DETAILED]:
        yield from _failure(end, step, count, few=_FEW if len(failed) == 1 else 0)
    if more := [facts.name(step) for step in failed[2 * DETAILED :]]:
        yield f"  and {len(more)} more: {facts.names(more)}\n"


def _failure(end: Ending, step: StepState, count: int, few: int) -> Iterator[str]:
    """A failed step, its place in the plan, why it failed, and as many of its last lines.

    `few`: how many lines of it right above are not repeated.
    """
    about = f": {line(step.step.title)}" if step.step.title else ""
    yield f"  {icon(end.look, 'failed')} {facts.name(step)}{about}  {place(end.state, step)}\n"
    yield f"    {reason(step)}\n"
    yield from [f"    {check}\n" for check in failed_checks(step)]
    yield from [f"    {note}\n" for note in facts.sandbox_notes(step)]
    if why := facts.not_replanned(end.state, step):
        yield f"    {why}\n"
    yield from [f"    | {row}\n" for row in _output(end, step, count, few)]
    last = facts.last(step)
    if last and last.started.log and (advice := hint(error_line(end.rundir, last))):
        yield f"    hint: {advice}\n"


def _output(end: Ending, step: StepState, count: int, few: int) -> list[str]:
    """The last lines of a failed step as far as they are not on the screen already; the cause is among them."""
    last = facts.last(step)
    if last is None or not last.started.log:
        return []
    rows = [row for row in tail(end.rundir, last.started.log).split("\n") if row.strip()]
    since = end.printed.get(step.step.id)
    cause = error_line(end.rundir, last)
    if since is not None and since < _NEAR:  # the cause alone, unless all is in view
        kept = [cause] if cause and (len(rows) > few or since > few) else []
    else:
        kept = rows[-(count if since is None else min(count, 5)) :]
        if cause and not any([cause in row for row in kept]):  # noqa: C419 - a few lines
            kept = [cause, *(["…"] if len(kept) > 1 else []), *kept[2:]]
    return [line(row.rstrip(), _ROW) for row in kept]


def _worth_reading(end: Ending) -> StepState | None:
    """Return the first failed step that printed more than is shown."""
    for step in end.state.steps.values():
        last = facts.last(step)
        if (
            step.status == "failed"
            and last
            and last.ended
            and last.ended.log_bytes
            and step.step.id not in end.printed
        ):
            rows = tail(end.rundir, last.started.log).count("\n")
            if rows > 10 or last.ended.log_bytes > 4000:
                return step
    return None


def _slowest(end: Ending) -> Iterator[str]:
    """With --verbose the steps that took longest."""
    ran = [step for step in facts.listed(end.state) if step.tries] if end.look.verbose else []
    slowest = sorted(ran, key=facts.duration, reverse=True)[:_SLOWEST]
    shown = [f"{facts.name(step)} {facts.seconds(facts.duration(step))}" for step in slowest]
    if shown:
        yield f"Slowest: {', '.join(shown)}\n"
