"""What an expression reads and of which type it is, found without any value."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.expressions.tree import Path, Template, Tree, Type


class Reference(Record):
    """A path that is read; `guarded`: it stands inside the first argument of `default`, so it may be absent."""

    path: Path
    offset: int
    length: int
    guarded: bool = False


def references(value: str | Tree | Template) -> tuple[Reference, ...]:
    """Return every path that an expression or template reads, in the order of the text."""
    raise NotImplementedError(value)


def infer(value: str | Tree | Template, types: Callable[[Path], Type]) -> Type:
    """Return the type of an expression or template; raises ExpressionError where types do not fit.

    `types` gives the type of a path and raises ExpressionError, without a place, for a name that is unknown.
    """
    raise NotImplementedError(value)


def check_condition(tree: Tree, types: Callable[[Path], Type]) -> None:
    """Raise ExpressionError unless `tree` is boolean, or may be."""
    raise NotImplementedError(tree)
