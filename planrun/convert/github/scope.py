"""Whether a workflow does anything outside of GitHub, asked before it is converted."""

from __future__ import annotations

from planrun.convert.github.reporting import LEFT_OUT, TALKERS
from planrun.convert.github.setups import SETUPS
from planrun.convert.github.tokens import TOKENS
from planrun.convert.reader import is_nothing, text_of
from planrun.plan.yaml.node import MAPPING, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.convert.github.facts import Workflow
    from planrun.plan.yaml.node import Node

# Actions that do nothing by themselves: what they fetch or set up is read by another step.
_NEUTRAL = frozenset((
    "actions/checkout", "actions/cache", "actions/cache/restore", "actions/cache/save", "actions/upload-artifact",
    "actions/download-artifact", "github/codeql-action/upload-sarif",
    *(name.lower() for name in (*SETUPS, *TOKENS)),
))  # fmt: skip


def only_talks(workflow: Workflow) -> bool:
    """Refuse a workflow that only talks to GitHub, at its first such action; False where that is accepted, too."""
    talker: Node | None = None
    for step in _steps(workflow):
        uses = step.get("uses")
        if uses is None or not is_nothing(step.get("run")):
            return False
        action = text_of(uses).strip().partition("@")[0].lower()
        if action in TALKERS or (action in LEFT_OUT and action not in _NEUTRAL):
            talker = talker or uses
        elif action not in _NEUTRAL:
            return False
    if talker is None:
        return False
    message = (
        f"this workflow only talks to GitHub ({text_of(talker).partition('@')[0]}), and runs nothing else: keep it "
        "as a workflow"
    )
    workflow.found.refuse("only-github", message, talker)
    return workflow.found.is_refused


def _steps(workflow: Workflow) -> Iterator[Node]:
    """Yield all steps; a job that calls a workflow counts as a step that does something."""
    for job in workflow.jobs.values():
        steps = job.node.get("steps")
        if job.node.get("uses") is not None or steps is None or steps.kind != SEQUENCE:
            yield job.node
            continue
        yield from (each for each in steps.value if each.kind == MAPPING)
