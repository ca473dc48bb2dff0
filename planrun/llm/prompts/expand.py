"""The question for the steps that an abstract one becomes: what is stable, and the form of what differs."""

from __future__ import annotations

import json

from planrun.llm.digest import parts
from planrun.llm.prompts.language import LANGUAGE
from planrun.llm.untrusted import RULES, clean, data_block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.llm.pieces import Whole
    from planrun.llm.repository import Repository

_TASK = """\
Your task: make one abstract step of a plan concrete. It says what is to be done and has no script yet; you write the
steps with scripts that do it, and nothing besides. The rest of the plan stays as it is: it stands in a data block so
that you know what comes before and after.

- Every step has a script. One step is enough where one script does it; several where they can fail for different
  reasons, or where one of them needs another risk than the rest.
- The last step keeps the id of the abstract step: what waits for that waits for your last one. The ids of all others
  begin with that id and `-`, as in `migrate-check` for `migrate`. The last step waits for all others, itself or by
  others; planrun adds the edges for that.
- depends_on: ids of your own steps, and of those that the abstract step waits for. Steps of yours without any get the
  edges of the abstract step.
- What the plan says of the abstract step (time, retries, environment, folder, condition …) holds for each of yours.
- Use files, commands and tools that the project really has. Look before you change, and check afterwards.
- If it cannot be done by commands in this project, say so in `infeasible`.
- In `review`, say what could go wrong: what is written, deleted, sent or installed, and what you had to assume."""
SYSTEM = (LANGUAGE, RULES, _TASK)
"""The stable beginning of every such request."""
MAX_PLAN = 48 * 1024  # bytes of the plan's text
_MAX_WORDS = 4000  # characters of what a step says


def prompt(
    whole: Whole, text: str, repository: Repository, most_steps: int, mask: Callable[[str], str]
) -> str:
    """Return the question for one step; `text`: the plan as it is by now, `mask` hides secrets."""
    told = [data_block(name, mask(part), limit * 4) for name, part, limit in parts(repository)]
    return "\n\n".join(
        [
            "The project:",
            *told,
            "The plan:",
            data_block("plan", mask(text), MAX_PLAN),
            f"Make this step concrete: {whole.id}",
            "\n".join(_about(whole, mask)),
            f"Write at most {most_steps} steps.",
        ]
    )


def _about(whole: Whole, mask: Callable[[str], str]) -> list[str]:
    rows = [
        f"{name}: {json.dumps(clean(mask(said)).text[:_MAX_WORDS], ensure_ascii=False)}"
        for name, said in (("title", whole.title), ("description", whole.description))
        if said
    ]
    if whole.edges:
        rows.append("waits for: " + ", ".join([f"{edge.on} ({edge.kind})" for edge in whole.edges]))
    if whole.followers:
        rows.append("steps that wait for it: " + ", ".join(whole.followers))
    if whole.copied:
        rows.append("the plan says besides: " + ", ".join(sorted(whole.copied)))
    if whole.shell:
        rows.append(f"its scripts are for this shell, not for bash: {whole.shell}")
    if whole.outputs:
        rows.append("the last step has to write the outputs: " + ", ".join(whole.outputs))
    return rows
