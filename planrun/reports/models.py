"""What language models were asked and used in a run: in all, by step, and call by call."""

from __future__ import annotations

from planrun.model.call import TOKENS
from planrun.model.events import BudgetCrossed, ModelAnswered, ModelRepeated, PlanningEnded, PlanningStarted
from planrun.model.planning import amount
from planrun.reports import facts
from planrun.reports import facts as units
from planrun.reports.document import table
from planrun.reports.escape import line
from planrun.reports.facts import amount_of, limits_of
from planrun.reports.versions import outcome_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.events import BudgetCrossed
    from planrun.model.planning import Call, Planning
    from planrun.model.state import RunState
    from planrun.reports.document import Kind, Part, Section

KINDS = (*TOKENS, "unconfirmed_tokens", "usd")
"""What is added up; unconfirmed: tokens reserved for calls whose usage is not known."""


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
    usages: dict[str, dict[str, float]] = {}
    for call in state.planning.calls if state.planning else ():
        steps = steps_of(call)
        for number, name in enumerate(steps):
            totals = usages.setdefault(name, dict.fromkeys(KINDS, 0))
            _add(
                totals, {kind: _part(kind, value, number, len(steps)) for kind, value in _used(call).items()}
            )
    return usages


def steps_of(call: Call) -> tuple[str, ...]:
    """Return the steps that a call was made for."""
    if call.asked.step:
        return (call.asked.step,)
    return call.planning.steps if call.planning else ()


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


def as_data(state: RunState, planning: Planning) -> dict[str, Any]:
    """Return everything about models as JSON data."""
    recorded: Any = facts.option(state, "budget")
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
        "steps": list(steps_of(call)),
        "agent": call.asked.agent or None,
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


def usage_properties(state: RunState) -> dict[str, str]:
    """Return what models used as properties of a JUnit file; nothing for a run in which none was asked."""
    if state.planning is None:
        return {}
    usage = spent(state)
    used = {name: int(usage[name]) for name in (*TOKENS, "unconfirmed_tokens") if usage[name]}
    calls = len(state.planning.calls)
    values = {"planrun.model_calls": str(calls)} | {
        f"planrun.{name}": str(value) for name, value in used.items()
    }
    return values | ({"planrun.usd": amount_of(usage["usd"])} if usage["usd"] else {})


# For people.


_MOST_ROWS = 100  # of calls and of steps in a report
_RESOURCES = {"tokens": "tokens", "usd": "US dollars", "turns": "turns", "time": "seconds"}
_WHOSE = {"planning": "the planning", "call": "the longest answer"}


def totals_line(state: RunState) -> str:
    """Return `3 calls, 5.7K of 7.0K tokens, 0.0231 of 1.00 USD`; `nothing was asked` of a planning without calls."""
    planning = state.planning
    if planning is None or not planning.calls:
        return "nothing was asked"
    limits, usage = limits_of(state), spent(state)
    calls = len(planning.calls)
    turns = f" of {limits['turns']:g}" if "turns" in limits else ""
    amounts = [f"{calls}{turns} call{'' if calls == 1 and not turns else 's'}"]
    amounts.append(_of(units.tokens(tokens_in(usage)), units.tokens(int(limits.get("tokens", 0)))))
    price = (
        dollars(usage["usd"])
        if any("usd" in call.asked.reserved for call in planning.calls)
        else "at no known price"
    )
    amounts.append(_of(price, dollars(limits["usd"]) if "usd" in limits else ""))
    unsure = sum(call.answered is None or call.answered.is_estimate for call in planning.calls)
    if unsure:
        amounts.append(f"{unsure} of the calls counted as at most")
    return ", ".join(amounts)


def _of(used: str, limit: str) -> str:
    """Return `5.7K of 7.0K tokens` from two amounts with the same unit."""
    if not limit or limit == units.tokens(0):
        return used
    value, _, unit = used.partition(" ")
    most, _, _ = limit.partition(" ")
    return f"{value} of {most} {unit}" if unit else f"{used} of {limit}"


def dollars(value: float) -> str:
    """Return `0.0231 USD`, `12.50 USD`: four digits where it is little money."""
    return f"{value:.2f} USD" if value >= 1 or not value else f"{value:.4f} USD"


def estimates(state: RunState) -> list[tuple[str, int, int]]:
    """Return what was estimated for steps and what they used, where either is known: name, estimated, used."""
    plannings = by_step(state)
    rows = []
    for name, step in state.steps.items():
        used = facts.tokens_of(step) + tokens_in(plannings.get(name, {}))
        if used or (step.step.estimated_tokens and step.attempts):
            rows.append((facts.name(step), step.step.estimated_tokens, used))
    return rows


