"""planrun runs a reviewed plan in CI.

From Python: `load` or `generate` a plan, `preview` it, `execute` it, ask for the `status` of a run, `replay` its
ledger. Nothing else is public.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.app.session import Planner
    from planrun.model.plan import Plan
    from planrun.model.state import RunState

__version__ = "0.1.0"
__all__ = ["__version__", "execute", "generate", "load", "preview", "replay", "status"]


def load(path: str) -> Plan:
    """Return the checked plan in a file.

    Raises planrun.errors.InvalidPlan, whose `problems` hold every finding with its line and column.
    """
    from planrun.plan.load import load as load_plan  # nothing is imported for `planrun --version`

    return load_plan(path)


def execute(
    plan: Plan,
    *,
    params: Mapping[str, Any] | None = None,
    workspace: str = "",
    on_event: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> RunState:
    """Run a plan in a workspace (default: the current folder) and return how it ended; prints failures and a summary.

    `on_event` is called with each event of the run as plain data, in the form of `--events`; what it raises ends the
    calls and not the run. `options` are fields of planrun.settings.Settings, as `jobs=2`; `output="stream"` shows what
    steps print as it happens. All text goes to stderr. The state's `verdict()` is completed, partial, failed or
    cancelled. Raises planrun.errors.PlanrunError when it cannot run.
    """
    from os.path import join, lexists

    from planrun.app.run import RunRequest, secrets_of
    from planrun.app.run import execute as run
    from planrun.model.jsontext import dumps
    from planrun.plan.keys.params import resolve_params
    from planrun.settings import Settings

    texts = {
        name: value if isinstance(value, str) else dumps(value) for name, value in (params or {}).items()
    }
    given = tuple(f"{name}={text}" for name, text in texts.items())
    if "quiet" in options:  # the earlier spelling
        quiet = options.pop("quiet")
        options.setdefault("output", "quiet" if quiet else "auto")
    chosen = {
        "output": "quiet",
        "no_input": True,
        **options,
        "params": given,
        "on_event": on_event,
        "in_program": True,
    }
    settings = Settings(**chosen)
    if lexists(join(workspace, ".planrun.yml")):
        from planrun.app.pruning import of_project  # few folders have settings

        settings = of_project(settings, workspace)
    secrets = secrets_of(plan)
    if secrets:
        secrets.refuse_given(given)
    resolved = resolve_params(plan, texts)
    request = RunRequest(planner=_planner, params=resolved, workspace=workspace, secrets=secrets)
    result = run(plan, settings, request)
    if settings.no_persist or (settings.stored_runs and not workspace):
        from planrun.app.pruning import tidy

        tidy(result, settings)
    if result.lost:
        raise result.lost
    return result.state


def _planner() -> Planner:
    from planrun.planner import readiness  # few runs ask a model

    return readiness


def replay(ledger: str) -> RunState:
    """Return the state of a run from its ledger file, with the plan that the run kept beside it.

    Raises planrun.errors.InvalidInput when the ledger cannot be read or was altered.
    """
    import os

    from planrun.app.copies import state_of
    from planrun.errors import InvalidInput
    from planrun.records.reading import REFUSED, read_ledger

    reading = read_ledger(ledger)
    if reading.condition in REFUSED:
        raise InvalidInput(f"the ledger is {reading.condition}: {ledger}:{reading.line}: {reading.detail}")
    return state_of(os.path.dirname(os.path.abspath(ledger)), reading)


def generate(goal: str, *, file: str = "", offline: bool = False, **options: Any) -> Plan:
    """Return a plan for a goal, written by a model or, `offline`, from planrun's own patterns; nothing runs.

    `file`: where the plan is written to, for review; empty: nowhere, and `Plan.source` has its text. `options` are
    fields of planrun.settings.Settings, as `llm_model="NAME"`. Raises planrun.errors.InvalidInput for a file that
    exists, where no model can be asked, and where the model gives no valid plan.
    """
    from planrun.cli.generate import written_plan  # most programs generate nothing

    return written_plan(goal, file, offline=offline, options=options)


def preview(plan: Plan) -> dict[str, Any]:
    """Return what `planrun show --json` prints of a plan: steps, risks, decisions of its policy; runs nothing."""
    from planrun.approval.preview import PolicyPreview, digest_preview, plan_data
    from planrun.reports import describe
    from planrun.settings import Settings, current_folder

    digests = digest_preview(plan, (), current_folder())
    ahead = PolicyPreview(plan.but(digest=digests.reviewed.digest), Settings())
    return {**describe.as_data(plan, digests.as_data()), **plan_data(ahead)}


def status(run: str = "last") -> dict[str, Any]:
    """Return what `planrun status --json` prints of a run in the current folder, also while it is running.

    `run`: an id, the beginning of one, or `last`. Raises planrun.errors.InvalidInput for an unknown one.
    """
    from planrun.app.inspect import inspect
    from planrun.runs.status import as_data

    return as_data(inspect(run))
