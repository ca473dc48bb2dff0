"""One job of a GitHub workflow: a chain of steps in the workspace that all jobs share.

`container` gives its steps an image, and `services` become steps that run beside them.
"""

from __future__ import annotations

import re

from planrun.convert.draft import ACTIONS, DraftStep, slug, source_text, step_path
from planrun.convert.github.calls import adopt, call_workflow, link, merge_scripts
from planrun.convert.github.facts import Job
from planrun.convert.github.grammar import NotAnExpressionError
from planrun.convert.github.matrix import (
    is_other,
    known_truth,
    machine_text,
    matrix_of,
    of_row,
    texts_of,
)
from planrun.convert.github.names import PlaceNames, declare_outputs
from planrun.convert.github.steps import StepMaking, note_exports
from planrun.convert.github.texts import (
    HAND_ON,
    HAND_ON_KEPT,
    HANDED_OUTPUTS,
    HANDED_READ,
    Condition,
    Variables,
    condition,
    is_shell,
    starts_server,
    template,
)
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.convert.github.facts import Workflow
    from planrun.convert.github.names import PlaceNames
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


def container_of(workflow: Workflow, node: Node, names: PlaceNames) -> dict[str, Any] | None:
    """Return the container that `container:` or an entry of `services:` describes; raises UntranslatableError."""
    if node.kind != MAPPING:
        image = text_of(node)
        return {"image": template(image, names)} if image else None
    image = text_of(node.get("image"))
    if not image:
        workflow.found.refuse("shape", "a container has an image", node)
        return None
    found: dict[str, Any] = {"image": template(image, names)}
    variables = Variables()
    variables.read(workflow.reader.mapping(node.get("env"), "`env`"), names)
    if variables.lines or variables.secrets:
        raise UntranslatableError("secret", "a secret in the environment of a container")
    if variables.env:
        found["env"] = variables.env
    volumes = [template(text, names) for text in workflow.reader.texts(node.get("volumes"), "`volumes`")]
    if volumes:
        found["volumes"] = volumes
    return found


def told_of(workflow: Workflow, node: Node, what: str) -> list[str]:
    """Return comments on what of a container is left to a person."""
    notes = []
    for key in _LEFT:
        value = node.get(key)
        if value is None:
            continue
        texts = workflow.reader.texts(value, f"`{key}`") if value.kind != MAPPING else list(value.value)
        message = f"{what} has `{key}: {' '.join(' '.join(texts).split())}`, for which a plan has no key"
        notes.append(workflow.found.todo("container", message, node.key(key)))
    return notes


def services_of(workflow: Workflow, job: Job, names: PlaceNames) -> list[DraftStep]:
    """Return a step for each service of a job."""
    found = []
    service_nodes = workflow.reader.mapping(job.node.get("services"), "`services`")
    if service_nodes and job.matrix is not None:
        message = f"all instances of {job.name} use the same services at the same time; see `lock:` of steps"
        workflow.found.differs("shared-services", message, job.node.key("services"))
    for name, node in service_nodes.items():
        step = DraftStep(workflow.plan.name(f"{job.label}.{slug(name) or 'service'}"))
        found.append(step)
        try:
            _fill(workflow, step, node, names)
        except UntranslatableError as why:
            step.leave(workflow.found, why.code, why.message, node)
    return found


def _fill(workflow: Workflow, step: DraftStep, node: Node, names: PlaceNames) -> None:
    container = container_of(workflow, node, names)
    if container is None:
        step.make_abstract(workflow.found.todo("service", "a service without an image", node, step.id))
        return
    step.keys.update(service=True, container=container)
    step.notes += told_of(workflow, node, f"the service {step.id}")
    image = re.sub(r"[:@].*", "", container["image"]).rpartition("/")[2]
    command = _COMMANDS.get(image)
    if command is None:
        note = workflow.found.todo(
            "service", f"say what {container['image']} starts, by `exec:`", node, step.id
        )
        step.keys = {"title": step.id, "notes": f"service: image {container['image']}"}
        step.notes.append(note)
        return
    step.keys["exec"] = command
    health = re.search(r"--health-cmd[= ](?:\"([^\"]*)\"|'([^']*)'|(\S+))", text_of(node.get("options")))
    if health:
        step.notes.append(f"todo: its health check was: {' '.join(filter(None, health.groups()))}")
    message = f"say how {step.id} tells that it is ready, by `ready: {{run: …}}`"
    step.notes.append(workflow.found.todo("service", message, node, step.id))


