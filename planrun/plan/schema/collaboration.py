"""The keys under `llm` for agents that work together, as pydantic models with descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from planrun.plan.schema.fields import Delay, Duration, Line, Written, key

_FILLED = ConfigDict(json_schema_extra={"minProperties": 1, "x-filled": True})
_Share = Annotated[float, Field(ge=0, le=1)]


class Delegation(Written):
    """When an agent hands its work to another one."""

    model_config = _FILLED

    enabled: bool | None = key("Whether agents delegate by the built-in rules.", example=True)
    alpha: _Share | None = key("How fast the weight of a path follows its results, from 0 to 1.", 0.1)
    max_depth: Annotated[int, Field(ge=0, le=20)] | None = key(
        "How many agents may stand below the agent of a step.", 5
    )
    depth_penalty: Annotated[int, Field(ge=0, le=100)] | None = key(
        "How many turns each level takes away.", 3
    )
    suppress_for: Delay | None = key(
        "How long a rule is not used after a delegation by it failed; `0s`: not at all.", "10m"
    )
    max_parallel_agents: Annotated[int, Field(ge=1, le=100)] | None = key(
        "How many agents may be at work at the same time.", 5
    )
    load_penalty: _Share | None = key(
        "The share of a score that is taken away when five agents are at work.", 0.3
    )


class Memory(Written):
    """The memory that the agents of a run share, and what they keep from run to run."""

    model_config = _FILLED

    max_entries: Annotated[int, Field(ge=1, le=10_000)] | None = key(
        "How many entries it holds; the least recently used one gives way to a new one.", 500
    )
    max_bytes: Annotated[int, Field(ge=1, le=1_048_576)] | None = key(
        "How large one value may be, in bytes of JSON.", 65536
    )
    store: Literal["off", "read", "write"] | None = key(
        "Whether results of delegations and learned errors of earlier runs are used, and added to.", "read"
    )
    dir: Line | None = key(
        "The folder of these results, from the workspace. Left out: in the folder for caches.", ".agents"
    )


class Messenger(Written):
    """Messages between agents."""

    model_config = _FILLED

    timeout: Duration | None = key("How long a message waits for its reply.", "3m")


class Reflection(Written):
    """What agents are told about errors of their tools."""

    model_config = _FILLED

    enabled: bool | None = key("Whether errors are analysed by patterns and earlier runs.", example=False)
    llm: bool | None = key("Whether a model analyses errors that no pattern knows.", example=True)
    autofix: bool | None = key(
        "Whether a reading tool is called again with the path that was surely meant.", example=True
    )
