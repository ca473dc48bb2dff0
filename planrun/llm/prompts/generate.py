"""The question for a plan: what is stable, and the form of what differs from goal to goal."""

from __future__ import annotations

from planrun.llm.digest import parts
from planrun.llm.prompts.language import LANGUAGE
from planrun.llm.untrusted import RULES, data_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.llm.repository import Repository

_TASK = """\
Your task: write a whole plan that reaches the goal below in the project that the data blocks tell of.

- Look before you change, and check afterwards: the last steps show by exit codes that the goal is reached, with the
  project's own commands for tests where there are any.
- Use files, commands and tools that the project really has. Where a change needs thinking that no command can do, leave
  `run` empty and describe in `description` exactly what is to be done; do not invent a command for it.
- As few steps as the goal takes. Each can fail for one reason, and says so by its exit code.
- In `review`, say what could go wrong: what is written, deleted, sent or installed, and what you had to assume."""
SYSTEM = (LANGUAGE, RULES, _TASK)
"""The stable beginning of every such request."""
MAX_GOAL = 24_000  # bytes


def prompt(
    goal: str, repository: Repository, most_steps: int, mask: Callable[[str], str], *, trusted: bool
) -> str:
    """Return the question; `mask` hides secrets, `trusted`: whoever asks wrote the goal themselves."""
    told = [
        data_block(name, mask(text), limit * 4) for name, text, limit in parts(repository)
    ]  # characters have up to four bytes
    asked = (
        goal
        if trusted
        else "what the block named `goal` asks for.\n" + data_block("goal", mask(goal), MAX_GOAL)
    )
    return "\n\n".join(["The project:", *told, f"Goal: {asked}", f"Write at most {most_steps} steps."])
