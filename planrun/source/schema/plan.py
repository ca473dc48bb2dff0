"""What a person writes at the top of a plan file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.source.schema.containers import SharedContainer
from planrun.source.schema.gates import Decide
from planrun.source.schema.later import AgentType
from planrun.source.schema.llm import Llm
from planrun.source.schema.locks import Slots
from planrun.source.schema.rules import Policy
from planrun.source.schema.step import Defaults, Step
from planrun.source.schema.templates import Extends, Template
from planrun.source.schema.values import Params, Secrets
from planrun.source.schema.words import (
    ID_PATTERN,
    NAME_PATTERN,
    Amount,
    Count,
    Duration,
    Env,
    Id,
    Keys,
    Line,
    Positive,
    Text,
    Texts,
    Written,
    key,
    later,
    written,
)

Version = Annotated[int, written("version", type="integer", enum=[1])]


class Limits(Written):
    """What a run may use up at most."""

    max_parallel: Positive | None = key("How many steps run at the same time.", 4)
    deadline: Duration | None = key("How long the whole run may take.", "1h")
    cleanup: Duration | None = key("How long undoing may take, and how long the `finally` steps may.", "5m")
    max_steps: Positive | None = key("How many steps the plan may have, instances included.", 500)
    max_items: Positive | None = key("How many instances a step may have.", 2000)
    max_replans: Count | None = key("How often a model may plan anew in one run.", 3)
    max_tokens: Positive | None = key("How many tokens models may use in one run.", 200000)
    max_usd: Amount | None = key("How much models may cost in one run, in US dollars.", 2.5)
    max_turns: Positive | None = key("How often models may be asked in one run.", 12)
    locks: Slots | None = key("How many steps may have a lock at the same time. Left out: one.", {"db": 2})


class Plan(Written):
    """A plan: steps, what they need, and in what order they may run."""

    model_config = ConfigDict(title="planrun plan", json_schema_extra={"patternProperties": {"^x-": {}}})

    schema_: Text | None = key(
        "The JSON Schema of this file, for editors.", "../schemas/plan.schema.json", alias="$schema"
    )
    version: Version = key("The version of the plan language.", 1, required=True)
    name: Line | None = key("What the plan is called. Left out: the file's name.", "release")
    description: Text | None = key("What the plan does.", "Test, build and ship the service.")
    goal: Text | None = key("What the plan is meant to reach.", "Ship when every gate is green.")
    template: Template | None = key(
        "Makes this file a template: plans are made of it, and it is none itself.",
        {"vars": {"name": {"type": "string", "required": True}}, "requires": ["git"]},
    )
    extends: Line | Extends | None = key(
        "Another plan, or a template, whose keys and steps this one changes and adds to.", "./base.yml"
    )
    params: Params | None = key(
        "Typed values that are given when a run starts.", {"target": {"type": "string", "default": "staging"}}
    )
    outputs: Annotated[dict[str, Text], Keys(NAME_PATTERN)] | None = key(
        "The plan's own outputs: results of a run, and what a plan that uses it gets.",
        {"sha": "${{ steps.version.outputs.sha }}"},
    )
    env: Env | None = key("Environment variables of every step.", {"PYTHONUNBUFFERED": "1"})
    env_file: Texts | None = key("Files of NAME=value lines, read before `env`.", "ci.env")
    secrets: Secrets | None = key(
        "Secrets that steps may list: variables of planrun's own environment, masked wherever they show up.",
        ["PYPI_TOKEN"],
    )
    defaults: Defaults | None = key(
        "What holds for every step that does not say otherwise.", {"timeout": "10m"}
    )
    limits: Limits | None = key("What a run may use up at most.", {"max_parallel": 4, "deadline": "1h"})
    schedule: Literal["dag", "levels", "batches", "sequential"] | None = key(
        "In what order ready steps start.", "dag"
    )
    concurrency: Id | None = key(
        "One run of this name at a time on this host; the others wait for their turn.", "deploy"
    )
    policy: Policy | None = key("What may run without anybody being asked.", {"auto_approve": "medium"})
    llm: Llm | None = key("The language model that may write steps.", {"model": "a-model"})
    containers: Annotated[dict[str, SharedContainer], Keys(ID_PATTERN)] | None = key(
        "Containers that several steps share, by name.", {"build": {"image": "node:22"}}
    )
    agents: Annotated[dict[str, AgentType], Keys(ID_PATTERN)] | None = later(
        "Kinds of agents that the plan brings along.", {"reviewer": {"description": "Reviews changes."}}
    )
    decisions: Annotated[dict[str, Decide], Keys(ID_PATTERN)] | None = key(
        "Decisions that belong to no step: each is taken at the head of the plan.",
        {"store": {"question": "Which store?", "options": [{"label": "redis"}]}},
    )
    steps: Annotated[list[Step], Field(min_length=1)] = key(
        "What is to be done.", [{"id": "test", "run": "pytest -q"}], required=True
    )
    finally_: Annotated[list[Step], Field(min_length=1)] | None = key(
        "What is done at the end, however the run ended.",
        [{"id": "collect", "run": "tar -czf logs.tgz logs"}],
        alias="finally",
    )
