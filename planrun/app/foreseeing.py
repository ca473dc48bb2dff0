"""What a run of a plan would be bound to, as far as it can be told before all its parameters are known."""

from __future__ import annotations

from planrun.app.reviewed import review
from planrun.model.record import Record
from planrun.source.params import parse_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.app.reviewed import Reviewed
    from planrun.model.plan import Plan


class Foreseen(Record):
    """What was reviewed; `missing` are the required parameters that nobody gave: a run has another digest then."""

    reviewed: Reviewed
    missing: tuple[str, ...] = ()


def foresee(plan: Plan, given: Iterable[str], workspace: str) -> Foreseen:
    """Return what a run in `workspace` would be bound to with these `name=value` texts; raises InvalidInput."""
    params, missing = known_params(plan, given)
    return Foreseen(reviewed=review(plan, params, workspace), missing=missing)


def known_params(plan: Plan, given: Iterable[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters that have a value, and the names of the required ones that have none.

    Raises InvalidInput for a `name=value` text that does not fit.
    """
    texts = tuple(given)
    named = {text.partition("=")[0] for text in texts}
    missing = tuple(
        param.name
        for param in plan.params
        if param.required and "default" not in param.schema and param.name not in named
    )
    known = plan.but(params=tuple(param for param in plan.params if param.name not in missing))
    return parse_params(known, texts), missing
