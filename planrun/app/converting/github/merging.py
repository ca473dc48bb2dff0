"""The scripts of a job with a matrix as one script, so that each instance goes its own way through them.

A step with a matrix is over when all its instances are; a second one would begin only then.
"""

from __future__ import annotations

from planrun.app.converting.github.scripts import is_shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.draft import DraftStep
    from planrun.app.converting.github.facts import Job

_ALLOWED = frozenset(("run", "title", "env", "secrets", "shell", "workdir", "timeout"))
_SHARED = ("env", "secrets", "shell", "workdir", "timeout")


def merge_scripts(job: Job) -> None:
    """Join neighbours among the steps of a job where the joined script does the same."""
    merged: list[DraftStep] = []
    for step in job.made:
        if merged and _fits(job, merged[-1]) and _fits(job, step) and _shares(merged[-1], step):
            _join(merged[-1], step)
            _forget(job, step, merged[-1])
        else:
            merged.append(step)
    job.made = merged


def _fits(job: Job, step: DraftStep) -> bool:
    if step.id not in job.plain or set(step.keys) - _ALLOWED or "run" not in step.keys:
        return False
    return is_shell(str(step.keys.get("shell", job.usual_shell)))


def _shares(first: DraftStep, second: DraftStep) -> bool:
    if first.prelude != second.prelude:
        return False
    return all(first.keys.get(key) == second.keys.get(key) for key in _SHARED)


def _join(first: DraftStep, second: DraftStep) -> None:
    for step in (first, second):
        if not step.is_joined:
            title = f"# {step.keys['title']}\n" if "title" in step.keys else ""
            step.keys["run"] = f"{title}(\n{step.keys['run'].rstrip(chr(10))}\n)\n"
    first.is_joined = True
    first.keys["run"] += second.keys["run"]
    first.notes += second.notes
    first.keys.pop("title", None)


def _forget(job: Job, step: DraftStep, heir: DraftStep) -> None:
    job.plain.discard(step.id)
    for own_id, known in list(job.ids.items()):
        if known is step:
            job.ids[own_id] = heir
