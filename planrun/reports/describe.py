"""A plan as text and as JSON data: dependencies, order, longest path, actions."""

from __future__ import annotations

from planrun.model import graph
from planrun.plan.keys.table import STEP_FIELDS
from planrun.reports.escape import line
from planrun.values import duration

FAILURE_MEANS = {
    "block": "dependent steps are blocked; independent steps continue",
    "abort": "running steps are cancelled and no more steps start",
    "continue": "the failure is tolerated and dependent steps run",
    "skip": "the failure is tolerated and dependent steps are skipped",
    "ask": "after the last attempt the run waits for a decision",
    "replan": "a model writes a recovery plan; if it cannot, as block",
}
"""The effect of each value of `on_failure`."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Edge, Param, Plan, Retry, Sandbox, Step


def sections(plan: Plan) -> Iterator[tuple[Step, ...]]:
    """Yield the steps of each section that has any: `steps`, then `finally`."""
    yield from filter(None, (plan.main(), plan.cleanup()))


def order(plan: Plan) -> list[str]:
    """Return all steps in topological order; otherwise in file order."""
    return [name for steps in sections(plan) for name in graph.order(graph.waits(steps))]


def levels(plan: Plan) -> list[list[str]]:
    """Return the steps by level: a level waits for the one above only; `finally` begins a new one."""
    return [level for steps in sections(plan) for level in graph.levels(graph.waits(steps))]


def longest_path(plan: Plan) -> tuple[list[str], float]:
    """Return the path through `steps` that may take longest and its seconds, if every timeout is used up.

    A group is not named: its instance is.
    """
    before = graph.waits(plan.main())
    rest = graph.weights(before, {step.id: worst(step) for step in plan.main()})
    after = graph.reverse(before)
    path: list[str] = []
    choices: list[str] = list(before)
    while choices:
        path.append(max(choices, key=rest.__getitem__))
        choices = after[path[-1]]
    groups = {step.id for step in plan.steps if step.kind == "group" and step.grouping.members}
    return [name for name in path if name not in groups], rest[path[0]] if path else 0.0


def worst(step: Step) -> float:
    """Return the seconds that a step may take at most, every attempt and every wait between them included."""
    retry = step.retries
    if retry.delays:
        again = sum([retry.delays[min(at, len(retry.delays) - 1)] for at in range(retry.max)])
        return step.timeout * (retry.max + 1) + again * (1 + retry.jitter)
    waits = 0.0
    pause = retry.initial
    for done in range(retry.max):
        if pause >= retry.cap:
            waits += (retry.max - done) * retry.cap
            break
        waits += pause
        pause *= retry.factor
        if retry.factor == 1.0:
            waits += (retry.max - done - 1) * retry.initial
            break
    return step.timeout * (retry.max + 1) + waits * (1 + retry.jitter)


def edge(found: Edge) -> str:
    """Return an edge as text: the step, and the status that it must have unless that is `ok`."""
    return found.on if found.kind in ("ok", "open") else f"{found.on} ({found.kind})"


def risk_cell(step: Step) -> str:
    """Return the class of a step; in brackets when values that are not known yet decide about it."""
    if step.kind == "abstract":
        return "-"
    return f"({step.risk})" if step.open_risk else step.risk


def retry_text(retry: Retry) -> str:
    """Return retries as people read them; empty when there are none."""
    if not retry.max:
        return ""
    rules = [_rule(rule) for rule in retry.on]
    times = f"{duration(retry.initial)} first, at most {duration(retry.cap)}"
    which = "any failure" if "any" in rules else ", ".join(rules)
    return f"{retry.max} more attempt{'' if retry.max == 1 else 's'} after {which}, waiting {times}"


def _rule(rule: tuple[Any, ...]) -> str:
    if rule[0] == "exit":
        return "exit " + " or ".join([str(code) for code in rule[1]])
    if rule[0] == "match":
        return f'output with "{line(rule[1], 60)}"'
    return str(rule[1]) if rule[0] == "class" else str(rule[0]).replace("_", " ")


def as_data(plan: Plan, reviewed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan as JSON data: what `show --json` prints; `reviewed` are the facts that its digest covers."""
    path, seconds = longest_path(plan)
    limits = plan.limits
    return {
        "plan": {
            "name": plan.name,
            "version": plan.version,
            "digest": plan.digest,
            "file": plan.file,
            "description": plan.description,
            "goal": plan.goal,
            **reviewed,
        },
        "status": "draft",  # until a run has it reviewed
        "schedule": plan.schedule,
        "limits": {
            "max_parallel": limits.max_parallel,
            "deadline_s": limits.deadline,
            "cleanup_s": limits.cleanup,
            "max_steps": limits.max_steps,
            "max_items": limits.max_items,
        },
        "params": [_param(param) for param in plan.params],
        "secrets": list(plan.secrets),
        "optional_secrets": list(plan.optional_secrets),
        "notify": [target.as_written() for target in plan.notify],
        "mcp": {server.name: server.as_written() for server in plan.mcp},
        "steps": [step_data(step) for step in plan.steps],
        "order": order(plan),
        "levels": levels(plan),
        "longest_path": {"steps": path, "timeouts_s": round(seconds, 3)},
        "total": {
            "steps": sum(step.kind != "group" for step in plan.steps),
            "estimated_tokens": sum(step.estimated_tokens for step in plan.steps),
        },
    }


def _param(param: Param) -> dict[str, Any]:
    return {"name": param.name, "required": param.required, "schema": param.schema}


def is_reversible(step: Step) -> bool | None:
    """Return whether a step can be undone; None where the plan does not state it."""
    return step.reversible if step.reversible is not None else (True if step.rollback else None)


def _rollback(step: Step) -> dict[str, Any] | None:
    """What undoes a step; null where nothing does."""
    if step.rollback is None:
        return None
    first, *others = [_undo(undo, on_failed=step.rollback.on_failed) for undo in step.rollback.undos]
    return {**first, "more": others} if others else first


def _undo(undo: Step, *, on_failed: bool) -> dict[str, Any]:
    return {
        "kind": undo.kind,
        "action": undo.action.written(),
        "on_failed": on_failed,
        "timeout_s": undo.timeout,
        "risk": undo.risk,
        "risk_reason": undo.risk_reason,
        "effects": list(undo.effects),
    }


def sandbox_data(sandbox: Sandbox) -> dict[str, Any]:
    """Return a sandbox as JSON data: what it allows."""
    data = {name: value for name, value in sandbox.recorded().items() if name != "backend"}
    return {**data, "require": sandbox.require}


def step_data(step: Step) -> dict[str, Any]:
    """Return a step as JSON data; texts as written, times in seconds."""
    return {row.shown: _shown(step, row.field) for row in STEP_FIELDS.values() if row.shown}


def _shown(step: Step, name: str) -> Any:
    if name in _SHOWN:
        return _SHOWN[name](step)
    value = getattr(step, name)
    return list(value) if isinstance(value, tuple) else value


# What is shown otherwise than it is, by the field.
_SHOWN: dict[str, Callable[[Step], Any]] = {
    "action": lambda step: step.action.written(),
    "declared_risk": lambda step: step.declared_risk or None,
    "edges": lambda step: [{"step": edge.on, "kind": edge.kind} for edge in step.edges],
    "condition": lambda step: step.condition_text or None,
    "rollback": _rollback,
    "reversible": is_reversible,
    "retries": lambda step: step.retries.max,
    "sandbox": lambda step: sandbox_data(step.sandbox) if step.sandbox else None,
}
