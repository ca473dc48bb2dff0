"""What is kept of a run that ended, by the settings of the project and the option --no-persist. Few runs load this."""

from __future__ import annotations

import os

from planrun.app.pruning import prune, remove
from planrun.errors import InvalidInput
from planrun.model.rollback import owes
from planrun.plan.project import project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.session import Result
    from planrun.settings import Settings


def of_project(settings: Settings, folder: str = "") -> Settings:
    """Return settings with those of the project in a folder, where the caller gives none; raises InvalidPlan."""
    found = project(folder)
    fields: dict[str, object] = {}
    if not found.persist:
        fields["no_persist"] = True
    if found.remembers_plans:
        fields["remember_plans"] = True
    if found.stored_runs:
        fields["stored_runs"] = found.stored_runs
    return settings.but(**fields) if fields else settings


def tidy(result: Result, settings: Settings) -> str:
    """Delete what is not kept and return a line about it, "" for nothing; what cannot be deleted stays.

    Only a run that completed and owes no cleanup loses its records: any other may be resumed. Its reports stay.
    """
    state = result.state
    try:
        if settings.no_persist and result.lost is None and state.status == "completed" and not owes(state):
            remove(result.rundir, os.path.basename(result.rundir))
            return "the records of the run are deleted, its reports stay (--no-persist)"
        if settings.stored_runs:
            removed = len(prune(settings.stored_runs).removed)
            if removed:
                return f"deleted {removed} older run{'' if removed == 1 else 's'} (stored_runs)"
    except InvalidInput as error:
        return str(error)
    return ""
