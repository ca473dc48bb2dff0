"""Change the shared memory of a run from another shell: by its process, or in the ledger of one that has stopped."""

from __future__ import annotations

import os
import time

from planrun.agents.memorysocket import NAME, change
from planrun.agents.shared import Shared
from planrun.app.control import worker
from planrun.app.inspect import find
from planrun.app.resume import reopen
from planrun.app.session import Session
from planrun.approval.control import ControlSocketUnavailable, exchange, refuse_steps
from planrun.errors import Denied, InvalidInput
from planrun.model.collaboration import collaboration_of
from planrun.model.planning import Llm
from planrun.records import rundir as records
from planrun.records.lock import WorkspaceHeld
from planrun.settings import Settings, current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATIENCE = 15.0  # seconds in which a run that is starting or stopping can be reached
_PAUSE = 0.1


def change_memory(run: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Change the memory of a run and return the entry once it is in the ledger; `asked` as `memorysocket.change` takes.

    Raises InvalidInput, Denied inside of a step, RecordsLost.
    """
    rundir = find(run)
    name = os.path.basename(rundir)
    refuse_steps("change the memory of a run")
    limit = time.monotonic() + _PATIENCE
    while True:
        try:
            if worker(name) is None:
                return _in_ledger(name, asked)
            response = exchange(rundir, asked, NAME)
            if "error" in response:
                kind = Denied if response.get("exit_code") == Denied.exit_code else InvalidInput
                raise kind(str(response["error"]))
            return response
        except (ControlSocketUnavailable, WorkspaceHeld):
            if time.monotonic() > limit:
                why = "it has no agents, or is busy"
                raise InvalidInput(f"the run {name} takes no changes of its memory now: {why}") from None
            time.sleep(_PAUSE)


def _in_ledger(run: str, asked: dict[str, Any]) -> dict[str, Any]:
    with Session(Settings(), current_folder()) as session:
        rundir, reading, state = reopen(session, run)
        if state.ended is not None:
            raise InvalidInput(f"the run {run} ended {state.ended.verdict}; its memory stays as it is")
        ledger = records.open_ledger(rundir, seq=len(reading.events), head=reading.head)
        try:
            settings = collaboration_of(state.plan.llm or Llm())
            shared = Shared(
                settings,
                session.clock.stamp,
                lambda event: session.record(state, ledger, event),
                session.workspace,
            )
            shared.restore(state.noted)
            return change(shared, asked)
        finally:
            ledger.sync()
            ledger.close()
            if ledger.lost:
                raise ledger.lost
