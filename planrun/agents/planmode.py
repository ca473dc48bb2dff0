"""Plan mode of an agent: it only reads until its plan is approved; the tools of its type come back then.

The plan is judged by the policies with the risk of what the agent may do afterwards. Where they want an approval, the
attempt ends with the plan as a proposal, its step waits at a gate, and the next attempt continues the conversation.
"""

from __future__ import annotations

from planrun.model.agenttypes import CHANGING
from planrun.model.job import Outcome
from planrun.plan.kinds.agent import risk_of_work
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.calls import Calls
    from planrun.agents.loop import AgentRun

ENTER, EXIT = "enter_plan_mode", "exit_plan_mode"
_TAKEN = frozenset(
    (*CHANGING, "ask_agent")
)  # another agent has tools of its own; `web_fetch` changes nothing
_LONGEST = 20_000  # characters of a plan
_ENTERED = "You are in plan mode: you can only read. Call exit_plan_mode with your plan when it is complete."
_APPROVED = "Your plan is approved. You are not in plan mode any more: do what the plan says."


def usable(run: AgentRun, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some tools that an agent may use now."""
    if not run.agent.get("plan_mode"):
        return tuple([name for name in names if name not in (ENTER, EXIT)])
    if not run.is_planning:
        return tuple([name for name in names if name != EXIT])
    kept = [name for name in names if name not in _TAKEN and name not in (ENTER, EXIT)]
    return (*[name for name in kept if run.servers.only_reads(name)], EXIT)


def call(calls: Calls, run: AgentRun, made: dict[str, Any]) -> None:
    """Make a call of one of the two tools."""
    if made["name"] == ENTER:
        calls.called(made, risk="read-only", answer="allow")
        calls.settle(made, _ENTERED, "done", own={"plan_mode": True})
        return
    text = made["input"]["plan"][:_LONGEST]
    digest = str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    if run.agent.get("proposed", {}).get("sha256") == digest:  # its gate let this attempt start
        calls.called(made, risk=run.agent["proposed"]["risk"], answer="allow", rule="gate")
        calls.settle(made, _APPROVED, "done", own={"plan_mode": False})
        return
    risk = risk_of_work(run.agent["copy"] != "", run.step.action)
    verdict = run.judge(made, None, risk)
    calls.called(made, risk=verdict.risk, answer=verdict.answer, rule=verdict.rule, reason=verdict.reason)
    run.say(f"proposes a plan, sha256 {digest[:12]}:")
    for line in text.splitlines():
        run.say(f"  {line}")
    if verdict.answer == "allow":
        calls.settle(made, _APPROVED, "done", own={"plan_mode": False})
    elif verdict.answer == "deny":
        calls.settle(made, f"denied: {verdict.reason}", "denied", message=verdict.reason)
    else:
        calls.returned(made, "the plan waits for an approval")
        proposed = {"text": text, "sha256": digest, "risk": risk.level, "risk_reason": risk.reason}
        message = "its plan waits for an approval"
        run.end(Outcome(status="cancelled", reason="plan", message=message, proposed=proposed))
