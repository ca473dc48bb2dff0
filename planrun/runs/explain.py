"""Why a step would run, ran, failed or did not run: its edges, its condition, its limits and its attempts.

Advice for four common problems of a step: a decision, no parallelism, a context limit, no resume.
"""

from __future__ import annotations

from planrun.app.run import secrets_of
from planrun.approval.preview import as_data
from planrun.errors import EvaluationError, InvalidInput
from planrun.expressions.evaluate import evaluate
from planrun.expressions.tree import spelled
from planrun.model.record import Record
from planrun.plan.includes import outline_for
from planrun.plan.problems import name_hint
from planrun.reports import escape, gates
from planrun.reports.causes import judgement
from planrun.reports.describe import retry_text, step_data
from planrun.reports.policies import ALLOWED_BY_DEFAULT, decision
from planrun.reports.reasons import how, reasons
from planrun.values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.approval.preview import PolicyPreview
    from planrun.model.plan import Edge, Plan, Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node

# What an edge requires of the other step, by its kind; and when a step with such an edge runs.
WANTS = {
    "ok": "no failure, or a tolerated one",
    "completed": "completed",
    "failed": "failed",
    "done": "any end",
    "open": "ready, or members may start",
    "same": "the instance of the same name has started",
}
_PLANNED = {
    "ok": "It runs after {}, unless {} fails. A tolerated failure does not stop it.",
    "completed": "It runs only after {} has completed, not if {} was skipped or failed.",
    "failed": "It runs only if {} fails.",
    "done": "It runs after {} has ended, with any result.",
    "open": "It runs after {} is ready, or lets its members start.",
    "same": "Each instance runs after the instance of {} that has the same name.",
}
LOG_BYTES = 1000  # of an attempt's output


class Origin(Record):
    """A setting of a step with the place it comes from: `step`, `defaults`, `policy`, `llm` or `built in`.

    `line` 0: none.
    """

    key: str
    value: str
    source: str
    line: int = 0


def find_step(plan: Plan, name: str) -> Step:
    """Return a step of a plan by its id; raises InvalidInput with the nearest known one."""
    for step in plan.steps:
        if step.id == name:
            return step
    hint = name_hint(name, [step.id for step in plan.steps], "steps")
    raise InvalidInput(f'no step "{name}" in {plan.file}' + (f"; {hint}" if hint else ""))


def explain_planned(plan: Plan, step: Step, policy_preview: PolicyPreview) -> dict[str, Any]:
    """Return the explanation of a step before any run, as JSON data."""
    preview = policy_preview.of(step)
    decision = {"policy": policy_preview.policy, **as_data(preview, policy_preview.layers)}
    described = _described(plan, step)
    # Its risk is that with the parameters that are known, and the rest as written.
    return {
        **described,
        "step": {**step_data(preview.step), "action": step.action.written()},
        "decision": decision,
    }


def _described(plan: Plan, step: Step) -> dict[str, Any]:
    """Return the explanation by the plan alone, with all keys of an explanation."""
    return {
        "plan": plan.file_of(step),
        "run": None,
        "step": step_data(step),
        "status": None,
        "because": planned_reasons(step),
        "edges": [{"step": edge.on, "kind": edge.kind, "wants": WANTS[edge.kind]} for edge in step.edges],
        "condition": {"text": step.condition_text, "holds": None, "read": {}} if step.condition else None,
        "settings": [vars(origin) for origin in origins(plan, step)],
        "waited_for_by": followers(plan, step),
        "decision": None,
        "cache": None,
        "gate": None,
        "attempts": [],
        "ran_again": [],
    }


def explain_recorded(inspected: Inspected, step: Step) -> dict[str, Any]:
    """Return the explanation of a step in a run, as JSON data."""
    state = inspected.state.steps[step.id]
    described = _described(inspected.state.plan, step)
    plan = inspected.state.plan
    text = described["step"]["action"]
    secrets = secrets_of(plan)
    described["step"]["action"] = secrets.redactor.mask_text(text) if secrets and secrets.redactor else text
    return {
        **described,
        "run": inspected.run,
        "status": state.status,
        "reason": state.reason,
        "message": state.message,
        "because": [*reasons(inspected.state, state, going=inspected.is_active), *_about_cache(state)],
        "advice": list(advice(inspected.state, step, going=inspected.is_active)),
        "edges": [_edge(inspected.state, edge) for edge in step.edges],
        "condition": _condition(inspected.state, state),
        "decision": decision(state)
        or ({"answer": "allow", "rule": ALLOWED_BY_DEFAULT} if state.attempts else None),
        "gate": _gate(inspected.state, state),
        "attempts": [_attempt(inspected, attempt) for attempt in state.attempts],
        "ran_again": [
            {"at": event.at, "because": event.why[step.id]}
            for event in inspected.state.resumed
            if step.id in event.why
        ],
    }


