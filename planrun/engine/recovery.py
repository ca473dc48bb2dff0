"""From a failure to what is done about it: whether and when the attempt is repeated."""

from __future__ import annotations

import os

from planrun.engine.errorclasses import classify, is_program_missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.job import Failure, Outcome
    from planrun.model.plan import Retry, Step


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


def retries(step: Step, attempt: int, outcome: Outcome, failure: Failure) -> bool:
    """Whether attempt number `attempt` (1-based, counted since the step last became pending) is repeated.

    Where there is no such program only a filter that names its exit code or text repeats it.
    """
    retry = step.retries
    if attempt > retry.max or not step.idempotent or outcome.reason in ("denied", "refused"):
        return False
    missing = is_program_missing(outcome)
    return any(
        _matches(rule, outcome, failure) for rule in retry.on if not missing or rule[0] in ("exit", "match")
    )


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
