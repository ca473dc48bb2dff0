"""The run as one JSON object, `ledger.json`, one step a line; schema: `schemas/ledger.schema.json`.

Keys are only ever added. What planrun cannot know yet is null, zero or empty, never left out.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps, number, quote, well_formed
from planrun.reports.parts import parts_of
from planrun.reports.policies import ALLOWED_BY_DEFAULT, decision, policy_of, risk_of, risk_totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from planrun.model.plan import Step
    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState

SCHEMA_VERSION = 1
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "unconfirmed_tokens",
    "usd",
)
_FACTS = ("checks", "tools", "files", "resources")
_NO_FACTS = ",".join([f'"{name}":[]' for name in _FACTS]) + ',"reports":{}'
_NO_USAGE = "{" + ",".join([f'"{name}":0' for name in _USAGE]) + "}"
_ALONE = '"members":[],"group":null,"matrix":{},"item":null'
_ALLOWED_BY_DEFAULT = f'{{"answer":"allow","rule":"{ALLOWED_BY_DEFAULT}"}}'


def write_ledger(state: RunState, out: BinaryIO) -> None:
    """Write the run to a binary file; raises OSError when `out` cannot be written."""
    ledger = _run(state)
    plannings: dict[str, dict[str, float]] = {}
    for part in parts_of(state):
        if "fill_ledger" in part:
            part["fill_ledger"](state, ledger)
        if "usage_by_step" in part:
            plannings |= part["usage_by_step"](state)
    head = _whole(dumps(ledger))
    out.write((head[:-1] + f',{_rollback(state)},"steps":[').encode())
    separator = "\n"
    natures = _RiskKeys()
    for step in state.steps.values():
        out.write((separator + _whole(_step(step, natures, plannings))).encode())
        separator = ",\n"
    out.write(b"\n]}\n")


def _rollback(state: RunState) -> str:
    """What was undone, or was to be, and whether that failed; the entries are those of steps."""
    if not state.undoing and not any([step.step.rollback for step in state.steps.values()]):  # noqa: C419 - half the time
        return '"rollback":{"status":"none","steps":[]},"rollback_failed":false'
    from planrun.model.rollback import status  # few plans undo anything

    natures = _RiskKeys()
    rows = ",".join([_whole(_step(step, natures, {})) for step in state.undoing.values()])
    became = status(state)
    failed = "true" if became == "failed" else "false"
    return f'"rollback":{{"status":"{became}","steps":[{rows}]}},"rollback_failed":{failed}'


def _whole(text: str) -> str:
    """Return JSON without escapes for half a character, as names of files can make them: strict readers refuse them."""
    if "\\ud" not in text:
        return text
    import json  # 5 ms, for those who have such names

    return dumps(well_formed(json.loads(text)))


class _RiskKeys:
    """Who wrote a step and what its action may do, as text; large plans have few kinds of steps."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], str] = {}

    def text(self, state: StepState) -> str:
        """Return the keys with their values, without braces."""
        step = state.step
        key = step.origin, risk_of(state), step.risk_reason, step.effects
        if key not in self._known:
            names = ("origin", "risk", "risk_reason", "effects")
            self._known[key] = dumps(dict(zip(names, key, strict=True)))[1:-1]
        return self._known[key]


def _decision(state: StepState) -> str:
    """What was decided of a step: answer (allow, ask, deny) and rule; `null` before it was evaluated."""
    if state.gate is not None or state.reason == "denied":
        return dumps(decision(state))
    if not state.attempts:
        return "null"
    rule = state.attempts[-1].started.rule
    return f'{{"answer":"allow","rule":{quote(rule)}}}' if rule else _ALLOWED_BY_DEFAULT


def _run(state: RunState) -> dict[str, Any]:
    """Everything but the steps."""
    plan, started, ended = state.plan, state.started, state.ended
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": started.run if started else "",
        "plan": {
            "name": plan.name,
            "version": plan.version,
            "digest": plan.digest,
            "file": plan.file,
            "goal": plan.goal,
            "versions": [],
        },
        "status": state.status,
        "verdict": state.settled,
        "exit_code": state.exit_status,
        "started_at": started.at if started else None,
        "ended_at": ended.at if ended else None,
        "duration_s": ended.duration if ended else None,
        "policy": policy_of(state),
        "risk": risk_totals(state),
        "gates": [],
        "approvals": [],
        "usage": _total_usage(state),
        "llm": None,
        "outputs": ended.outputs if ended else {},
        "outputs_error": ended.message if ended else "",
        "lifecycle": [{"status": status, "at": at} for status, at in state.moves],
        "summary": state.summary(),
    }


