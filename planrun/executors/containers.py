"""Containers that outlive the client that started them: taken away by name, and all that a run left by its label."""

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
"""What says where an engine is, and what its client may do there."""
_TRIES, _PAUSE = 15, 0.1  # seconds
CREATING = 2.0  # seconds in which an engine makes a container whose client is gone; the next run looks again
_PATIENCE = 5.0  # seconds for one call of the client


def remove(job: Job) -> bool:
    """Take the container of a job away, whether it runs or not; returns whether there was one.

    Where there was none, the engine may be about to make it: its client was killed, and the request goes on.
    In a container that steps share the processes of this attempt are killed, and it goes on.
    """
    if "room" in job.container:
        _call((*job.argv[: job.argv.index(job.container["image"]) + 1], "end"), job.env)
        return True
    engine, name = job.container["engine"], job.container["name"]
    found = False
    for _ in range(_TRIES):  # the engine may be about to do it by itself, and says no meanwhile
        found = bool(_call((engine, "rm", "-f", name), job.env).strip()) or found
        if not _call((engine, "ps", "-aq", "--filter", f"name=^/?{name}$"), job.env).strip():
            break
        found = True
        time.sleep(_PAUSE)
    return found


def sweep(engine: str, run: str, env: Mapping[str, str], expected: int = 0) -> int:
    """Take away every container of a run that is left; returns how many there were.

    `expected`: how many the engine may still make although their clients were killed; it waits CREATING seconds.
    """
    limit = time.monotonic() + (CREATING if expected else 0.0)
    found = 0
    while True:
        listed = _call((engine, "ps", "-aq", "--filter", f"label={LABEL}={run}"), env).split()
        if listed:
            _call((engine, "rm", "-f", *listed), env)
            found += len(listed)
        if found >= expected or time.monotonic() >= limit:
            return found
        time.sleep(_PAUSE)


def sweep_earlier(engine: str, runs: str) -> int:
    """Take away what earlier runs of a workspace left, those with a folder in `runs`; returns how many there were."""
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
        found = subprocess.run(
            words,
            env={**known, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.decode("utf-8", "replace")
