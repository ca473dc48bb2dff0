"""The agents of a run and their calls of tools, as the fold of their events."""

from __future__ import annotations

from planrun.errors import InternalError
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.state import RunState

    AgentEvent = (
        ev.AgentStarted
        | ev.AgentProgressed
        | ev.ToolCalled
        | ev.ToolReturned
        | ev.AgentCompacted
        | ev.AgentEnded
    )


class ToolState:
    """One call of a tool, complete or not."""

    __slots__ = ("called", "returned")

    def __init__(self, called: ev.ToolCalled) -> None:
        self.called = called
        self.returned: ev.ToolReturned | None = None

    @property
    def status(self) -> str:
        """intended, until it has an end."""
        return self.returned.status if self.returned else "intended"


class AgentState:
    """One agent, as far as it got."""

    def __init__(self, started: ev.AgentStarted) -> None:
        self.started = started
        self.tools: list[ToolState] = []
        self.turns = 0
        self.message = ""  # what it did last
        self.percent = 0
        self.compactions: list[ev.AgentCompacted] = []
        self.ended: ev.AgentEnded | None = None

    def status(self, state: RunState) -> str:
        """Return running, completed, failed or cancelled; an agent whose planrun was killed is cancelled."""
        if self.ended:
            return self.ended.status
        attempts = state.steps[self.started.step].attempts if self.started.step in state.steps else []
        lost = [attempt for attempt in attempts if attempt.n == self.started.n and attempt.ended is not None]
        return "cancelled" if lost else "running"

    def stats(self) -> dict[str, float]:
        """Return the six figures of its end; those that are known, before it ended."""
        if self.ended:
            return dict(self.ended.stats)
        ends = [tool.status for tool in self.tools]
        return {
            "tool_calls": len(ends),
            "tool_successes": ends.count("done"),
            "tool_failures": len(ends) - ends.count("done") - ends.count("intended"),
        }


def fold_agent(state: RunState, event: AgentEvent) -> None:
    """Take an event of an agent into the state of a run; called by `RunState.apply` alone."""
    if isinstance(event, ev.AgentStarted):
        state.agents[event.agent] = AgentState(event)
        return
    agent = state.agents.get(event.agent)
    if agent is None:
        raise InternalError(f"there is no agent {event.agent}")
    if isinstance(event, ev.AgentProgressed):
        agent.turns, agent.percent, agent.message = event.turn, event.percent, event.message
    elif isinstance(event, ev.ToolCalled):
        agent.tools.append(ToolState(event))
    elif isinstance(event, ev.ToolReturned):
        found = [tool for tool in agent.tools if tool.called.call == event.call and tool.returned is None]
        if not found:
            raise InternalError(f"the call {event.call} was not made")
        found[-1].returned = event
    elif isinstance(event, ev.AgentCompacted):
        agent.compactions.append(event)
    else:
        agent.ended = event
