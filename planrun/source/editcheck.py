"""Whether an edit of a plan's text did what it was to do, and nothing else."""

from __future__ import annotations

from planrun.model.plan import Step
from planrun.source.canonical import plain
from planrun.source.document import parse
from planrun.source.forms import to_data
from planrun.source.load import load_bytes
from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.model.plan import Plan


def check_edit(before: Plan, root: Node, data: bytes, gone: Sequence[str], new: Sequence[Node]) -> str:
    """Return what an edit changed that it should not have, in words; empty: it did what it was to do.

    `before` and `root` are the plan as it was, `data` the text as it is now; the steps in `gone` are replaced, those in
    `new` are to be there. Raises InvalidPlan when the text can be read and is no plan any more.
    """
    tree, problems = parse(data, before.file)
    if tree is None or problems:
        return f"line {problems[0].line}: {problems[0].message}"
    found = _other_keys(root, tree)
    if found:
        return f"`{found}` would change"
    count = len(_listed(tree)) - len(_listed(root))
    if count != len(new) - len(gone):
        return f"there would be {count} more steps, not {len(new) - len(gone)}"
    written = [to_data(node) for node in _listed(tree)]
    wanted = [to_data(node) for node in new]
    if not any(written[at : at + len(wanted)] == wanted for at in range(len(written) - len(wanted) + 1)):
        return "the new steps would read otherwise than they were written"
    return _others(before, load_bytes(data, before.file, cache=False), set(gone), new)


def _other_keys(old: Node, new: Node) -> str:
    """Return the first key beside the lists of steps that differs."""
    for name in (*old.value, *new.value):
        if name in ("steps", "finally"):
            continue
        if name not in old.value or name not in new.value or not _same(old.value[name], new.value[name]):
            return str(name)
    return ""


def _same(old: Node, new: Node) -> bool:
    if old.kind != new.kind:
        return False
    if old.kind == SCALAR:
        return bool(old.value == new.value and old.plain == new.plain)
    if old.kind == MAPPING:
        return list(old.value) == list(new.value) and all(
            _same(old.value[name], new.value[name]) for name in old.value
        )
    return len(old.value) == len(new.value) and all(map(_same, old.value, new.value))


def _listed(root: Node) -> list[Node]:
    found: list[Node] = []
    for section in ("steps", "finally"):
        node = root.get(section)
        if node is not None and node.kind == SEQUENCE:
            found += node.value
    return found


def _others(before: Plan, after: Plan, gone: set[str], new: Sequence[Node]) -> str:
    """Compare what is not replaced in its canonical form; edges may lead to steps that replace others."""
    if plain(before) != plain(after):
        return "keys beside the steps would change"
    edges = not any("replaces" in node.value for node in new if node.kind == MAPPING)
    old = {step.id: _form(step, edges=edges) for step in before.steps if step.id not in gone}
    now = {step.id: _form(step, edges=edges) for step in after.steps}
    for name, form in old.items():
        if now.get(name) != form:
            return f'step "{name}" would change'
    ids = [step.id for step in before.steps if step.id in old]
    if [step.id for step in after.steps if step.id in old] != ids:
        return "the order of the steps would change"
    return ""


def _form(step: Step, *, edges: bool) -> object:
    return plain(step if edges else step.but(edges=()))
