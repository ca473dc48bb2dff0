"""Steps have no say: what people and those who reviewed a plan decide is refused to whatever a step started."""

from __future__ import annotations

import os

from planrun.errors import Denied
from planrun.executors.peers import from_step
from planrun.executors.tree import HAS_PROC


def refuse_steps(what: str) -> None:
    """Raise Denied, saying `what` a step cannot do, when this process belongs to a step of whatever run."""
    inside = "PLANRUN_RUN" in os.environ or "PLANRUN_STEP" in os.environ
    if inside or (HAS_PROC and from_step(os.getpid())):
        raise Denied(f"a step of a run cannot {what}")
