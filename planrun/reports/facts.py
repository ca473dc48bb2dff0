"""What every report says of a step and a run in the same words: icon, cause, reason, times, tokens."""

from __future__ import annotations

from planrun.reports.clean import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.events import AttemptEnded
    from planrun.model.state import RunState, StepState

ICONS = {
    "pending": "○",
    "running": "◐",
    "waiting": "◔",
    "paused": "⏸",
    "completed": "✓",
    "failed": "✗",
    "skipped": "⊘",
    "blocked": "■",
    "cancelled": "⊗",
    "partial": "⚠",
}
ASCII_ICONS = {
    "pending": "o",
    "running": ">",
    "waiting": ".",
    "paused": "=",
    "completed": "v",
    "failed": "x",
    "skipped": "-",
    "blocked": "#",
    "cancelled": "!",
    "partial": "~",
}
# Why a step ended as it did, when nobody said it better.
_SENTENCES = {
    "timeout": "ran into its timeout",
    "idle_timeout": "printed nothing for too long",
    "verify": "a check does not hold",
    "outputs": "its outputs are not what it declares",
    "spawn": "could not be started",
    "refused": "an unsafe value was refused",
    "lost": "the attempt has no recorded end",
    "denied": "was not allowed",
    "budget": "its budget is used up",
    "condition": "its condition is false",
    "upstream": "a step it depends on went another way",
    "tolerated": "depends on a step whose failure is tolerated",
    "not_selected": "not selected",
    "empty": "there is nothing to do it for",
    "replaced_by_replan": "replaced by replan",
    "abort": "the failure of another step aborted the run",
    "deadline": "the run passed its deadline",
    "cancelled": "the run was cancelled",
}


def status_of(state: RunState) -> str:
    """The verdict of a run that ended, else its status."""
    return state.ended.verdict if state.ended else state.status


def elapsed(state: RunState) -> float:
    """Seconds the run took as its last event says; of a run without an end, up to the last end of a step."""
    if state.ended:
        return state.ended.duration
    if not state.started:
        return 0.0
    last = max((step.ended_at for step in state.steps.values()), default="")
    return max(0.0, epoch(last) - epoch(state.started.at)) if last else 0.0


def name(step: StepState) -> str:
    """The id of a step in one clean line that is never empty; ids made from values may hold anything."""
    return line(step.step.id).strip() or "step"


def duration(step: StepState) -> float:
    """Seconds spent in the attempts of a step; most have one, and large runs ask often."""
    if len(step.attempts) == 1:
        ended = step.attempts[0].ended
        return ended.duration if ended else 0.0
    return step.duration


def started_at(step: StepState) -> str:
    """When its first attempt started, else when it ended; empty before that."""
    return step.attempts[0].started.at if step.attempts else step.ended_at


def cause(step: StepState) -> str:
    """A few words for brackets: `exit 2`, `timeout`, `replaced by replan`; may be empty."""
    if step.reason == "exit" and step.exit_code is not None:
        return f"exit {step.exit_code}"
    return line(step.reason.replace("_", " "))


def sentence(step: StepState) -> str:
    """Why a step that did not complete ended so, in one clean line that is never empty."""
    if step.status in ("skipped", "blocked", "cancelled"):
        why = "a step it depends on failed" if step.status == "blocked" else ""
        why = why or _SENTENCES.get(step.reason, cause(step))
        # Here the message is what the reason is about: a condition, or the steps it waited for.
        return line(f"{why}: {step.message}" if step.message else why) or step.status
    ended = step.attempts[-1].ended if step.attempts else None
    if not step.message and ended and ended.status != "completed":
        return attempt_sentence(ended)
    return line(step.message or _SENTENCES.get(step.reason, cause(step))) or step.status


def attempt_sentence(ended: AttemptEnded | None) -> str:
    """Why an attempt failed, in one clean line that is never empty."""
    if ended is None:
        return "has no recorded end"
    if ended.error and ended.error.get("message"):
        return line(ended.error["message"]) or ended.reason
    if ended.reason == "exit" and ended.exit_code is not None:
        return f"exit status {ended.exit_code}"
    return line(_SENTENCES.get(ended.reason, ended.reason)) or ended.status


def tokens_of(step: StepState) -> int:
    """Tokens that all its attempts used."""
    total = 0
    for attempt in step.attempts:
        if attempt.ended is not None and attempt.ended.usage:
            total += int(sum(attempt.ended.usage.get(name, 0) for name in ("input_tokens", "output_tokens")))
    return total


def details(step: StepState) -> str:
    """What stands in brackets behind a step: `12.3s, 1.2K tokens`, `failed: timeout`, `skipped: empty`."""
    if step.status == "completed":
        spent = seconds(duration(step)) if step.reason != "cached" else "cached"
        used = tokens_of(step)
        spent += f", {tokens(used)}" if used else ""
        return spent + (", flaky" if len(step.attempts) > 1 and step.flaky else "")
    # What blocked a step is the first thing to ask.
    why = line(step.message, 100) if step.status == "blocked" and step.message else cause(step)
    return f"{step.status}: {why}" if why else step.status


def heading(state: RunState) -> str:
    """The first line of every report, not yet escaped: `Plan v1: "title" [Completed]`."""
    plan = state.plan
    return f'Plan v{plan.version}: "{line(plan.title or plan.name)}" [{status_of(state).capitalize()}]'


def counts(state: RunState) -> tuple[tuple[str, int], ...]:
    """The counts of a summary, in the order people read them."""
    summary = state.summary()
    return (
        ("Total", summary["total"]),
        ("Successful", summary["completed"]),
        ("Failed", summary["failed"]),
        ("Skipped", summary["skipped"]),
        ("Blocked", summary["blocked"]),
        ("Cancelled", summary["cancelled"]),
    )


def seconds(value: float) -> str:
    """Return a duration for people: `0.3s`, `12.3s`, `1m05s`, `2h03m`."""
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole // 60 % 60:02d}m"


def tokens(count: int) -> str:
    """Return a number of tokens for people: `950 tokens`, `1.2K tokens`, `3.4M tokens`."""
    if count < 1000:
        return f"{count} token{'' if count == 1 else 's'}"
    if count < 999_950:
        return f"{count / 1000:.1f}K tokens"
    return f"{count / 1_000_000:.1f}M tokens"


def epoch(at: str) -> float:
    """Return the Unix time of an RFC 3339 UTC text; 0.0 for anything else.

    By hand, since `datetime` costs more than a report: days from the civil calendar, years from March.
    """
    try:
        year, month, day = int(at[0:4]), int(at[5:7]), int(at[8:10])
        clock = int(at[11:13]) * 3600 + int(at[14:16]) * 60 + float(at[17:].rstrip("Zz"))
    except ValueError:
        return 0.0
    year -= month < 3
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day
    return (days - 719469) * 86400.0 + clock