def _gate(state: RunState, step: StepState) -> dict[str, Any] | None:
    """The question before the step, the answer in words, and the commands that answer while it is open."""
    gate = step.after or step.gate
    if gate is None:
        return None
    found = gates.as_data(state, step.step.id, gate)
    is_open = found["status"] == "open" and gate.opened is not None
    return {
        **found,
        "told": gates.answer(gate.answered) if gate.answered else "",
        "commands": gates.commands(state, gate.opened) if is_open and gate.opened else [],
    }


def planned_reasons(step: Step) -> list[str]:
    """Return in sentences when a step runs."""
    found = [_PLANNED[edge.kind].replace("{}", edge.on) for edge in step.edges]
    if step.section == "finally":
        found.insert(0, "It runs at the end of the run, whatever the result is.")
    elif not step.edges:
        found.append("It has no dependencies, so it can start when the run starts.")
    if step.condition is not None:
        found.append(f"It is skipped unless its condition is true: {step.condition_text}")
    return found


def _about_cache(step: StepState) -> Iterator[str]:
    """Yield which cached result was used, or why none was."""
    if step.restored is not None:
        yield f"the cached result was used: that of run {step.restored.source}"
    for attempt in step.tries[:1]:
        notes = attempt.ended.cache if attempt.ended else {}
        if notes.get("why"):
            yield f"no cached result was used: {notes['why']}"
    for attempt in step.tries[-1:]:
        notes = attempt.ended.cache if attempt.ended else {}
        if notes.get("because"):
            yield f"its result is not cached: {notes['because']}"


def followers(plan: Plan, step: Step) -> list[str]:
    """Return the steps that depend directly on a step."""
    return [other.id for other in plan.steps if any(edge.on == step.id for edge in other.edges)]


def origins(plan: Plan, step: Step) -> list[Origin]:
    """Return the settings of a step that have a default, each with the place it comes from."""
    values = {
        "timeout": duration(step.timeout),
        "idle_timeout": duration(step.idle_timeout) if step.idle_timeout else "none",
        "retries": retry_text(step.retries) or "none",
        "on_failure": step.on_failure,
    }
    if step.verify:
        values["verify_timeout"] = duration(step.verify_timeout or step.timeout)
    outline = outline_for(plan, step)
    root = outline.root if outline else None
    draft = outline.by_id.get(_written(plan, step)) if outline else None
    defaults = root.get("defaults") if root else None
    settings = []
    for key, value in values.items():
        if draft and key in draft.keys:
            node = draft.node.key(key)
            where = _elsewhere(plan, step, outline, node)
            settings.append(Origin(key=key, value=value, source=f"step{where}", line=node.line))
        elif defaults and defaults.get(key):
            node = defaults.key(key)
            where = _elsewhere(plan, step, outline, node)
            settings.append(Origin(key=key, value=value, source=f"defaults{where}", line=node.line))
        elif key == "on_failure" and plan.policy and value in plan.policy.on_failure.values():
            settings.append(Origin(key=key, value=value, source="policy", line=plan.policy.line))
        else:
            settings.append(Origin(key=key, value=value, source="built in", line=0))
    if root and step.replan and step.on_failure != "replan":
        value = f"after {'a fatal' if step.replan == 'fatal' else 'any'} failure"
        settings.append(Origin(key="replan", value=value, source="llm", line=root.key("llm").line))
    return settings


def _elsewhere(plan: Plan, step: Step, outline: Outline | None, node: Node) -> str:
    """Return the file of a node when it is not that of its step."""
    file = outline.file_of(node) if outline else plan.file_of(step)
    return "" if file == plan.file_of(step) else f" of {file}"


def _edge(state: RunState, edge: Edge) -> dict[str, Any]:
    return {
        "step": edge.on,
        "kind": edge.kind,
        "wants": WANTS[edge.kind],
        "became": how(state.steps[edge.on]),
        "judgement": judgement(state, edge),
    }


