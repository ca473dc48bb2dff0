"""A difference in one line for each step and part of the head: what a run says that goes on with an edited plan."""

from __future__ import annotations

from planrun.app.comparing.plans import compare
from planrun.app.comparing.records import PROSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.app.comparing.records import Change, StepChange
    from planrun.model.plan import Plan

# Parts of the head that have entries; the run says itself what its plan is called and which version it is.
_PARTS = frozenset(("env", "params", "limits", "llm", "outputs", "policy"))
_APART = frozenset(("name", "version"))


def differences(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a line for each step that is new, gone or changed, and for each part of the head that changed.

    What only people read does not count.
    """
    found = compare(old, new)
    for kind in ("added", "removed", "changed"):
        yield from filter(None, map(_line, found.of(kind)))
    yield from dict.fromkeys(filter(None, [_of_head(change) for change in (*found.plan, *found.policy)]))


def _line(step: StepChange) -> str:
    if step.kind == "added":
        return f'+ step "{step.step.id}" is new'
    if step.kind == "removed":
        return f'- step "{step.step.id}" is gone'
    keys = [change.path[0] for change in step.changes if change.path[0] not in PROSE]
    named = ["finally" if key == "section" else key for key in dict.fromkeys(keys)]
    return f'~ step "{step.step.id}": {", ".join(named)}' if named else ""


def _of_head(change: Change) -> str:
    part = change.path[0]
    if part in PROSE or part in _APART:
        return ""
    if part not in _PARTS or len(change.path) == 1:
        return f"~ {part}"
    sign = change.sign if len(change.path) == 2 else "~"
    return f"{sign} {part}.{change.path[1]}"
