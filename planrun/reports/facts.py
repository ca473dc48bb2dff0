"""What every report shows of a step and a run in the same words: icon, cause, reason, times, tokens, cached results."""

from __future__ import annotations

from planrun.model.planning import lineage
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.model.events import AttemptEnded, RunEnding
    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Look


def seconds(value: float) -> str:
    """Return a duration for people: `0.3s`, `12.3s`, `1m05s`, `2h03m`."""
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole // 60 % 60:02d}m"


def period(value: float) -> str:
    """Return a length of time as in a plan, without zeros: `45s`, `3m`, `1h30m`, `0.5s`."""
    if value < 60:
        return f"{value:g}s"
    whole = round(value)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join([f"{count}{unit}" for count, unit in parts if count])


def age(value: float) -> str:
    """Return how long something takes already, no finer than people want to know: `45s`, `3m`, `1h30m`."""
    return period(int(value) if value < 60 else value // 60 * 60)


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


def size(count: int) -> str:
    """Return bytes in the largest binary unit that is not too large, as `1.5 GiB`."""
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


NO_RESULT = "no earlier result"


def spent_or_reused(step: StepState, spent: str) -> str:
    """Return what stands in brackets behind a completed step: `cached, of run …`, or its time and why it ran."""
    if step.reason == "cached":
        return reused(step)
    why = uncached(step)
    return f"{spent}, ran: {why}" if why else spent


def reused(step: StepState) -> str:
    """Whose result a cached step has: `cached, of run 20260131-093000-1f2e3d`."""
    source = step.restored.source if step.restored else ""
    return f"cached, of run {line(source)}" if source else "cached"


def uncached(step: StepState) -> str:
    """Why no earlier result of a cached step was used, in one clean line; "" where there was none."""
    tries = step.tries
    lookup = tries[0].ended.cache if tries and tries[0].ended else {}
    why = line(str(lookup.get("why", "")))
    return "" if why == NO_RESULT else why


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
_COLOURS = {
    "completed": "32",
    "failed": "31",
    "blocked": "33",
    "cancelled": "33",
    "partial": "33",
    "paused": "33",
    "waiting": "33",
    "skipped": "90",
}
# Why a step ended as it did, where its events have no message.
_SENTENCES = {
    "timeout": "ran into its timeout",
    "idle_timeout": "printed nothing for too long",
    "verify": "a check does not hold",
    "outputs": "its outputs do not match their declaration",
    "spawn": "could not be started",
    "refused": "an unsafe value was refused",
    "lost": "the attempt has no recorded end",
    "planning": "no model expanded it",
    "denied": "was not allowed",
    "budget": "its budget is used up",
    "members": "one of its instances failed",
    "fail_fast": "another instance failed (fail_fast)",
    "condition": "its condition is false",
    "upstream": "a step it depends on did not end as required",
    "tolerated": "depends on a step whose failure is tolerated",
    "not_selected": "not selected",
    "approval": "excluded when the run was started or approved",
    "empty": "no items",
    "replaced_by_replan": "replaced by replan",
    "abort": "the failure of another step aborted the run",
    "deadline": "the run passed its deadline",
    "cancelled": "the run was cancelled",
    "records": "the records could not be written",
}
# The same numbers on every system.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    15: "SIGTERM",
}
_NAMED = 8  # of many names the first ones


def icon(look: Look, status: str) -> str:
    """Return the icon of a status as a console shows it."""
    shown = (ICONS if look.unicode else ASCII_ICONS)[status]
    return f"\x1b[{_COLOURS[status]}m{shown}\x1b[0m" if look.colour and status in _COLOURS else shown


def status_of(state: RunState) -> str:
    """The verdict of a run that ended or failed, `waiting` for one that needs an answer, else its status."""
    if verdict := state.settled:
        return verdict
    return "waiting" if is_waiting(state) else state.status


def is_waiting(state: RunState) -> bool:
    """Whether a run stopped, and can only continue after an answer."""
    if state.ended or state.exit_status is None:
        return False
    if state.status == "awaiting_approval":
        return state.gate is not None and state.gate.answered is None
    return any(step.at_gate and step.asked is not None for step in state.steps.values())


def listed(state: RunState) -> list[StepState]:
    """The steps that have a line of their own: the members of a group, or the group where it has none."""
    return [step for step in state.steps.values() if step.step.kind != "group" or has_own_line(step)]


def has_own_line(step: StepState) -> bool:
    """Whether a group has a line of its own: it has no members, or failed by itself."""
    return not step.step.grouping.members or (step.status == "failed" and step.reason != "members")


