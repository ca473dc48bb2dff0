"""The work of `resume --dry-run` and `retry --dry-run`: which steps would be reused, and which run again and why."""

from __future__ import annotations

import os

from planrun.app.copies import state_of
from planrun.app.inspect import find
from planrun.app.resume import Resumption
from planrun.app.run import secrets_of
from planrun.app.session import Session
from planrun.cliutil.printing import say, say_json
from planrun.errors import InvalidInput
from planrun.records.lock import holder
from planrun.records.reading import REFUSED, read_ledger
from planrun.records.rundir import LEDGER
from planrun.reports.escape import line
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planrun.app.resume import ResumeRequest
    from planrun.settings import Settings


def dry_resume(run: str, settings: Settings, request: ResumeRequest) -> int:
    """Print what a resume would do, and return the exit code 0; raises what a resume raises before its first step."""
    if settings.discard:
        raise InvalidInput(
            "--dry-run and --discard exclude each other: what would be dropped is not decided twice"
        )
    workspace = current_folder()
    rundir = find(run, workspace)
    name = os.path.basename(rundir)
    current = holder(workspace)
    if current is not None and current.run == name:
        raise InvalidInput(f"the run {name} is in progress, in process {current.pid} on {current.host}")
    reading = read_ledger(os.path.join(rundir, LEDGER))
    if reading.condition in REFUSED:
        raise InvalidInput(
            f"the ledger is {reading.condition}: {os.path.join(rundir, LEDGER)}: {reading.detail}"
        )
    session = Session(settings.but(quiet=True), workspace)  # only what differs in the plan is told on stderr
    state = state_of(rundir, reading, cache=False)
    if secrets := secrets_of(request.plan or state.plan, settings.llm_model):
        session.secrets = secrets
        state = state_of(rundir, reading, secrets.masked, cache=False)
    session.refuse_copy(state, name, f"resume {name}")
    resumption = Resumption(session, rundir, state, request)
    if resumption.is_over:
        _print(settings, name, {}, ["the run is finished; nothing would run"])
        return 0
    resumption.require_secrets()
    resumption.show(resumption.event())
    _print(settings, name, resumption.outlook(), list(_rows(resumption.outlook())))
    return 0


def _print(settings: Settings, run: str, outlook: Mapping[str, tuple[str, str]], rows: list[str]) -> None:
    if settings.json:
        steps = [{"id": step, "fate": fate, "why": why or None} for step, (fate, why) in outlook.items()]
        say_json({"dry_run": True, "run": run, "steps": steps})
    else:
        say("\n".join(rows))


def _rows(outlook: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the steps by what becomes of them."""
    for fate, title in (
        ("reused", "kept as they are"),
        ("rerun", "would run again"),
        ("pending", "would run for the first time"),
    ):
        names = [(line(step), why) for step, (each, why) in outlook.items() if each == fate]
        if names and fate == "rerun":
            yield f"{title}:"
            yield from [f"  {step}: {why}" for step, why in names]
        elif names:
            yield f"{title}: {', '.join([f'{step} ({why})' if why else step for step, why in names])}"
    yield "dry run: nothing was started, nothing was written"
