"""What the processes of a cluster say to each other: mappings as lines of JSON, jobs and outcomes as plain data."""

from __future__ import annotations

import json

from planrun.model.job import Job, Outcome, Script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_PLAIN = ("step", "attempt", "cwd", "timeout", "idle_timeout", "may_omit_shell", "private", "part")
_TUPLES = ("notes", "stderr")


def line(said: Mapping[str, Any]) -> bytes:
    """Return a mapping as one line."""
    return json.dumps(said, separators=(",", ":")).encode("ascii") + b"\n"


class Lines:
    """Cuts what arrives into lines, and reads them."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Take the next bytes and return the mappings that are complete."""
        self._rest += data  # in place: a line may come in many pieces
        if b"\n" not in data:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for each in lines:
            yield json.loads(each)


def job_data(job: Job, common: Mapping[str, str]) -> dict[str, Any]:
    """Return a job as plain data; of its environment only what differs from `common`."""
    known = vars(job)
    return {
        **{name: known[name] for name in _PLAIN if name in known},
        "argv": list(job.argv),
        "env": {name: value for name, value in job.env.items() if common.get(name) != value},
        "without": [name for name in common if name not in job.env],
        "scripts": [
            {**vars(script), "words": [list(word) for word in script.words]} for script in job.scripts
        ],
    }


def job_of(data: Mapping[str, Any], common: Mapping[str, str], log: str, name: str) -> Job:
    """Return a job again, with a log of its own, and with `name` in place of the id of its step."""
    env = {key: value for key, value in common.items() if key not in data["without"]}
    scripts = [
        Script(**{**each, "words": tuple([tuple(word) for word in each["words"]])})
        for each in data["scripts"]
    ]
    return Job(
        **{
            **{key: data[key] for key in _PLAIN if key in data},
            "step": name,
            "argv": tuple(data["argv"]),
            "env": {**env, **data["env"]},
            "log": log,
            "scripts": tuple(scripts),
        }
    )


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome of the local executor as plain data."""
    return {name: list(value) if name in _TUPLES else value for name, value in vars(outcome).items()}


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    """Return an outcome again."""
    fields: dict[str, Any] = {
        name: tuple(value) if name in _TUPLES else value for name, value in data.items()
    }
    return Outcome(**fields)
