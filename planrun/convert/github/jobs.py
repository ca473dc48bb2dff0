"""One job of a GitHub workflow: a chain of steps in the workspace that all jobs share.

`container` gives its steps an image, and `services` become steps that run beside them.
"""

from __future__ import annotations

import re

from planrun.convert.draft import DraftStep, slug, source_text
from planrun.convert.github.calls import adopt, call_workflow
from planrun.convert.github.edges import link, spread
from planrun.convert.github.facts import Job
from planrun.convert.github.matrix import is_expanded, is_other, known_truth, machine_text, matrix_of
from planrun.convert.github.names import PlaceNames
from planrun.convert.github.steps import StepMaking
from planrun.convert.github.texts import Condition, Variables, condition, template
from planrun.convert.github.words import texts_of
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.convert.github.facts import Workflow
    from planrun.plan.yaml.node import Node

# What well-known images start by themselves; a step names its command.
_COMMANDS: Mapping[str, list[str]] = {
    "postgres": ["docker-entrypoint.sh", "postgres"],
    "postgis": ["docker-entrypoint.sh", "postgres"],
    "mysql": ["docker-entrypoint.sh", "mysqld"],
    "mariadb": ["docker-entrypoint.sh", "mariadbd"],
    "redis": ["docker-entrypoint.sh", "redis-server"],
    "valkey": ["docker-entrypoint.sh", "valkey-server"],
    "mongo": ["docker-entrypoint.sh", "mongod"],
    "memcached": ["docker-entrypoint.sh", "memcached"],
    "rabbitmq": ["docker-entrypoint.sh", "rabbitmq-server"],
}
_LEFT = ("ports", "options", "credentials", "command", "entrypoint")
_KNOWN = frozenset((
    "concurrency", "container", "continue-on-error", "defaults", "env", "environment", "if", "name", "needs", "outputs",
    "permissions", "runs-on", "secrets", "services", "snapshot", "steps", "strategy", "timeout-minutes", "uses", "with",
))  # fmt: skip
_TOLERANT = "a job that may fail: what is left of it is skipped when it does, and the run is partial"
_TIME = "the time of a job is that of each of its steps, not of all together"


