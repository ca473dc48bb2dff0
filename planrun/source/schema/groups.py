"""What a person writes so that one step becomes several: a matrix, or a list of items."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from planrun.source.schema.words import (
    AXIS_PATTERN,
    Anything,
    Keys,
    Positive,
    Text,
    Value,
    Written,
    key,
)

Axis = list[Value] | Text
Combination = Annotated[dict[str, Value], Keys(AXIS_PATTERN), Field(min_length=1)]
Combinations = Annotated[list[Combination], Field(min_length=1)]


class Matrix(Written):
    """One instance of the step for each combination of the values of its axes; every other key is an axis."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"propertyNames": {"pattern": AXIS_PATTERN}})
    __pydantic_extra__: dict[str, Axis]

    include: Combinations | None = key(
        "Values added to the combinations that they do not contradict, or else combinations of their own.",
        [{"python": "3.14", "experimental": True}],
    )
    exclude: Combinations | None = key(
        "Combinations that are left out: all with these values.", [{"python": "3.11", "os": "macos"}]
    )
    max_parallel: Positive | None = key("How many instances run at the same time.", 2)
    fail_fast: bool | None = key("true: the first failure cancels the other instances.", example=True)


class ForEach(Written):
    """One instance of the step for each item."""

    items: list[Anything] | Text = key(
        "The items, or an expression that gives them.", ["a", "b"], required=True
    )
    key_: Text | None = key(
        "An expression over `item` that names an instance. Left out: the item itself.",
        "item.name",
        alias="key",
    )
    max_parallel: Positive | None = key("How many instances run at the same time.", 4)
    fail_fast: bool | None = key("true: the first failure cancels the other instances.", example=True)
