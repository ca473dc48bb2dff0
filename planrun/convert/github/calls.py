"""Neighbouring scripts of a job as one script, whose parts run one after the other in one process group.

In a job with a matrix every instance then goes its own way. In a job with a container all parts share it. What a part
writes to $GITHUB_ENV and $GITHUB_PATH reaches the parts behind it. A server in the background lives until the end.

The order of the steps of a job, and between jobs, as edges.

On GitHub a job that was skipped skips what needs it, and a step that was skipped skips nothing. Here every step that is
skipped benignly satisfies `ok`. So steps of a job that can be skipped as a whole wait by `completed` for one that runs
whenever the job does: its anchor, made for the purpose (`JOB.gate`) where there is none.

A job that calls a workflow of the same repository: the steps of that one's jobs, with its inputs put in.
"""

from __future__ import annotations

from planrun.convert.draft import DraftStep, literal_text, slug, step_path
from planrun.convert.github.facts import Job, Workflow
from planrun.convert.github.machines import leave_out
from planrun.convert.github.matrix import is_other, machine_text, texts_of
from planrun.convert.github.names import PlaceNames, given_value
from planrun.convert.github.steps import MAX_DEPTH, local_path, read_local
from planrun.convert.github.texts import HAND_ON, PRELUDES, SHELL_OPTIONS, cut, is_shell, secret_of
from planrun.convert.reader import UntranslatableError, text_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.convert.github.facts import Job
    from planrun.convert.github.spelling import Spelled
    from planrun.convert.github.texts import Condition
    from planrun.plan.yaml.node import Node

_ALLOWED = frozenset((
    "run", "title", "env", "secrets", "shell", "workdir", "timeout", "outputs", "produces", "on_failure",
))  # fmt: skip


def merge_scripts(job: Job, first: int = 0) -> None:
    """Join neighbours among the steps of a job from the position `first` on, where the joined script does the same."""
    merged: list[DraftStep] = job.made[:first]
    group: list[DraftStep] = []
    for step in [*job.made[first:], None]:
        if step is not None and _fits(job, step, group):
            group.append(step)
            continue
        if group:
            merged.append(_joined(job, group))
            group = []
        if step is None:
            break
        if _fits(job, step, []):
            group = [step]
        else:
            merged.append(step)
    job.made = merged


def _fits(job: Job, step: DraftStep, group: Sequence[DraftStep]) -> bool:
    """Say whether a step can be the next part of a script."""
    if "run" not in step.keys or set(step.keys) - _ALLOWED or not is_shell(_shell(job, step)):
        return False
    if step.id in job.asking or step.keys.get("on_failure", "continue") != "continue":
        return False
    if not group:
        return True
    if step.id in job.tolerated and step.id in job.read:
        return False
    if _family(_shell(job, step)) != _family(_shell(job, group[0])):
        return False
    if any(set(step.keys.get("outputs", ())) & set(each.keys.get("outputs", ())) for each in group):
        return False
    texts = [step.condition, str(step.keys["run"]), *map(str, step.keys.get("env", {}).values())]
    return not any(step_path(each.id, "") in text for text in texts for each in group)


def _shell(job: Job, step: DraftStep) -> str:
    return str(step.keys.get("shell", job.usual_shell))


def _family(shell: str) -> str:
    return shell.split(" ", maxsplit=1)[0]


def _joined(job: Job, group: list[DraftStep]) -> DraftStep:
    """Return one step that runs the parts in order."""
    if len(group) == 1 and not group[0].is_raw and not group[0].hands_on:
        return group[0]
    heir = _Joining(job, group).step()
    if len(group) > 1:
        heir.keys.pop("title", None)
        heir.keys.pop("on_failure", None)
        job.tolerated.discard(heir.id)
        job.plain.add(heir.id)
    else:
        heir.condition = group[0].condition
    for step in group:
        _forget(job, step, heir)
    return heir


