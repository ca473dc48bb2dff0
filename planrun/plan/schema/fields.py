"""The types of values in a plan file, each with the JSON Schema that editors see.

`x-form` names the check that the loader makes of it (`planrun.plan.schema.forms`); it is stripped from the schema file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

# Any scalar is text where text is wanted: an editor takes `3.10` for a number, planrun keeps it as written.
_SCALAR = ["string", "number", "boolean"]

ID_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$"
NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
AXIS_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$"
ENV_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
# No control characters, line ends or marks that turn the direction of writing: these texts stand in every report.
LINE_PATTERN = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]+$"
_AMOUNT = r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))"
DURATION_PATTERN = rf"^(?=.*[1-9]){_AMOUNT}{{1,8}}$"
SIZE_PATTERN = r"^[1-9][0-9]{0,8}(KiB|MiB|GiB|TiB)$"
DELAY_PATTERN = rf"^{_AMOUNT}{{1,8}}$"


def written(form: str, **schema: Any) -> WithJsonSchema:
    """Return a scalar's form for the loader together with its schema for editors."""
    return WithJsonSchema({"x-form": form, **schema})


Scalar = str | int | float | bool
Text = Annotated[Scalar, written("text", type=_SCALAR)]
FullText = Annotated[Scalar, written("full", type=_SCALAR, minLength=1)]
Condition = Annotated[str | bool, written("condition", type=["string", "boolean"], minLength=1)]
Line = Annotated[Scalar, written("line", type=_SCALAR, pattern=LINE_PATTERN)]
Id = Annotated[
    str | int,
    written("id", anyOf=[{"type": "string", "pattern": ID_PATTERN}, {"type": "integer", "minimum": 0}]),
]
Duration = Annotated[str, written("duration", type="string", pattern=DURATION_PATTERN)]
Delay = Annotated[str, written("delay", type="string", pattern=DELAY_PATTERN)]
Size = Annotated[str, written("size", type="string", pattern=SIZE_PATTERN)]
EnvName = Annotated[str, written("env", type="string", pattern=ENV_PATTERN)]
# A scalar of any type, which keeps it: one that can be read in two ways is refused.
ScalarValue = Annotated[Scalar, written("value", type=_SCALAR)]
Anything = Annotated[Any, written("any")]
AnyMapping = Annotated[dict[str, Any], WithJsonSchema({"type": "object", "x-form": "any"})]

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Positive = Annotated[int, Field(ge=1, le=1_000_000_000)]
Amount = Annotated[float, Field(ge=0)]
ExitCode = Annotated[int, Field(ge=0, le=255)]

TextList = Annotated[list[Text], Field(min_length=1)]
Texts = Text | TextList  # one, or a list
Lines = Line | Annotated[list[Line], Field(min_length=1)]
Argv = Annotated[list[Text], Field(min_length=1)]
Ids = list[Id]


class Keys:
    """Marks a mapping with the pattern that its keys have to follow."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Add the pattern to what pydantic says about the mapping."""
        schema: dict[str, Any] = handler(core)
        return {**schema, "propertyNames": {"pattern": self.pattern}}


Env = Annotated[dict[str, Text], Keys(ENV_PATTERN)]
EnvNames = Annotated[list[EnvName], Field(min_length=1)]

RiskLevel = Literal["read-only", "low", "medium", "high"]
TypeWord = Literal["string", "integer", "number", "boolean", "array", "object"]
Mode = Literal["code", "test", "research", "design", "docs", "run"]


class Written(BaseModel):
    """A mapping of the plan file; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def key(
    description: str, example: Any, *, required: bool = False, alias: str | None = None, **marks: Any
) -> Any:
    """Return a key that planrun knows how to use; `marks` go into the schema as they are."""
    return Field(
        default=... if required else None,
        alias=alias,
        description=description,
        examples=[example],
        json_schema_extra=marks or None,
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
    unique_items: bool | None = key("No duplicate entries.", True, alias="uniqueItems")
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

    required: bool | None = key("The run requires this parameter.", True)


Value.model_rebuild()
Param.model_rebuild()


class Secret(Written):
    """A secret that a run may go without."""

    name: EnvName = key("The variable of planrun's environment.", "SLACK_TOKEN", required=True)
    required: bool | None = key("false: steps that list it also run when it is not set.", False)


Secrets = Annotated[list[EnvName | Secret], Field(min_length=1)]
Params = Annotated[dict[str, TypeWord | Param], Keys(NAME_PATTERN)]
Outputs = Annotated[dict[str, TypeWord | Value], Keys(NAME_PATTERN)]
