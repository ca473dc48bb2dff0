"""The run as one JSON object, `ledger.json`, one step a line; schema: `schemas/ledger.schema.json`.

Keys are only ever added. What planrun cannot know yet is null, zero or empty, never left out.
"""

from __future__ import annotations

from planrun.model.jsontext import dumps, members, number, quote, well_formed
from planrun.reports.document import parts_of
from planrun.reports.policies import ALLOWED_BY_DEFAULT, decision, policy_of, risk_of, risk_totals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO

    from planrun.model.events import AttemptEnded
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
_DETAILS = frozenset(("log_bytes", "error", "usage", "reports", *_FACTS))
_NO_DETAILS = f'"log_bytes":0,"log_sha256":null,"error":null,"usage":{_NO_USAGE},{_NO_FACTS}'
_ABOUT = ("kind", "section", "origin", "risk", "risk_reason", "effects")
_BECAME = ("status", "reason", "flaky")
# Only given fields of a step are stored: most steps have none of these.
_EXTRAS = frozenset(("replaces", "criteria", "estimated_tokens", "cache"))
_ALONE = '"members":[],"group":null,"matrix":{},"item":null'
_NO_EXTRAS = (
    f'"replaces":[],"criteria":[],"outputs":{{}},"estimated_tokens":0,"usage":{_NO_USAGE},"cache":null'
)
_ALLOWED_BY_DEFAULT = f'{{"answer":"allow","rule":"{ALLOWED_BY_DEFAULT}"}}'


def write_ledger(state: RunState, out: BinaryIO, notifications: Sequence[Any] = ()) -> None:
    """Write the run to a binary file, with the notifications of it; raises OSError when `out` cannot be written."""
    ledger = {**_run(state), "notifications": notifications}
    plannings: dict[str, dict[str, float]] = {}
    for part in parts_of(state):
        for key, make in part.get("ledger", {}).items():
            (ledger["plan"] if key == "versions" else ledger)[key] = make(state)
        if "usage_by_step" in part:
            plannings |= part["usage_by_step"](state)
    head = _whole(dumps(ledger))
    out.write((head[:-1] + f',{_rollback(state)},"steps":[').encode())
    separator = "\n"
    kinds = _Kinds()
    for step in state.steps.values():
        out.write(f"{separator}{_whole(_step(step, kinds, plannings))}".encode())
        separator = ",\n"
    out.write(b"\n]}\n")


def _rollback(state: RunState) -> str:
    """What was undone, or was to be, and whether that failed; the entries are those of steps."""
    if not state.undoing and not any([step.step.rollback for step in state.steps.values()]):  # noqa: C419 - half the time
        return '"rollback":{"status":"none","steps":[]},"rollback_failed":false'
    from planrun.model.rollback import status  # few plans undo anything

    kinds = _Kinds()
    rows = ",".join([_whole(_step(step, kinds, {})) for step in state.undoing.values()])
    became = status(state)
    failed = "true" if became == "failed" else "false"
    return f'"rollback":{{"status":"{became}","steps":[{rows}]}},"rollback_failed":{failed}'


def _whole(text: str) -> str:
    """Return JSON without escapes for half a character, as names of files can make them: strict readers refuse them."""
    if "\\" not in text or "\\ud" not in text:  # the search for one character is much faster
        return text
    import json  # 5 ms, for those who have such names

    return dumps(well_formed(json.loads(text)))


class _Quotes(dict[str, str]):
    """Texts as JSON; most stand in several steps."""

    def __missing__(self, text: str) -> str:
        found = self[text] = quote(text)
        return found