_KNOWN = frozenset((
    "concurrency", "container", "continue-on-error", "defaults", "env", "environment", "if", "name", "needs", "outputs",
    "permissions", "runs-on", "secrets", "services", "snapshot", "steps", "strategy", "timeout-minutes", "uses", "with",
))  # fmt: skip


class JobConversion:
    """Converts one job, whose needed jobs are converted already."""

    def __init__(self, workflow: Workflow, job: Job) -> None:
        self.workflow = workflow
        self.found = workflow.found
        self.reader = workflow.reader
        self.job = job
        self.node = job.node
        self.notes: list[str] = []
        self.is_elsewhere = False  # whether no instance of its matrix is for this system

    def run(self) -> None:
        """Put the steps of the job into the plan."""
        before = self.found.unresolved
        self._run()
        if self.node.get("strategy") is None:
            return
        origin = (self.found.file, self.job.name)
        for step in self.job.made:
            step.origin = origin
        if self.found.unresolved > before:
            self.workflow.troubled.add(origin)

    def _run(self) -> None:
        job, node = self.job, self.node
        list(self.reader.unknown(self.reader.mapping(node, "a job"), _KNOWN, node, f"the job {job.name}"))
        job.env = self.reader.mapping(node.get("env"), "`env`")
        job.outputs = self.reader.mapping(node.get("outputs"), "`outputs`")
        names = PlaceNames(self.workflow, job, node, (self.workflow.env,))
        names.step_level = False
        own, note = self._condition(names)
        if node.get("uses") is not None:
            self._with_workflow(own, names)
            return
        self._defaults()
        elsewhere = self._machine()
        if elsewhere:
            self._given_up(own, elsewhere)
            return
        self._told()
        refusal = self._matrix(names)
        if self.is_elsewhere:
            self._given_up(own, refusal)
            return
        if refusal or note:
            self._given_up(own, refusal or note)
            return
        if job.matrix is not None and job.matrix.is_unfolded:
            self._unfold()
            return
        self._tolerated()
        job.is_contained = self._is_contained()
        job.is_whole = job.matrix is not None
        made = StepMaking(self.workflow, job)
        for position, item in enumerate(self.reader.items(node.get("steps"), "`steps`"), 1):
            for step in made.make(item, position):
                job.made.append(step)
                note_exports(self.workflow, job, step)
        self._finish(names, own, left=made.actions.comments)

    def _finish(self, names: PlaceNames, own: Condition, left: list[str]) -> None:
        job = self.job
        self._merge()
        if job.matrix is not None:
            self._instances()
        self._only_one()
        services = services_of(self.workflow, job, names)
        self._contain(names)
        self._lock()
        if job.made:
            job.made[0].notes = [*self.notes, *job.made[0].notes]
            job.made[-1].notes += left
        elif is_nothing(self.node.get("steps")):
            self.found.refuse("shape", f"the job {job.name} has no steps", self.node)
        link(self.workflow, job, own, services)
        self._chain_instances()
        self._label([*job.made, *services])
        at = 1 if job.anchor_gate else 0
        self.workflow.plan.steps += [*job.made[:at], *services, *job.made[at:]]

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

    def _condition(self, names: PlaceNames) -> tuple[Condition, str]:
        node = self.node.get("if")
        try:
            return condition(node, names), ""
        except UntranslatableError as why:
            assert node is not None  # only an `if` that is there is refused
            return Condition(), self._left(why.code, f"{why.message} (job {self.job.name})", node)

    def _with_workflow(self, own: Condition, names: PlaceNames) -> None:
        """Put in a workflow of this repository; another one is refused, and, accepted, a step to be written."""
        uses = self.node.key("uses")
        refusal = self._matrix(names)
        try:
            if not refusal and call_workflow(self.workflow, self.job, own, names):
                self.found.differs(
                    "workflow-call",
                    "the jobs of a called workflow are steps of the same plan, and see its `env`, too",
                    uses,
                )
                return
        except UntranslatableError as why:
            self._left(why.code, why.message, uses)
        self.job.matrix = self.job.row = None
        message = (
            f"the job {self.job.name} is the workflow {text_of(self.node.get('uses'))}; convert that one, too"
        )
        self._given_up(own, self._left("workflow-call", message, uses))

    def _left(self, code: str, message: str, node: Node) -> str:
        """Leave the whole job to a person or a model; returns the comment."""
        return self.found.todo(code, message, node, self.job.name)

    def _given_up(self, own: Condition, note: str) -> None:
        """Put one step without an action in the place of the job."""
        step = DraftStep(self.workflow.plan.name(self.job.label))
        step.node = self.node
        step.make_abstract(note)
        step.keys["description"] = source_text(self.found.file, self.node)
        self.job.made.append(step)
        if known_truth(self.node.get("continue-on-error"), self.job, self.workflow):
            step.keys["on_failure"] = "skip"
        self.job.plain.add(step.id)
        if "matrix." in own.text:
            own.text = ""
        link(self.workflow, self.job, own, [])
        self.workflow.plan.steps += self.job.made

    def _defaults(self) -> None:
        run = self.reader.mapping(
            self.reader.mapping(self.node.get("defaults"), "`defaults`").get("run"), "`run`"
        )
        self.job.shell = text_of(run.get("shell"))
        self.job.usual_shell = self.workflow.usual_shell
        self.job.folder = run.get("working-directory")

    def _machine(self) -> str:
        """Look at the machine that the job asks for; returns a comment when it is another one."""
        node = self.node.get("runs-on")
        if node is None:
            return ""
        text = machine_text(node)
        self.found.differs(
            "runs-on", "`runs-on` chooses no machine: the plan runs where planrun is started", node
        )
        if re.search(r"\$\{\{[^}]*\bmatrix\b", text):
            return ""  # the instances for another system are left out
        options = texts_of(text, self.workflow.known)
        other = [each for each in options or () if is_other(each, self.workflow)]
        if options is None:
            self.notes.append(
                self.found.todo("runs-on", f"the machine of {self.job.name} was worked out: {text}", node)
            )
        elif other:
            doubt = "" if len(other) == len(options) else "may be "
            return self._left("runs-on", f"the job {self.job.name} {doubt or 'is '}for {other[0]}", node)
        return ""

    def _told(self) -> None:
        """Report the keys of a job that a plan does not have."""
        for key, message in (
            ("permissions", "there is no token whose permissions could be set"),
            ("snapshot", "no image of the machine is kept"),
        ):
            if self.node.get(key) is not None:
                self.found.differs(key, message, self.node.key(key))
        environment = self.node.get("environment")
        if environment is not None and not is_nothing(environment):
            name = text_of(environment) or text_of(environment.get("name"))
            self.job.environment = name
            message = f"the environment {name} of {self.job.name} is a question before it; its secrets are the plan's"
            self.found.differs("environment", message, self.node.key("environment"))
        limit = self.node.get("timeout-minutes")
        if limit is not None:
            self.found.differs(
                "job-timeout", "the time of a job is that of each of its steps, not of all together", limit
            )

    def _tolerated(self) -> None:
        """Report a job whose failure does not count."""
        node = self.node.get("continue-on-error")
        tolerant = known_truth(node, self.job, self.workflow)
        if tolerant:
            self.job.is_tolerant = True
            message = (
                "a job that may fail: what is left of it is skipped when it does, and the run is partial"
            )
            self.found.differs("continue-on-error", message, self.node.key("continue-on-error"))
        elif tolerant is None:
            message = f"whether a failure of {self.job.name} counts is worked out there; here it counts"
            self.notes.append(
                self.found.todo("continue-on-error", message, self.node.key("continue-on-error"))
            )

    def _matrix(self, names: PlaceNames) -> str:
        """Read the matrix; returns a comment when it is refused."""
        strategy = self.node.get("strategy")
        if strategy is None or is_nothing(strategy) or self.job.row is not None:
            return ""
        self.reader.mapping(strategy, "`strategy`")
        try:
            self.job.matrix = matrix_of(self.workflow, self.job, strategy, names)
        except UntranslatableError as why:
            self.is_elsewhere = why.code == "runs-on"
            return self._left(why.code, f"{why.message} (matrix of {self.job.name})", strategy)
        except NotAnExpressionError as error:
            return self._left(
                "expression", f"not an expression: {error} (matrix of {self.job.name})", strategy
            )
        return ""

    def _unfold(self) -> None:
        """Convert each instance of the matrix by itself: its steps have its values in place of names."""
        job = self.job
        assert job.matrix is not None  # asked before
        rows, job.matrix = job.matrix.instances, None
        if truth_of(self.node.value["strategy"].get("fail-fast")) is not False:
            message = f"the instances of {job.name} are steps of their own: all run, whichever fails"
            self.found.differs("fail-fast", message, self.node.key("strategy"))
        names = set()
        is_alone = text_of(self.node.value["strategy"].get("max-parallel")) == "1"
        for at, row in enumerate(rows):
            each = Job(job.name, job.node)
            shown = slug(" ".join(str(value) for value in row.values() if not isinstance(value, list)))
            each.label = f"{job.label}.{shown if shown and shown not in names else at + 1}"
            names.add(shown)
            each.row, each.row_at, each.needs, each.is_open = row, at, job.needs, True
            JobConversion(self.workflow, each).run()
            each.is_converted = True
            if is_alone and job.instances and each.made:
                for tip in job.instances[-1].tips:
                    each.made[0].wait(tip.id, "done")
            job.instances.append(each)
        adopt(job, job.instances)
        job.anchor = next((each.anchor for each in job.instances if each.anchor), "")

    def _instances(self) -> None:
        """Give the matrix to the steps that it concerns."""
        assert self.job.matrix is not None  # asked before
        working = [step for step in self.job.made if "validate" not in step.keys]
        for step in working:
            if "run" in step.keys:
                step.keys["matrix"] = self.job.matrix.keys
        for step in self.job.made:
            if "matrix." in step.condition and not set(ACTIONS).isdisjoint(step.keys):
                step.keys["matrix"] = self.job.matrix.keys
            elif "matrix." in step.condition:  # what is still to be written has no instances
                step.notes.append(f"todo: its condition was: {step.condition}")
                step.condition = ""

    def _chain_instances(self) -> None:
        """Let each instance of a step wait for the instance of the same name of the steps before it."""
        single = [step for step in self.job.made if "matrix" in step.keys]
        for at, step in enumerate(single):
            texts = [step.condition, *(str(step.keys.get(key, "")) for key in ("run", "env", "workdir"))]
            for other in single[:at]:
                if any(step_path(other.id, "") in text for text in texts):
                    step.edges.setdefault(other.id, "done")
                if other.id in step.edges:
                    step.edges[other.id] = {"instance": step.edges[other.id]}
        ids = [step.id for step in self.job.made if "validate" not in step.keys]
        if single and len(single) < len(ids) and ids[0] == single[0].id != ids[-1]:
            message = (
                f"a step of {self.job.name} has no instances: all instances of the step before it end first"
            )
            self.found.differs("matrix-chain", message, self.node.key("strategy"))

    def _only_one(self) -> None:
        """Give the only step of a job the name of the job."""
        if len(self.job.made) != 1 or self.job.outputs:
            return
        (step,) = self.job.made
        old = step.id
        self.workflow.plan.give_back(old)
        step.id = self.workflow.plan.name(self.job.label)
        if step.keys.get("title") == old:
            step.keys["title"] = step.id
        for group in (self.job.plain, self.job.tolerated, self.job.asking):
            if old in group:
                group.remove(old)
                group.add(step.id)

    def _merge(self) -> None:
        """Join scripts that only do the same in one process, and report those for which that is not possible."""
        made = self.job.made
        servers = [at for at, step in enumerate(made[:-1]) if starts_server(str(step.keys.get("run", "")))]
        handing = [at for at, step in enumerate(made) if step.hands_on or step.sets_path]
        server = made[servers[0]] if servers else None
        if self.job.is_whole:
            merge_scripts(self.job)
        elif servers or handing:
            merge_scripts(self.job, min([*servers, *handing]))
        made = self.job.made
        for at, step in enumerate(made):
            if server is not None and server.id in step.parts:
                self._served(server, step, is_last=not any("run" in each.keys for each in made[at + 1 :]))
        for at, step in enumerate(made):
            # What publishes (the only steps that name a risk) brings its own program.
            later = next(
                (each for each in made[at + 1 :] if "run" in each.keys and "risk" not in each.keys), None
            )
            if later is not None and step.sets_path and not step.hands_on and not self.job.is_contained:
                _pass_path(step, made[at + 1 :])
            elif later and "run" in step.keys and step.hands_on and self._can_read(made[at + 1 :]):
                _pass_on(step, made[at + 1 :])
            elif later is not None and (step.hands_on or step.sets_path):
                message = f"{later.id} is another step, and does not see the variables and the PATH that {step.id} sets"
                later.leave(self.found, "github-env", message, later.node or self.node)

    def _can_read(self, later: list[DraftStep]) -> bool:
        """Say whether all later scripts are for shells, which can be given variables first."""
        scripts = [step for step in later if "run" in step.keys]
        return all(is_shell(str(step.keys.get("shell", self.job.usual_shell))) for step in scripts)

    def _served(self, server: DraftStep, step: DraftStep, *, is_last: bool) -> None:
        """Report a server that a script leaves in the background; `step` runs that script."""
        node = server.node or self.node
        message = "it seems to start a server in the background, which ends with its step"
        if is_last:
            self.found.differs("background", f"{message}: all later scripts are in the same step", node)
        else:
            step.notes.append(
                self.found.todo(
                    "background", f"{message}; make it a step with `service: true`", node, step.id
                )
            )

    def _is_contained(self) -> bool:
        """Say whether the job runs in a container; an image that is empty means none."""
        node = self.node.get("container")
        if node is None or is_nothing(node):
            return False
        image = text_of(node.get("image") if node.kind == MAPPING else node)
        if self.job.matrix is None or not self.job.matrix.instances:
            return texts_of(image, {**self.workflow.known, **of_row(self.job.row or {})}) != {""}
        options = [texts_of(image, of_row(row)) for row in self.job.matrix.instances]
        empty = [each == {""} for each in options]
        self.job.is_mixed = any(empty) and not all(empty)
        if self.job.is_mixed:
            message = (
                f"only some instances of {self.job.name} run in a container; all get the shell of the others"
            )
            self.found.differs("container", message, node)
        return not all(empty)

    def _contain(self, names: PlaceNames) -> None:
        node = self.node.get("container")
        if node is None or not self.job.is_contained:
            return
        scripts = [step for step in self.job.made if "run" in step.keys]
        note = ""
        container: dict[str, Any] = {}
        try:
            container = container_of(self.workflow, node, names) or container
        except UntranslatableError as why:
            note = self._left(why.code, why.message, node)
        if self.job.is_mixed and len(scripts) > 1:
            message = (
                f"the {len(scripts)} scripts of {self.job.name} share a container in some instances only"
            )
            note = self._left("container", message, node)
        if note:
            for step in scripts:
                step.make_abstract(note)
                step.keys["description"] = source_text(self.found.file, step.node or self.node)
            return
        self.notes += told_of(self.workflow, node, "the container")
        if len(scripts) > 1:
            name = self.workflow.plan.share(
                self.job.label, container, per_instance=self.job.matrix is not None
            )
            container = {"shared": name}
        else:
            container["user"] = "0:0"
            self.found.differs(
                "container",
                "the container runs as root: files that it makes in the workspace are root's",
                node,
            )
        for step in scripts:
            step.keys["container"] = container

    def _lock(self) -> None:
        node = self.node.get("concurrency")
        if node is None or is_nothing(node):
            return
        name = lock_name(node)
        self.found.differs(
            "concurrency", "a run waits for the lock of another one on this machine; none is cancelled", node
        )
        for step in self.job.made:
            if "run" in step.keys:
                step.keys["lock"] = name


