"""What an agent is told: a beginning that is the same for all agents of a type and mode, and its task."""

from __future__ import annotations

from planrun.llm import untrusted
from planrun.llm.projectfile import BLOCK, MAX_BYTES
from planrun.model.agenttypes import MODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.llm.projectfile import ProjectFile

_RULES = """\
You are an agent in a step of an automated run. No person reads along, and nobody answers questions.
You work by tools. Several calls in one answer are welcome where they do not depend on each other.
Every call is checked by policies. A call that is denied stays denied: do not try to reach the same by another way.
When the task is done, or cannot be done, call `finish` with a short report and evidence: files with lines, and what
commands showed. Commands that you cannot change verify the result afterwards, so report only what is so."""
_ON_COPY = """\
You work on a copy of the workspace. What you change there becomes a patch, which is reviewed before it is applied.
All paths are relative to the workspace. Change no more than the task needs."""
_READS = "You read the workspace and change nothing. All paths are relative to it."
_PLANNING = """\
You begin in plan mode: you can only read. Call exit_plan_mode with your plan when it is complete; people may read it
before you get your other tools. Then carry it out."""
_SHARED = (
    "You work in the workspace itself. All paths are relative to it. Change no more than the task needs."
)
REMINDER = (
    "You ended your answer without a call of a tool. Go on with the task, or call `finish` with your report."
)
LAST = "This is your last turn: call `finish` now, with what is done and what is left to do."


def again(why: str) -> str:
    """Return what an agent is told that goes on after its attempt failed."""
    return (
        f"The attempt failed: {why}. You go on where you were, with a new budget. Call `finish` at the end."
    )


def left(turns: int, tokens: float, *, is_last: bool) -> str:
    """Return what an agent is told of its budget behind each result."""
    return f"[{turns} turns and {int(tokens):,} tokens left]" + (f" {LAST}" if is_last else "")


def system_of(agent: dict[str, Any]) -> tuple[str, ...]:
    """Return the beginning; it has nothing that differs from run to run."""
    place = {"copy": _ON_COPY, "shared": _SHARED, "read": _READS}[agent["workspace"]]
    work = [
        text for text in (agent["instructions"], MODES[agent["mode"]].agent if agent["mode"] else "") if text
    ]
    if agent.get("plan_mode"):
        place += f"\n{_PLANNING}"
    return (_RULES, place, untrusted.RULES, "\n".join(work) or "Do the task.")


def _joined(parts: list[list[str]]) -> str:
    """Return a text of the plan; values of other steps are blocks of data."""
    found = []
    for kind, *rest in parts:
        found.append(
            rest[0] if kind == "text" else f"\n{untrusted.data_block(rest[0], rest[1], _LONGEST_VALUE)}\n"
        )
    return "".join(found).strip()


_LONGEST_VALUE = 64 * 1024  # bytes of one value of another step


def project_memory(file: ProjectFile | None) -> list[str]:
    """Return the block with what people wrote about the project for models."""
    return [untrusted.data_block(f"{BLOCK}: {file.name}", file.text, MAX_BYTES)] if file else []


def words_of(agent: dict[str, Any]) -> str:
    """Return the task in the words of the plan, without values of other steps."""
    texts = [part[1] for part in agent["prompt"] if part[0] == "text"]
    return " ".join("".join(texts).split())


def task_of(agent: dict[str, Any], verify: tuple[str, ...]) -> str:
    """Return the first message: the task, the commands that verify the result, and the limits."""
    of = "Part of the task" if agent.get("parent") else "Task"
    parts = [f"{of} of the step {agent['step']}:\n{_joined(agent['prompt'])}"]
    if agent["suffix"]:
        parts.append(_joined(agent["suffix"]))
    if verify:
        parts.append("The result is verified by:\n" + "\n".join(f"  {line}" for line in verify))
    limits = f"You may take {agent['max_turns']} turns and use {agent['max_tokens']:,} tokens"
    parts.append(f"{limits}, without those that the service reads from its cache.")
    return "\n\n".join(parts)
