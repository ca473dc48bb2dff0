"""One plan file, shape and meaning: the check that every file goes through, whoever names it."""

from __future__ import annotations

from planrun.source import shape
from planrun.source.problems import Problem, in_order, limited
from planrun.source.validate import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.source.node import Node
    from planrun.source.shelf import Shelf
    from planrun.source.validate import Checked


def check(data: bytes, file: str, shelf: Shelf) -> tuple[Checked | None, list[Problem]]:
    """Return what was found in a file, and its problems in file order; those of plans that it uses are on the shelf."""
    root, problems = shape.read(data, file)
    if root is None:
        return None, problems
    if "template" in root.value:
        return None, [_is_template(root, file)]
    checked = validate(root, file, data, shelf, sound=not problems)
    if not problems and any(["risk" in draft.keys for draft in checked.outline.drafts]):  # noqa: C419 - half the time
        from planrun.source.declared import check_declared  # the whole classifier

        check_declared(checked)
    if not checked.problems:
        return checked, problems
    # What is misshapen is often misunderstood as well: one finding for one place is enough.
    told = {(problem.line, problem.col) for problem in problems}
    added = [problem for problem in checked.problems if (problem.line, problem.col) not in told]
    return checked, limited(in_order([*problems, *added]))


def check_tree(root: Node, data: bytes, shelf: Shelf) -> list[Problem]:
    """Return the problems of a tree that was made of the file of the shelf; `data` are the bytes of that file."""
    problems = shape.check(root, shelf.file)
    checked = validate(root, shelf.file, data, shelf, sound=not problems)
    return in_order([*problems, *checked.problems, *shelf.problems])


def _is_template(root: Node, file: str) -> Problem:
    place = root.key("template")
    return Problem(
        code="E297",
        message="this is a template, and plans are made of it",
        file=file,
        line=place.line,
        col=place.col,
        end_col=place.col + len("template"),
        hint=f"`planrun templates render {file} --var NAME=VALUE -o plan.yml` makes one",
    )
