"""The order of the steps of a job, and between jobs, as edges.

On GitHub a job that was skipped skips what needs it, and a step that was skipped skips nothing. Here every step that is
skipped benignly satisfies `ok`. So steps of a job that can be skipped as a whole wait by `completed` for one that runs
whenever the job does: its anchor, made for the purpose (`JOB.gate`) where there is none.

A job that calls a workflow of the same repository: the steps of that one's jobs, with its inputs put in.
"""

from __future__ import annotations

from planrun.convert.draft import DraftStep, slug
from planrun.convert.github.facts import Job, Workflow
from planrun.convert.github.matrix import OTHER_MACHINE, machine_text, texts_of
from planrun.convert.github.names import PlaceNames, given_value
from planrun.convert.github.steps import MAX_DEPTH, local_path, read_local
from planrun.convert.github.texts import cut, secret_of
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.convert.github.spelling import Spelled
    from planrun.convert.github.texts import Condition
    from planrun.plan.yaml.node import Node

if TYPE_CHECKING:
    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.github.texts import Condition

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


MAX_COPIES = 20  # of a workflow that is called with a matrix


def call_workflow(workflow: Workflow, job: Job, own: Condition, names: PlaceNames) -> bool:
    """Put the jobs of a called workflow into the plan; False when it is not of this repository.

    Raises UntranslatableError for one that cannot be put in.
    """
    path = local_path(workflow.found.file, text_of(job.node.get("uses")))
    root = read_local(path) if path else None
    if root is None:
        return False
    if workflow.depth >= MAX_DEPTH:
        raise UntranslatableError("workflow-call", "workflows call each other too deeply")
    copies: list[dict[str, Any] | None] = [None]
    if job.matrix is not None:
        copies = [*job.matrix.instances]
        if not 0 < len(copies) <= MAX_COPIES:
            raise UntranslatableError(
                "workflow-call", "a called workflow with a matrix of too many instances"
            )
    called = []
    for row in copies:
        job.row = row
        child = _Called(workflow, job, names).workflow(root, path, row)
        if row is None or not _is_elsewhere(child):
            called.append(child)
            continue
        message = f"the plan is for one machine: a copy of {path} for another system is left out"
        workflow.found.differs("other-machines", message, job.node.key("strategy"))
    job.row = None
    if not called:
        raise UntranslatableError("runs-on", f"every instance of {job.name} is for another system than Linux")
    entry = _entry(workflow, job, own)
    for child in called:
        _convert(child, entry, job)
        _adopt(job, child)
    job.called = called
    if len(called) == 1:
        job.matrix = None  # with one instance its outputs are certain
    return True


def _is_elsewhere(child: Workflow) -> bool:
    """Say whether all jobs of a called workflow are for another system, by the inputs that are given."""
    options = [texts_of(machine_text(each.node.get("runs-on")), child.known) for each in child.jobs.values()]
    return bool(options) and all(each and all(map(OTHER_MACHINE.match, each)) for each in options)


class _Called:
    """Makes the workflow that a job calls: what is given to it, and what it may read."""

    def __init__(self, caller: Workflow, job: Job, names: PlaceNames) -> None:
        self.caller = caller
        self.job = job
        self.names = names

    def workflow(self, root: Node, path: str, row: dict[str, Any] | None) -> Workflow:
        child = Workflow(root, self.caller.found.of(path))
        child.plan = self.caller.plan
        child.convert = self.caller.convert
        child.depth = self.caller.depth + 1
        child.usual_shell = self.caller.usual_shell
        at = f"{self.job.label}." + (f"{slug(' '.join(map(str, row.values())))}." if row else "")
        child.secret_env = dict(child.reader.mapping(root.get("env"), "`env`"))
        run = child.reader.mapping(
            child.reader.mapping(root.get("defaults"), "`defaults`").get("run"), "`run`"
        )
        child.shell = text_of(run.get("shell"))
        child.folder = run.get("working-directory")
        child.given = self._inputs(child)
        child.secret_names = self._secrets()
        nodes = child.reader.mapping(root.get("jobs"), "`jobs`")
        child.jobs = {name: Job(name, node) for name, node in nodes.items() if node.kind == MAPPING}
        for each in child.jobs.values():
            each.label = f"{at}{each.name}"
        return child

    def _inputs(self, child: Workflow) -> dict[str, Spelled]:
        on = child.root.get("on")
        call = on.get("workflow_call") if on is not None and on.kind == MAPPING else None
        declared = child.reader.mapping(call.get("inputs") if call is not None else None, "`inputs`")
        handed = self.caller.reader.mapping(self.job.node.get("with"), "`with`")
        found = {}
        for name, node in declared.items():
            members = child.reader.mapping(node, "an input")
            value = handed.get(name)
            names = self.names if value is not None else PlaceNames(child, Job("", child.root), child.root)
            found[name.lower()] = given_value(
                value if value is not None else members.get("default"), text_of(members.get("type")), names
            )
        return found

    def _secrets(self) -> dict[str, str]:
        node = self.job.node.get("secrets")
        if node is None or node.kind != MAPPING:
            return {}
        found = {}
        for name, value in node.value.items():
            pieces = cut(text_of(value))
            known = secret_of(pieces[0]) if len(pieces) == 1 else ""
            if not known:
                raise UntranslatableError(
                    "workflow-call", f"the secret {name} is put together for the workflow"
                )
            found[name] = self.caller.secret_names.get(known, known)
        return found


def _entry(workflow: Workflow, job: Job, own: Condition) -> list[Job]:
    """Return the jobs for which the first jobs of a called workflow wait: a gate where there is a condition."""
    if own.text in ("", "true") and not own.asks:
        return job.needs
    gate = Job(f"{job.name}.gate", job.node)
    gate.label = f"{job.label}.gate"
    gate.needs, gate.is_open, gate.is_converted = job.needs, True, True
    link(workflow, gate, own, [])
    workflow.plan.steps += gate.made
    job.anchor = gate.anchor
    gate.anchor_gate = ""
    job.plain |= gate.plain
    return [gate]


def _convert(child: Workflow, entry: list[Job], caller: Job) -> None:
    child.entry = entry
    for each in child.jobs.values():
        child.convert(child, each)
    if not child.jobs:
        child.found.refuse("shape", f"the workflow that {caller.name} calls has `jobs`", child.root)


def _adopt(job: Job, child: Workflow) -> None:
    """Let a job stand for all jobs of the workflow that it calls."""
    for each in child.jobs.values():
        job.made += each.made
        job.tips += each.tips
        job.tolerated |= each.tolerated | ({each.anchor_gate} if each.anchor_gate else set())
        if not each.anchor or each.anchor == job.anchor:
            job.plain |= each.plain
