"""Conversations that go on from step to step: with `clear_context: false` or `delegate_steps: false` in the plan.

An agent that completed leaves its conversation in the folder of its step. The next one begins with it: in place of a
snapshot of what was found, it has all that was said.
"""

from __future__ import annotations

import json
import os

from planrun.agents import compacting
from planrun.agents.handing import steps_before
from planrun.folders import make_private, write_atomically
from planrun.opening import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.loop import AgentRun
    from planrun.model.agents import AgentState

_FILE = "conversation.json"
_SHARE = 0.5  # of the context that an earlier conversation may take
Messages = list[dict[str, "Any"]]


def carries(run: AgentRun) -> bool:
    """Whether the agent of a step goes on with an earlier conversation, if there is one."""
    llm = run.context.models.llm
    return not run.depth and not (llm.clear_context and llm.delegate_steps)


def keep(run: AgentRun, summary: str) -> None:
    """Keep the conversation of an agent that completed; raises OSError."""
    if not carries(run):
        return
    path = _path(run, run.step.folder or run.step.id)
    make_private(os.path.dirname(path))
    # Another agent has other tools and another system text, to which its thoughts are not bound.
    transcript = run.transcript
    found = compacting.without_thoughts(transcript.messages)
    if found and found[-1]["role"] == "assistant":
        found.pop()
    ended = [*found, {"role": "assistant", "content": [{"type": "text", "text": summary or "(no report)"}]}]
    kept = {"agent": run.id, "messages": ended}
    write_atomically(path, json.dumps(kept).encode(), mode=0o600)


def before(run: AgentRun) -> tuple[str, Messages]:
    """Return the agent whose conversation this one goes on with, and its messages; "" and none where there is none."""
    if not carries(run):
        return "", []
    for agent in reversed(_candidates(run)):
        step = run.recorder.state.steps[agent.started.step].step
        try:
            kept = json.loads(read_record(_path(run, step.folder or step.id)))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(kept, dict) and kept.get("agent") == agent.started.agent:
            bound = run.context.models.llm.max_context_tokens or compacting.CONTEXT
            return kept["agent"], compacting.compacted(kept["messages"], int(bound * _SHARE))[0]
    return "", []


def _candidates(run: AgentRun) -> list[AgentState]:
    """Return the agents of steps that completed, in the order of the plan or, where all work as one, of their ends."""
    state = run.recorder.state
    done = [
        agent
        for agent in state.agents.values()
        if not agent.started.parent and agent.ended is not None and agent.ended.status == "completed"
    ]
    done = [agent for agent in done if agent.started.step != run.step.id]
    if not run.context.models.llm.delegate_steps:
        return sorted(done, key=lambda agent: agent.ended.at if agent.ended else "")
    order = {name: place for place, name in enumerate(state.steps)}
    earlier = steps_before(state, run.step.id)
    found = [agent for agent in done if agent.started.step in earlier]
    return sorted(found, key=lambda agent: order.get(agent.started.step, 0))


def _path(run: AgentRun, folder: str) -> str:
    return os.path.join(run.context.place.rundir, "agents", folder, _FILE)
