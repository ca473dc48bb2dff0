"""A policy file: what stands under `policy:` in a plan, in a file of its own, read through the same door as a plan."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.source import shape
from planrun.source.node import MAPPING, Node
from planrun.source.outline import Outline
from planrun.source.problems import in_order, limited
from planrun.source.rules import check_rules, policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.policy import Policy
    from planrun.source.problems import Problem


def policy_in(data: bytes, file: str, warnings: list[Problem] | None = None) -> Policy:
    """Return the policy in the bytes of a file, which names them in problems; raises InvalidPlan with every problem.

    The file holds the mapping itself, or a mapping whose only key is `policy`. Steps that a rule or an answer names
    are not looked for, since a policy file is about many plans. Findings of severity `warning` go to `warnings`.
    """
    root, problems = shape.read(data, file, "Policy")
    if root is not None and not problems:
        outline = Outline(Node(MAPPING, {}, 1, 1), file, data)
        check_rules(outline, root)
        problems = limited(in_order(outline.problems))
    if root is None or any(problem.severity == "error" for problem in problems):
        raise InvalidPlan(problems, sources={file: data})
    if warnings is not None:
        warnings += problems
    return policy_of(root, {})
