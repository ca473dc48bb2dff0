"""How ends of runs and steps are spelled in the semantic conventions for CI/CD."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.events import AttemptEnded
    from planrun.model.progress import StepState
    from planrun.trace.span import Status

_STEPS = {
    "completed": "success",
    "failed": "failure",
    "skipped": "skip",
    "blocked": "skip",
    "cancelled": "cancellation",
    "lost": "error",
}
_ERRORS = ("refused", "spawn", "lost", "records", "denied", "copy")
"""Reasons of failures in which no command said no."""
_RUNS = {
    "completed": "success",
    "partial": "success",
    "failed": "failure",
    "cancelled": "cancellation",
}


def step_result(status: str, reason: str) -> str:
    """Return the result of a step or an attempt: success, failure, error, timeout, cancellation or skip."""
    if status == "failed":
        if reason in ("timeout", "idle_timeout", "deadline"):
            return "timeout"
        return "error" if reason in _ERRORS else "failure"
    return _STEPS.get(status, status)


def run_result(verdict: str, exit_code: int) -> str:
    """Return the result of a run by its verdict; 124 is the exit code of a run that took too long."""
    return "timeout" if exit_code == 124 else _RUNS.get(verdict, "failure")


def span_status(result: str) -> Status:
    """Return the status of a span with a result."""
    return "error" if result in ("failure", "error", "timeout") else "unset"


def outcome(result: str, kind: str, message: str, key: str) -> dict[str, Any]:
    """Return the fields of a span with a result; `kind`: class of the error, `key`: the attribute of the result."""
    status = span_status(result)
    attributes: dict[str, Any] = {key: result}
    if status == "error":
        attributes["error.type"] = kind or "_OTHER"
    return {"status": status, "message": message if status == "error" else "", "attributes": attributes}


def attempt_error(ended: AttemptEnded) -> tuple[str, str]:
    """Return class and message of the failure of an attempt; the reason where its class is not known."""
    error = ended.error or {}
    kind = error.get("class", "")
    return (kind if kind not in ("", "unknown") else ended.reason), error.get("message", "")


def step_error(step: StepState) -> tuple[str, str]:
    """Return class and message of the failure of a step."""
    last = step.attempts[-1].ended if step.attempts else None
    if last is None or last.status == "completed":
        return step.reason, step.message
    kind, message = attempt_error(last)
    return kind, message or step.message
