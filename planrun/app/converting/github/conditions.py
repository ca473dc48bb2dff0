"""`if` of a step or a job: edges for its status functions, and a condition for the rest."""

from __future__ import annotations

from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.grammar import NotAnExpressionError
from planrun.app.converting.github.pieces import condition_of
from planrun.app.converting.github.spelling import truth
from planrun.app.converting.reading import is_nothing, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.draft import DraftStep
    from planrun.app.converting.github.facts import Job
    from planrun.app.converting.github.grammar import Tree
    from planrun.app.converting.github.names import PlaceNames
    from planrun.source.node import Node


class Condition:
    """What an `if` comes to: an expression, "" for none, and whether it asks how what came before ended."""

    def __init__(self, text: str = "", *, asks: bool = False) -> None:
        self.text = text
        self.asks = asks


def condition(node: Node | None, names: PlaceNames) -> Condition:
    """Return what an `if` comes to; raises UntranslatableError."""
    if node is None or is_nothing(node):
        return Condition()
    try:
        tree = condition_of(text_of(node))
    except NotAnExpressionError as error:
        raise UntranslatableError("condition", f"`if`: {error}") from None
    parts = _joined(tree)
    kept = [part for part in parts if part != ("call", "success", ())]
    if not kept:
        return Condition()
    for left in kept[1:]:
        kept = [("and", kept[0], left), *kept[2:]]
    names.asked = False
    try:
        found = truth(kept[0], names)
    except UntranslatableError as why:
        raise UntranslatableError("condition", f"`if`: {why.message}") from None
    return Condition(found.text, asks=names.asked)


def _joined(tree: Tree) -> list[Tree]:
    if tree[0] == "and":
        return [*_joined(tree[1]), *_joined(tree[2])]
    return [tree]


def apply_condition(step: DraftStep, node: Node | None, names: PlaceNames, job: Job) -> None:
    """Give a step the condition of its `if`; where that cannot be said the step loses its action."""
    try:
        found = condition(node, names)
    except UntranslatableError as why:
        assert node is not None  # only an `if` that is there is refused
        step.make_abstract(names.workflow.found.refuse(why.code, why.message, node, step.id))
        found = Condition()
    step.condition = found.text
    if found.asks:
        job.asking.add(step.id)
    elif (not found.text or found.text == "true") and step.id not in job.tolerated:
        job.plain.add(step.id)