class _Joining:
    """Puts parts into one script: what all have alike stands at the step, the rest before each part."""

    def __init__(self, job: Job, group: list[DraftStep]) -> None:
        self.job = job
        self.group = group
        scripts = [step.keys for step in group if not step.is_raw] or [group[0].keys]
        first = scripts[0]
        self.env: dict[str, str] = {
            name: value
            for name, value in first.get("env", {}).items()
            if all(each.get("env", {}).get(name) == value for each in scripts)
        }
        is_alike = all(each.get("workdir") == first.get("workdir") for each in scripts)
        self.workdir = first.get("workdir") if is_alike else None
        self.secrets = list(dict.fromkeys(name for step in group for name in step.keys.get("secrets", ())))
        self.shell = min((_shell(job, step) for step in group), key=len)

    def step(self) -> DraftStep:
        first = next((step for step in self.group if not step.is_raw), self.group[0])
        heir = DraftStep(first.id, **first.keys)
        heir.node, heir.edges = first.node, first.edges
        heir.parts = [step.id for step in self.group]
        heir.hands_on = any(step.hands_on for step in self.group)
        is_alone = len(self.group) == 1
        text = ""
        for number, step in enumerate(self.group, 1):
            is_lenient = step.id in self.job.tolerated
            text += _part(step, self._entering(step, number), is_alone=is_alone, is_lenient=is_lenient)
            heir.sets_path = heir.sets_path or step.sets_path
            heir.notes += step.notes
            heir.prelude += [line for line in step.prelude if line in PRELUDES and line not in heir.prelude]
        if heir.hands_on:
            heir.prelude.append(HAND_ON)
            self.env |= {
                name: f"${{{{ step.dir }}}}/{name.lower()}" for name in ("GITHUB_ENV", "GITHUB_PATH")
            }
        steps = [step.keys for step in self.group]
        keys: dict[str, Any] = {
            "run": text,
            "shell": self.shell if self.shell != self.job.usual_shell else "",
            "workdir": self.workdir,
            "env": self.env,
            "secrets": self.secrets,
            "timeout": self._time(),
            "outputs": {name: value for each in steps for name, value in each.get("outputs", {}).items()},
            "produces": [path for each in steps for path in each.get("produces", ())],
        }
        for key, value in keys.items():
            heir.keys.pop(key, None)
            if value:
                heir.keys[key] = value
        return heir

    def _time(self) -> str:
        """Return the time of all parts together; "" where one has none of its own."""
        times = [str(step.keys.get("timeout", "")) for step in self.group if not step.is_raw]
        if not times or "" in times:
            return ""
        if len(set(times)) == 1:
            return times[0]
        seconds = sum(int(time[:-1]) * (60 if time.endswith("m") else 1) for time in times)
        return f"{seconds}s"

    def _entering(self, step: DraftStep, number: int) -> list[str]:
        """Return the lines that give one part its own variables, folder and options."""
        lines = [line for line in step.prelude if line not in PRELUDES]
        for name, value in step.keys.get("env", {}).items():
            if step.is_raw and not any(
                name in each.keys.get("env", {}) for each in self.group if each is not step
            ):
                self.env[name] = value
            elif self.env.get(name) != value:
                self.env[f"{name}__{number}"] = value
                lines.append(f'export {name}="${name}__{number}"')
        foreign = [name for name in self.secrets if name not in step.keys.get("secrets", ())]
        if foreign and not step.is_raw:
            lines.insert(0, f"unset {' '.join(foreign)}")
        own = step.keys.get("workdir")
        if own != self.workdir and not step.is_raw:
            self.env[f"WORKDIR__{number}"] = own or "."
            lines.append(f'cd -- "$WORKDIR__{number}"')
        shell = _shell(self.job, step)
        if shell != self.shell and shell in SHELL_OPTIONS:
            lines.append(SHELL_OPTIONS[shell])
        return lines


def _part(step: DraftStep, lines: list[str], *, is_alone: bool, is_lenient: bool) -> str:
    body = "\n".join([*lines, str(step.keys["run"]).rstrip("\n")])
    text = f"{body}\n" if step.is_raw else f"(\n{body}\n)\n"
    if is_lenient and not is_alone:
        text = f"set +e  # its failure is tolerated\n(\nset -e\n{body}\n)\nset -e\n"
    if step.hands_on:
        text += "hand_on\n"
    if is_alone:
        return text
    if step.condition not in ("", "true"):
        text = f"if [ \"${{{{ 'true' if {step.condition} else 'false' }}}}\" = true ]; then\n{text}fi\n"
    return (f"# {step.keys['title']}\n" if "title" in step.keys else "") + text


def _forget(job: Job, step: DraftStep, heir: DraftStep) -> None:
    if step.id != heir.id:
        for group in (job.plain, job.tolerated, job.asking):
            group.discard(step.id)
    for own_id, known in list(job.ids.items()):
        if known is step:
            job.ids[own_id] = heir
    old, new = step_path(step.id, ""), step_path(heir.id, "")
    for other in job.made:
        other.condition = _without_repeats(other.condition.replace(old, new))
        for key in ("env", "run"):
            other.keys[key] = _renamed(other.keys.get(key), old, new)
            if other.keys[key] is None:
                del other.keys[key]
    for name, text in job.exported.items():
        job.exported[name] = text.replace(old, new)


def _without_repeats(condition: str) -> str:
    """Return a condition of alternatives with each of them once."""
    if "(" in condition or " and " in condition or " if " in condition:
        return condition
    return " or ".join(dict.fromkeys(condition.split(" or ")))


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(each, old, new) for name, each in value.items()}
    return value.replace(old, new) if isinstance(value, str) else value


if TYPE_CHECKING:
    from planrun.convert.github.facts import Job, Workflow
    from planrun.convert.github.texts import Condition

    Edges = dict[str, str]


def link(workflow: Workflow, job: Job, own: Condition, services: list[DraftStep]) -> None:
    """Give the steps of a job their edges and conditions; `own` is the result of the job's `if`."""
    entry = _arrivals(job, own)
    job.asks = own.asks
    if job.environment:
        question = f"Run {job.name} in the environment {job.environment}?"
        gate = DraftStep(workflow.plan.name(f"{job.label}.approve"), ask={"question": literal_text(question)})
        job.made.insert(0, gate)
        job.plain.add(gate.id)
    has_condition = own.text not in ("", "true")
    is_skippable = has_condition or (not own.asks and "completed" in entry.values())
    first = job.made[0] if job.made else None
    if first is None or (
        is_skippable and (first.id not in job.plain or job.asking or services or job.is_tolerant)
    ):
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
        edges |= {tip.id: "done" for tip in needed.tips} if own.asks else _met(needed)
    behind = [] if own.asks else job.behind()
    if any(other.asks or other.is_tolerant for other in behind):
        # GitHub's `success()` looks at all jobs before, and one of these may have run after a failure.
        for other in behind:
            edges = _met(other) | edges
    return edges


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
        child = _Called(workflow, job, names).workflow(root, path, row)
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
        child.machine = self.caller.machine
        child.unfolded, child.troubled = self.caller.unfolded, self.caller.troubled
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
