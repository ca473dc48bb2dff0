"""What a person writes for capabilities that are still to be built: known in shape, so that files can be checked."""

from __future__ import annotations

from planrun.source.schema.words import (
    FullText,
    Line,
    Mode,
    Positive,
    Text,
    TextList,
    Written,
    key,
)


class Tools(Written):
    """Which tools an agent has; a denied one stays denied."""

    allow: TextList | None = key("The only tools it has.", ["read", "grep"])
    deny: TextList | None = key("Tools it does not have.", ["bash"])


class Agent(Written):
    """Work for a language model, within limits."""

    type: Line | None = key("Which kind of agent.", "general")
    mode: Mode | None = key("What it is meant to do.", "code")
    prompt: FullText = key("What it is told to do.", "Make the failing tests pass.", required=True)
    model: Line | None = key("Which model it uses.", "a-model")
    tools: Tools | None = key("Which tools it has.", {"allow": ["read", "grep"]})
    max_tokens: Positive | None = key("How many tokens it may use.", 50000)
    max_turns: Positive | None = key("How many turns it may take.", 10)
    prompt_suffix: Text | None = key("What is added to its instructions.", "Keep the changes small.")


class AgentType(Written):
    """A kind of agent that the plan brings along."""

    description: Text = key("What it is good at.", "Reviews changes.", required=True)
    prompt: Text | None = key("Its instructions.", "You review changes.")
    tools: TextList | Tools | None = key("Which tools it has.", ["read", "grep"])
    mode: Mode | None = key("What it is meant to do.", "research")
    model: Line | None = key("Which model it uses.", "a-model")
    max_tokens: Positive | None = key("How many tokens it may use.", 50000)
    max_turns: Positive | None = key("How many turns it may take.", 10)


class Sandbox(Written):
    """What a step may touch."""

    mode: Line | None = key("How it is shut in.", "workspace-write")
    network: Line | None = key("Which network it has.", "none")
    read: TextList | None = key("What it may read besides.", ["/usr/share"])
    write: TextList | None = key("What it may write besides.", ["/tmp/build"])  # noqa: S108 - an example in a manual
