"""The order of the steps of a job, and between jobs, as edges.

On GitHub a job that was skipped skips what needs it, and a step that was skipped skips nothing. Here every step that is
skipped benignly satisfies `ok`. So steps of a job that can be skipped as a whole wait by `completed` for one that runs
whenever the job does: its anchor, made for the purpose (`JOB.gate`) where there is none.
"""

from __future__ import annotations

from planrun.app.converting.draft import DraftStep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.github.conditions import Condition
    from planrun.app.converting.github.facts import Job, Workflow

    Edges = dict[str, str]


def link(workflow: Workflow, job: Job, own: Condition, services: list[DraftStep]) -> None:
    """Give the steps of a job their edges and conditions; `own` is what the job's `if` comes to."""
    entry = _arrivals(job, own)
    has_condition = own.text not in ("", "true")
    is_skippable = has_condition or (not own.asks and any(needed.anchor for needed in job.needs))
    first = job.made[0] if job.made else None
    if first is None or (is_skippable and (first.id not in job.plain or job.asking or services)):
        first = _gate(workflow, job, is_alone=first is None)
        first.edges.update(entry)
        entry = {first.id: "completed"}
    elif not services:
        first.edges.update(entry)
    if is_skippable:
        job.anchor = first.id
    if has_condition:
        first.demand(own.text)
    for service in services:
        service.edges.update(entry)
    if services:
        entry = {**entry, **{service.id: "ok" for service in services}}
    _chain(job, entry)


def _gate(workflow: Workflow, job: Job, *, is_alone: bool) -> DraftStep:
    name = workflow.plan.name(job.label if is_alone else f"{job.label}.gate")
    gate = DraftStep(name, validate=[{"that": True}])
    job.made.insert(0, gate)
    job.plain.add(gate.id)
    job.anchor_gate = gate.id
    return gate


def _arrivals(job: Job, own: Condition) -> Edges:
    """Return the edges to the jobs that are needed."""
    edges: Edges = {}
    for needed in job.needs:
        if own.asks:
            edges |= {tip.id: "done" for tip in needed.tips}
        else:
            edges |= _ends(needed)
    return edges


def _ends(job: Job) -> Edges:
    """Return edges that are satisfied when the job ran and succeeded so far."""
    if not job.anchor:
        return {tip.id: "ok" for tip in job.tips}
    edges = {tip.id: "completed" if tip.id in job.plain else "ok" for tip in job.tips}
    if "completed" not in edges.values():
        edges[job.anchor] = "completed"
    return edges


def _chain(job: Job, entry: Edges) -> None:
    for step in job.made:
        if step.id == job.anchor_gate:
            job.tips = [step]
        elif step.id in job.asking:
            for name, kind in {**{tip.id: "done" for tip in job.tips}, **entry}.items():
                step.wait(name, kind)
            job.tips.append(step)
        else:
            for name, kind in (_ends(job) if job.tips else entry).items():
                step.wait(name, kind)
            if not job.tips or job.tips[0].id == job.anchor_gate:
                for name, kind in entry.items():
                    step.wait(name, kind)
            job.tips = [step]
