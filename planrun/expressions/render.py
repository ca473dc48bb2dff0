"""Templates with their values put in; what was put in is data and never looked at again.

Hot: imported by every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Template


def render(value: str | Template, scope: dict[str, Any]) -> Any:
    """Return the value of a template: of any type when it is one interpolation and nothing else, else text."""
    raise NotImplementedError(value)


def render_text(value: str | Template, scope: dict[str, Any]) -> str:
    """Return the text of a template: numbers and booleans as in JSON, lists and objects as compact JSON."""
    raise NotImplementedError(value)


def render_script(value: str | Template, scope: dict[str, Any]) -> str:
    """Return the text of a script; raises EvaluationError for a value that a shell would not take as it is."""
    raise NotImplementedError(value)