class _Kinds:
    """What many steps of a run have in common, as text; large plans have few kinds of steps."""

    def __init__(self) -> None:
        self.quoted = _Quotes()
        self._known: dict[tuple[Any, ...], str] = {}

    def text(self, state: StepState) -> str:
        """Return what a step is, what its action may do, and what became of it: keys and values without braces."""
        step = state.step
        about = step.kind, step.section, step.origin, risk_of(state), step.risk_reason, step.effects
        became = state.status, state.reason, len(state.attempts) > 1 and state.flaky
        decided = _decision(state)
        key = about, decided, became
        found = self._known.get(key)
        if found is None:
            what = members(dict(zip(_ABOUT, about, strict=True)))
            end = members(dict(zip(_BECAME, became, strict=True)))
            found = self._known[key] = f'{what},"decision":{decided},{end}'
        return found


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
        "shard": None,
        "sandboxes": {},
        "gates": [],
        "approvals": [],
        "collaboration": None,
        "usage": _total_usage(state),
        "llm": None,
        "agents": [],
        "rounds": [],
        "hooks": [],
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


def _step(state: StepState, kinds: _Kinds, plannings: dict[str, dict[str, float]]) -> str:
    """One step as text, put together by hand: a table of 30 keys per step is what a large run spends here."""
    step, quoted = state.step, kinds.quoted
    depends_on = ",".join([quoted[edge.on] for edge in step.edges]) if step.edges else ""
    attempts = ",".join([_attempt(attempt, quoted) for attempt in state.attempts])
    return (
        f'{{"id":{quoted[step.id]},"title":{quoted[step.title]},{kinds.text(state)},"depends_on":[{depends_on}],'
        f'{_extras(state, plannings.get(step.id))},"attempts":[{attempts}],{_membership(step)}}}'
    )


def _extras(state: StepState, planned: dict[str, float] | None) -> str:
    """What only some steps have; `planned`: what the plannings for it used."""
    step = state.step
    has_usage = planned or [1 for attempt in state.attempts if attempt.ended and attempt.ended.usage]
    if not has_usage and not state.outputs and _EXTRAS.isdisjoint(vars(step)):
        return _NO_EXTRAS
    usage = dict(planned or dict.fromkeys(_USAGE, 0))
    _add_attempts(usage, state)
    return (
        f'"replaces":{dumps(step.replaces)},"criteria":{dumps(step.criteria)},"outputs":{dumps(state.outputs)},'
        f'"estimated_tokens":{step.estimated_tokens},"usage":{dumps(usage)},'
        f'"cache":{_cache(state) if step.cache else "null"}'
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


def _attempt(attempt: AttemptState, quoted: _Quotes) -> str:
    started, ended = attempt.started, attempt.ended
    log = quote(started.log) if started.log else "null"
    if ended is None:
        return (
            f'{{"n":{attempt.n},"status":"{attempt.status}","reason":"","exit_code":null,"started_at":"{started.at}",'
            f'"ended_at":null,"duration_s":null,"log":{log},{_NO_DETAILS}}}'
        )
    code = ended.exit_code
    return (
        f'{{"n":{attempt.n},"status":"{ended.status}","reason":{quoted[ended.reason]},'
        f'"exit_code":{"null" if code is None else code},"started_at":"{started.at}","ended_at":"{ended.at}",'
        f'"duration_s":{number(ended.duration)},"log":{log},'
        f"{_NO_DETAILS if _DETAILS.isdisjoint(vars(ended)) else _details(ended)}}}"
    )


def _details(ended: AttemptEnded) -> str:
    """What only some attempts have: a log, an error, usage, facts."""
    digest = quote(ended.log_sha256) if ended.log_bytes and ended.log_sha256 else "null"
    error = dumps(ended.error) if ended.error else "null"
    usage = _NO_USAGE if not ended.usage else dumps({name: ended.usage.get(name, 0) for name in _USAGE})
    has = ended.checks or ended.tools or ended.files or ended.resources or ended.reports
    facts = (
        _NO_FACTS if not has else dumps({name: getattr(ended, name) for name in (*_FACTS, "reports")})[1:-1]
    )
    return f'"log_bytes":{ended.log_bytes},"log_sha256":{digest},"error":{error},"usage":{usage},{facts}'