def option(state: RunState, name: str) -> object:
    """What the caller requested when the run started or was last resumed; None where it was not recorded."""
    return state.options.get(name)


def shard_of(state: RunState) -> dict[str, Any]:
    """Return the selection of a run that is one of several shards; empty for any other run."""
    selection = state.started.options.get("selection") if state.started else None
    return selection if isinstance(selection, dict) and selection.get("shard") else {}


def has_secret_in_plan(state: RunState) -> bool:
    """Whether the plan itself holds the value of a secret, so that what it has written must not be shown."""
    about: Any = option(state, "secrets")
    return bool(about and about.get("in_plan"))


def notes(state: RunState) -> tuple[str, ...]:
    """Which options of a run were not granted: budgets above the limits, the step cache."""
    budget, refused = option(state, "budget"), option(state, "store_refused")
    texts = tuple(map(line, budget.get("notes", ()))) if isinstance(budget, dict) else ()
    return (*texts, f"the step cache is not used: {line(str(refused))}") if refused else texts


def ending(state: RunState) -> str:
    """What ended the run early, or which outputs of the plan could not be evaluated; empty for neither."""
    if state.ending:
        return ended_by(state, state.ending)
    return line(state.ended.message) if state.ended else ""


def ended_by(state: RunState, event: RunEnding) -> str:
    """Why a run ended early, by one of the events that end it; the first one counts."""
    if event.why == "pause":
        return f"pausing: {line(event.message) or 'no more steps start, running steps finish'}"
    if event.why == "gates":
        waits = {step.reason for step in state.steps.values() if step.status == "waiting"}
        return "paused: answer required" if waits == {"decision"} else "paused: approval required"
    if event.why == "budget":
        return f"pausing: the budget for models is used up: {line(event.message)}".removesuffix(": ")
    if event.why == "cancel":
        if event.is_final:
            return f"cancelled {event.message}"
        if event.message:
            return f"cancelled: {line(event.message)}"
        signal = _SIGNALS.get(event.signal, f"signal {event.signal}" if event.signal else "")
        return f"cancelled by {signal}" if signal else "cancelled"
    if event.why == "records":
        return line(event.message) or _SENTENCES["records"]
    if event.why == "deadline":
        limit = state.plan.limits.deadline
        return f"the deadline of {period(limit)} passed" if limit else "the deadline passed"
    return f"aborted by the failure of {line(event.step)}" if event.step else "aborted by a failure"


def is_plain(state: RunState) -> bool:
    """Whether a run completed and there is nothing to add: its end needs no explanation."""
    return state.settled == "completed" and state.exit_status == 0


def objection(state: RunState) -> str:
    """Why a run that is completed or partial ends with exit code 1 all the same; empty for every other."""
    if state.exit_status != 1 or state.settled not in ("completed", "partial"):
        return ""
    reasons = []
    failed = [name(step) for step in listed(state) if step.status == "failed"]
    if failed and option(state, "strict"):
        reasons.append(f"{_counted(failed, 'tolerated failure')} (--strict): {names(failed)}")
    elif unproven := state.unproven():
        reasons.append(f"no reviewed step checked what a model put in the place of {names(unproven)}")
    flaky = [name(step) for step in state.steps.values() if len(step.attempts) > 1 and step.flaky]
    if flaky and (option(state, "fail_on_flaky") or not reasons):
        reasons.append(f"{_counted(flaky, 'flaky step')} (--fail-on-flaky): {names(flaky)}")
    return "; ".join(reasons) or "exit code 1"


def outcome(state: RunState) -> str:
    """The status with what explains it: `cancelled by SIGTERM`, `failed: the deadline of 1h passed`."""
    status, why = status_of(state), ending(state) if state.settled else ""
    if why.startswith(status):
        return why
    against = objection(state)
    return f"{status}: {why}" if why else f"{status}, but {against}" if against else status


def unended(state: RunState) -> str:
    """What stands in place of the exit code of a run that has none; empty before its start."""
    if is_waiting(state):
        return f"exit code {state.exit_status}; it waits for an answer"
    if state.status in ("paused", "awaiting_approval") and state.exit_status is not None:
        return to_continue(state)
    return "the records have no end" if state.started else ""


def again(state: RunState) -> str:
    """How to run the plan of a run that a user cancelled once more."""
    return f"to run the plan again: planrun execute {line(state.plan.file)}"


