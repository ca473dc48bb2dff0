"""The agent that another one waits for: who may be asked, what it may use, and how its report comes back.

It works for the same step in the same folder. Its tools are those of its type that the step allows, and its tokens and
dollars are a part of what the agent above has left. The agent above does nothing meanwhile.
"""

from __future__ import annotations

from planrun.agents import handing
from planrun.agents.delegation import GENERAL, turns_at
from planrun.agents.messages import MessageRefused
from planrun.llm.untrusted import result_block
from planrun.model.agenttools import MAX_RESULT
from planrun.model.agenttypes import NOT_OFFERED, OWN, TOOLS, TYPES
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.delegation import Candidate, Decision
    from planrun.agents.loop import AgentRun

_SHARE = 0.5
"""How much of what an agent has left another one gets that it waits for."""
_LATE = 0.05  # seconds after the limit of a message at which it is looked at again
_TALKING = ("ask_agent", "memory")


class Errand(Record):
    """Work for another agent: its message, and the delegation or the call of `ask_agent` that it comes from."""

    child: AgentRun
    message: str
    role: str
    began: float
    due: float  # on the monotonic clock
    delegation: str = ""
    chosen: Candidate | None = None
    call: dict[str, Any] | None = None


class Team:
    """Asks other agents for one agent, one at a time."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._errand: Errand | None = None

    @property
    def child(self) -> AgentRun | None:
        """The agent that this one waits for."""
        return self._errand.child if self._errand else None

    def wake(self) -> list[float]:
        """Return when something is due, on the monotonic clock."""
        if self._errand is None:
            return []
        now = self._run.context.clock.monotonic()
        due = self._errand.due if now < self._errand.due else now + _LATE
        return [self._errand.child.wake(), *([] if self._errand.child.is_stopping else [due])]

    def allowed(self) -> frozenset[str]:
        """Return the types that planrun may delegate to: a general agent has to bring a tool that this one lacks."""
        run = self._run
        return frozenset(
            role
            for role in TYPES
            if (tools := self._tools(role)) and (role != GENERAL or not set(tools) <= set(run.tools))
        )

    def ask(self, call: dict[str, Any]) -> str:
        """Begin what a call of `ask_agent` asks for; returns why it cannot be done, "" when it began."""
        run, given = self._run, call["input"]
        role = given["to_role"]
        if role not in TYPES:
            return f"there is no type of agent {role!r}; the types are {', '.join(TYPES)}"
        if not self._tools(role):
            return f"the step does not allow {role} agents: it has none of their tools"
        try:
            run.act()
            number = run.shared.post.send(given["type"], run.id, role, given["content"], {"call": call["id"]})
            child = self._called(number, role)
        except MessageRefused as refused:
            return str(refused)
        self._start(number, role, child, given["content"], call=call)
        return ""

    def delegate(self, decision: Decision) -> str:
        """Begin what a rule decided; returns why it cannot be done, "" when it began."""
        run, chosen = self._run, decision.chosen
        assert chosen is not None
        try:
            run.act()
            number = run.shared.post.send(
                "delegate", run.id, chosen.target, decision.query, {"rule": chosen.rule}
            )
            child = self._called(number, chosen.target, is_rule=True)
        except MessageRefused as refused:
            return str(refused)
        begun = run.shared.book(run.scope).begin(chosen, run.id, run.depth + 1)
        self._start(number, chosen.target, child, decision.query, delegation=begun, chosen=chosen)
        return ""

    def _called(self, number: str, role: str, *, is_rule: bool = False) -> str:
        """Give a message to a new agent and return its id; raises MessageRefused.

        A type that an agent above has is that agent: both would wait for each other. A rule has its own guard.
        """
        run, shared = self._run, self._run.shared
        child = f"{run.root.id}.{role}{run.root.next_child()}"
        above = None if is_rule else run.above(role)
        try:
            shared.roster.start(child, role, parent=run.id, waiting=shared.post.waiting())
            shared.post.assign(number, above.id if above else child)
        except MessageRefused as refused:
            shared.roster.end(child)
            shared.post.refuse(number, str(refused))
            raise
        return child

    def _start(self, number: str, role: str, child: str, task: str, **known: Any) -> None:
        run = self._run
        block = handing.for_child(run)
        now = run.context.clock.monotonic()
        agent = {**self._agent(role, child, task), "suffix": [["text", block]] if block else []}
        self._errand = Errand(
            child=run.child_of(agent),
            message=number,
            role=role,
            began=now,
            due=now + run.shared.settings.messenger.timeout,
            **known,
        )
        run.say(f"asks {child}")
        self._errand.child.begin(run.purse)

    def _tools(self, role: str) -> tuple[str, ...]:
        """Return the tools of a type that the step allows; none when it could do nothing with them."""
        root = self._run.root.agent
        may = {*root["tools"], *root["grantable"]}
        found = tuple(
            [name for name in TOOLS if name in may and name in TYPES[role].tools and name not in NOT_OFFERED]
        )
        own = {*OWN, *_TALKING}
        is_able = "bash" in found if role == "bash" else not own.issuperset(found)
        return found if is_able else ()

    def _agent(self, role: str, child: str, task: str) -> dict[str, Any]:
        run = self._run
        left = run.purse.left()
        return {
            **run.agent,
            "id": child,
            "type": role,
            "mode": "",
            "instructions": TYPES[role].prompt,
            "tools": self._tools(role),
            "grantable": (),
            "mcp": (),
            "plan_mode": False,
            "web": (),
            "max_tokens": int(left["tokens"] * _SHARE),
            "max_turns": turns_at(run.root.agent["max_turns"], run.depth + 1, run.shared.settings.delegation),
            "max_usd": left["usd"] * _SHARE if "usd" in left else None,
            "prompt": [["text", task]],
            "session": f"{run.job.attempt}{child.removeprefix(run.root.id)}",
            "earlier": [],
            "counted": [],
            "failed": "",
            "continues": "",
            "parent": run.id,
            "depth": run.depth + 1,
        }

    def advance(self) -> bool:
        """Let the other agent go on; whether it has ended, and its report is told."""
        errand = self._errand
        assert errand is not None
        run, child = self._run, errand.child
        if run.context.clock.monotonic() >= errand.due and not child.is_stopping:
            run.act()
            if run.shared.post.expire():
                child.stop("cancelled")
        child.advance()
        if child.outcome is None:
            return False
        self._errand = None
        if not run.is_stopping or errand.delegation:
            self._end(errand)
        return True

    def stop(self) -> None:
        """End the other agent."""
        if self._errand:
            self._errand.child.stop("cancelled")

    def _end(self, errand: Errand) -> None:
        run, child, shared = self._run, errand.child, self._run.shared
        assert child.outcome is not None
        run.act()
        if child.outcome.status == "completed":
            shared.post.reply(errand.message, child.summary)
        else:
            shared.post.agent_ended(child.id)
        reply = shared.post.receive(errand.message)
        assert reply is not None
        if errand.delegation:
            seconds = run.context.clock.monotonic() - errand.began
            shared.book(run.scope).end(
                errand.delegation, ok=reply.ok, seconds=seconds, metrics=shared.metrics
            )
        if run.is_stopping:
            return
        if reply.ok:
            text = result_block(f"output of the agent {errand.role}", reply.content, MAX_RESULT)
        else:
            why = child.outcome.message if reply.status == "cancelled" else ""
            text = f"The agent of type {errand.role} gave no answer: {why or reply.content}"
        if errand.call is not None:
            run.answered_by_agent(errand.call, text, failed=not reply.ok)
        elif errand.chosen is not None:
            head = f"planrun asked an agent of type {errand.role} for help ({errand.chosen.rule})."
            run.transcript.note(f"{head} It worked in the same folder. Its report:\n{text}")
