"""The tools of agents that need no process: they read or change what planrun knows of the agent and the run.

`OWN` is the registry: a tool that another package adds is a function in it, and a `Spec` in `planrun.model.agenttools`.
"""

from __future__ import annotations

from planrun.agents.memory import MemoryRefused
from planrun.llm.untrusted import result_block
from planrun.model.agenttools import MAX_RESULT
from planrun.model.agenttypes import NOT_OFFERED, TOOLS
from planrun.model.jsontext import dumps
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.agents.memorytool import MemoryTool
    from planrun.model.state import RunState

_SHOWN = 200  # steps of a plan
_MOST = 100  # entries of a list of what is to do


class OwnCall(Record):
    """A call of such a tool, with all that it may look at."""

    step: str
    args: dict[str, Any]
    state: RunState
    tools: tuple[str, ...]
    grantable: tuple[str, ...]
    env: Mapping[str, str]
    todo: list[str]
    decisions: Mapping[str, str]
    memory: MemoryTool


class OwnResult(Record):
    """What the model is told; `own`: what is kept in the transcript besides, `todo` or `granted`."""

    text: str
    failed: bool = False
    own: dict[str, Any] = {}  # noqa: RUF012 - never written
    percent: int | None = None  # how far the agent says that it is


def _todo(call: OwnCall) -> OwnResult:
    items = [" ".join(item.split())[:200] for item in call.args["items"][:_MOST]]
    left = sum(not item.startswith("[x]") for item in items)
    return OwnResult(text="\n".join([*items, f"{left} of {len(items)} left"]), own={"todo": items})


def _env(call: OwnCall) -> OwnResult:
    return OwnResult(text="\n".join(sorted(call.env)) or "no variables")


def _tools_list(call: OwnCall) -> OwnResult:
    lines = [f"you have: {', '.join([*call.tools, 'finish'])}"]
    if call.grantable:
        lines.append(f"you may ask for: {', '.join(call.grantable)}")
    return OwnResult(text="\n".join(lines))


def _request_tool(call: OwnCall) -> OwnResult:
    name = call.args["name"]
    if name in call.tools:
        return OwnResult(text=f"you have {name} already")
    if name in call.grantable:
        return OwnResult(text=f"you have {name} from now on", own={"granted": [name]})
    why = NOT_OFFERED.get(name) or (
        "the step does not allow it" if name in TOOLS else "there is no such tool"
    )
    return OwnResult(text=f"{name} is not granted: {why}", failed=True)


def _progress(call: OwnCall) -> OwnResult:
    return OwnResult(text="noted", percent=call.args["percent"])


def _status(call: OwnCall) -> OwnResult:
    rows = [
        f"{name}: {found.status}{f' ({found.reason})' if found.reason else ''}"
        for name, found in list(call.state.steps.items())[:_SHOWN]
    ]
    return OwnResult(text="\n".join(rows))


def _ask_user(call: OwnCall) -> OwnResult:
    answer = call.decisions.get(call.step)
    if answer is None:
        return OwnResult(
            text="no decision is given for this step; go on with what the task says, and name the open question in "
            "your report",
            failed=True,
        )
    return OwnResult(text=f"the decision for this step is: {answer}")


def _memory(call: OwnCall) -> OwnResult:
    try:
        found = call.memory.call(call.args)
    except MemoryRefused as refused:
        return OwnResult(text=str(refused), failed=True)
    # What is in the memory was written by models that read files: it is data.
    return OwnResult(text=result_block("output of memory", dumps(found), MAX_RESULT, "read single entries"))


OWN: dict[str, Callable[[OwnCall], OwnResult]] = {
    "todo": _todo,
    "env": _env,
    "tools_list": _tools_list,
    "request_tool": _request_tool,
    "update_plan_progress": _progress,
    "get_plan_status": _status,
    "ask_user": _ask_user,
    "memory": _memory,
}
"""The tools without a process, by name."""
