"""What a person writes about the files of a step, and about using its result again."""

from __future__ import annotations

from planrun.source.schema.words import Text, Texts, Written, key


class Reports(Written):
    """Reports that the step writes itself."""

    junit: Texts | None = key(
        "JUnit files, as patterns; merged into the run's.", "build/junit.xml", required=True
    )


class Cache(Written):
    """What an earlier result depends on besides the step itself."""

    inputs: Texts | None = key("Files that it depends on, besides those under `inputs`.", ["Makefile"])
    key_: Text | None = key("Anything else that it depends on.", "v2", alias="key")
