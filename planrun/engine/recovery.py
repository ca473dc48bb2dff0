"""From a failure to what is done about it: its class, by rules that can be named, and the reaction."""

from __future__ import annotations

import os

from planrun.model.job import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.job import ErrorClass, Outcome
    from planrun.model.plan import Retry, Step

# Typed rules come first: what we know ourselves beats what a program printed.
_REASONS: dict[str, ErrorClass] = {
    "timeout": "transient",
    "idle_timeout": "transient",
    "lost": "transient",
    "not_ready": "transient",
    "refused": "logic",
    "verify": "logic",
    "outputs": "logic",
    "spawn": "fatal",
    "denied": "fatal",
}
# sysexits(3), the shells' own codes, and 128 + n after signal n: what somebody else ended may go better the next
# time, a program that crashes has a fault of its own.
_EXITS: dict[int, tuple[ErrorClass, str]] = {
    64: ("logic", "EX_USAGE"),
    65: ("logic", "EX_DATAERR"),
    69: ("transient", "EX_UNAVAILABLE"),
    75: ("transient", "EX_TEMPFAIL"),
    77: ("fatal", "EX_NOPERM"),
    124: ("transient", "timeout(1)"),
    126: ("fatal", "not executable"),
    127: ("fatal", "command not found"),
    129: ("transient", "SIGHUP"),
    130: ("transient", "SIGINT"),
    132: ("logic", "SIGILL"),
    134: ("logic", "SIGABRT"),
    136: ("logic", "SIGFPE"),
    137: ("transient", "SIGKILL"),
    139: ("logic", "SIGSEGV"),
    141: ("logic", "SIGPIPE"),
    143: ("transient", "SIGTERM"),
}
# Text rules, tried on each of the last lines from the bottom up; whole words only, numbers only next to what
# makes them a status, so that `port 5030`, `geoff` or `502 tests passed` match nothing.
_TEXTS: tuple[tuple[ErrorClass, str, str], ...] = (
    ("transient", "rate limit", r"\brate[ -]?limit(?:ed|s|ing)?\b"),
    ("transient", "timed out", r"\b(?:timed[ -]out|timeout|deadline exceeded)\b"),
    ("transient", "connection", r"\bconnection (?:was )?(?:refused|reset|timed out|aborted)\b"),
    ("transient", "name resolution", r"\btemporary failure in name resolution\b"),
    (
        "transient",
        "http status",
        r"\b(?:http(?:/[\d.]+)?|status(?: code)?|error|code)[ :=]{1,3}(?:429|502|503|504)\b",
    ),
    (
        "transient",
        "http reason",
        r"\b(?:429 too many requests|502 bad gateway|503 service unavailable|504 gateway time-?out)\b",
    ),
    ("fatal", "permission denied", r"\b(?:permission|access) denied\b"),
    ("fatal", "forbidden", r"\bforbidden\b"),
    ("fatal", "no such file", r"\bno such file\b"),
    ("fatal", "not found", r"\bnot found\b"),
    ("logic", "validation error", r"\bvalidation error\b"),
    ("logic", "invalid argument", r"\binvalid argument\b"),
    ("logic", "syntax error", r"\b(?:syntax error|syntaxerror)\b"),
    ("logic", "parse error", r"\bparse error\b"),
)
_LAST_LINES = 40


def react(
    step: Step, tries: int, outcome: Outcome, *, repeat: bool, draw: Callable[[], float] | None = None
) -> tuple[Failure, float | None]:
    """Return why attempt number `tries` failed and, when it is to be repeated, after how many seconds.

    `draw` places the delay in its jitter; None: chance.
    """
    failure = classify(outcome)
    if repeat and retries(step, tries, outcome, failure):
        return failure, delay(step.retries, tries, (draw or chance)())
    return failure, None


def classify(outcome: Outcome) -> Failure:
    """Say what kind of failure an outcome is, and which rule said so (`reason:`, `exit:` or `text:`)."""
    message = outcome.message
    if outcome.reason in _REASONS:
        return Failure(error_class=_REASONS[outcome.reason], rule=f"reason:{outcome.reason}", message=message)
    if outcome.exit_code in _EXITS:
        error_class, name = _EXITS[outcome.exit_code]
        return Failure(error_class=error_class, rule=f"exit:{name}", message=message)
    found = classify_text(outcome.tail)
    if found:
        return Failure(error_class=found[0], rule=f"text:{found[1]}", message=message)
    return Failure(error_class="unknown", rule="none", message=message)


def classify_text(text: str) -> tuple[ErrorClass, str] | None:
    """Return class and rule of the last line that a rule knows; None when there is none."""
    if not text:
        return None
    import re  # only failures pay for it

    rules = [(error_class, name, re.compile(rule, re.IGNORECASE)) for error_class, name, rule in _TEXTS]
    for line in reversed(text.splitlines()[-_LAST_LINES:]):
        for error_class, name, rule in rules:
            if rule.search(line[:2000]):
                return error_class, name
    return None


def retries(step: Step, attempt: int, outcome: Outcome, failure: Failure) -> bool:
    """Whether attempt number `attempt` (1-based, counted since the step last became pending) is repeated."""
    retry = step.retries
    if attempt > retry.max or not step.idempotent or outcome.reason in ("denied", "refused"):
        return False
    return any(_matches(rule, outcome, failure) for rule in retry.on)


def _matches(rule: tuple[object, ...], outcome: Outcome, failure: Failure) -> bool:
    kind = rule[0]
    if kind == "any":
        return True
    if kind in ("timeout", "idle_timeout"):
        return outcome.reason == kind
    if kind == "class":
        return failure.error_class == rule[1]
    if kind == "exit":
        codes = rule[1]
        return isinstance(codes, tuple) and outcome.exit_code in codes and outcome.reason == "exit"
    return isinstance(rule[1], str) and rule[1] in outcome.tail


def delay(retry: Retry, attempt: int, chance: float) -> float:
    """Return the seconds to wait after failed attempt `attempt`; `chance` in 0…1 places it in the jitter.

    min(initial · factor^(attempt-1), cap), give or take `jitter` of it.
    """
    seconds = min(retry.initial * retry.factor ** min(attempt - 1, 64), retry.cap)
    return max(0.0, seconds * (1 + retry.jitter * (2 * chance - 1)))


def chance() -> float:
    """A number in 0…1 for the jitter; `random` would cost every start 1.5 ms."""
    return int.from_bytes(os.urandom(2), "big") / 0xFFFF