def to_continue(state: RunState, run: str = "") -> str:
    """How to continue a run that failed, was cancelled or is paused; `run`: what to call it, not by its id."""
    if state.ended and state.ending and state.ending.is_final:
        return again(state)
    command, note = continuation(state, run)
    return f"to continue: {command}{f' ({note})' if note else ''}"


def continuation(state: RunState, run: str = "") -> tuple[str, str]:
    """Return the command that goes on after a run failed, was cancelled or paused, and what to know about it."""
    if state.ended and state.ending and state.ending.is_final:
        return again(state).partition(": ")[2], ""
    run = run or (line(state.started.run) if state.started else "RUN")
    if limit := _used_up(state):
        name, amount = limit
        return f"planrun resume {run} --max-{name} N", f"N must allow another call; {amount} did not"
    denied = any(step.status == "failed" and step.reason == "denied" for step in state.steps.values())
    return (
        f"planrun resume {run}",
        "denied steps stay denied, unless --plan FILE changes them" if denied else "",
    )


def limits_of(state: RunState) -> Mapping[str, float]:
    """Return the limits in force, by resource, as they were recorded; else those of the plan."""
    recorded: Any = option(state, "budget")
    if recorded:
        limits_recorded: Mapping[str, float] = recorded["limits"]
        return limits_recorded
    limits = state.plan.limits
    known = (("tokens", limits.max_tokens), ("usd", limits.max_usd), ("turns", limits.max_turns))
    return {name: value for name, value in known if value is not None}


def amount_of(value: float) -> str:
    """Return an amount without an exponent: 1234567, 0.0125."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))


def _used_up(state: RunState) -> tuple[str, str] | None:
    """Return which budget for models was used up by a run that is paused for it, and its limit; else None."""
    planning = state.planning
    if (
        state.status != "paused"
        or planning is None
        or not planning.ended
        or planning.ended[-1].outcome != "budget"
    ):
        return None
    refused = [event for event in planning.crossed if event.level == 100 and event.scope == "plan"]
    name = refused[-1].resource if refused else "tokens"
    return name, amount_of(limits_of(state).get(name, 0))


def names(many: Sequence[str]) -> str:
    """The names in one clean line; of many the first eight and how many more there are."""
    more = f" and {len(many) - _NAMED} more" if len(many) > _NAMED else ""
    return line(", ".join(many[:_NAMED])) + more


def _counted(many: Sequence[str], noun: str) -> str:
    return f"{len(many)} {noun}{'' if len(many) == 1 else 's'}"


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


def labels(state: RunState) -> Mapping[str, str]:
    """What steps are called that take the place of others, by id: 3' for the one that replaces 3."""
    if not state.replaced:
        return {}
    return lineage(state.plan)


