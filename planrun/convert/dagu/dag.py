"""A Dagu file as a plan."""

from __future__ import annotations

import re

from planrun.convert.dagu.defaults import with_defaults
from planrun.convert.dagu.references import dag_name, mentions
from planrun.convert.dagu.steps import StepReading, hand_on, keep_streams, skips_on
from planrun.convert.dagu.subdags import Inlining
from planrun.convert.dagu.variables import Keys, Variables, check_step, commands_of, met, secrets_of, whole
from planrun.convert.draft import DraftPlan, DraftStep, step_path
from planrun.convert.reader import Reader, UntranslatableError
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from planrun.convert.reader import Findings

_KNOWN = frozenset((
    "name", "description", "group", "tags", "labels", "schedule", "params", "env", "steps", "handleron",
    "preconditions", "precondition", "timeoutsec", "delaysec", "maxactivesteps", "maxactiveruns",
    "maxcleanuptimesec", "histretentiondays", "mailon", "smtp", "errormail", "infomail", "waitmail",
    "logdir", "restartwaitsec", "skipifsuccessful", "dotenv", "type", "shell", "workingdir", "queue",
    "container", "secrets", "logoutput", "workerselector", "catchupwindow", "runconfig", "otel", "version",
    "overlappolicy", "artifacts", "consts", "maxoutputsize", "defaults", "ssh", "s3", "redis", "kubernetes", "llm",
    "harness", "harnesses", "registryauths", "shellargs", "profile", "webhook", "retrypolicy",
    "tools", "queues",
))  # fmt: skip
_NOT_KEPT = {
    "schedule": "a plan has no schedule: start it from cron, a timer or CI",
    "delaysec": "there is no wait between steps",
    "maxactiveruns": "the number of concurrent runs is not limited; see `concurrency`",
    "skipifsuccessful": "a run starts whatever became of the last one",
    "histretentiondays": "records are kept; `planrun prune` removes them",
    "logdir": "logs are in the folder of the run",
    "mailon": "no mail is sent",
    "smtp": "no mail is sent",
    "errormail": "no mail is sent",
    "infomail": "no mail is sent",
    "maxoutputsize": "an output has the limits of planrun",
    "queue": "see `planrun queue` for runs that wait for their turn",
    "workerselector": "the plan runs on this machine",
    "tools": "these programs have to be installed",
    "queues": "see `planrun queue` for runs that wait for their turn",
    "registryauths": "the registry has to know this machine: run `docker login` before",
    "retrypolicy": "a run is not repeated by itself; see `planrun resume`",
}
_HANDLERS = ("success", "failure", "cancel", "abort", "exit")


def convert_dag(
    root: Node, found: Findings, jobs: Collection[str] = (), others: Mapping[str, Node] | None = None
) -> DraftPlan:
    """Return the plan that a Dagu file becomes; a part of one cannot be chosen. `others`: its other documents."""
    if jobs:
        found.refuse(
            "shape", "--job chooses jobs of workflows and tasks; a Dagu file is converted as a whole", root
        )
    dag = Dag(root, Reader(found))
    dag.others = others or {}
    return dag.convert()


