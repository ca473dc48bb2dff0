"""What a person writes about the container that a step runs in."""

from __future__ import annotations

from planrun.source.schema.words import Env, FullText, Line, Text, TextList, Written, key


class Container(Written):
    """The container that a step runs in."""

    image: FullText = key("The image.", "python:3.12-slim", required=True)
    env: Env | None = key("Environment variables inside, besides those of the step.", {"LANG": "C.UTF-8"})
    volumes: TextList | None = key("What is mounted besides the workspace.", ["cache:/root/.cache"])
    user: Text | None = key("The user inside. Left out: the one who runs planrun.", "1000:1000")
    network: Line | None = key("The network it is on.", "none")
