"""What a person writes about undoing a step."""

from __future__ import annotations

from planrun.source.schema.words import (
    AnyMapping,
    Argv,
    Duration,
    Env,
    FullText,
    Line,
    Text,
    Written,
    key,
)


class Rollback(Written):
    """What undoes a step that completed, when the run fails later; it sees what the step sees, and its outputs."""

    run: FullText | None = key("A script for the shell.", "./scripts/yank.sh")
    exec: Argv | None = key("A program and its arguments.", ["git", "checkout", "main"])
    tool: Line | None = key("A tool of planrun, called by name.", "git.apply_patch")
    args: AnyMapping | None = key("The arguments of `tool`, by name.", {"path": "undo.patch"})
    timeout: Duration | None = key("How long it may take.", "5m")
    env: Env | None = key("Environment variables, besides those of the step.", {"FORCE": "1"})
    workdir: Text | None = key("The folder it runs in. Left out: the step's.", "packages/core")
    shell: Text | Argv | None = key("The shell of `run`. Left out: the step's.", "bash -eu")
    on_failed: bool | None = key(
        "true: also when its step failed or was cut short after it had started.", example=True
    )
    idempotent: bool | None = key("false: never run again when nobody knows how it ended.", example=False)
