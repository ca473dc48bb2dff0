"""`planrun show RUN STEP --patch`: the patch of an agent, as it was reviewed or is to be."""

from __future__ import annotations

import os

from planrun.app.inspect import read_run
from planrun.errors import InvalidInput
from planrun.plan.problems import name_hint
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def patch_of(run: str, step: str) -> bytes:
    """Return the last patch that a step of a run made; raises InvalidInput."""
    found = read_run(run)
    state = found.state
    if step not in state.steps:
        hint = name_hint(step, state.steps, "steps")
        raise InvalidInput(f'no step "{step}" in the run {found.run}' + (f"; {hint}" if hint else ""))
    made: list[dict[str, Any]] = [
        attempt.ended.patch for attempt in state.steps[step].attempts if attempt.ended and attempt.ended.patch
    ]
    if not made:
        raise InvalidInput(
            f'the step "{step}" of the run {found.run} has no patch: only agents on a copy make one'
        )
    path = os.path.join(found.rundir, made[-1]["path"])
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise InvalidInput(f"cannot read the patch {path}: {error.strerror}") from None
    if str(sha256(data).hexdigest()) != made[-1]["sha256"]:
        raise InvalidInput(f"the patch {path} is not the one that the ledger names: its SHA-256 differs")
    return data
