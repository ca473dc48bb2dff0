"""The outlines of a plan's files, read again: for what is said of a plan that was loaded."""

from __future__ import annotations

from planrun.source.document import parse
from planrun.source.extending import extended
from planrun.source.included import copies, shown
from planrun.source.outline import Outline
from planrun.source.shelf import Shelf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Plan, Step


def outline_of(plan: Plan, path: str = "") -> Outline | None:
    """Return the outline of a file of a plan, merged with what it extends; None when its text is not at hand.

    `path`: of a plan that it uses, as `Plan.files` has it.
    """
    file, data = (shown(plan.file, path), plan.files.get(path)) if path else (plan.file, plan.source)
    root = None if data is None else parse(data, file)[0]
    if root is None or data is None:
        return None
    if "extends" not in root.value or "template" in root.value:
        return Outline(root, file, data)
    found = extended(root, file, data, Shelf(plan.file, copies(plan.files), inside=path))
    return None if found.root is None else Outline(found.root, file, data, origins=found.origins)


def outline_for(plan: Plan, step: Step) -> Outline | None:
    """Return the outline that a step of a plan stands in: of its file, or of the plan that extends this file."""
    if step.file:
        whole = outline_of(plan)
        if whole is not None and any(whole.path_of(draft.at) == step.file for draft in whole.drafts):
            return whole
    return outline_of(plan, step.file)
