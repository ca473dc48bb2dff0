"""What `planrun execute` does otherwise when a queue started it: its run has an id, its plan is looked at again."""

from __future__ import annotations

import os

from planrun.errors import Denied, InvalidInput
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.settings import Settings
    from planrun.model.plan import Plan

VARIABLE = "PLANRUN_QUEUED"
"""Tells a queued `planrun execute` its run's id and, behind a colon, the SHA-256 of the plan that was queued."""
_DIGITS = frozenset("0123456789abcdef-")


def as_queued(plan: Plan, settings: Settings) -> Settings:
    """Return the settings with the id that the queue chose, and take the variable from what steps inherit.

    Raises Denied when the plan is not the one that was queued: the bytes are those that will be run.
    """
    run, _, wanted = os.environ.pop(VARIABLE, "").partition(":")
    if not run or set(run) - _DIGITS or len(run) > 40:
        raise InvalidInput(f"{VARIABLE} is set by planrun queue run alone")
    if wanted and sha256(plan.source).hexdigest() != wanted:
        raise Denied(f"{plan.file} changed since it was queued")
    return settings.but(run=run)
