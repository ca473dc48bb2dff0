"""The kind `agent`: work for a language model, with tools and within limits."""

from __future__ import annotations

from planrun.model.agenttypes import CHANGING, MAX_TOKENS, MAX_TURNS, is_offered
from planrun.model.plan import Action, source_text
from planrun.risk.classifier import Risk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal, Self

    from planrun.model.job import Job
    from planrun.model.plan import Text, Tree

_ON_A_COPY = "a model works on a copy, within the tools of the step"
_READS = "a model reads the workspace"
_SHARED = "a model changes the workspace itself"


class Agent(Action):
    """An agent; `tools` are those that it has from the start, `grantable` those that it may ask for besides.

    `mcp`: tools of MCP servers, or servers with all of theirs. `web`: hosts that `web_fetch` may ask. `instructions`:
    of its type. `apply`: what becomes of its patch.
    """

    kind = "agent"
    starts_process = is_agent = True
    summary = "asks an agent"
    type: str = "general"
    mode: str = ""
    prompt: Text = ""
    suffix: Text = ""
    instructions: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    grantable: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    mcp_deny: tuple[str, ...] = ()
    plan_mode: bool = False
    web: tuple[str, ...] = ()
    max_tokens: int = MAX_TOKENS
    max_turns: int = MAX_TURNS
    max_usd: float | None = None
    apply: str = "ask"
    workspace: Literal["copy", "shared"] = "copy"

    @property
    def changes(self) -> bool:
        """Whether it may have a tool that changes files or runs commands."""
        return not CHANGING.isdisjoint((*self.tools, *self.grantable))

    @property
    def on_copy(self) -> bool:
        """Whether it works on a copy; one that only reads needs none."""
        return self.workspace == "copy" and self.changes

    def words(self) -> tuple[Text, ...]:
        """Return what its risk is found from; its task has no effect on it."""
        return (("copy" if self.on_copy else "shared") if self.changes else "reads", *self.mcp)

    def formulas(self) -> Iterator[Any]:
        """Yield the texts of the task."""
        yield self.prompt
        if self.suffix:
            yield self.suffix

    def filled(self, fill: Callable[..., Text], value: Callable[[Tree], Any]) -> Self:
        """Return the agent with other texts."""
        suffix = {"suffix": fill(self.suffix)} if self.suffix else {}
        return self.but(prompt=fill(self.prompt), **suffix)

    def classify(self, fill: Any, shell: Any, env: Any, setting: Any) -> Risk:
        """Return the risk of starting it: each of its tools, and its patch, is judged when it comes."""
        if self.mcp and (self.on_copy or not self.changes):
            return Risk(
                level="medium", reason=f"a model calls tools of {', '.join(self.mcp)}", effects=("unknown",)
            )
        if not self.changes:
            return Risk(level="read-only", reason=_READS)
        if self.on_copy:
            return Risk(level="low", reason=_ON_A_COPY, effects=("writes",))
        return Risk(level="high", reason=_SHARED, effects=("unknown", "writes"))

    def classify_job(self, job: Job, env: Any, setting: Any) -> Risk:
        """Return the risk of starting it, or of applying its patch."""
        found = job.agent.get("patch") or job.agent.get("proposed")
        if found is None:
            return self.classify(None, None, None, None)
        return Risk(level=found["risk"], reason=found["risk_reason"], effects=("writes",))

    def written_job(self, job: Job) -> str:
        """Return what is about to start, for people."""
        if proposed := job.agent.get("proposed"):
            return f"carry out the plan {proposed['sha256'][:12]}:\n{proposed['text']}"
        patch = job.agent.get("patch")
        return self.written() if patch is None else f"apply the patch {patch['sha256'][:12]}"

    def written(self) -> str:
        """Return the task as it stands in the plan, below the type and its tools."""
        mode = f", mode {self.mode}" if self.mode else ""
        known = [name for name in self.tools if is_offered(name, plan_mode=self.plan_mode, web=self.web)]
        tools = ", ".join([*known, *self.mcp])
        head = f"agent {self.type}{mode}: {tools or 'no tools'}"
        return "\n".join(
            [head, source_text(self.prompt), *([source_text(self.suffix)] if self.suffix else [])]
        )

    def by_keys(self) -> dict[str, Any]:
        """Return it under its key."""
        known = {name: value for name, value in vars(self).items() if value not in ("", None)}
        for name in ("prompt", "suffix"):
            if name in known:
                known[name] = source_text(known[name])
        return {
            "agent": {
                name: list(value) if isinstance(value, tuple) else value for name, value in known.items()
            }
        }


def risk_of_work(on_copy: bool, action: Any) -> Risk:  # noqa: FBT001 - a fact
    """Return the risk of what an agent may do after its plan is approved."""
    if action.changes and not on_copy:
        return Risk(level="high", reason=_SHARED, effects=("unknown", "writes"))
    if action.mcp or "bash" in (*action.tools, *action.grantable):
        return Risk(
            level="medium", reason="after plan mode the agent runs commands", effects=("unknown", "writes")
        )
    if action.changes:
        return Risk(level="low", reason="after plan mode the agent writes files", effects=("writes",))
    return Risk(level="read-only", reason=_READS)


class AgentCall(Action):
    """One call of a tool by an agent, as policies see it; no plan has it."""

    kind = "agent"
    starts_process = True
    name: str
    text: str = ""

    def written(self) -> str:
        """Return the command, or the arguments."""
        return self.text
