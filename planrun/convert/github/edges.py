"""The order of the steps of a job, and between jobs, as edges.

On GitHub a job that was skipped skips what needs it, and a step that was skipped skips nothing. Here every step that is
skipped benignly satisfies `ok`. So steps of a job that can be skipped as a whole wait by `completed` for one that runs
whenever the job does: its anchor, made for the purpose (`JOB.gate`) where there is none.
"""

from __future__ import annotations

from planrun.convert.draft import ACTIONS, DraftStep, literal_text, step_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.github.texts import Condition

    Edges = dict[str, str]


def link(workflow: Workflow, job: Job, own: Condition, services: list[DraftStep]) -> None:
    """Give the steps of a job their edges and conditions; `own` is the result of the job's `if`."""
    job.asks = own.asks
    entry: Edges = {}
    for needed in job.needs:
        entry |= {tip.id: "done" for tip in needed.tips} if own.asks else _met(needed)
    behind = [] if own.asks else job.behind()
    if any(other.asks or other.is_tolerant for other in behind):
        # GitHub's `success()` looks at all jobs before, and one of these may have run after a failure.
        for other in behind:
            entry = _met(other) | entry
    if job.environment:
        question = f"Run {job.name} in the environment {job.environment}?"
        gate = DraftStep(workflow.plan.name(f"{job.label}.approve"), ask={"question": literal_text(question)})
        job.made.insert(0, gate)
        job.plain.add(gate.id)
    is_skippable = bool(own.text) or (not own.asks and "completed" in entry.values())
    first = job.made[0] if job.made else None
    if first is None or (
        is_skippable and (first.id not in job.plain or job.asking or services or job.is_tolerant)
    ):
        name = job.label if first is None else f"{job.label}.gate"
        first = DraftStep(workflow.plan.name(name), validate=[{"that": True}])
        job.made.insert(0, first)
        job.plain.add(first.id)
        job.anchor_gate = first.id
        first.edges.update(entry)
        entry = {first.id: "completed"}
    elif not services:
        first.edges.update(entry)
    if is_skippable:
        job.anchor = first.id
    if own.text:
        first.demand(own.text)
    for service in services:
        service.edges.update(entry)
    entry = entry | {service.id: "ok" for service in services}
    for step in job.made:
        if step.id == job.anchor_gate:
            job.tips = [step]
        elif step.id in job.asking:
            for name, kind in {**{tip.id: "done" for tip in job.tips}, **entry}.items():
                step.wait(name, kind)
            job.tips.append(step)
        else:
            is_first = not job.tips or job.tips[0].id == job.anchor_gate
            for name, kind in [
                *(_ends(job) if job.tips else entry).items(),
                *(entry.items() if is_first else ()),
            ]:
                step.wait(name, kind)
            job.tips = [step]


def _met(job: Job) -> Edges:
    """Return edges that are satisfied when GitHub takes the job for a success: a tolerant one that ran is one."""
    if not job.is_tolerant:
        return _ends(job)
    edges: Edges = {tip.id: "done" for tip in job.tips}
    return {**edges, job.anchor: "completed"} if job.anchor else edges


def _ends(job: Job) -> Edges:
    """Return edges that are satisfied when the job ran and succeeded so far."""
    if not job.anchor:
        return {tip.id: "ok" for tip in job.tips}
    edges = {tip.id: "completed" if tip.id in job.plain else "ok" for tip in job.tips}
    if "completed" not in edges.values():
        edges[job.anchor] = "completed"
    return edges


def spread(workflow: Workflow, job: Job) -> None:
    """Give the steps of a job its matrix: each instance waits for the instances of the same name before it."""
    if job.matrix is None:
        return
    many: list[DraftStep] = []
    for step in job.made:
        if set(ACTIONS).isdisjoint(step.keys):
            if "matrix." in step.condition:
                step.notes.append(f"todo: its condition was: {step.condition}")
                step.condition = ""  # what is still to be written has no instances
            continue
        if "run" not in step.keys and not many and "matrix." not in step.condition:
            continue  # a check at the beginning, the same for all
        step.keys["matrix"] = job.matrix.keys
        texts = [step.condition, *(str(step.keys.get(key, "")) for key in ("run", "env", "workdir"))]
        for other in many:
            if any(step_path(other.id, "") in text for text in texts):
                step.edges.setdefault(other.id, "done")
            if other.id in step.edges:
                step.edges[other.id] = {"instance": step.edges[other.id]}
        many.append(step)
    between = job.made[job.made.index(many[0]) : job.made.index(many[-1])] if many else []
    if len(between) >= len(many):
        message = f"a step of {job.name} has no instances: all instances of the step before it end first"
        workflow.found.differs("matrix-chain", message, job.node.key("strategy"))
