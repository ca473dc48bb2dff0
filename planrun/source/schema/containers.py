"""What a person writes about the container that a step runs in."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict

from planrun.source.schema.words import Env, FullText, Id, Ids, Line, Text, TextList, Written, key


class Container(Written):
    """The container that a step runs in."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["image"]}, {"required": ["shared"]}]}
    )

    image: Text | None = key("The image; empty: no container.", "python:3.12-slim")
    shared: Id | None = key("The name of a container under `containers`, instead of all other keys.", "build")
    env: Env | None = key("Environment variables inside, besides those of the step.", {"LANG": "C.UTF-8"})
    volumes: TextList | None = key("What is mounted besides the workspace.", ["cache:/root/.cache"])
    user: Text | None = key("The user inside. Left out: the one who runs planrun.", "1000:1000")
    network: Line | None = key("The network it is on.", "none")


class SharedContainer(Written):
    """A container that several steps share: the first one starts it, and the end of the run removes it."""

    image: FullText = key("The image.", "python:3.12-slim", required=True)
    env: Env | None = key("Environment variables of all its steps.", {"LANG": "C.UTF-8"})
    volumes: TextList | None = key("What is mounted besides the workspace.", ["cache:/root/.cache"])
    user: Text | None = key("The user inside. Left out: the image's default.", "1000:1000")
    network: Line | None = key("The network it is on.", "none")
    per: Literal["run", "instance"] | None = key(
        "run: one container. instance: one for each name of an instance of `matrix` or `foreach`.", "run"
    )
    setup: Ids | None = key(
        "The steps that prepare it. They run again when a run is resumed: its container is a new one.",
        ["install"],
    )
