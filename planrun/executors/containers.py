"""Containers that outlive the client that started them: taken away by name, and all that a run left by its label."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.job import Job

LABEL = "planrun.run"  # as `planrun.steps.containers` gives it
VARIABLES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
             "CONTAINER_HOST", "HOME", "XDG_RUNTIME_DIR")  # fmt: skip
"""What says where an engine is, and what its client may do there."""
_TRIES, _PAUSE = 15, 0.1  # seconds
_PATIENCE = 5.0  # seconds for one call of the client


def remove(job: Job) -> None:
    """Take the container of a job away, whether it runs or not; nothing where it is gone.

    In a container that steps share the processes of this attempt are killed, and it goes on.
    """
    if "room" in job.container:
        _call((*job.argv[: job.argv.index(job.container["image"]) + 1], "end"), job.env)
        return
    engine, name = job.container["engine"], job.container["name"]
    for _ in range(_TRIES):  # the engine may be about to do it by itself, and says no meanwhile
        _call((engine, "rm", "-f", name), job.env)
        if not _call((engine, "ps", "-aq", "--filter", f"name=^/?{name}$"), job.env).strip():
            return
        time.sleep(_PAUSE)


def sweep(engine: str, run: str, env: Mapping[str, str]) -> int:
    """Take away every container of a run that is left; returns how many there were."""
    listed = _call((engine, "ps", "-aq", "--filter", f"label={LABEL}={run}"), env).split()
    if listed:
        _call((engine, "rm", "-f", *listed), env)
    return len(listed)


def _call(words: tuple[str, ...], env: Mapping[str, str]) -> str:
    import subprocess  # 10 ms; only runs with containers pay for it

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