def _condition(state: RunState, step: StepState) -> dict[str, Any] | None:
    """The condition, whether it held, and the values that it read and that the records know."""
    tree = step.step.condition
    if tree is None:
        return None
    holds = None
    if step.reason == "condition" or (step.attempts and step.status != "pending"):
        holds = step.reason != "condition"
    read = _values(state, tree, step.step) if holds is not None else {}
    return {"text": step.step.condition_text, "holds": holds, "read": read}


def _values(state: RunState, tree: Any, step: Step) -> dict[str, Any]:
    """Return what the paths of an expression stand for; the environment is not recorded, so it is left out."""
    context = state.resumed[-1].context if state.resumed else state.started.context if state.started else {}
    run = {"id": state.started.run if state.started else "", **context}
    scope = state.scope({"run": run}, step)
    values: dict[str, Any] = {}
    for path in _paths(tree):
        try:
            values[spelled(path[3])] = evaluate(path, scope)
        except (EvaluationError, KeyError):
            continue
    return values


def _paths(tree: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of an expression tree in their order."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            if len(node) == 4 and node[0] == "path":
                yield node
            else:
                stack.extend(reversed(node))


def _attempt(inspected: Inspected, attempt: Any) -> dict[str, Any]:
    ended = attempt.ended
    return {
        "n": attempt.n,
        "status": attempt.status,
        "reason": ended.reason if ended else "",
        "exit_code": ended.exit_code if ended else None,
        "started_at": attempt.started.at,
        "sandbox": attempt.started.sandbox or None,
        "duration_s": ended.duration if ended else None,
        "error": ended.error if ended else None,
        "checks": list(ended.checks) if ended else [],
        "delay_s": ended.delay if ended else 0.0,
        "program": (ended.program or None) if ended else None,
        "log": f"{inspected.rundir}/{attempt.started.log}" if attempt.started.log else None,
        "log_end": escape.tail(inspected.rundir, attempt.started.log, LOG_BYTES),
    }


def _written(plan: Plan, step: Step) -> str:
    """Return what a step is called in its own file."""
    by_id = {each.id: each for each in plan.steps} if step.group else {}
    around = by_id.get(step.group)
    if around and around.kind == "group" and around.grouping.form != "uses":
        return _written(plan, around)  # of an instance, the step as it is written
    return step.id.removeprefix(f"{around.id}/") if around else step.id


def advice(state: RunState, step: Step, *, going: bool) -> Iterator[str]:
    """Yield what can be done, in sentences with the commands or keys to use; nothing where nothing is wrong."""
    opened = state.steps[step.id].asked
    if opened is not None:
        commands = gates.commands(state, opened)
        yield f"needs a decision: {' or '.join(commands)}" if commands else "needs a decision"
    yield from _on_parallelism(state, step)
    yield from _on_context(state, step)
    if not going:
        progress = state.steps[step.id]
        run = state.started.run if state.started else "RUN"
        if progress.status == "failed" and not step.idempotent:
            yield (
                "a resume does not run it again (`idempotent: false`); check its effects, then: "
                f"planrun retry {run} {step.id}"
            )
        elif progress.status == "failed" and progress.reason == "denied":
            yield "resuming does not lift a denial: change the plan or the policy, and start a new run"
        elif progress.status in ("pending", "paused", "running", "waiting") and progress.asked is None:
            yield f"the run has stopped; to continue: planrun resume {run}"


def _on_parallelism(state: RunState, step: Step) -> Iterator[str]:
    if len(state.plan.main()) < 2:
        return
    if step.parallel is False:
        yield "no step runs beside it: it has `parallel: false`"
    elif state.plan.schedule == "sequential":
        yield "no step runs beside it: the plan has `schedule: sequential`; `schedule: dag` runs all that is ready"
    elif state.plan.limits.max_parallel == 1:
        yield "no step runs beside it: `limits.max_parallel` is 1"
    if step.lock:
        yield f"steps with the same lock never run beside it: {', '.join(step.lock)}"


def _on_context(state: RunState, step: Step) -> Iterator[str]:
    for call in state.planning.calls if state.planning else ():
        about = call.planning.steps if call.planning else ()
        if step.id in about and call.answered and call.answered.rule.startswith("stop_reason:m"):
            yield (
                f"context limit: {call.answered.message}; raise `llm.plan_max_tokens`, name a model with a larger "
                "context, or divide the step"
            )
            return
    for event in state.planning.ended if state.planning else ():
        if step.id in event.steps and event.outcome == "budget":
            yield f"budget used up: {event.message}; `planrun resume --max-tokens N` continues with more"
            return