def _total_usage(state: RunState) -> dict[str, float]:
    totals: dict[str, float] = dict.fromkeys(_USAGE, 0)
    for step in state.steps.values():
        _add_attempts(totals, step)
    return totals


def _add_attempts(totals: dict[str, float], step: StepState) -> None:
    for attempt in step.attempts:
        if attempt.ended is not None and attempt.ended.usage:
            for name in _USAGE:
                totals[name] += attempt.ended.usage.get(name, 0)


def _usage_of(state: StepState, plannings: dict[str, dict[str, float]]) -> str:
    """What all attempts of a step and the plannings for it used."""
    planned = plannings.get(state.step.id)
    if planned is None and not any(attempt.ended and attempt.ended.usage for attempt in state.attempts):
        return _NO_USAGE
    totals = dict(planned or dict.fromkeys(_USAGE, 0))
    _add_attempts(totals, state)
    return dumps(totals)


def _step(state: StepState, natures: _RiskKeys, plannings: dict[str, dict[str, float]]) -> str:
    """One step as text, put together by hand: a table of 30 keys per step is what a large run spends here."""
    step = state.step
    depends_on = ",".join([quote(edge.on) for edge in step.edges]) if step.edges else ""
    outputs = dumps(state.outputs) if state.outputs else "{}"
    replaces = dumps(step.replaces) if step.replaces else "[]"
    criteria = dumps(step.criteria) if step.criteria else "[]"
    tries = state.attempts
    attempts = _attempt(tries[0]) if len(tries) == 1 else ",".join([_attempt(attempt) for attempt in tries])
    return (
        f'{{"id":{quote(step.id)},"title":{quote(step.title)},"kind":"{step.kind}","section":"{step.section}",'
        f'{natures.text(state)},"decision":{_decision(state)},'
        f'"status":"{state.status}","reason":{quote(state.reason)},'
        f'"flaky":{"true" if len(tries) > 1 and state.flaky else "false"},'
        f'"depends_on":[{depends_on}],"replaces":{replaces},"criteria":{criteria},"outputs":{outputs},'
        f'"estimated_tokens":{step.estimated_tokens},"usage":{_usage_of(state, plannings)},'
        f'"cache":{_cache(state) if step.cache else "null"},"attempts":[{attempts}],{_membership(step)}}}'
    )


def _membership(step: Step) -> str:
    """Of a group its members, of a member its group and its values; nothing of any other step."""
    if not step.group and step.kind != "group":
        return _ALONE
    fields = {
        "members": step.grouping.members if step.kind == "group" else (),
        "group": step.group or None,
        "matrix": step.matrix,
        "item": step.item[0] if step.item else None,
    }
    return dumps(fields)[1:-1]


def _cache(state: StepState) -> str:
    """What became of an earlier result of a cached step."""
    lookup: dict[str, Any] = {}
    if state.restored is not None:
        lookup = {
            "used": True,
            "key": state.restored.key,
            "run": state.restored.source,
            "files": state.restored.files,
        }
    elif state.tries and state.tries[0].ended and state.tries[0].ended.cache:
        lookup = {"used": False, **state.tries[-1].ended.cache} if state.tries[-1].ended else {}
    return dumps(lookup or None)


def _attempt(attempt: AttemptState) -> str:
    started, ended = attempt.started, attempt.ended
    log = quote(started.log) if started.log else "null"
    printed = '"log_bytes":0,"log_sha256":null'
    if ended is not None and ended.log_bytes:
        digest = quote(ended.log_sha256) if ended.log_sha256 else "null"
        printed = f'"log_bytes":{ended.log_bytes},"log_sha256":{digest}'
    if ended is None:
        body = '"reason":"","exit_code":null'
        times = '"ended_at":null,"duration_s":null'
        error, usage, facts = "null", _NO_USAGE, _NO_FACTS
    else:
        code = ended.exit_code
        body = f'"reason":{quote(ended.reason)},"exit_code":{"null" if code is None else code}'
        times = f'"ended_at":"{ended.at}","duration_s":{number(ended.duration)}'
        error = dumps(ended.error) if ended.error else "null"
        usage = _NO_USAGE if not ended.usage else dumps({name: ended.usage.get(name, 0) for name in _USAGE})
        has = ended.checks or ended.tools or ended.files or ended.resources or ended.reports
        names = (*_FACTS, "reports")
        facts = _NO_FACTS if not has else dumps({name: getattr(ended, name) for name in names})[1:-1]
    return (
        f'{{"n":{attempt.n},"status":"{attempt.status}",{body},"started_at":"{started.at}",{times},'
        f'"log":{log},{printed},"error":{error},"usage":{usage},{facts}}}'
    )