def named(step: StepState, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return what a step is called, and what that adds to its details: `3'`, `replan as 7, `."""
    label = labels.get(step.step.id) if labels else None
    return (line(label), f"replan as {name(step)}, ") if label else (name(step), "")


def step_text(step: StepState, labels: Mapping[str, str]) -> str:
    """Return `Step 1: title (12.3s, 1.2K tokens)`, clean; a step without a title shows its id only."""
    about = f": {line(step.step.title)}" if step.step.title else ""
    called, added = named(step, labels)
    return f"Step {called}{about} ({added}{details(step)})"


def step_line(
    step: StepState, icons: dict[str, str] = ICONS, *, labels: Mapping[str, str] | None = None
) -> str:
    """Return the text of a step behind its icon; `labels`: what steps are called that take the place of others."""
    return f"{icons[step.status]} {step_text(step, labels or {})}"


def title(step: StepState, labels: Mapping[str, str]) -> str:
    """Return `test: Unit tests (12.3s)`, clean; a failed step shows its time, too."""
    called, added = named(step, labels)
    about = f": {line(step.step.title)}" if step.step.title else ""
    spent = f", {seconds(duration(step))}" if step.status == "failed" and step.tries else ""
    return f"{called}{about} ({added}{details(step)}{spent})"


def is_revised(state: RunState) -> bool:
    """Whether there is more to say of a run's plan than its name."""
    return state.plan.version > 1 or bool(state.planning and state.planning.ended)


def duration(step: StepState) -> float:
    """Seconds spent in the attempts of a step since it last became pending: not those before a resume."""
    tries = step.tries
    if len(tries) == 1:  # most have one, and large runs ask often
        ended = tries[0].ended
        return ended.duration if ended else 0.0
    return sum(attempt.ended.duration for attempt in tries if attempt.ended)


def last(step: StepState) -> AttemptState | None:
    """The last attempt since it last became pending."""
    tries = step.tries
    return tries[-1] if tries else None


def started_at(step: StepState) -> str:
    """When its first attempt started, else when it ended; empty before that."""
    tries = step.tries
    return tries[0].started.at if tries else step.ended_at


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
    attempt = last(step)
    ended = attempt.ended if attempt else None
    if not step.message and ended and ended.status != "completed":
        return attempt_sentence(ended)
    return line(step.message or _SENTENCES.get(step.reason, cause(step))) or step.status


def attempt_sentence(ended: AttemptEnded | None) -> str:
    """Why an attempt failed, in one clean line that is never empty."""
    if ended is None:
        return "has no recorded end"
    message = ended.error.get("message", "") if ended.error else ""
    if ended.reason == "exit" and ended.exit_code is not None:
        return _exit_in_words(ended.exit_code, line(message))
    if message:
        return line(message) or ended.reason
    return line(_SENTENCES.get(ended.reason, ended.reason)) or ended.status


def is_killed(ended: AttemptEnded) -> bool:
    """Whether the process of an attempt was ended by a signal."""
    message = ended.error.get("message", "") if ended.error else ""
    return message.startswith("killed by ") or (ended.exit_code or 0) - 128 in _SIGNALS


def _exit_in_words(code: int, message: str) -> str:
    """Return what shells and systems mean by an exit code: `exit code 127: command not found`.

    Numbers that programs choose freely stay without words; so does 2, which means several things.
    """
    shown = f"exit code {code}"
    if message not in ("", shown) and not message.startswith("killed by "):
        return message
    words = {126: "not executable", 127: "command not found"}.get(code, "")
    if signal := _SIGNALS.get(code - 128):
        words = f"{'terminated' if signal == 'SIGTERM' else 'killed'} by {signal}"
    words = words or message.removeprefix(shown)
    return f"{shown}: {words}" if words else shown


def sandbox_notes(step: StepState) -> list[str]:
    """Return where the sandbox of the last attempt may be why it failed."""
    attempt = last(step)
    if attempt is None or attempt.ended is None or not attempt.started.sandbox:
        return []
    return [line(note) for note in attempt.ended.notes if note.startswith("the sandbox ")]


def not_replanned(state: RunState, step: StepState) -> str:
    """Return why no model was asked about a fatal failure: its class is read from its output; "" otherwise."""
    attempt, told = last(step), option(state, "replan")
    error = attempt.ended.error if attempt and attempt.ended else None
    if not error or error["class"] != "fatal" or not error["rule"].startswith("text:"):
        return ""
    if step.step.replan != "fatal" or not isinstance(told, dict) or not told["model"]:
        return ""
    return "no model replans it, since its class comes from its output alone; on_failure: replan has it replanned"


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
        spent = seconds(duration(step))
        if step.step.cache is not None:
            spent = spent_or_reused(step, spent)
        used = tokens_of(step)
        spent += f", {tokens(used)}" if used else ""
        return spent + (", flaky" if len(step.attempts) > 1 and step.flaky else "")
    # What blocked a step is the first thing to ask.
    why = line(step.message, 100) if step.status == "blocked" and step.message else cause(step)
    return f"{step.status}: {why}" if why and why != step.status else step.status


def classified(error: dict[str, str] | None) -> bool:
    """Whether the kind of an error is known: its class is not `unknown`, or a rule matched."""
    if not error:
        return False
    return error.get("class") not in (None, "", "unknown") or error.get("rule") not in (None, "", "none")


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


def census(state: RunState) -> str:
    """The counts in one line, without those that are nought: `5 steps: 1 successful, 4 to run`."""
    total, *parts = counts(state)
    if not state.ended:
        parts.append(("To run", sum(not step.ended for step in state.counted())))
    shown = ", ".join([f"{count} {name.lower()}" for name, count in parts if count])
    return f"{total[1]} step{'' if total[1] == 1 else 's'}{': ' if shown else ''}{shown}"


def verdict(state: RunState) -> str:
    """The result in one line: `failed in 52.1s: 9 steps: 3 successful, 6 failed`."""
    status = status_of(state)
    status = "paused" if status == "waiting" else status
    return f"{status} in {seconds(elapsed(state))}: {census(state)}"


def summary(state: RunState) -> str:
    """The result in one line: `failed (exit code 1), 52.1s, 9 steps: 3 successful, 6 failed`."""
    end = ""
    if state.exit_status is not None:
        end = f"exit code {state.exit_status}"
    elif state.started:
        end = "the records have no end"
    return f"{outcome(state)}{f' ({end})' if end else ''}, {seconds(elapsed(state))}, {census(state)}"
