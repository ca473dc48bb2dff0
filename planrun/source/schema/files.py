"""What a person writes about the files of a step, and about using its result again."""

from __future__ import annotations

from typing import Literal

from planrun.source.schema.words import Text, Texts, Written, key


class Reports(Written):
    """Reports that the step writes itself."""

    junit: Texts | None = key(
        "JUnit files, as patterns; merged into the run's.", "build/junit.xml", required=True
    )


class Produced(Written):
    """Files that a step makes, and when they are wanted."""

    path: Texts | None = key("The files, as patterns.", "logs/**", required=True)
    when: Literal["always", "present", "failed"] | None = key(
        "always: the step fails without them. present: recorded if they are there. "
        "failed: recorded if they are there and the step failed.",
        "failed",
    )


class Cache(Written):
    """What an earlier result depends on besides the step itself."""

    inputs: Texts | None = key("Files that it depends on, besides those under `inputs`.", ["Makefile"])
    key_: Text | None = key("Anything else that it depends on.", "v2", alias="key")
