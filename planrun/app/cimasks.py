"""Have the CI system mask the secrets of a plan in the whole log of a job, also in what other commands print there.

The commands of GitHub and Azure contain the values, so they are printed only on request: where the log is not read by
the agent of that system, they would show them.
"""

from __future__ import annotations

import os
import sys

from planrun.errors import InvalidInput, RecordsLost
from planrun.reports.ci import vendor
from planrun.reports.logcommands import vso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.app.secrets import RunSecrets

_SHORTEST = 4  # characters: a shorter mask would hide half of the log
_AGENT = "buildkite-agent"
_AGENT_SECONDS = 20


def announce(secrets: RunSecrets | None, *, on_stderr: bool) -> None:
    """Register the secrets that the plan declares; `on_stderr`: stdout is not the log.

    Raises InvalidInput where the CI system has no such command, RecordsLost where it cannot be given.
    """
    system = vendor(os.environ)
    if system not in ("github", "gitea", "azure", "buildkite"):
        raise InvalidInput(
            "--ci-masks: GitHub, Gitea, Forgejo, Azure and Buildkite can be told what to mask, and this is none of them"
        )
    values = list(secrets.declared.values()) if secrets else []
    rows = [
        row
        for value in values
        for row in dict.fromkeys([value, *value.splitlines()])
        if len(row) >= _SHORTEST
    ]
    if system == "buildkite":
        _redact(rows)
        return
    text = "".join([_command(system, row) for row in rows])
    stream = sys.stderr if on_stderr else sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        raise RecordsLost(f"--ci-masks: the masks cannot be written to the log: {error}") from None


def _command(system: str, value: str) -> str:
    if system == "azure":
        return f"##vso[task.setsecret]{vso(value)}\n"
    escaped = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::add-mask::{escaped}\n"


def _redact(rows: Iterable[str]) -> None:
    """Give values to Buildkite's agent on its input, so that they are in no log and in no list of processes."""
    import json
    import subprocess
    from shutil import which

    agent = which(_AGENT)
    if agent is None:
        raise InvalidInput(f"--ci-masks: {_AGENT} is not on the PATH")
    values = {str(number): row for number, row in enumerate(rows)}
    if not values:
        return
    try:
        subprocess.run(
            [agent, "redactor", "add", "--format", "json"],
            input=json.dumps(values).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_AGENT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):  # the error itself may quote the input
        raise InvalidInput(f"--ci-masks: {_AGENT} redactor add failed") from None
