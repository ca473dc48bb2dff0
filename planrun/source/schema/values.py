"""What a person writes about values: parameters and outputs, as fragments of JSON Schema."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planrun.source.schema.words import (
    NAME_PATTERN,
    Amount,
    Anything,
    Count,
    EnvName,
    Keys,
    Text,
    TypeWord,
    Written,
    key,
)

_Number = float
_Anythings = Annotated[list[Anything], Field(min_length=1)]


class Narrowed(Written):
    """The type of a value and what narrows it, in the words of JSON Schema."""

    type: TypeWord | None = key("The type of the value.", "string")
    title: Text | None = key("A short name for people.", "Target")
    description: Text | None = key("What the value is for.", "Where to deploy to.")
    default: Anything | None = key("The value when none is given.", "staging")
    enum: _Anythings | None = key("The only values allowed.", ["staging", "prod"])
    const: Anything | None = key("The one value allowed.", "prod")
    examples: _Anythings | None = key("Values that would be right, for people.", ["1.2.3"])
    pattern: Text | None = key("A regular expression that text must match.", r"^\d+\.\d+\.\d+$")
    min_length: Count | None = key("The least number of characters.", 1, alias="minLength")
    max_length: Count | None = key("The greatest number of characters.", 40, alias="maxLength")
    minimum: _Number | None = key("The least number allowed.", 1)
    maximum: _Number | None = key("The greatest number allowed.", 10)
    exclusive_minimum: _Number | None = key("The number must be greater.", 0, alias="exclusiveMinimum")
    exclusive_maximum: _Number | None = key("The number must be less.", 1, alias="exclusiveMaximum")
    multiple_of: Amount | None = key("The number must be a multiple of it.", 5, alias="multipleOf")
    items: Value | None = key("What each entry of an array must be.", {"type": "string"})
    min_items: Count | None = key("The least number of entries.", 1, alias="minItems")
    max_items: Count | None = key("The greatest number of entries.", 10, alias="maxItems")
    unique_items: bool | None = key("No entry may stand twice.", True, alias="uniqueItems")
    properties: dict[str, Value] | None = key(
        "What the members of an object must be.", {"port": {"type": "integer"}}
    )
    additional_properties: bool | Value | None = key(
        "Whether an object may have other members, or what they must be.", False, alias="additionalProperties"
    )


class Value(Narrowed):
    """A value inside another one, or an output."""

    required: Annotated[list[Text], Field(min_length=1)] | None = key(
        "The members that an object must have.", ["port"]
    )


class Param(Narrowed):
    """A parameter of the plan."""

    required: bool | None = key("A run without this parameter is refused.", True)


Value.model_rebuild()
Param.model_rebuild()


class Secret(Written):
    """A secret that a run may go without."""

    name: EnvName = key("The variable of planrun's environment.", "SLACK_TOKEN", required=True)
    required: bool | None = key("false: steps that list it also run when it is not set.", False)


Secrets = Annotated[list[EnvName | Secret], Field(min_length=1)]
Params = Annotated[dict[str, TypeWord | Param], Keys(NAME_PATTERN)]
Outputs = Annotated[dict[str, TypeWord | Value], Keys(NAME_PATTERN)]
