"""What a run may do without approval: the policy in force, the risk of its steps in total, and what a gate asks."""

from __future__ import annotations

from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.plan import Plan, Step
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

LEVELS = ("", "read-only", "low", "medium", "high")  # of risk, the lowest first; empty: of nothing at all
_FILE_LEVEL, _MODEL_LEVEL = "high", "low"  # where no policy says anything
NO_POLICY_IN_SHORT = "none; all steps run without approval"
NO_POLICY = f"{NO_POLICY_IN_SHORT}, model-written ones up to low"
ALLOWED_BY_DEFAULT = "default:auto_approve"  # by which rule a step ran where none is recorded
# What an effect counts as. What is destroyed is modified, too.
_COUNTS = {
    "destroys": ("destructive", "modifies"),
    "writes": ("modifies",),
    "network": ("external",),
    "publishes": ("external",),
    "unknown": ("unknown",),
}


def policy_of(state: RunState) -> dict[str, Any]:
    """Return the policy in force as the run, or its last resumption, recorded it; without one what holds by itself.

    Keys: source (plan, default), auto_approve, llm_auto_approve, ask_for, rules (how many), option (the level of
    --auto-approve, or empty), ceilings (a list of the same with file, sha256 and commit).
    """
    return policy_data(_recorded(state))


