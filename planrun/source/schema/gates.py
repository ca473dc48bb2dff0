"""What a person writes about gates: questions that are answered, and decisions that are taken, during a run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from planrun.source.schema.words import (
    Anything,
    Condition,
    Duration,
    FullText,
    Line,
    Text,
    TypeWord,
    Written,
    key,
)

# What narrows an answer says nothing about yes and no.
_TYPED: dict[str, Any] = {"anyOf": [{"required": ["type"]}, {"required": ["enum"]}]}


class Option(Written):
    """One answer that a decision can have."""

    label: Line = key("What people choose.", "Redis", required=True)
    description: Text | None = key("What choosing it means.", "Fast, and one more service.")
    value: Anything | None = key("What the plan gets; left out: the label.", "redis")
    when: Condition | None = key(
        "An expression; the first option for which it is true is taken without asking.", "run.ci"
    )


class Decide(Written):
    """A decision checkpoint."""

    question: FullText = key("What has to be decided.", "Which store?", required=True)
    header: Line | None = key("A few words above the question.", "Storage")
    options: Annotated[list[Option], Field(min_length=1)] = key(
        "What there is to choose from.", [{"label": "Redis", "value": "redis"}], required=True
    )
    multi_select: bool | None = key("More than one may be chosen.", example=False)
    default: Anything | None = key(
        "The value of the option, or a list of them, that is taken when the time is over.", "redis"
    )
    timeout: Duration | None = key("How long to wait for an answer.", "30m")


class Ask(Written):
    """A gate that is answered with yes or no, or with a value of a type."""

    model_config = ConfigDict(
        json_schema_extra={"dependencies": dict.fromkeys(("pattern", "minimum", "maximum"), _TYPED)}
    )

    question: FullText = key("What is asked.", "Publish 1.2.3?", required=True)
    header: Line | None = key("A few words above the question.", "Release")
    type: TypeWord | None = key("The type of the answer; left out, and no `enum`: yes or no.", "string")
    enum: Annotated[list[Anything], Field(min_length=1)] | None = key("The only answers allowed.", ["a", "b"])
    pattern: Text | None = key("A regular expression that a text must match.", r"^\d+\.\d+\.\d+$")
    minimum: float | None = key("The least number allowed.", 1)
    maximum: float | None = key("The greatest number allowed.", 10)
    default: Anything | None = key("The answer that is taken when the time is over.", "a")
    timeout: Duration | None = key("How long to wait for an answer.", "30m")
