"""What a person writes about the language model that may write steps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.source.schema.words import AnyMapping, Duration, Line, Positive, Written, key

Effort = Literal["low", "medium", "high", "xhigh", "max"]


class Llm(Written):
    """The language model that may write steps, and how it is asked."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})

    model: Line | None = key("Which model. Left out: the one that the command line names.", "a-model")
    effort: Effort | None = key("How hard it thinks.", "medium")
    plan_max_tokens: Positive | None = key("The longest answer, in tokens.", 8000)
    max_generated_steps: Annotated[int, Field(ge=1, le=100)] | None = key(
        "How many steps it may write at a time.", 10
    )
    planning_timeout: Duration | None = key("How long one planning may take, repairs included.", "1m")
    timeout: Duration | None = key("How long one call may take, repeats included.", "2m")
    retries: Annotated[int, Field(ge=0, le=100)] | None = key("How often a call is repeated.", 5)
    fallback: Literal["fail", "template"] | None = key(
        "What happens when it gives no plan: nothing, or a plan from planrun's own patterns.", "fail"
    )
    replan_on_failure: Literal["fatal", "any", "never"] | None = key(
        "Which failures are planned anew, of steps that do not say it.", "fatal"
    )
    extra_body: AnyMapping | None = key(
        "More fields of each request, as the service takes them; planrun does not look at them.",
        {"service_tier": "standard_only"},
    )
    enabled: bool | None = key("Whether a model is asked at all.", example=False)
