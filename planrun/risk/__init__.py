"""Classify a command by what it may do, without running it and without reading a file.

    from planrun.risk import classify
    classify("rm -rf build && git push").level   # "high"

The package imports nothing else of planrun: any tool that runs commands can use it. README.md explains the classes, the
result and how to add a program.
"""

from __future__ import annotations

from planrun.risk.classifier import Setting, classify_argv
from planrun.risk.classifier import classify as classify_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.risk.classifier import Risk

__all__ = ["classify"]


def classify(
    command: str | Sequence[str],
    *,
    cwd: str = "",
    workspace: str = "",
    variables: Mapping[str, str] | None = None,
) -> Risk:
    """Return the class of a command: `read-only`, `low`, `medium` or `high`, with its reason and effects.

    `command`: a text that `bash -c` runs, or the words of a program that starts without a shell. `cwd`: the folder it
    runs in, relative to the workspace. `workspace`: the absolute path of the workspace, if it is known. `variables`:
    environment variables with known values. Never raises for a command, whatever its text is.
    """
    setting = Setting(cwd=cwd, workspace=workspace, variables=dict(variables or {}))
    if isinstance(command, str):
        return classify_text(command, setting)
    return classify_argv(tuple(command), setting)
