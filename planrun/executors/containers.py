"""Removal of containers that outlive their client: one by its name, and all that a run left by its label."""

from __future__ import annotations

import os
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.job import Job

LABEL = "planrun.run"  # as `planrun.actions.containers` gives it
VARIABLES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
             "CONTAINER_HOST", "HOME", "XDG_RUNTIME_DIR")  # fmt: skip
"""Variables with the address of an engine and the credentials of its client."""
_TRIES, _PAUSE = 15, 0.1  # seconds
CREATING = 2.0  # seconds in which an engine may still create it; the next run checks again
_CALL_TIMEOUT = 5.0  # seconds


def remove(job: Job) -> bool:
    """Remove the container of a job, running or not; return whether there was one.

    If there was none, the engine may still create it: the client was killed, but its request continues.
    In a container that steps share, only the processes of this attempt are killed.
    """
    if "room" in job.container:
        _call((*job.argv[: job.argv.index(job.container["image"]) + 1], "end"), job.env)
        return True
    engine, name = job.container["engine"], job.container["name"]
    existed = False
    for _ in range(_TRIES):  # the engine may be removing it already, and refuses meanwhile
        existed = bool(_call((engine, "rm", "-f", name), job.env).strip()) or existed
        if not _call((engine, "ps", "-aq", "--filter", f"name=^/?{name}$"), job.env).strip():
            break
        existed = True
        time.sleep(_PAUSE)
    return existed


def sweep(engine: str, run: str, env: Mapping[str, str], expected: int = 0) -> int:
    """Remove every container that a run left; return how many there were.

    `expected`: how many the engine may still create although their clients were killed; waits CREATING seconds.
    """
    limit = time.monotonic() + (CREATING if expected else 0.0)
    removed = 0
    while True:
        listed = _call((engine, "ps", "-aq", "--filter", f"label={LABEL}={run}"), env).split()
        if listed:
            _call((engine, "rm", "-f", *listed), env)
            removed += len(listed)
        if removed >= expected or time.monotonic() >= limit:
            return removed
        time.sleep(_PAUSE)


def sweep_earlier(engine: str, runs: str) -> int:
    """Remove what earlier runs of a workspace left, those with a folder in `runs`; return how many there were."""
    words = (
        engine,
        "ps",
        "-a",
        "--filter",
        f"label={LABEL}",
        "--format",
        f'{{{{.ID}}}} {{{{.Label "{LABEL}"}}}}',
    )
    rows = [row.split() for row in _call(words, os.environ).splitlines()]
    left = [
        row[0] for row in rows if len(row) == 2 and "/" not in row[1] and os.path.isdir(f"{runs}/{row[1]}")
    ]
    if left:
        _call((engine, "rm", "-f", *left), os.environ)
    return len(left)


def _call(words: tuple[str, ...], env: Mapping[str, str]) -> str:
    known = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    try:
        done = subprocess.run(
            words,
            env={**known, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CALL_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
