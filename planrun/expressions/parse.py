"""From text to tree: Jinja2 reads the grammar, an allow-list of nodes decides what is an expression."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.expressions.tree import Template, Tree


def parse(text: str) -> Tree:
    """Return the tree of a bare expression; raises ExpressionError."""
    raise NotImplementedError(text)


def parse_template(text: str) -> str | Template:
    """Return a template, or the text itself when nothing is interpolated; raises ExpressionError."""
    raise NotImplementedError(text)


def parse_script(text: str) -> str | Template:
    """Return a template for `run:`, where an interpolation may end in `| sh`; raises ExpressionError."""
    raise NotImplementedError(text)
