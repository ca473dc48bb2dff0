"""What a plan says about the language model that may write steps for it; loaded for plans that name one."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    Effort = Literal["low", "medium", "high", "xhigh", "max"]
    ReplanOn = Literal["fatal", "any", "never"]


class Llm(Record):
    """How a model is asked, and when; times in seconds.

    `replan_on_failure`: which failures of steps that do not say it are planned anew: those of class fatal, all that
    would count, or none.
    """

    model: str = ""  # empty: the command line names one
    effort: Effort = "medium"
    plan_max_tokens: int = 8000  # the longest answer; doubled once when one is cut off
    max_generated_steps: int = 10
    planning_timeout: float = 60.0  # for all calls of one planning
    timeout: float = 120.0  # one call with its repeats
    retries: int = 5  # repeats of a call
    fallback: Literal["fail", "template"] = "fail"
    replan_on_failure: ReplanOn = "fatal"
    enabled: bool = True
    extra_body: Mapping[str, Any] = {}  # more fields of each request, as the service knows them
