"""A job that calls a workflow of the same repository: the steps of that one's jobs, with its inputs put in."""

from __future__ import annotations

from planrun.convert.draft import slug
from planrun.convert.github.edges import link
from planrun.convert.github.facts import Job, Workflow
from planrun.convert.github.machines import leave_out
from planrun.convert.github.matrix import is_other, machine_text
from planrun.convert.github.names import PlaceNames, call_of, given_value
from planrun.convert.github.steps import MAX_DEPTH, local_path, read_local
from planrun.convert.github.texts import secret_of
from planrun.convert.github.words import cut, texts_of
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.convert.github.texts import Condition
    from planrun.plan.yaml.node import Node

MAX_COPIES = 20  # of a workflow that is called with a matrix
_CALL = 2048  # what a called workflow is charged besides its texts, so that a file calls at most 512


def call_workflow(workflow: Workflow, job: Job, own: Condition, names: PlaceNames) -> bool:
    """Put the jobs of a called workflow into the plan; False when it is not of this repository.

    Raises UntranslatableError for one that cannot be put in.
    """
    path = local_path(workflow.found.file, text_of(job.node.get("uses")))
    root = read_local(path, workflow.found) if path else None
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
        workflow.found.spend(_CALL, job.node)  # each may call others
        job.row = row
        child = _called(workflow, job, names, root, path)
        if row is None or not _is_elsewhere(child):
            called.append(child)
            continue
        message = f"the plan is for one machine: a copy of {path} for another system is left out"
        workflow.found.differs("other-machines", message, job.node.key("strategy"))
    job.row = None
    if not called:
        raise UntranslatableError(
            "runs-on", f"every instance of {job.name} is for another system than {workflow.machine}"
        )
    entry = _entry(workflow, job, own)
    for child in called:
        _convert(child, entry, job)
        adopt(job, list(child.jobs.values()))
    job.called = called
    if len(called) == 1:
        job.matrix = None  # with one instance its outputs are certain
    return True


def _is_elsewhere(child: Workflow) -> bool:
    """Say whether all jobs of a called workflow are for another system, by the inputs that are given."""
    options = [texts_of(machine_text(each.node.get("runs-on")), child.known) for each in child.jobs.values()]
    return bool(options) and all(each and all(is_other(one, child) for one in each) for each in options)


def _called(caller: Workflow, job: Job, names: PlaceNames, root: Node, path: str) -> Workflow:
    """Return the workflow that a job calls, with what is given to it, and what it may read."""
    child = Workflow(root, caller.found.of(path))
    child.plan, child.convert, child.depth = caller.plan, caller.convert, caller.depth + 1
    child.usual_shell, child.machine = caller.usual_shell, caller.machine
    child.secret_env = dict(child.reader.mapping(root.get("env"), "`env`"))
    run = child.reader.mapping(child.reader.mapping(root.get("defaults"), "`defaults`").get("run"), "`run`")
    child.shell, child.folder = text_of(run.get("shell")), run.get("working-directory")
    handed = caller.reader.mapping(job.node.get("with"), "`with`")
    for name, node in child.reader.mapping(call_of(child).get("inputs"), "`inputs`").items():
        members = child.reader.mapping(node, "an input")
        value = handed.get(name)
        place = names if value is not None else PlaceNames(child, Job("", root), root)
        kind = text_of(members.get("type"))
        child.given[name.lower()] = given_value(value or members.get("default"), kind, place)
    secrets = job.node.get("secrets")
    for name, node in secrets.value.items() if secrets is not None and secrets.kind == MAPPING else ():
        pieces = cut(text_of(node))
        known = secret_of(pieces[0]) if len(pieces) == 1 else ""
        if not known:
            raise UntranslatableError("workflow-call", f"the secret {name} is put together for the workflow")
        child.secret_names[name] = caller.secret_names.get(known, known)
    at = f"{job.label}." + (f"{slug(' '.join(map(str, job.row.values())))}." if job.row else "")
    for name, node in child.reader.mapping(root.get("jobs"), "`jobs`").items():
        if node.kind == MAPPING:
            child.jobs[name] = Job(name, node)
            child.jobs[name].label = f"{at}{name}"
    return child


def _entry(workflow: Workflow, job: Job, own: Condition) -> list[Job]:
    """Return the jobs for which the first jobs of a called workflow wait: a gate where they may be skipped."""
    if not own.text and not own.asks and not any(each.anchor for each in job.behind()):
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
    leave_out(child)
    for each in child.jobs.values():
        child.convert(child, each)
    if not child.jobs:
        child.found.refuse("shape", f"the workflow that {caller.name} calls has `jobs`", child.root)


def adopt(job: Job, others: Sequence[Job]) -> None:
    """Let a job stand for others: the jobs of the workflow that it calls, or its instances."""
    for each in others:
        job.made += each.made
        job.tips += each.tips
        job.tolerated |= each.tolerated | ({each.anchor_gate} if each.anchor_gate else set())
        if each.is_tolerant:
            job.tolerated |= {step.id for step in each.made}
        elif not each.anchor or each.anchor == job.anchor:
            job.plain |= each.plain
