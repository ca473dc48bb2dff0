"""What language models used in a run: in all, by step, and call by call; loaded for runs in which one was asked.

A planning belongs to the steps that it was for: those that failed, or the abstract ones. Where it was for several,
each has an equal part of it, so that the parts add up to the whole.
"""

from __future__ import annotations

from planrun.model.call import TOKENS
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.events import BudgetCrossed
    from planrun.model.planning import Call, Planning
    from planrun.model.state import RunState

KINDS = (*TOKENS, "unconfirmed_tokens", "usd")
"""What is added up; unconfirmed: tokens that were reserved for calls of which nobody told what they used."""


def spent(state: RunState) -> dict[str, float]:
    """Return what the generation of the plan, all attempts and all plannings used, by kind."""
    totals: dict[str, float] = dict.fromkeys(KINDS, 0)
    if state.started is not None:
        _add(totals, state.started.options.get("generation", {}).get("usage", {}))
    for step in state.steps.values():
        for attempt in step.attempts:
            if attempt.ended is not None:
                _add(totals, attempt.ended.usage)
    for call in state.planning.calls if state.planning else ():
        _add(totals, _used(call))
    return totals


def by_step(state: RunState) -> dict[str, dict[str, float]]:
    """Return what the plannings for each step used, by kind; attempts are not part of it."""
    found: dict[str, dict[str, float]] = {}
    for call in state.planning.calls if state.planning else ():
        steps = call.planning.steps if call.planning else ()
        for number, name in enumerate(steps):
            totals = found.setdefault(name, dict.fromkeys(KINDS, 0))
            _add(
                totals, {kind: _part(kind, value, number, len(steps)) for kind, value in _used(call).items()}
            )
    return found


def _part(kind: str, value: float, number: int, parts: int) -> float:
    """Return one of the parts of a whole; the first ones get the tokens that are left over."""
    if kind == "usd":
        return value / parts
    return int(value) // parts + (number < int(value) % parts)


def _add(totals: dict[str, float], usage: Mapping[str, float]) -> None:
    for kind in KINDS:
        totals[kind] += usage.get(kind, 0)
    totals["usd"] = round(totals["usd"], 9)


def _used(call: Call) -> dict[str, float]:
    """Return what a call counts for, by kind."""
    answered = call.answered
    if answered is None or (answered.is_estimate and not answered.usage):
        reserved = call.asked.reserved
        return {"unconfirmed_tokens": reserved.get("tokens", 0), "usd": reserved.get("usd", 0)}
    return dict(answered.usage)


def tokens_in(usage: Mapping[str, float]) -> int:
    """Return all tokens of a usage."""
    return int(sum(usage.get(kind, 0) for kind in KINDS if kind != "usd"))


def _recorded(state: RunState) -> Any:
    """Return what the run, or its last resumption, recorded of its limits; None where it did not."""
    return state.options.get("budget")


def limits_of(state: RunState) -> Mapping[str, float]:
    """Return the limits in force, by resource, as they were recorded; else those of the plan."""
    recorded = _recorded(state)
    if recorded:
        found: Mapping[str, float] = recorded["limits"]
        return found
    limits = state.plan.limits
    known = (("tokens", limits.max_tokens), ("usd", limits.max_usd), ("turns", limits.max_turns))
    return {name: value for name, value in known if value is not None}


def as_data(state: RunState, planning: Planning) -> dict[str, Any]:
    """Return everything about models as JSON data."""
    recorded = _recorded(state)
    limits = limits_of(state)
    return {
        "models": list(dict.fromkeys(call.asked.model for call in planning.calls)),
        "calls": [_call(call) for call in planning.calls],
        "plannings": [
            {
                "purpose": ended.purpose,
                "steps": list(ended.steps),
                "outcome": ended.outcome,
                "message": ended.message,
                "rounds": ended.rounds,
                "version": ended.plan.get("version"),
                "refusals": [dict(refusal) for refusal in ended.refusals],
                "problems": list(ended.problems),
            }
            for ended in planning.ended
        ],
        "budget": [
            {"resource": name, "used": round(planning.used(name), 9), "limit": limits.get(name)}
            for name in ("tokens", "usd", "turns")
        ],
        "crossed": [_crossing(event) for event in planning.crossed],
        "prices": recorded["prices"] if recorded else None,
    }


def _call(call: Call) -> dict[str, Any]:
    asked, answered = call.asked, call.answered
    usage: Mapping[str, float] = answered.usage if answered else {}
    return {
        "n": asked.call,
        "purpose": asked.purpose,
        "steps": list(call.planning.steps) if call.planning else [],
        "model": (answered.model if answered else "") or asked.model,
        "ending": answered.ending if answered else None,
        "message": answered.message if answered else "",
        "attempts": answered.attempts if answered else 0,
        "duration_s": answered.duration if answered else None,
        **{kind: usage.get(kind, 0) for kind in TOKENS},
        "usd": usage.get("usd"),
        "reserved_tokens": asked.reserved.get("tokens", 0),
        "reserved_usd": asked.reserved.get("usd"),
        "confirmed": answered is not None and not answered.is_estimate,
        "replayed": answered is not None and answered.replayed,
        "request": asked.request,
        "request_id": answered.request_id if answered else "",
    }


def _crossing(event: BudgetCrossed) -> dict[str, Any]:
    return {
        "at": event.at,
        "scope": event.scope,
        "step": event.step or None,
        "resource": event.resource,
        "level": event.level,
        "used": event.used,
        "limit": event.limit,
    }


def properties(state: RunState) -> dict[str, str]:
    """Return what models used as properties of a test report."""
    usage = spent(state)
    found = {name: int(usage[name]) for name in (*TOKENS, "unconfirmed_tokens") if usage[name]}
    calls = len(state.planning.calls) if state.planning else 0
    told = {"planrun.model_calls": str(calls)} | {
        f"planrun.{name}": str(value) for name, value in found.items()
    }
    return told | ({"planrun.usd": amount_of(usage["usd"])} if usage["usd"] else {})


# For people.


def amount_of(value: float) -> str:
    """Return an amount without an exponent: 1234567, 0.0125."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))


def larger(state: RunState) -> str:
    """Return how a run goes on that rests since models used up what they may; empty for every other."""
    if state.status != "paused" or state.planning is None or not _is_used_up(state):
        return ""
    run = line(state.started.run) if state.started else "RUN"
    refused = [event for event in state.planning.crossed if event.level == 100 and event.scope == "plan"]
    name = refused[-1].resource if refused else "tokens"
    limit = amount_of(limits_of(state).get(name, 0))
    return (
        f"planrun resume {run} --max-{name} N goes on, with an N that leaves room for a call; {limit} did not"
    )


def _is_used_up(state: RunState) -> bool:
    ended = state.planning.ended if state.planning else []
    return bool(ended) and ended[-1].outcome == "budget"
