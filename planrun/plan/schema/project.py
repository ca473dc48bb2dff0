"""The keys of `.planrun.yml`, the settings of a project, as pydantic models with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.plan.schema.fields import Line, Positive, Size, Written, key

_FILLED = {"minProperties": 1, "x-filled": True}


class PlanLimits(Written):
    """Limits of plan files."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    plan_size: Size | None = key("The largest plan file that is read.", "1MiB")
    plan_depth: Annotated[int, Field(ge=4, le=128)] | None = key(
        "How many levels of lists and mappings a plan file may have.", 32
    )
    plan_steps: Annotated[int, Field(ge=1, le=100_000)] | None = key(
        "How many steps a plan may have, instances included, whatever its `max_steps` says.", 500
    )


class Kept(Written):
    """What is kept of runs."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    persist: bool | None = key(
        "Whether a run keeps its records after it completed; reports are written in any case.", example=False
    )
    stored_runs: Positive | None = key(
        "How many runs are kept: older ones that ended are deleted after a run.", 200
    )


class Planner(Written):
    """How models and patterns plan, for verbs that have no plan yet."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    max_context_tokens: Annotated[int, Field(ge=10_000, le=10_000_000)] | None = key(
        "How many tokens a question to a model may have.", 50_000
    )
    auto_detect: bool | None = key(
        "Whether the complexity of a goal is found, and a plan suggested for it.", example=False
    )
    threshold: Literal["medium", "complex"] | None = key(
        "From which complexity on a plan is suggested.", "medium"
    )


class ProjectMemory(Written):
    """What is remembered from run to run, and told to models."""

    model_config = ConfigDict(json_schema_extra=_FILLED)  # type: ignore[typeddict-item]

    plans: bool | None = key(
        "Whether plans with a goal are kept when they completed, and offered as examples.", example=True
    )
    project: Line | None = key(
        "The file with what models should know of the project. Left out: PLANRUN.md, AGENTS.md and CLAUDE.md.",
        "docs/project.md",
    )


class Project(Written):
    """The settings of a project."""

    model_config = ConfigDict(title="planrun project")

    plan: Line | None = key("The plan that runs when none is named.", "plans/release.yml")
    limits: PlanLimits | None = key("Limits of plan files.", {"plan_size": "1MiB", "plan_steps": 500})
    records: Kept | None = key("What is kept of runs.", {"stored_runs": 200})
    planner: Planner | None = key("How plans are made.", {"max_context_tokens": 50_000})
    memory: ProjectMemory | None = key("What is remembered, and told to models.", {"plans": True})