class JobConversion:
    """Converts one job, whose needed jobs are converted already."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.found = workflow.found
        self.reader = workflow.reader
        self.job = job
        self.node = job.node
        self.notes: list[str] = []

    def run(self) -> None:
        """Put the steps of the job into the plan; where that is not certain, one step without an action."""
        job, node = self.job, self.node
        list(self.reader.unknown(self.reader.mapping(node, "a job"), _KNOWN, node, f"the job {job.name}"))
        job.env = self.reader.mapping(node.get("env"), "`env`")
        job.outputs = self.reader.mapping(node.get("outputs"), "`outputs`")
        names = PlaceNames(self.workflow, job, node, (self.workflow.env,))
        names.step_level = False
        own, place = Condition(), node
        try:
            own, place = condition(node.get("if"), names), node.get("strategy") or node
            strategy = node.get("strategy")
            if strategy is not None and not is_nothing(strategy) and job.row is None:
                self.reader.mapping(strategy, "`strategy`")
                job.matrix = matrix_of(self.workflow, job, strategy, names)
            if node.get("uses") is not None:
                place = node.key("uses")
                if call_workflow(self.workflow, job, own, names):
                    message = (
                        "the jobs of a called workflow are steps of the same plan, and see its `env`, too"
                    )
                    self.found.differs("workflow-call", message, place)
                    return
                job.matrix = None
                message = (
                    f"the job {job.name} is the workflow {text_of(node.get('uses'))}; convert that one, too"
                )
                raise UntranslatableError("workflow-call", message)
            self._check_machine()
        except UntranslatableError as why:
            self._leave(own, why, place)
            return
        if is_expanded(self.workflow, job):
            self._expand()
            return
        self._tell()
        run = self.reader.mapping(self.reader.mapping(node.get("defaults"), "`defaults`").get("run"), "`run`")
        job.shell, job.folder = text_of(run.get("shell")), run.get("working-directory")
        making = StepMaking(self.workflow, job)
        for position, item in enumerate(self.reader.items(node.get("steps"), "`steps`"), 1):
            for step in making.make(item, position):
                job.made.append(step)
        self._name_only()
        services = self._services(names)
        self._contain(names)
        self._lock()
        if job.made:
            job.made[0].notes = [*self.notes, *job.made[0].notes]
            job.made[-1].notes += making.actions.comments
        elif is_nothing(node.get("steps")):
            self.found.refuse("shape", f"the job {job.name} has no steps", node)
        link(self.workflow, job, own, services)
        spread(self.workflow, job)
        self._label([*job.made, *services])
        at = 1 if job.anchor_gate else 0
        self.workflow.plan.steps += [*job.made[:at], *services, *job.made[at:]]

    def _leave(self, own: Condition, why: UntranslatableError, place: Node) -> None:
        """Put one step without an action in the place of the job."""
        job = self.job
        job.matrix = job.row = None
        step = DraftStep(self.workflow.plan.name(job.label))
        step.node = self.node
        step.make_abstract(self.found.todo(why.code, f"{why.message} (job {job.name})", place, job.name))
        step.keys["description"] = source_text(self.found.file, self.node)
        job.made.append(step)
        if known_truth(self.node.get("continue-on-error"), job, self.workflow):
            step.keys["on_failure"] = "skip"
        job.plain.add(step.id)
        link(self.workflow, job, own, [])
        self.workflow.plan.steps += job.made

    def _check_machine(self) -> None:
        """Look at the machine that the job asks for; raises UntranslatableError when it is another one."""
        node = self.node.get("runs-on")
        if node is None:
            return
        text = machine_text(node)
        message = "`runs-on` chooses no machine: the plan runs where planrun is started"
        self.found.differs("runs-on", message, node)
        if re.search(r"\$\{\{[^}]*\bmatrix\b", text):
            return  # the instances for another system are left out
        options = texts_of(text, self.workflow.known)
        other = [each for each in options or () if is_other(each, self.workflow)]
        if options is None:
            message = f"the machine of {self.job.name} was worked out: {text}"
            self.notes.append(self.found.todo("runs-on", message, node))
        elif other:
            doubt = "is" if len(other) == len(options) else "may be"
            raise UntranslatableError("runs-on", f"the job {self.job.name} {doubt} for {other[0]}")

    def _tell(self) -> None:
        """Report what means something else in a plan, and what a plan does not have."""
        job, node = self.job, self.node
        for key, message in (
            ("permissions", "there is no token whose permissions could be set"),
            ("snapshot", "no image of the machine is kept"),
            ("timeout-minutes", _TIME),
        ):
            if node.get(key) is not None:
                code = "job-timeout" if key == "timeout-minutes" else key
                self.found.differs(code, message, node.key(key))
        environment = node.get("environment")
        if environment is not None and not is_nothing(environment):
            job.environment = text_of(environment) or text_of(environment.get("name"))
            message = f"the environment {job.environment} of {job.name} is a question before it"
            message = f"{message}; its secrets are the plan's"
            self.found.differs("environment", message, node.key("environment"))
        tolerant = known_truth(node.get("continue-on-error"), job, self.workflow)
        if tolerant:
            job.is_tolerant = True
            self.found.differs("continue-on-error", _TOLERANT, node.key("continue-on-error"))
        elif tolerant is None:
            message = f"whether a failure of {job.name} counts is worked out there; here it counts"
            self.notes.append(self.found.todo("continue-on-error", message, node.key("continue-on-error")))
        container = node.get("container")
        if container is not None and not is_nothing(container):  # an image that is empty means none
            image = text_of(container.get("image") if container.kind == MAPPING else container)
            job.is_contained = texts_of(image, {**self.workflow.known, **(job.rows or [{}])[0]}) != {""}

    def _expand(self) -> None:
        """Convert each instance of the matrix by itself: its steps have its values in place of names."""
        job, strategy = self.job, self.node.value["strategy"]
        assert job.matrix is not None  # asked before
        rows, job.matrix = job.matrix.instances, None
        if truth_of(strategy.get("fail-fast")) is not False:
            message = f"the instances of {job.name} are steps of their own: all run, whichever fails"
            self.found.differs("fail-fast", message, self.node.key("strategy"))
        labels = set()
        for at, row in enumerate(rows):
            each = Job(job.name, job.node)
            shown = slug(" ".join(str(value) for value in row.values() if not isinstance(value, list)))
            each.label = f"{job.label}.{shown if shown and shown not in labels else at + 1}"
            labels.add(shown)
            each.row, each.row_at, each.needs, each.is_open = row, at, job.needs, True
            JobConversion(self.workflow, each).run()
            each.is_converted = True
            if text_of(strategy.get("max-parallel")) == "1" and job.instances and each.made:
                for tip in job.instances[-1].tips:
                    each.made[0].wait(tip.id, "done")
            job.instances.append(each)
        adopt(job, job.instances)
        job.anchor = next((each.anchor for each in job.instances if each.anchor), "")

    def _name_only(self) -> None:
        """Give the only step of a job the name of the job."""
        job = self.job
        if len(job.made) != 1 or job.outputs:
            return
        (step,) = job.made
        old = step.id
        self.workflow.plan.give_back(old)
        step.id = self.workflow.plan.name(job.label)
        if step.keys.get("title") == old:
            step.keys["title"] = step.id
        for group in (job.plain, job.tolerated, job.asking):
            if old in group:
                group.remove(old)
                group.add(step.id)

    def _label(self, steps: list[DraftStep]) -> None:
        """Keep the name of the job: as the title of its only step, or as a comment and a tag of all."""
        name = " ".join(text_of(self.node.get("name")).split())
        if not name.isprintable() or "${{" in name:
            name = ""
        if len(steps) == 1:
            if name and steps[0].keys.get("title", steps[0].id) == steps[0].id:
                steps[0].keys["title"] = name[:200]
            return
        if name and name != self.job.name:
            steps[0].notes.insert(0, f"{self.job.name}: {name}")
        for step in steps:
            step.keys["tags"] = [self.job.label]

    def _container(self, node: Node, names: PlaceNames) -> dict[str, Any]:
        """Return the container that `container:` or an entry of `services:` describes; raises UntranslatableError."""
        image = text_of(node.get("image") if node.kind == MAPPING else node)
        if not image:
            raise UntranslatableError("container", "a container or service without an image")
        found: dict[str, Any] = {"image": template(image, names)}
        if node.kind != MAPPING:
            return found
        variables = Variables()
        variables.read(self.reader.mapping(node.get("env"), "`env`"), names)
        if variables.lines or variables.secrets:
            raise UntranslatableError("secret", "a secret in the environment of a container")
        if variables.env:
            found["env"] = variables.env
        volumes = [template(text, names) for text in self.reader.texts(node.get("volumes"), "`volumes`")]
        return {**found, "volumes": volumes} if volumes else found

    def _left_of(self, node: Node, what: str) -> list[str]:
        """Return comments on what of a container is left to a person."""
        notes = []
        for key in _LEFT:
            value = node.get(key)
            if value is not None:
                texts = list(value.value) if value.kind == MAPPING else self.reader.texts(value, f"`{key}`")
                message = (
                    f"{what} has `{key}: {' '.join(' '.join(texts).split())}`, for which a plan has no key"
                )
                notes.append(self.found.todo("container", message, node.key(key)))
        return notes

    def _services(self, names: PlaceNames) -> list[DraftStep]:
        """Return a step for each service of the job."""
        found = []
        nodes = self.reader.mapping(self.node.get("services"), "`services`")
        if nodes and self.job.matrix is not None:
            message = f"all instances of {self.job.name} use the same services at the same time; see `lock:` of steps"
            self.found.differs("shared-services", message, self.node.key("services"))
        for name, node in nodes.items():
            step = DraftStep(self.workflow.plan.name(f"{self.job.label}.{slug(name) or 'service'}"))
            found.append(step)
            try:
                container = self._container(node, names)
                if "matrix." in str(container):
                    raise UntranslatableError("matrix", "a service for each instance")
                image = re.sub(r"[:@].*", "", container["image"]).rpartition("/")[2]
                if image not in _COMMANDS:
                    message = f"say what {container['image']} starts, by `exec:`"
                    raise UntranslatableError("service", message)
            except UntranslatableError as why:
                step.leave(self.found, why.code, why.message, node)
                continue
            step.keys.update(service=True, container=container, exec=_COMMANDS[image])
            step.notes += self._left_of(node, f"the service {step.id}")
            option = r"--health-cmd[= ](?:\"([^\"]*)\"|'([^']*)'|(\S+))"
            if health := re.search(option, text_of(node.get("options"))):
                step.notes.append(f"todo: its health check was: {' '.join(filter(None, health.groups()))}")
            message = f"say how {step.id} tells that it is ready, by `ready: {{run: …}}`"
            step.notes.append(self.found.todo("service", message, node, step.id))
        return found

    def _contain(self, names: PlaceNames) -> None:
        """Give the scripts of the job its container: one for all, or one for each instance."""
        node = self.node.get("container")
        scripts = [step for step in self.job.made if "run" in step.keys]
        if node is None or not self.job.is_contained or not scripts:
            return
        try:
            container = self._container(node, names)
        except UntranslatableError as why:
            for step in scripts:
                step.leave(self.found, why.code, why.message, step.node or self.node)
            return
        scripts[0].notes += self._left_of(node, "the container")
        if len(scripts) > 1:
            is_many = self.job.matrix is not None
            name = self.workflow.plan.share(self.job.label, container, per_instance=is_many)
            container = {"shared": name}
        else:
            container["user"] = "0:0"
            message = "the container runs as root: files that it makes in the workspace are root's"
            self.found.differs("container", message, node)
        for step in scripts:
            step.keys["container"] = container

    def _lock(self) -> None:
        node = self.node.get("concurrency")
        if node is None or is_nothing(node):
            return
        message = "a run waits for the lock of another one on this machine; none is cancelled"
        self.found.differs("concurrency", message, node)
        for step in self.job.made:
            if "run" in step.keys:
                step.keys["lock"] = lock_name(node)


def lock_name(node: Node) -> str:
    """Return the name of a lock for what `concurrency` says; expressions in it are left out."""
    text = text_of(node if node.kind != MAPPING else node.get("group"))
    return slug(re.sub(r"\$\{\{.*?\}\}", "", text)) or "workflow"