def event_line(
    event: PlanningStarted | ModelRepeated | ModelAnswered | BudgetCrossed | PlanningEnded, state: RunState
) -> tuple[str, str]:
    """Return the status whose icon fits, `partial` for a warning, and one clean line."""
    if isinstance(event, PlanningStarted):
        if event.model.startswith("search: "):
            algorithm = event.model.removeprefix("search: ")
            return "running", line(f"searching another way ({algorithm}): {facts.names(event.steps)}")
        purpose = "a new plan" if event.purpose == "replan" else "concrete steps"
        return "running", line(f"asking {event.model} for {purpose}: {facts.names(event.steps)}")
    if isinstance(event, ModelRepeated):
        return "partial", repeat_line(event)
    if isinstance(event, ModelAnswered):
        return "completed" if event.ending == "answered" else "partial", answer_line(state, event)
    if isinstance(event, BudgetCrossed):
        return "partial", crossing_line(event)
    if event.outcome == "revised":
        return "completed", f"the run continues with version {event.plan.get('version', '')} of its plan"
    why = outcome_words(state, event)
    if event.outcome == "budget":  # the event of the budget itself shows what is used up
        return "partial", why
    return "partial", line(f"{why}: {event.message}" if event.message else why)


def repeat_line(event: ModelRepeated) -> str:
    """Return `attempt 1 of call 2 failed: the service is overloaded (529); the next one in 2.1s`, clean."""
    when = f"in {units.seconds(event.delay)}" if event.delay else "now"
    return line(f"attempt {event.attempt} of call {event.call} failed: {event.message}; next attempt {when}")


def answer_line(state: RunState, answered: ModelAnswered) -> str:
    """Return the result of a call, clean: `asked MODEL (replan, call 2): 5.7K tokens, 0.0231 USD in 3.2s`."""
    calls = state.planning.calls if state.planning else []
    asked = next((call.asked for call in reversed(calls) if call.asked.call == answered.call), None)
    purpose = f"{asked.agent or asked.purpose}, " if asked else ""
    reserved = asked.reserved if asked else {}
    model = answered.model or (asked.model if asked else "a model")
    used = units.tokens(int(amount(answered, reserved, "tokens")))
    if answered.usage.get("usd"):
        used += f", {dollars(answered.usage['usd'])}"
    if answered.is_estimate:
        used = f"at most {used}"
    ending = "" if answered.ending == "answered" else f"{answered.ending}: {answered.message}; "
    source = ", replayed" if answered.replayed else ""
    repeats = f", {answered.attempts} attempts" if answered.attempts > 1 else ""
    took = units.seconds(answered.duration)
    return line(f"asked {model} ({purpose}call {answered.call}{source}): {ending}{used} in {took}{repeats}")


def crossing_line(event: BudgetCrossed, whole: str = "the run") -> str:
    """Return `80% of the tokens of the run are used: 5700 of 7000`, clean; `whole`: whose the largest budget is."""
    whose = f"the step {event.step}" if event.step else _WHOSE.get(event.scope, whole)
    what = _RESOURCES.get(event.resource, event.resource)
    digits = 1 if event.resource == "time" else 9
    used = f"{amount_of(round(event.used, digits))} of {amount_of(round(event.limit, digits))}"
    if event.level < 100:
        return line(f"{event.level}% of the {what} of {whose} are used: {used}")
    then = "; nothing more is asked" if event.scope in ("plan", "step") else ""
    if event.used < event.limit:
        return line(f"the {what} of {whose} leave no room for a call, {used} are used{then}")
    return line(f"the {what} of {whose} are used up: {used}{then}")


def _sections(state: RunState) -> Iterator[Section]:
    """Yield every call, then what each step was estimated to need and used."""
    planning = state.planning
    if planning is None or not planning.calls:
        return
    more = len(planning.calls) - _MOST_ROWS
    yield table(
        "Language model",
        (
            *(("Call", "number"), ("For", "text"), ("Model", "code"), ("Ended", "text")),
            *(("Tokens", "number"), ("Reserved", "number"), ("Cost", "number"), ("Time", "number")),
        ),
        [_cells(call) for call in planning.calls[:_MOST_ROWS]],
        note=f"{totals_line(state)}." + (f" {more} more calls are in ledger.json." if more > 0 else ""),
    )
    rows = [
        (name, str(estimated or ""), str(used or ""))
        for name, estimated, used in estimates(state)[:_MOST_ROWS]
    ]
    if rows:
        columns: tuple[tuple[str, Kind], ...] = (
            *(("Step", "step"), ("Estimated tokens", "number"), ("Used tokens", "number")),
        )
        yield table("Tokens by step", columns, rows)


def _cells(call: Call) -> tuple[str, ...]:
    """Return the cells of a call, not yet escaped."""
    asked, answered = call.asked, call.answered
    ending = answered.ending if answered else "no recorded end"
    usage = answered.usage if answered else {}
    price = dollars(usage["usd"]) if "usd" in usage else ""
    sure = answered is not None and not answered.is_estimate
    used = f"{int(call.used('tokens'))}{'' if sure else ' at most'}"
    reserved = int(asked.reserved.get("tokens", 0))
    took = units.seconds(answered.duration) if answered else ""
    model = (answered.model if answered else "") or asked.model
    return str(asked.call), asked.purpose, model, ending, used, str(reserved), price, took


MODELS: Part = {
    "event_line": event_line,
    "summary": lambda state: [("Language model", totals_line(state))] if state.planning is not None else [],
    "sections": _sections,
    "properties": usage_properties,
    "ledger": {
        "usage": spent,
        "llm": lambda state: as_data(state, state.planning) if state.planning is not None else None,
    },
    "usage_by_step": by_step,
}
