"""A GitHub workflow as a plan."""

from __future__ import annotations

import re

from planrun.convert.github.facts import Job, Workflow, axis_name
from planrun.convert.github.jobs import JobConversion, lock_name
from planrun.convert.github.machines import choose, leave_out
from planrun.convert.github.names import PlaceNames, given_value
from planrun.convert.github.steps import SHELLS
from planrun.convert.github.texts import secrets_of, template, with_preludes
from planrun.convert.github.words import cut
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Findings

_KNOWN = frozenset((
    "name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs", "description",
))  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_TYPES = {"boolean": "boolean", "number": "number"}


def convert_workflow(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a workflow becomes; `jobs` are the wanted ones with all that they need, none: all."""
    workflow = Workflow(root, found)
    workflow.convert = convert_job
    members = workflow.reader.mapping(root, "a workflow")
    nodes = workflow.reader.mapping(root.get("jobs"), "`jobs`")
    workflow.jobs = {name: Job(name, node) for name, node in nodes.items() if node.kind == MAPPING}
    list(workflow.reader.unknown(members, _KNOWN, root, "the workflow"))
    _head(workflow)
    if not nodes:
        found.refuse("shape", "a workflow has `jobs`", root)
    for name, node in nodes.items():
        workflow.reader.mapping(node, f"the job {name}")
    choose(workflow)
    leave_out(workflow, jobs)
    for name in _wanted(workflow, jobs):
        convert_job(workflow, workflow.jobs[name])
    _finish(workflow)
    return workflow.plan


def _wanted(workflow: Workflow, jobs: Collection[str]) -> list[str]:
    for name in jobs:
        if name not in workflow.jobs:
            hint = did_you_mean(name, workflow.jobs) or f"there are {', '.join(workflow.jobs)}"
            workflow.found.refuse("shape", f'there is no job "{name}"; {hint}', workflow.root.key("jobs"))
    return [name for name in workflow.jobs if not jobs or name in jobs]


def convert_job(workflow: Workflow, start: Job) -> None:
    """Convert a job after all that it needs; a circle is refused."""
    stack = [start]
    while stack:
        job = stack[-1]
        if job.is_converted:
            stack.pop()
            continue
        if not job.is_open:
            job.is_open = True
            job.needs = _needed(workflow, job)
            waiting = [other for other in job.needs if not other.is_converted]
            for other in waiting:
                if other.is_open:
                    workflow.found.refuse(
                        "shape", f"the jobs {job.name} and {other.name} need each other", job.node
                    )
                    job.needs.remove(other)
            stack += [other for other in waiting if not other.is_open]
            if any(not other.is_open for other in waiting):
                continue
        JobConversion(workflow, job).run()
        job.is_converted = True
        stack.pop()


def _needed(workflow: Workflow, job: Job) -> list[Job]:
    found: dict[str, Job] = {}
    node = job.node.get("needs")
    for name in workflow.reader.texts(node, "`needs`"):
        if name in workflow.jobs and name != job.name:
            found[name] = workflow.jobs[name]
        else:
            workflow.found.refuse(
                "shape", f'there is no job "{name}" that {job.name} could need', job.node.key("needs")
            )
    return list(found.values()) or list(workflow.entry)


def _head(workflow: Workflow) -> None:
    """Convert what stands above the jobs."""
    root, plan, found = workflow.root, workflow.plan, workflow.found
    name = " ".join(text_of(root.get("name")).split())
    if name and name.isprintable():
        plan.keys["name"] = name
    _triggers(workflow)
    run = workflow.reader.mapping(
        workflow.reader.mapping(root.get("defaults"), "`defaults`").get("run"), "`run`"
    )
    workflow.shell = text_of(run.get("shell"))
    workflow.folder = run.get("working-directory")
    if root.get("permissions") is not None:
        found.differs(
            "permissions", "there is no token whose permissions could be set", root.key("permissions")
        )
    concurrency = root.get("concurrency")
    if concurrency is not None and not is_nothing(concurrency):
        plan.keys["concurrency"] = lock_name(concurrency)
        message = "one run at a time on this machine, in the order in which they came; none is cancelled"
        found.differs("concurrency", message, root.key("concurrency"))
    _environment(workflow)
    workflow.usual_shell = SHELLS.get(workflow.shell, SHELLS[""])
    plan.keys["defaults"] = {"shell": workflow.usual_shell, "timeout": "6h"}  # as there where nothing is said
    message = (
        "variables that look like credentials are not inherited, nor what starts shells; see `inherit_env`; "
        "the runner's own (CI, GITHUB_ACTIONS) are not set"
    )
    found.differs("environment", message, root)
    plan.keys["limits"] = {"max_parallel": 1}  # what has folders of its own there would disturb each other
    message = (
        "all jobs share one workspace, and nothing is cleaned in between; one step runs at a time: raise "
        "`limits.max_parallel` where steps touch different files"
    )
    found.differs("workspace", message, root)


def _environment(workflow: Workflow) -> None:
    """Put variables at the top; those with secrets go to the steps."""
    env = workflow.reader.mapping(workflow.root.get("env"), "`env`")
    names = PlaceNames(workflow, Job("", workflow.root), workflow.root)
    for name, node in env.items():
        if not _NAME.match(name):
            message = f"the variable `{name}` is read by expressions only: no shell can have it"
            workflow.found.differs("env", message, node)
            continue
        try:
            if any(secrets_of(piece) for piece in cut(text_of(node))):
                workflow.secret_env[name] = node
            else:
                workflow.plan.keys.setdefault("env", {})[name] = template(text_of(node), names)
        except UntranslatableError as why:
            message = f"{why.message} (variable {name}): the scripts that would have it are left to you"
            workflow.found.todo(why.code, message, node)
            workflow.secret_env[name] = node  # each step tries it, and is left
    workflow.env = env


def _triggers(workflow: Workflow) -> None:
    on = workflow.root.get("on")
    if on is None:
        return
    message = "a plan has no triggers: start it from a workflow, by planrun's action"
    workflow.found.differs("triggers", message, workflow.root.key("on"))
    for event in ("workflow_dispatch", "workflow_call"):
        node = on.get(event)
        if node is None or node.kind != MAPPING:
            continue
        for name, item in workflow.reader.mapping(node.get("inputs"), "`inputs`").items():
            _input(workflow, name, item)


def _input(workflow: Workflow, name: str, node: Node) -> None:
    members = workflow.reader.mapping(node, f"the input {name}")
    param = axis_name(name)
    if not _NAME.match(param):
        workflow.found.todo(
            "input", f"`{name}` cannot be the name of a parameter: what reads it is left to you", node
        )
        return
    kind = _TYPES.get(text_of(members.get("type")), "string")
    fragment: dict[str, Any] = {"type": kind}
    description_text = " ".join(text_of(members.get("description")).split())
    if description_text and description_text.isprintable():
        fragment["description"] = description_text
    options = [text_of(item) for item in workflow.reader.items(members.get("options"), "`options`")]
    if options:
        fragment["enum"] = list(dict.fromkeys(options))
    default = members.get("default")
    names = PlaceNames(workflow, Job("", workflow.root), node)
    is_plain = not is_nothing(default) and "${{" not in text_of(default)
    value = given_value(default, kind, names).value if is_plain else None
    if value is not None and (not options or value in options):
        fragment["default"] = value
    elif truth_of(members.get("required")):
        fragment["required"] = True
    else:
        fragment["default"] = {"boolean": False, "number": 0}.get(kind, options[0] if options else "")
    workflow.inputs[name.lower()] = workflow.param(param, fragment)


def _all_jobs(workflow: Workflow) -> Iterator[Job]:
    for job in workflow.jobs.values():
        yield job
        for called in job.called:
            yield from _all_jobs(called)


def _finish(workflow: Workflow) -> None:
    """Give scripts the lines that they need, now that it is known which outputs are read."""
    jobs = list(_all_jobs(workflow))
    for job in jobs:
        if job.anchor:  # a job that may be skipped needs its secrets only when it runs
            workflow.plan.optional |= {name for step in job.made for name in step.keys.get("secrets", ())}
    always = [job for job in jobs if not job.anchor and not job.called]
    workflow.plan.optional -= {
        name
        for job in always
        for step in job.made
        if not step.condition
        for name in step.keys.get("secrets", ())
    }
    # The token is always there on GitHub, and most scripts work without it.
    workflow.plan.optional |= {*workflow.plan.maybe, "GITHUB_TOKEN"}
    for step in workflow.plan.steps:
        if "run" not in step.keys:
            continue
        wanted = list(step.prelude)
        if set(step.keys.get("outputs", ())) - {"github_path"}:
            wanted.append("GITHUB_OUTPUT")
        try:
            step.keys["run"] = with_preludes(
                step.keys["run"], str(step.keys.get("shell", workflow.usual_shell)), wanted
            )
        except UntranslatableError as why:
            step.leave(workflow.found, why.code, why.message, step.node or workflow.root)
