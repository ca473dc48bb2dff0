"""The copies of its plan that a run keeps, and the state of a run from its ledger and these copies."""

from __future__ import annotations

import os
from copy import copy

from planrun.errors import InternalError, InvalidInput
from planrun.model import events as ev
from planrun.model.events import NAMES
from planrun.model.state import RunState
from planrun.opening import read_record
from planrun.plan.load import load_bytes
from planrun.plan.readers import copies
from planrun.plan.yaml.file import MAX_BYTES
from planrun.records.inputs import file_of, plan_file
from planrun.records.rundir import LEDGER
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.model.policy import Origin
    from planrun.records.reading import Reading


def stored_plan(rundir: str, named: Mapping[str, Any], *, cache: bool = True) -> Plan:
    """Return a plan of a run from the copy that the run made; `named` is its record in the ledger.

    Raises InvalidInput when the copy is gone or not the one the ledger names, InvalidPlan when it has problems.
    """
    version = int(named["version"])
    files = _stored_files(rundir, named) if named.get("files") else {}
    plan = load_bytes(stored_text(rundir, named), named["file"], cache=cache, read=copies(files))
    if plan.version != version:
        plan = plan.but(version=version)
    origins = named.get("origins")
    if origins:  # the author of a step is recorded apart from the text, which a model may write
        plan = plan.but(steps=tuple([_of_origin(step, origins.get(step.id, "file")) for step in plan.steps]))
    return plan


def stored_text(rundir: str, named: Mapping[str, Any]) -> bytes:
    """Return the exact bytes of a plan of a run: a step may have replaced the copy.

    Raises InvalidInput when the copy is gone, no file, or not the one that the ledger names.
    """
    path = os.path.join(rundir, plan_file(int(named["version"])))
    return _stored(path, "its plan", named["sha256"])


def _stored_files(rundir: str, named: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that a plan of a run uses, from the copies that the run made."""
    return {name: _stored(file_of(rundir, digest), name, digest) for name, digest in named["files"].items()}


def _stored(path: str, what: str, digest: str) -> bytes:
    """Return the bytes of a copy that has a sha256."""
    try:
        data = read_record(path, MAX_BYTES)
    except (OSError, ValueError) as error:  # a name with NUL
        raise InvalidInput(
            f"the run's copy of {what} cannot be read: {path}: {getattr(error, 'strerror', error)}"
        ) from None
    if sha256(data).hexdigest() != digest:
        raise InvalidInput(f"the run's copy of {what} was altered: {path}; start a new run")
    return data


def _of_origin(step: Step, origin: Origin) -> Step:
    return step if origin == "file" else step.but(origin=origin)


def state_of(
    rundir: str, reading: Reading, masked: Callable[[Plan], Plan] | None = None, *, cache: bool = True
) -> RunState:
    """Return the state of a run from its ledger and its copies of the plan; raises InvalidInput, InvalidPlan.

    `masked` gives a plan as it may be shown; `cache`: whether compiled plans are kept for the next time.
    """
    started = reading.events[0] if reading.events else None
    if not isinstance(started, ev.RunStarted):
        raise InvalidInput(
            f"the ledger has no first event: {os.path.join(rundir, LEDGER)}; nothing ran, start a new run"
        )
    plans = plans_of(rundir, reading, masked, cache=cache)
    state = RunState(plans[started.plan["version"]], plans)
    for number, event in enumerate(reading.events, 1):
        try:
            state.apply(event)
        except (InternalError, LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
            raise InvalidInput(
                f"the ledger is altered: {os.path.join(rundir, LEDGER)}:{number}: "
                f"its {NAMES[type(event)]} does not follow from the events before it ({type(error).__name__})"
            ) from None
    return state


def plans_of(
    rundir: str, reading: Reading, masked: Callable[[Plan], Plan] | None = None, *, cache: bool = True
) -> dict[int, Plan]:
    """Return every version of its plan that a run went by; raises InvalidInput, InvalidPlan."""
    plans: dict[int, Plan] = {}
    for event in reading.events:
        if not isinstance(event, ev.RunStarted | ev.RunResumed | ev.PlanningEnded) or not event.plan:
            continue
        if event.plan["version"] not in plans:
            plan = stored_plan(rundir, event.plan, cache=cache)
            plans[plan.version] = masked(plan) if masked else plan
    return plans


def state_under(state: RunState, plan: Plan, params: dict[str, Any]) -> RunState:
    """Return a copy of a run with another plan and other parameters; the run itself does not change."""
    found = copy(state)
    found.undoing = {name: copy(step) for name, step in state.undoing.items()}
    found.steps = found.states({name: copy(step) for name, step in state.steps.items()})
    found.dropped = {name: copy(step) for name, step in state.dropped.items()}
    found.versions = {plan.version: plan}
    found.params = params
    if plan.version != state.plan.version:
        found.go_over(plan.version)
    return found


def read_last(state: RunState) -> str:
    """Return the hash of the newest plan of a run that came from a file: plans that a model wrote have no file."""
    ended = state.planning.ended if state.planning else ()
    written = {event.plan["version"] for event in ended if event.plan}
    named = [event.plan for event in (state.started, *state.resumed) if event and event.plan]
    return next((str(plan["sha256"]) for plan in reversed(named) if plan["version"] not in written), "")


def added_by_models(state: RunState) -> set[str]:
    """Return the steps that plannings added to the plan of a run; no option could select or exclude them by name."""
    result: set[str] = set()
    for event in state.planning.ended if state.planning else ():
        later = state.versions.get(event.plan.get("version", 0)) if event.plan else None
        before = state.versions.get(later.version - 1) if later else None
        if later and before:
            result |= {step.id for step in later.steps} - {step.id for step in before.steps}
    return result