def policy_data(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is in force, as the first event of a run records it, in the form of `policy_of`."""
    plan, option = recorded.get("plan"), recorded.get("option") or ""
    data = {"source": "default" if plan is None else "plan", **_layer(plan or {})}
    data["auto_approve"] = option or data["auto_approve"]
    data["option"] = option
    data["ceilings"] = [
        {**{name: ceiling.get(name, "") for name in ("file", "sha256", "commit")}, **_layer(ceiling)}
        for ceiling in recorded.get("ceilings") or ()
    ]
    return data


def in_force(state: RunState) -> str:
    """Return in one clean line which policy is in force."""
    return line(str(_recorded(state).get("told") or NO_POLICY))


def in_short(state: RunState) -> str:
    """Return the policy in force for a console."""
    replans = state.options.get("replan") or state.options.get("expand")
    return in_force(state) if replans else shortened(in_force(state), state.plan)


def shortened(policy: str, plan: Plan) -> str:
    """Return a policy in force for people: without one, models are named where they may write steps of the plan."""
    if policy != NO_POLICY or plan.llm:
        return policy
    by_models = [
        step.kind == "abstract" or step.on_failure == "replan" or step.action.is_agent for step in plan.steps
    ]
    return policy if any(by_models) else NO_POLICY_IN_SHORT


def _recorded(state: RunState) -> Mapping[str, Any]:
    policy: Mapping[str, Any] = state.options.get("policy") or {}
    return policy


def _layer(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "auto_approve": fields.get("auto_approve", _FILE_LEVEL),
        "llm_auto_approve": fields.get("llm_auto_approve", _MODEL_LEVEL),
        "ask_for": fields.get("ask_for", "steps"),
        "rules": fields.get("rules", 0),
    }


def risk_of(step: StepState) -> str:
    """Return the class of what ran last, where it was recorded, else that of the step as the plan has it."""
    return (step.attempts[-1].started.risk if step.attempts else "") or step.step.risk


class RiskTotals:
    """Adds up risks: the highest class, and which steps destroy, modify files, reach out, or are not fully known."""

    def __init__(self) -> None:
        self._worst = 0
        self._named: dict[str, list[str]] = {
            name: [] for name in ("destructive", "modifies", "external", "unknown")
        }
        self._kinds: dict[tuple[str, tuple[str, ...], bool], list[list[str]]] = {}  # large plans have few

    def add(self, step: Step, risk: str) -> None:
        """Take in a step, in the order of the plan; `risk` is its class."""
        kind = risk, step.effects, step.open_risk
        lists = self._kinds.get(kind)
        if lists is None:
            lists = self._kinds[kind] = self._lists(*kind)
        for names in lists:
            names.append(step.id)

    def _lists(self, risk: str, effects: tuple[str, ...], is_open: bool) -> list[list[str]]:  # noqa: FBT001
        """Return where steps of a kind that is new are named."""
        self._worst = max(self._worst, LEVELS.index(risk))
        counted = dict.fromkeys([word for effect in effects for word in _COUNTS.get(effect, ())])
        if is_open:
            counted["unknown"] = None
        return [self._named[word] for word in counted]

    def as_data(self) -> dict[str, Any]:
        """Return the totals; `overall` is None without steps."""
        return {"overall": LEVELS[self._worst] or None, **self._named}


def risk_totals(state: RunState) -> dict[str, Any]:
    """Return the total risk of a run's steps; of what ran, where that was recorded."""
    totals = RiskTotals()
    for step in state.counted():
        totals.add(step.step, risk_of(step))
    return totals.as_data()


def totals_line(totals: Mapping[str, Any]) -> str:
    """Return `high, 1 destructive, 3 modify files, 2 external calls, 1 not fully known before it runs`."""
    words = (
        (len(totals["destructive"]), "destructive", "destructive"),
        (len(totals["modifies"]), "modifies files", "modify files"),
        (len(totals["external"]), "external call", "external calls"),
        (len(totals["unknown"]), "not fully known before it runs", "not fully known before they run"),
    )
    texts = [totals["overall"] or "none"]
    texts += [f"{count} {one if count == 1 else many}" for count, one, many in words if count or one == many]
    return ", ".join(texts)


def any_gate(state: RunState) -> bool:
    """Whether the plan or a step of it reached a gate, or was answered before."""
    return state.gate is not None or any(step.gate or step.after for step in state.steps.values())


# What a gate asks.

KINDS = {"approval": "approval", "ask": "an answer", "decide": "a decision", "failure": "a decision"}
_LIMITS = (("auto_approve", "limit"), ("llm_auto_approve", "limit for steps of a model"))
VERDICTS = ("approved", "rejected", "skipped")  # of an approval


def name_of(opened: GateOpened | GateAnswered) -> str:
    """Return whose gate it is: the step, or the whole plan."""
    return line(opened.step) if opened.step else "the plan"


def waits_for(opened: GateOpened) -> str:
    """Return `publish needs approval`."""
    return f"{name_of(opened)} needs {KINDS.get(opened.kind, 'an answer')}"


def asked(opened: GateOpened) -> str:
    """Return what is asked, in one clean line."""
    if opened.question:
        header = f"{line(opened.header, 100)}: " if opened.header else ""
        return header + line(opened.question)
    return "May this plan be executed?" if not opened.step else "May it run?"


def grounds(opened: GateOpened) -> str:
    """Return why it is asked, in one clean line: `risk high, limit medium, plan.yml:6`; may be empty."""
    text = opened.reason
    for key, limit in _LIMITS:  # as `planrun.approval.rules` records it: models are asked in these words, too
        before, found, after = text.partition(f", and {key} is ")
        if found:
            level, _, place = after.partition(" ")
            place = place.strip("(").replace(")", "", 1).removeprefix("by ").removeprefix("since ")
            text = f"{before.replace('its risk is', 'risk', 1)}, {limit} {level.rstrip(',')}, {place}"
    why, rule = line(text) or (f"risk {line(opened.risk)}" if opened.risk else ""), line(opened.rule)
    if why and rule and not rule.endswith(":auto_approve") and text == opened.reason:
        return f"{why} ({rule})"
    return why or (f"asked by {rule}" if rule else "")


def decision(step: StepState) -> dict[str, str] | None:
    """Return what was decided of a step: answer (allow, ask, deny) and the rule; None before it was evaluated."""
    gate = step.gate
    answered = gate.answered if gate else None
    asks = gate.opened.rule if gate and gate.opened else ""
    if step.reason == "denied" or (answered and answered.answer in VERDICTS[1:]):
        return {"answer": "deny", "rule": step.rule or ("answer" if answered else asks)}
    if step.attempts and (rule := step.attempts[-1].started.rule):
        return {"answer": "allow", "rule": rule}
    if answered:
        return {"answer": "allow", "rule": f"approval:{answered.approval}" if answered.approval else "answer"}
    return {"answer": "ask", "rule": asks} if gate else None
