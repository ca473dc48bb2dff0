"""Risks that steps declare, held against those that are found.

One plan file, shape and meaning: the check that every file goes through, whoever names it.
"""

from __future__ import annotations

from planrun.plan.check.validate import validate, validated
from planrun.plan.compile.compile import Compiler
from planrun.plan.compile.risks import TOO_MUCH
from planrun.plan.keys.outline import Outline
from planrun.plan.problems import Problem, in_order, limited
from planrun.plan.schema import shape
from planrun.plan.yaml.document import read_tree
from planrun.risk.levels import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.check.validate import Checked
    from planrun.plan.includes import Shelf
    from planrun.plan.keys.outline import Draft
    from planrun.plan.yaml.node import Node


def _found(compiler: Compiler, draft: Draft, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the risk of a step; of one with instances, the worst of theirs."""
    group = compiler.groups.get(draft.id)
    if group is None or not group.made:
        return compiler.risks.of(fields)
    from planrun.plan.compile.groups import filled

    every = [compiler.risks.of(filled(fields, made)) for made in group.made]
    return max(every, key=lambda found: rank(found["risk"]) if found else -1)


def check_declared(checked: Checked) -> None:
    """Report every declared risk that is below the one that was found; only such steps are looked at."""
    outline = checked.outline
    compiler = Compiler(checked)
    for draft in outline.drafts:
        if outline.is_full:
            break
        if "risk" not in draft.keys or draft.is_gate or "uses" in draft.keys:
            continue
        try:
            fields = compiler.surface(draft)
        except ValueError:  # a shell that cannot be split into words: told already
            continue
        found = _found(compiler, draft, {**fields, "declared_risk": ""})
        node = draft.keys["risk"]
        if found and found["risk_reason"] != TOO_MUCH and rank(node.value) < rank(found["risk"]):
            message = f'step "{draft.id}" declares the risk {node.value}, and planrun finds {found["risk"]}'
            hint = found["risk_reason"]
            if found.get("open_risk"):
                hint += "; leave `risk` out, and it is found again when all values are known"
            outline.report("E260", message, node, hint)
    checked.problems = in_order(outline.problems)


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
    from planrun.plan.extends import extended  # few plans extend others

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
