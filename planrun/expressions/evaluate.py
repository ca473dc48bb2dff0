"""The value of an expression: a walk over the tree, strict about types and bounded in size.

Hot: imported by every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Tree


def evaluate(tree: Tree, scope: dict[str, Any]) -> Any:
    """Return the value of `tree`; raises EvaluationError.

    `scope` maps the names of `tree.ROOTS` to nested dicts, lists or tuples and plain values. A dict may be of
    a subclass with `__missing__`, for what is expensive to know. `scope[ROOT_KEY]` is the folder in which
    `hash_files` works, absolute.
    """
    raise NotImplementedError(tree)
