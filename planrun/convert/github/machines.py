"""Jobs of a workflow for other systems than Linux: those that no other job needs are left out, and named."""

from __future__ import annotations

from planrun.convert.github.facts import Job, Workflow
from planrun.convert.github.grammar import NotAnExpressionError
from planrun.convert.github.matrix import OTHER_MACHINE, machine_text, matrix_of, texts_of
from planrun.convert.github.names import PlaceNames
from planrun.convert.reader import Findings, UntranslatableError, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def leave_out(workflow: Workflow, wanted: Collection[str] = ()) -> None:
    """Remove the jobs for other systems that no job for Linux needs; `wanted` are jobs that somebody asked for."""
    away = {name: _elsewhere(workflow, job) for name, job in workflow.jobs.items() if name not in wanted}
    needed: set[str] = set()
    waiting = [name for name in workflow.jobs if not away.get(name)]
    if not waiting:
        return
    while waiting:
        name = waiting.pop()
        if name in workflow.jobs and name not in needed:
            needed.add(name)
            waiting += workflow.reader.texts(workflow.jobs[name].node.get("needs"), "`needs`")
    gone = {name: machine for name, machine in away.items() if machine and name not in needed}
    for name, machine in gone.items():
        message = f"the plan is for one machine with Linux: the job {name} for {machine} is left out"
        workflow.found.differs("other-machines", message, workflow.jobs[name].node)
    workflow.jobs = {name: job for name, job in workflow.jobs.items() if name not in gone}


def _elsewhere(workflow: Workflow, job: Job) -> str:
    """Return the machine of a job whose every instance is for another system; "" for any other."""
    text = machine_text(job.node.get("runs-on"))
    options = texts_of(text, workflow.known) if text else None
    if options is not None and "matrix" not in text:
        other = [each for each in options if OTHER_MACHINE.match(each)]
        return other[0] if other and len(other) == len(options) else ""
    strategy = job.node.get("strategy")
    if strategy is None or "matrix" not in text:
        return ""
    trial = Workflow(workflow.root, Findings(workflow.found.file))
    trial.given = workflow.given
    try:
        matrix_of(trial, Job(job.name, job.node), strategy, PlaceNames(trial, job, job.node))
    except UntranslatableError as why:
        return text_of(job.node.get("runs-on")) if why.message.startswith("every instance") else ""
    except NotAnExpressionError:
        return ""  # it is reported when the job is converted
    return ""