class Dag:
    """One file while it is being converted."""

    def __init__(self, root: Node, reader: Reader) -> None:
        self.reader = reader
        self.found = reader.found
        self.keys = Keys(root, "a Dagu file", reader)
        self.plan = DraftPlan()
        self.variables = Variables(self.plan, reader)
        self.references = self.variables.references
        self.references.dag_name = dag_name(self.keys.text("name"), reader.found.file)
        self.reading = StepReading(reader, self.variables, self.keys)
        self.reading.inlining = Inlining(self, self._child)
        self.named = self.references.named
        self.members: dict[str, Keys] = {}
        self.approvals: dict[str, list[DraftStep]] = {}  # questions that come after a step
        self.checks: dict[str, DraftStep] = {}
        self.beside: dict[int, int] = {}  # which group of steps that run at the same time a step belongs to
        self.others: Mapping[str, Node] = {}  # documents of the same file that steps can run
        self.depth = 0
        self.skipped: set[str] = set()  # steps that may be skipped, and skip what waits for them

    def _child(self, root: Node, found: Findings, depth: int) -> Dag:
        child = Dag(root, Reader(found))
        child.others, child.depth = self.others, depth
        return child

    def convert(self) -> DraftPlan:
        """Return the plan."""
        self.keys.refuse_unknown(_KNOWN)
        self._head()
        first = self._init()
        gate = self._check("run", self.keys)
        pending = [(self._labelled(keys), keys) for keys in self._listed()]
        for step, keys in pending:
            self._step(step, keys)
        self._edges(pending, gate)
        if first is not None:
            self._begin(first)
        self._streams()
        self._outputs()
        self._handlers()
        return self.plan

    def _head(self) -> None:
        keys, plan, found, root = self.keys, self.plan, self.found, self.keys.node
        name = " ".join(keys.text("name").split())
        if name and name.isprintable():
            plan.keys["name"] = name
        description = " ".join(keys.text("description").split())
        if description:
            plan.keys["description"] = description
        for key, difference in _NOT_KEPT.items():
            if keys.has(key):
                found.differs(key, difference, keys.place(key))
        self._defaults()
        found.differs(
            "shell",
            "commands are for `bash -e`; Dagu takes the shell of its user, and fills in `$NAME` first",
            root,
        )
        found.differs(
            "environment", "variables that look like credentials are not inherited; see `inherit_env`", root
        )
        try:
            self.variables.consts(keys.get("consts"))
            self.variables.params(keys.get("params"))
            self.variables.environment(keys.get("env"))
        except UntranslatableError as why:
            found.refuse(why.code, why.message, keys.place("env"))
        plan.keys["env"] = {**self.variables.env, **plan.keys.get("env", {})}
        files = self.reader.texts(keys.get("dotenv"), "`dotenv`")
        if files:
            plan.keys["env_file"] = files
            self.references.has_files = True
            found.differs("dotenv", "a file of variables has to be there", keys.place("dotenv"))
        self.secrets = secrets_of(keys.get("secrets"), self.reader, plan, self.variables.lines)

    def _defaults(self) -> None:
        keys = self.keys
        shell = keys.get("shell")
        words = " ".join(self.reader.texts(shell, "`shell`"))
        defaults = {"shell": words or "bash -e", "timeout": "24h"}
        self.found.differs("timeout", "a step has 24 hours; Dagu lets it run as long as it takes", keys.node)
        folder = keys.text("workingdir")
        if folder:
            defaults["workdir"] = (
                self.reading.path(folder) if "`" not in folder and "$" not in folder else "."
            )
            if defaults["workdir"] == ".":
                self.found.todo("path", f"the folder is worked out: {folder}", keys.place("workingdir"))
        self.plan.keys["defaults"] = defaults
        limits = {}
        if most := whole(keys.get("maxactivesteps")):
            limits["max_parallel"] = most
        seconds = whole(keys.get("timeoutsec"))
        plan_limits: dict[str, object] = dict(limits)
        if seconds:
            plan_limits["deadline"] = f"{seconds}s"
        if plan_limits:
            self.plan.keys["limits"] = plan_limits

    def _listed(self) -> Iterator[Keys]:
        """Yield the keys of each step; a text is a command."""
        node = self.keys.get("steps")
        if node is not None and node.kind == MAPPING:
            for name, member in node.value.items():
                yield self._named(member, name)
            return
        for at, item in enumerate(self.reader.items(node, "`steps`")):
            if item.kind != SEQUENCE:
                yield self._named(item, "")
                continue
            for each in item.value:  # these run at the same time
                keys = self._named(each, "")
                self.beside[id(keys.node)] = at
                yield keys

    def _named(self, node: Node, name: str) -> Keys:
        if node.kind == SCALAR:
            wrapped = Node(MAPPING, {"command": node}, node.line, node.col)
            wrapped.keys = {"command": node}
            node = wrapped
        if name and node.kind == MAPPING and "name" not in node.value:
            label = Node(SCALAR, name, node.line, node.col)
            named = Node(MAPPING, {**node.value, "name": label}, node.line, node.col)
            named.keys = {**node.keys, "name": label}
            node = named
        return Keys(with_defaults(node, self.keys.get("defaults"), self.reader), "a step", self.reader)

    def _labelled(self, keys: Keys) -> DraftStep:
        label = keys.text("id") or keys.text("name") or f"step-{len(self.members) + 1}"
        step = DraftStep(self.plan.name(label))
        for name in (keys.text("id"), keys.text("name")):
            if name:
                self.named.setdefault(name, step)
        title = " ".join(keys.text("name").split())
        if title and title != step.id and title.isprintable():
            step.keys["title"] = title[:200]
        self.members[step.id] = keys
        return step

    def _step(self, step: DraftStep, keys: Keys) -> None:
        try:
            self.reading.fill(step, keys)
        except UntranslatableError as why:
            step.make_abstract(
                self.found.refuse(why.code, f"{why.message} (step {step.id})", keys.node, step.id)
            )
        if self.secrets and "run" in step.keys:
            step.keys["secrets"] = [*step.keys.get("secrets", []), *self.secrets]
        if self._container() and "run" in step.keys:
            step.keys.setdefault("container", self._container())
        elif (node := self.keys.get("container")) is not None and "container" not in step.keys:
            self.reading.enter(step, self.reading.running_container(node))
        self._approval(step, keys)

    def _approval(self, step: DraftStep, keys: Keys) -> None:
        """Make the questions that come after a step; its dependents wait for them."""
        node = keys.get("approval")
        if node is None:
            return
        own = Keys(node, "`approval`", self.reader)
        own.refuse_unknown({"prompt", "input", "required", "rewindto"})
        if own.has("rewindto"):
            note = self.found.refuse("approval", "an approval that repeats earlier steps", node, step.id)
            step.notes.append(note)
        try:
            question = self.references.template(own.text("prompt")) or f"May {step.id} count as done?"
        except UntranslatableError as why:
            step.notes.append(self.found.refuse(why.code, why.message, node, step.id))
            return
        asks = [DraftStep(self.plan.name(f"{step.id}.approval"), ask={"question": question})]
        for name in self.reader.texts(own.get("input"), "`input`"):
            ask = {"question": f"{question} {name}?", "type": "string"}
            asks.append(DraftStep(self.plan.name(f"{step.id}.{name}"), ask=ask))
            self.references.hand_on(name, f"{step_path(asks[-1].id, 'outputs')}.answer")
        if len(asks) > 1:
            self.found.differs(
                "approval", "each input of an approval has to be given; none is optional", node
            )
        for before, each in zip([step, *asks], asks, strict=False):
            each.wait(before.id)
        self.approvals[step.id] = asks

    def _container(self) -> dict[str, object]:
        node = self.keys.get("container")
        if node is None or self.reading.running_container(node):
            return {}
        try:
            return self.reading.container(node)
        except UntranslatableError as why:
            self.found.refuse(why.code, why.message, node)
            return {}

    def _init(self) -> DraftStep | None:
        """Return the step of the handler that runs first."""
        node = self.keys.below("handleron").get("init")
        if node is None:
            return None
        step = DraftStep(self.plan.name("on-init"))
        self._step(step, self._named(node, ""))
        return step

    def _begin(self, first: DraftStep) -> None:
        """Let every step without dependencies wait for the handler that runs first."""
        for step in self.plan.steps:
            if not step.edges:
                step.wait(first.id)
        self.plan.steps.insert(0, first)

    def _streams(self) -> None:
        for step in self.plan.steps:
            if step.id in self.references.streams:
                try:
                    keep_streams(step, self.references.streams[step.id])
                except UntranslatableError as why:
                    place = self.members[step.id].node if step.id in self.members else self.keys.node
                    self.found.refuse(why.code, why.message, place, step.id)

    def _check(self, label: str, keys: Keys) -> DraftStep | None:
        node = keys.first("preconditions", "precondition")
        self.references.needed = {}
        try:
            commands = commands_of(node, self.references)
            lines = [*self.references.built_in("\n".join(commands)), *self.variables.lines]
        except UntranslatableError as why:
            assert node is not None  # only preconditions that are there are refused
            note = self.found.refuse(why.code, f"{why.message} ({label})", node)
            step = DraftStep(self.plan.name(f"{label}.check"))
            step.make_abstract(note)
            return self.plan.add(step)
        if not commands:
            return None
        step = check_step(self.plan.name(f"{label}.check"), commands, lines)
        if self.references.needed:
            step.keys["env"] = dict(self.references.needed)
        return self.plan.add(step)

    def _edges(self, pending: list[tuple[DraftStep, Keys]], gate: DraftStep | None) -> None:
        has_edges = any(keys.has("depends") for _, keys in pending)
        is_chain = self.keys.text("type") == "chain" or not (self.keys.has("type") or has_edges)
        if not self.keys.has("type") and len(pending) > 1:
            message = (
                "the file has `depends` and no `type`: it is taken for a graph, as older versions of Dagu did"
                if has_edges
                else "steps run one after the other: that is the default of Dagu, which has no `type` here"
            )
            self.found.differs("type", message, self.keys.node)
        before: list[DraftStep] = []
        last: list[DraftStep] = []
        group: int | None = None
        self._refuse_circles(pending)
        routed = self._routed()
        for step, keys in pending:
            waited = self._waited(keys)
            own = self.beside.get(id(keys.node))
            if own is None or own != group:
                before, last = last, []
            group = own
            if is_chain and not keys.has("depends"):
                waited = list(before)
            check = self._check(step.id, keys)
            for target in (step, check):
                if target is not None:
                    self._wait(target, waited, gate)
            if check is not None:
                step.wait(check.id, "completed")
                step.demand(met(check) if "run" in check.keys else "")
                self.checks[step.id] = check
            may_skip = (
                check is not None
                or gate is not None
                or step.id in routed
                or any(other.id in self.skipped for other in waited)
            )
            self._choose(step, routed.get(step.id, []))
            if may_skip and not skips_on(keys):
                self.skipped.add(step.id)
            self._place(step)
            last.append(step)

    def _place(self, step: DraftStep) -> None:
        """Put a step into the plan, after the steps of the sub-DAG that it runs."""
        inside = self.reading.inside.get(step.id, [])
        if inside:
            firsts = [each for each in inside if not any(other.id in each.edges for other in inside)]
            for each in firsts:
                for name, kind in step.edges.items():
                    if name not in [other.id for other in inside]:
                        each.wait(name, kind)
                each.demand(step.condition)
        self.plan.steps += inside
        self.plan.add(step)
        self.plan.steps += self.approvals.get(step.id, [])

    def _routed(self) -> dict[str, list[tuple[str, str]]]:
        """Return the steps that routers choose, by their ids."""
        found: dict[str, list[tuple[str, str]]] = {}
        for target, routes in self.reading.routes.items():
            if target in self.named:
                found.setdefault(self.named[target].id, []).extend(routes)
            else:
                self.found.refuse(
                    "shape", f'there is no step "{target}" to route to', self.keys.place("steps")
                )
        return found

    def _choose(self, step: DraftStep, routes: list[tuple[str, str]]) -> None:
        """Let a step run where one of its routes is taken."""
        for router, _ in routes:
            step.wait(router, "completed" if router in self.skipped else "ok")
        step.demand(" or ".join(f"{step_path(router, 'outputs')}.{output}" for router, output in routes))

    def _refuse_circles(self, pending: list[tuple[DraftStep, Keys]]) -> None:
        """Refuse steps that wait for each other."""
        waiting = {step.id: {other.id for other in self._waited(keys)} for step, keys in pending}
        while free := [name for name, others in waiting.items() if not others & waiting.keys()]:
            for name in free:
                del waiting[name]
        if waiting:
            self.found.refuse("shape", f"dependency cycle: {', '.join(waiting)}", self.keys.place("steps"))

    def _waited(self, keys: Keys) -> list[DraftStep]:
        found = []
        for name in self.reader.texts(keys.get("depends"), "`depends`"):
            if name in self.named:
                found.append(self.named[name])
            else:
                self.found.refuse("shape", f'there is no step "{name}" to wait for', keys.place("depends"))
        return found

    def _wait(self, step: DraftStep, waited: list[DraftStep], gate: DraftStep | None) -> None:
        if gate is not None:
            step.wait(gate.id, "completed")
            step.demand(met(gate) if "run" in gate.keys else "")
        for other in waited:
            tolerated = other.keys.get("on_failure") == "continue"
            last = self.approvals[other.id][-1] if other.id in self.approvals else other
            step.wait(last.id, "completed" if other.id in self.skipped and not tolerated else "ok")

    def _outputs(self) -> None:
        """Give every step the outputs of those that it waits for, through others too."""
        by_id = {step.id: step for step in self.plan.steps}
        for step in self.plan.steps:
            waiting, behind = list(step.edges), {}
            while waiting:
                name = waiting.pop()
                if name not in behind and name in by_id:
                    behind[name] = by_id[name]
                    waiting += by_id[name].edges
            hand_on(step, list(behind.values()), self.references.outputs)

    def _handlers(self) -> None:
        handlers = Keys(self.keys.get("handleron"), "`handlerOn`", self.reader)
        handlers.refuse_unknown({*_HANDLERS, "init", "wait"})
        self.references.is_handler = True
        for kind in _HANDLERS:
            node = handlers.get(kind)
            if node is None:
                continue
            keys = self._named(node, "")
            step = DraftStep(self.plan.name(f"on-{kind}"))
            try:
                self._check_handler(keys.node)
                self.reading.fill(step, keys)
            except UntranslatableError as why:
                step.make_abstract(
                    self.found.refuse(why.code, f"{why.message} (handler {kind})", node, step.id)
                )
            step.condition = self._ended(kind)
            if len(step.condition) > 8000:
                step.make_abstract(self.found.refuse("handler", "a handler of too many steps", node, step.id))
                step.condition = ""
            if kind == "exit":
                for other in self.plan.cleanup:
                    step.wait(other.id, "done")
            self.plan.cleanup.append(step)

    def _check_handler(self, node: Node) -> None:
        """Raise UntranslatableError for a handler that reads what steps hand on."""
        for name in self.references.outputs:
            if mentions(node, re.compile(rf"\$\{{?{re.escape(name)}\b")):
                raise UntranslatableError("reference", f"`{name}`: a handler reads no outputs of steps")

    def _ended(self, kind: str) -> str:
        """Return the condition under which a handler runs."""
        counting = [step for step in self.plan.steps if step.keys.get("on_failure") != "continue"]
        statuses = [step_path(step.id, "status") for step in counting]
        if kind == "failure":
            return " or ".join(f"{status} == 'failed'" for status in statuses)
        if kind in ("cancel", "abort"):
            return " or ".join(f"{status} == 'cancelled'" for status in statuses)
        if kind == "success":
            return " and ".join(f"{status} in ['completed', 'skipped']" for status in statuses)
        return ""
