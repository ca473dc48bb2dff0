"""Agents in reports: what each did, tool by tool, its figures, and its patch. Loaded for runs that have some."""

from __future__ import annotations

from planrun.model import events as ev
from planrun.reports import facts
from planrun.reports.document import Section, table
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.agents import AgentState, ToolState
    from planrun.model.state import RunState
    from planrun.reports.document import Part

STATS = (
    "prompt_tokens",
    "completion_tokens",
    "tool_calls",
    "tool_successes",
    "tool_failures",
    "duration_seconds",
)
_MOST = 200  # lines of a plan that an agent proposes
_CALLS = 500  # of all agents
_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "usd")


def as_data(state: RunState) -> list[dict[str, Any]]:
    """Return the agents of a run as JSON data."""
    return [_agent(agent, state) for agent in state.agents.values()]


def _agent(agent: AgentState, state: RunState) -> dict[str, Any]:
    started, ended = agent.started, agent.ended
    stats = agent.stats()
    return {
        "id": started.agent,
        "step": started.step,
        "attempt": started.n,
        "type": started.agent_type,
        "mode": started.mode or None,
        "status": agent.status(state),
        "reason": ended.reason if ended else "",
        "message": ended.message if ended else "",
        "parent": started.parent or None,
        "depth": started.depth,
        "continues": started.continues or None,
        "model": started.model,
        "workspace": started.workspace,
        "tools": list(started.tools),
        "budget": dict(started.budget),
        "usage": usage_of(started.agent, state),
        "stats": {name: stats.get(name, 0) for name in STATS},
        "turns": agent.turns,
        "summary": ended.summary if ended else "",
        "evidence": list(ended.evidence) if ended else [],
        "patch": patch_of(started, state),
        "proposed": proposed_of(started, state),
        "compactions": [
            {"before": event.before, "after": event.after, "left_out": event.left_out}
            for event in agent.compactions
        ],
        "effects": [_call(tool) for tool in agent.tools],
    }


def usage_of(agent: str, state: RunState) -> dict[str, float]:
    """Return what the calls of an agent used, by kind."""
    totals: dict[str, float] = dict.fromkeys(_KINDS, 0)
    for call in state.planning.calls if state.planning else ():
        if call.asked.agent == agent and call.answered:
            for name in _KINDS:
                totals[name] += call.answered.usage.get(name, 0)
    totals["usd"] = round(totals["usd"], 9)
    return totals


def proposed_of(started: ev.AgentStarted, state: RunState) -> dict[str, Any] | None:
    """Return the plan that the agent of a step proposed in plan mode, and waited with."""
    if started.parent:
        return None
    for found in state.steps[started.step].attempts if started.step in state.steps else ():
        if found.n == started.n and found.ended and found.ended.proposed:
            return dict(found.ended.proposed)
    return None


def patch_of(started: ev.AgentStarted, state: RunState) -> dict[str, Any] | None:
    """Return the patch of the agent of a step; `applied`: whether it is in the workspace."""
    step = started.step
    attempts = state.steps[step].attempts if step in state.steps and not started.parent else []
    for place, found in enumerate(attempts):
        if found.n == started.n and found.ended and found.ended.patch:
            later = [each.ended for each in attempts[place + 1 :] if each.ended]
            applied = any(each.reason == "applied" and each.status == "completed" for each in later)
            return {**found.ended.patch, "applied": applied}
    return None


def _call(tool: ToolState) -> dict[str, Any]:
    called, returned = tool.called, tool.returned
    return {
        "call": called.call,
        "tool": called.name,
        "args": dict(called.args),
        "sha256": called.sha256,
        "risk": called.risk,
        "answer": called.answer,
        "rule": called.rule,
        "effects": called.effects,
        "status": tool.status,
        "duration_s": returned.duration if returned else None,
        "exit_code": returned.exit_code if returned else None,
        "bytes": returned.bytes if returned else 0,
        "message": returned.message if returned else "",
        "files": [dict(each) for each in returned.files] if returned else [],
        "log": (returned.log if returned else "") or None,
    }


