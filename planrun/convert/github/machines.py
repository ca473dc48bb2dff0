"""The system that a plan is for, and the jobs for others: those that no other job needs are left out, and named."""

from __future__ import annotations

from planrun.convert.draft import DraftStep
from planrun.convert.github.facts import Job, Workflow
from planrun.convert.github.matrix import is_other, machine_text, matrix_of
from planrun.convert.github.names import PlaceNames
from planrun.convert.github.words import texts_of
from planrun.convert.reader import Findings, UntranslatableError, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


_CHECK = """\
[ "$(uname -s)" = Darwin ] || { echo "this plan is for macOS, and this machine is no Mac" >&2; exit 1; }"""


def choose(workflow: Workflow) -> None:
    """Choose the system that the plan is for.

    A plan is for Linux, unless all jobs are for other systems and one of them is for macOS: then its first step checks
    that.
    """
    jobs = workflow.jobs.values()
    if not jobs or any(job.node.get("uses") is not None or not _elsewhere(workflow, job) for job in jobs):
        return
    workflow.machine = "macOS"
    first = next((job for job in jobs if not _elsewhere(workflow, job)), None)
    if first is None:
        workflow.machine = "Linux"
        node = next(iter(jobs)).node
        message = "every job of this workflow is for Windows, and planrun runs on Linux and macOS"
        workflow.found.differs("only-windows", message, node.get("runs-on") or node)
        return
    message = "no job is for Linux: the plan is for macOS, which its first step checks"
    workflow.found.differs("macos", message, first.node.get("runs-on") or first.node)
    step = workflow.plan.add(DraftStep(workflow.plan.name("machine"), run=_CHECK))
    entry = Job("machine", workflow.root)
    entry.made, entry.tips, entry.plain = [step], [step], {step.id}
    entry.is_open = entry.is_converted = True
    workflow.entry = [entry]


def leave_out(workflow: Workflow, wanted: Collection[str] = ()) -> None:
    """Remove the jobs for other systems that no other job needs; `wanted` are jobs that the user named."""
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
        message = (
            f"the plan is for one machine with {workflow.machine}: the job {name} for {machine} is left out"
        )
        workflow.found.differs("other-machines", message, workflow.jobs[name].node)
    workflow.jobs = {name: job for name, job in workflow.jobs.items() if name not in gone}


def _elsewhere(workflow: Workflow, job: Job) -> str:
    """Return the machine of a job whose every instance is for another system; "" for any other."""
    text = machine_text(job.node.get("runs-on"))
    options = texts_of(text, workflow.known) if text else None
    if options is not None and "matrix" not in text:
        other = [each for each in options if is_other(each, workflow)]
        return other[0] if other and len(other) == len(options) else ""
    strategy = job.node.get("strategy")
    if strategy is None or "matrix" not in text:
        return ""
    trial = Workflow(workflow.root, Findings(workflow.found.file))
    trial.given, trial.machine = workflow.given, workflow.machine
    try:
        matrix_of(trial, Job(job.name, job.node), strategy, PlaceNames(trial, job, job.node))
    except UntranslatableError as why:
        return text_of(job.node.get("runs-on")) if why.message.startswith("every instance") else ""
    return ""
