"""What a person writes about risk: up to which one steps run unasked, and rules about some of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.source.schema.words import (
    ID_PATTERN,
    Anything,
    FullText,
    Keys,
    RiskLevel,
    Written,
    key,
)

Level = Literal["none", "read-only", "low", "medium", "high"]
Origin = Literal["file", "expanded", "replanned", "agent"]
FailureWord = Literal["block", "abort", "continue", "skip", "ask"]
Patterns = FullText | Annotated[list[FullText], Field(min_length=1)]  # `*` stands for any text

_FILLED = {"minProperties": 1, "x-filled": True}
_ONE_KEY = {"minProperties": 1, "maxProperties": 1, "x-one-key": True}


class Matcher(Written):
    """Which steps a rule is about; everything named has to fit, and of a list one word is enough."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    step: Patterns | None = key("Ids of steps; `*` stands for any text.", ["publish", "deploy-*"])
    tool: Patterns | None = key("Kinds of actions.", "exec")
    command: Patterns | None = key("Commands, their words joined by one blank.", "twine upload *")
    words: Patterns | None = key(
        "Whole words in the id, the texts or the action of a step.", ["prod", "push"]
    )
    topic: Patterns | None = key(
        "What the names or the action of a step speak of: `deploy`, `data`, `money`, `deletion`, `strategy`.",
        ["deploy", "strategy"],
    )
    secret: Patterns | None = key("Secrets that the step lists.", "PYPI_TOKEN")
    effect: Patterns | None = key("What the action does.", ["destroys", "network"])
    risk: RiskLevel | Annotated[list[RiskLevel], Field(min_length=1)] | None = key(
        "Deny and require: this risk and higher ones; allow: up to this one; a list: exactly these.", "high"
    )
    origin: Origin | Annotated[list[Origin], Field(min_length=1)] | None = key(
        "Who wrote the step: the file, or a model.", ["expanded", "replanned", "agent"]
    )
    ref: Patterns | None = key("The branch or tag that CI works on.", "release/*")
    event: Patterns | None = key("Why CI works on it.", "pull_request")


class Rule(Written):
    """One rule of a policy: deny wins over require, require over allow, allow over the level."""

    model_config = ConfigDict(json_schema_extra=_ONE_KEY)  # type: ignore[typeddict-item]

    deny: Matcher | None = key("These steps never run.", {"words": "prod", "event": "pull_request"})
    require: Matcher | None = key("These steps run only with an approval.", {"step": "publish"})
    allow: Matcher | None = key("These steps run without asking.", {"command": "pytest *"})


class FailureRules(Written):
    """What a failure means by the risk of the step, where neither the step nor `defaults` says it."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    read_only: FailureWord | None = key("Of a step that changes nothing.", "continue", alias="read-only")
    low: FailureWord | None = key("Of a step with low risk.", "continue")
    medium: FailureWord | None = key("Of a step with medium risk.", "block")
    high: FailureWord | None = key("Of a step with high risk.", "abort")
    reversible: FailureWord | None = key(
        "Of a step whose risk is not named, and that destroys and publishes nothing.", "ask"
    )
    otherwise: FailureWord | None = key("Of a step whose risk is not named here.", "abort")


class Policy(Written):
    """What may run without anybody being asked."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    auto_approve: Level | None = key("The highest risk that runs unasked; `none`: nothing does.", "medium")
    llm_auto_approve: Level | None = key("The same for steps that a model wrote.", "low")
    ask_for: Literal["steps", "plan"] | None = key(
        "Whether each step is approved on its own, or the plan before anything starts.", "steps"
    )
    preset: Literal["none", "careful"] | None = key(
        "Ready rules: `careful` asks before destructive, strategic and publishing work.", "careful"
    )
    rules: Annotated[list[Rule], Field(min_length=1)] | None = key(
        "Rules for some steps.", [{"require": {"effect": "destroys"}}]
    )
    decisions: Annotated[dict[str, Anything], Keys(ID_PATTERN)] | None = key(
        "Answers to `ask` and `decide` steps, by id.", {"store": "redis"}
    )
    on_failure: FailureRules | None = key(
        "What a failure means by risk, for steps that do not say it.",
        {"low": "continue", "otherwise": "abort"},
    )