def event_line(event: Any, state: RunState) -> tuple[str, str]:
    """Return the status whose icon fits, and one clean line; empty for what is not shown."""
    who = event.step  # an agent that another one asked is called by its id
    if state.agents[event.agent].started.parent:
        who = event.agent
    if isinstance(event, ev.AgentStarted):
        place = {"copy": "on a copy", "shared": "in the workspace", "read": "reads only"}[event.workspace]
        mode = f", mode {event.mode}" if event.mode else ""
        more = f", continues {event.continues}" if event.continues else ""
        return "running", line(f"{who}: agent {event.agent_type}{mode}, {place}, {event.model}{more}")
    if isinstance(event, ev.AgentProgressed):
        said = f": {event.message}" if event.message else ""
        return "running", line(
            f"{who}: turn {event.turn} of {event.turns}, {event.percent}% of its budget{said}"
            if not event.message
            else f"{who}: {event.percent}%{said}"
        )
    if isinstance(event, ev.ToolReturned) and event.status in ("denied", "unknown"):
        return "partial", line(f"{who}: {event.name} {event.status}: {event.message}")
    if isinstance(event, ev.AgentCompacted):
        text = f"{who}: {event.left_out} earlier results are left out of its conversation"
        return "running", line(f"{text} ({event.before} to {event.after} tokens)")
    if isinstance(event, ev.AgentEnded):
        stats = event.stats
        calls = f"{int(stats.get('tool_calls', 0))} calls, {int(stats.get('tool_failures', 0))} failed"
        used = facts.tokens(int(stats.get("prompt_tokens", 0) + stats.get("completion_tokens", 0)))
        return "running", line(f"{who}: agent {event.status}: {calls}, {used}")
    return "", ""


def _sections(state: RunState) -> Iterator[Section]:
    """Yield the agents and how they ended, then their calls of tools."""
    agents, calls, plans = [], [], []
    for agent in state.agents.values():
        started, stats, patch = agent.started, agent.stats(), patch_of(agent.started, state)
        proposed = proposed_of(started, state)
        used = int(stats.get("prompt_tokens", 0) + stats.get("completion_tokens", 0))
        failed = int(stats.get("tool_failures", 0))
        agents.append(
            (
                started.agent,
                started.agent_type + (f", {started.mode}" if started.mode else ""),
                agent.status(state),
                str(agent.turns),
                f"{int(stats.get('tool_calls', 0))}{f' ({failed} failed)' if failed else ''}",
                str(used),
                _patch_text(patch) if patch else f"plan {proposed['sha256'][:12]}" if proposed else "",
                agent.ended.summary if agent.ended else "",
            )
        )
        if proposed:
            heading = f"Plan of {started.agent}, sha256 {proposed['sha256'][:12]}"
            plans.append(Section(heading=heading, code="\n".join(proposed["text"].splitlines()[:_MOST])))
        for tool in agent.tools:
            said = tool.returned.message if tool.returned else ""
            about = (_brief(tool), tool.status, tool.called.rule, said)
            calls.append((started.agent, tool.called.name, *about))
    found = table(
        "Agents",
        (
            *(
                ("Agent", "code"),
                ("Type", "text"),
                ("Status", "text"),
                ("Turns", "number"),
                ("Calls", "text"),
            ),
            *(("Tokens", "number"), ("Result", "text"), ("Summary", "text")),
        ),
        agents,
    )
    yield found.but(sections=plans)
    if calls:
        more = len(calls) - _CALLS
        yield table(
            "Calls of tools",
            (
                *(("Agent", "code"), ("Tool", "code"), ("Argument", "code")),
                *(("Status", "text"), ("Rule", "code"), ("Message", "text")),
            ),
            calls[:_CALLS],
            note=f"{more} more calls are in ledger.json." if more > 0 else "",
        )


def _brief(tool: ToolState) -> str:
    args = tool.called.args
    for name in ("command", "path", "pattern", "name", "question", "message", "plan", "url"):
        if isinstance(args.get(name), str):
            return " ".join(args[name].split())
    return ""


def _patch_text(patch: dict[str, Any]) -> str:
    count = len(patch["files"])
    files = f"{count} file{'' if count == 1 else 's'} +{patch['insertions']} -{patch['deletions']}"
    return f"{files}, {'applied' if patch['applied'] else 'not applied'}"


def closing(state: RunState) -> Iterator[str]:
    """Yield where patches are that are not in the workspace."""
    run = state.started.run if state.started else ""
    for agent in state.agents.values():
        patch = patch_of(agent.started, state)
        if patch and not patch["applied"]:
            yield line(f"  patch of {agent.started.step}: .planrun/runs/{run}/{patch['path']}")


AGENTS: Part = {
    "event_line": event_line,
    "sections": _sections,
    "closing": closing,
    "ledger": {"agents": as_data},
}
"""What agents did in a run."""