def _pass_on(step: DraftStep, later: list[DraftStep]) -> None:
    """Hand variables and folders of the PATH that a script sets on to later steps, by outputs of the same instance."""
    step.prelude = [HAND_ON_KEPT if line == HAND_ON else line for line in step.prelude]
    step.keys["run"] = f"{step.keys['run'].rstrip(chr(10))}\n{HANDED_OUTPUTS}"
    declare_outputs(step, ["github_env", "github_path"])
    files = {name: f"${{{{ step.dir }}}}/{name.lower()}" for name in ("GITHUB_ENV", "GITHUB_PATH")}
    for each in later:
        if "run" not in each.keys:
            continue
        given = {
            f"HANDED_{name}": f"${{{{ default({step_path(step.id, 'outputs')}.github_{name.lower()}, '') }}}}"
            for name in ("ENV", "PATH")
        }
        each.keys["env"] = {**files, **given, **each.keys.get("env", {})}
        known = HAND_ON in each.prelude or HAND_ON_KEPT in each.prelude
        each.prelude += [*([] if known else [HAND_ON]), HANDED_READ]


def _pass_path(step: DraftStep, later: list[DraftStep]) -> None:
    """Hand the virtual environment of a step on to later steps, by an output of the same instance."""
    step.keys["run"] = (
        f'{step.keys["run"].rstrip(chr(10))}\necho "github_path=$VENV/bin:" >> "$PLANRUN_OUTPUT"\n'
    )
    declare_outputs(step, ["github_path"])
    value = f"${{{{ default({step_path(step.id, 'outputs')}.github_path, '') ~ env.PATH }}}}"
    for each in later:
        if "run" in each.keys:
            each.keys["env"] = {"PATH": value, **each.keys.get("env", {})}


def lock_name(node: Node) -> str:
    """Return the name of a lock for what `concurrency` says; expressions in it are left out."""
    text = text_of(node if node.kind != MAPPING else node.get("group"))
    return slug(re.sub(r"\$\{\{.*?\}\}", "", text)) or "workflow"
