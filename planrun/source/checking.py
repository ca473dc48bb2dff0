"""One plan file, shape and meaning: the check that every file goes through, whoever names it."""

from __future__ import annotations

from planrun.source import shape
from planrun.source.document import read_tree
from planrun.source.outline import Outline
from planrun.source.problems import Problem, in_order, limited
from planrun.source.validate import validate, validated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.source.node import Node
    from planrun.source.shelf import Shelf
    from planrun.source.validate import Checked


def check(data: bytes, file: str, shelf: Shelf) -> tuple[Checked | None, list[Problem]]:
    """Return what was found in a file, and its problems in file order; those of plans that it uses are on the shelf."""
    root, problems, complete = read_tree(data, file)
    if root is not None and complete and "extends" in root.value and "template" not in root.value:
        return _check_extending(root, problems, data, file, shelf)
    if root is not None:
        problems = shape.with_shape(root, problems, file, complete=complete)
    if root is None or not complete:
        return None, problems
    if "template" in root.value:
        return None, [_is_template(root, file)]
    return _checked(Outline(root, file, data, sound=not problems), problems, shelf)


def _checked(outline: Outline, problems: list[Problem], shelf: Shelf) -> tuple[Checked | None, list[Problem]]:
    """Check what a tree means whose shape was checked, with these problems."""
    checked = validated(outline, shelf)
    if not problems and any(["risk" in draft.keys for draft in checked.outline.drafts]):  # noqa: C419 - half the time
        from planrun.source.declared import check_declared  # the whole classifier

        check_declared(checked)
    if not checked.problems:
        return checked, problems
    # What is misshapen is often misunderstood as well: one finding for one place is enough.
    told = {(problem.file, problem.line, problem.col) for problem in problems}
    added = [problem for problem in checked.problems if (problem.file, problem.line, problem.col) not in told]
    return checked, limited(in_order([*problems, *added]))


def _check_extending(
    root: Node, problems: list[Problem], data: bytes, file: str, shelf: Shelf
) -> tuple[Checked | None, list[Problem]]:
    """Check a plan that extends another one, both as one plan; what is wrong in other files goes to the shelf."""
    from planrun.source.extending import extended  # few plans extend others

    problems = in_order([*problems, *shape.check(root, file, part=True)])
    found = extended(root, file, data, shelf)
    if found.root is None or problems:
        return None, in_order([*problems, *found.problems])
    before = [*shape.check(found.root, file, "Plan", found.origins), *found.problems]
    outline = Outline(found.root, file, data, sound=not before, origins=found.origins)
    checked, merged = _checked(outline, before, shelf)
    others = [problem for problem in merged if problem.file != file]
    shelf.problems += [problem for problem in others if problem not in shelf.problems]
    if any(problem.severity == "error" for problem in others):
        checked = None
    return checked, [problem for problem in merged if problem.file == file]


def check_filled(tree: Node, data: bytes, file: str, shelf: Shelf) -> tuple[Checked | None, list[Problem]]:
    """Check the tree that a template in `file` became, as `check` does with a file."""
    problems = shape.check(tree, file)
    return _checked(Outline(tree, file, data, sound=not problems), problems, shelf)


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
