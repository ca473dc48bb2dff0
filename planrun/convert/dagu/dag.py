"""A Dagu file as a plan: steps, their order, preconditions, and handlers."""

from __future__ import annotations

import os
import re
import shlex
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from planrun.convert.dagu.steps import StepReading
from planrun.convert.dagu.values import Keys, Variables, pairs_of, whole
from planrun.convert.draft import DraftPlan, DraftStep, step_path
from planrun.convert.reader import Findings, Reader, UntranslatableError, text_of
from planrun.convert.recipes.scripts import env_files, shell_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

_KNOWN = frozenset((
    "name", "description", "group", "tags", "labels", "params", "env", "steps", "handleron", "preconditions",
    "precondition", "timeoutsec", "maxactivesteps", "dotenv", "type", "shell", "shellargs", "workingdir", "container",
    "secrets", "consts", "version", "artifacts", "catchupwindow", "otel", "runconfig", "overlappolicy",
    "maxcleanuptimesec", "logoutput", "restartwaitsec", "ssh", "s3", "redis", "llm", "harness", "harnesses",
    "kubernetes", "smtp", "webhook", "profile", "waitmail", "actions", "steptypes",
))  # fmt: skip
_NOT_KEPT = {
    "schedule": "a plan has no schedule: start it from cron, a timer or CI",
    "delaysec": "there is no wait between steps",
    "maxactiveruns": "the number of concurrent runs is not limited; see `concurrency`",
    "skipifsuccessful": "a run starts whatever became of the last one",
    "histretentiondays": "records are kept; `planrun prune` removes them",
    "logdir": "logs are in the folder of the run",
    "mailon": "no mail is sent", "errormail": "no mail is sent", "infomail": "no mail is sent",
    "maxoutputsize": "an output has the limits of planrun",
    "queue": "see `planrun queue` for runs that wait for their turn",
    "queues": "see `planrun queue` for runs that wait for their turn",
    "workerselector": "the plan runs on this machine",
    "tools": "these programs have to be installed",
    "registryauths": "the registry has to know this machine: run `docker login` before",
    "retrypolicy": "a run is not repeated by itself; see `planrun resume`",
}  # fmt: skip
_HANDLERS = ("success", "failure", "cancel", "abort", "exit")
_BREAK = re.compile(rb"^---[ \t]*(?:#.*)?$", re.MULTILINE)
MAX_CONDITION = 8000  # characters


def first_document(data: bytes, found: Findings) -> bytes:
    """Return the document of a Dagu file that runs; the others, which its steps may call, are reported."""
    ends = [0, *(match.end() for match in _BREAK.finditer(data)), len(data)]
    filled = [
        (start, end) for start, end in pairwise(ends)
        if re.search(rb"^[^\s#-]", data[start:end], re.MULTILINE)
    ]  # fmt: skip
    if len(filled) < 2:
        return data
    (start, end), (later, _) = filled[:2]
    message = "the DAGs behind the first one are left out; a step that calls one has no action"
    found.todo("documents", message, Node(SCALAR, "", data.count(b"\n", 0, later) + 1, 1))
    return b"\n" * data.count(b"\n", 0, start) + _BREAK.sub(b"", data[start:end])


def convert_dag(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Dagu file becomes; a part of one cannot be chosen."""
    if jobs:
        message = "--job chooses jobs of workflows and tasks; a Dagu file is converted as a whole"
        found.refuse("shape", message, root)
    dag = Dag(root, Reader(found))
    dag.convert()
    return dag.plan


class Dag:
    """One DAG while it is being converted."""

    def __init__(self, root: Node, reader: Reader) -> None:
        self.reader, self.found, self.plan = reader, reader.found, DraftPlan()
        self.keys = Keys(root, "a Dagu file", reader)
        self.variables = Variables(self.plan, reader)
        self.reading = StepReading(reader, self.variables)
        self.named: dict[str, DraftStep] = {}
        self.missing: dict[str, str] = {}  # by a step's id: what it waits for and is not there
        self.last: dict[str, str] = {}  # by a step's id: the step that its dependents wait for
        self.skippable: set[str] = set()  # steps that may be skipped, and skip what waits for them
        self.handed: list[tuple[DraftStep, str]] = []  # variables that steps hand on
        self.begin: dict[str, str] = {}  # edges of the steps that wait for no other
        self.met: list[str] = []  # what the preconditions of the whole DAG say
        self.unsure = ""  # why no step is certain
        self.name = ""
        self.common: dict[str, Any] = {}  # keys of all steps

    def convert(self) -> None:
        """Emit the steps."""
        self._head()
        handlers = Keys(self.keys.get("handleron"), "`handlerOn`", self.reader)
        if (node := handlers.get("init")) is not None:
            self.begin = {self._handler("on-init", node).id: "ok"}
        self._gate()
        steps = [(self._labelled(keys), keys, group) for keys, group in self._listed()]
        waited = self._order(steps)
        for step, keys, _ in steps:
            self._emit(step, keys, waited[step.id])
        self._handlers(handlers)

    def _head(self) -> None:
        keys, found, plan = self.keys, self.found, self.plan
        for name in keys.unknown({*_KNOWN, *_NOT_KEPT}):
            self._doubt(f"`{name}`", keys.node.key(name))
        for key, difference in _NOT_KEPT.items():
            if keys.get(key) is not None:
                found.differs(key, difference, keys.place(key))
        if (kind := keys.text("type")) not in ("", "graph", "chain"):
            self._doubt(f"`type: {kind}`", keys.place("type"))
        self.name = keys.text("name") or os.path.splitext(os.path.basename(found.file))[0]
        defaults = {"shell": "bash -e", "timeout": "24h"}
        try:
            words = [
                word for each in self.reader.texts(keys.get("shell"), "`shell`") for word in each.split()
            ]
            words += self.reader.texts(keys.get("shellargs"), "`shell_args`")
            if words:
                shell, self.reading.strict = shell_of(words)
                defaults["shell"] = shlex.join(shell)
            for name, value in pairs_of(keys.get("consts"), "`consts`", self.reader):
                if value.kind == SCALAR and "$" not in text_of(value):
                    self.variables.consts[f"consts.{name}"] = text_of(value)
            self.variables.params(keys.get("params"))
            self.variables.env["DAG_NAME"] = self.name
            self.variables.env |= self.variables.environment(keys.get("env"))
            if folder := keys.text("workingdir"):
                defaults["workdir"] = self.reading.folder(folder)
            if (container := keys.get("container")) is not None:
                self.common["container"] = self.reading.container(container)
            files = env_files(found, self.reader.texts(keys.get("dotenv"), "`dotenv`"), keys.place("dotenv"))
            plan.keys |= {"env_file": files} if files else {}
        except (UntranslatableError, ValueError) as why:
            self._doubt(getattr(why, "message", "quotes that are not closed"), keys.node)
        if secrets := self.variables.secrets(keys.get("secrets")):
            self.common["secrets"] = secrets
        texts = {name: " ".join(keys.text(name).split()) for name in ("name", "description")}
        limits: dict[str, Any] = {}
        if most := whole(keys.get("maxactivesteps")):
            limits["max_parallel"] = most
        if seconds := whole(keys.get("timeoutsec")):
            limits["deadline"] = f"{seconds}s"
        env = {key: value for key, value in self.variables.env.items() if key != "DAG_NAME"}
        plan.keys |= {name: text for name, text in texts.items() if text and text.isprintable()}
        plan.keys |= {
            "defaults": defaults,
            **({"limits": limits} if limits else {}),
            **({"env": env} if env else {}),
        }
        found.differs("shell", "commands are for `bash -e`; Dagu takes the shell of its user", keys.node)

    def _doubt(self, why: str, place: Node) -> None:
        self.unsure = self.unsure or why
        self.found.todo("dag", f"it makes all steps uncertain: {why}", place)

    def _listed(self) -> Iterator[tuple[Keys, int]]:
        """Yield the keys of each step, with the number of its group: those of one run at the same time."""
        node = self.keys.get("steps")
        if node is not None and node.kind == MAPPING:
            for at, (name, member) in enumerate(node.value.items()):
                yield self._step_keys(member, name), at
            return
        for at, item in enumerate(self.reader.items(node, "`steps`")):
            for each in item.value if item.kind == SEQUENCE else [item]:
                yield self._step_keys(each), at

    def _step_keys(self, node: Node, name: str = "") -> Keys:
        if node.kind == SCALAR:
            text, node = node, Node(MAPPING, {"run": node}, node.line, node.col)
            node.keys = {"run": text}
        if name and node.kind == MAPPING and "name" not in node.value:
            label = Node(SCALAR, name, node.line, node.col)
            named = Node(MAPPING, {**node.value, "name": label}, node.line, node.col)
            named.keys = {**node.keys, "name": label}
            node = named
        return Keys(node, "a step", self.reader)

    def _labelled(self, keys: Keys) -> DraftStep:
        step = DraftStep(self.plan.name(keys.text("id", "name") or f"step-{len(self.named) + 1}"))
        step.node = keys.node
        title = " ".join(keys.text("name").split())
        if title and title != step.id and title.isprintable():
            step.keys["title"] = title[:200]
        for name in dict.fromkeys(each for each in (keys.text("id"), keys.text("name"), step.id) if each):
            self.named.setdefault(name, step)
        return step

    def _order(self, steps: list[tuple[DraftStep, Keys, int]]) -> dict[str, list[DraftStep]]:
        """Return the steps that each one waits for; raises UntranslatableError for a circle."""
        kind = self.keys.text("type")
        has_edges = any(keys.get("depends") is not None for _, keys, _ in steps)
        is_chain = kind == "chain" or (not kind and not has_edges)
        if is_chain and not kind and len(steps) > 1:
            message = ("steps run one after the other, as in older versions of Dagu; current ones run those without "
                       "`depends` at the same time: remove `depends_on` where that is meant")  # fmt: skip
            self.found.differs("type", message, self.keys.node)
        found: dict[str, list[DraftStep]] = {}
        group = -1
        before: list[DraftStep] = []
        last: list[DraftStep] = []
        for step, keys, number in steps:
            if number != group:
                group, before, last = number, last, []
            last.append(step)
            found[step.id] = list(before) if is_chain and keys.get("depends") is None else []
            for name in self.reader.texts(keys.get("depends"), "`depends`"):
                if name in self.named:
                    found[step.id].append(self.named[name])
                else:
                    self.missing[step.id] = name
        try:
            TopologicalSorter(
                {name: [each.id for each in others] for name, others in found.items()}
            ).prepare()
        except CycleError as circle:
            raise UntranslatableError("shape", f"dependency cycle: {', '.join(circle.args[1])}") from None
        return found

    def _gate(self) -> None:
        """Emit the step that checks the preconditions of the whole DAG."""
        node = self.keys.get("preconditions", "precondition")
        if node is None:
            return
        gate = DraftStep(self.plan.name("preconditions"))
        gate.edges = dict(self.begin)
        try:
            gate.keys = self.reading.check(gate.id, node, ()).keys
            gate.keys |= {key: value for key, value in self.common.items() if key != "container"}
            self.met = [f"{step_path(gate.id, 'outputs')}.met"]
        except UntranslatableError as why:
            self._leave(gate, self.keys, why)
        self.begin = {self.plan.add(gate).id: "completed" if self.met else "ok"}

    def _behind(self, names: list[str]) -> list[str]:
        """Return steps with those that they wait for, the nearest first."""
        by_id = {step.id: step for step in self.plan.steps}
        found: list[str] = []
        for name in (waiting := list(names)):
            if name not in found and name in by_id:
                found.append(name)
                waiting += by_id[name].edges
        return found

    def _emit(self, step: DraftStep, keys: Keys, waited: list[DraftStep]) -> None:
        edges: dict[str, str] = {} if waited and not self.met else dict(self.begin)
        conditions = list(self.met)
        for other in waited:
            tolerated = other.keys.get("on_failure") == "continue"
            may_skip = other.id in self.skippable
            conditions += [f"{step_path(other.id, 'status')} != 'skipped'"] if may_skip and tolerated else []
            edges[self.last.get(other.id, other.id)] = "completed" if may_skip and not tolerated else "ok"
        if conditions or any(other.id in self.skippable for other in waited):
            self.skippable.add(step.id)
        before = self._behind(list(edges))
        try:
            if (node := keys.get("preconditions", "precondition")) is not None:
                self.skippable.add(step.id)
                check = self.reading.check(f"{step.id}.check", node, before)
                check.id = self.plan.name(check.id)
                check.edges, check.condition = dict(edges), " and ".join(conditions)
                self._share(check, before)
                edges[self.plan.add(check).id] = "completed"
                conditions.append(f"{step_path(check.id, 'outputs')}.met")
            if "skipped" in self.reading.continues(keys.get("continueon")):
                self.skippable.discard(step.id)
            if self.unsure or step.id in self.missing:
                missing = f'there is no step "{self.missing.get(step.id)}" to wait for'
                raise UntranslatableError("dag", self.unsure or missing)
            if keys.text("action") == "human.task":
                self._ask(step, Keys(keys.get("with"), "`with`", self.reader))
            else:
                self.reading.fill(step, keys, before)
            self._share(step, before)
        except (UntranslatableError, ValueError) as why:
            self._leave(step, keys, why)
        step.edges, step.condition = edges, " and ".join(conditions)
        self.last[step.id] = self.plan.add(step).id
        for output in step.keys.get("outputs", {}):
            for name in (keys.text("id"), keys.text("name")):
                self.variables.producers[name, output] = step
        if (text := keys.text("output")) and "run" in step.keys:
            self.handed.append((step, text.removeprefix("$").strip("{}")))
        if (node := keys.get("approval")) is not None:
            ask = DraftStep(self.plan.name(f"{step.id}.approval"))
            try:
                self._ask(ask, Keys(node, "`approval`", self.reader), f"May {step.id} count as done?")
            except UntranslatableError as why:
                self._leave(ask, keys, why)
            ask.wait(step.id, "completed" if step.id in self.skippable else "ok")
            self.last[step.id] = self.plan.add(ask).id

    def _share(self, step: DraftStep, before: list[str]) -> None:
        """Give a step what all steps have, and the variables that those before it hand on."""
        if "run" not in step.keys:
            return
        for key, value in self.common.items():
            step.keys.setdefault(key, value)
        for name in dict.fromkeys(name for _, name in self.handed):
            givers = [each.id for each, other in self.handed if other == name and each.id in before]
            if givers and name not in step.keys.get("env", {}):
                nearest = min(givers, key=before.index)
                value = f"${{{{ default({step_path(nearest, 'outputs')}.{name}, '') }}}}"
                step.keys.setdefault("env", {})[name] = value
        if "DAG_NAME" in str(step.keys["run"]):
            step.keys.setdefault("env", {}).setdefault("DAG_NAME", self.name)

    def _ask(self, step: DraftStep, keys: Keys, question: str = "") -> None:
        """Make a question of a step; raises UntranslatableError where it asks for values."""
        text = self.variables.template(keys.text("prompt")) or question
        if keys.unknown(("prompt",)) or not text.strip():
            raise UntranslatableError("approval", "a question that asks for values")
        step.keys["ask"] = {"question": " ".join(text.split())}

    def _leave(self, step: DraftStep, keys: Keys, why: Exception) -> None:
        """Leave a step to a person or a model, with its text."""
        code, message = getattr(why, "code", "shape"), getattr(why, "message", str(why))
        step.leave(self.found, code, f"the step {step.id}: {message}", keys.node)
        if output := keys.text("output").removeprefix("$").strip("{}"):  # what reads it is not certain either
            self.variables.lost[output] = f"the step {step.id} sets it, and has no action"

    def _handler(self, name: str, node: Node) -> DraftStep:
        """Emit a step that no other one refers to."""
        step, keys = DraftStep(self.plan.name(name)), self._step_keys(node)
        try:
            if self.unsure or keys.get("preconditions", "precondition") is not None:
                raise UntranslatableError("handler", self.unsure or "a handler with preconditions")
            self.reading.fill(step, keys, ())
            self._share(step, [])
        except (UntranslatableError, ValueError) as why:
            self._leave(step, keys, why)
        return self.plan.add(step)

    def _handlers(self, handlers: Keys) -> None:
        for name in handlers.unknown({*_HANDLERS, "init"}):
            self.found.todo("handler", f"the handler {name} is left out", handlers.node)
        counting = [step for step in self.plan.steps if step.keys.get("on_failure") != "continue"]
        statuses = [f"{step_path(step.id, 'status')}" for step in counting]
        conditions = {
            "failure": " or ".join(f"{status} == 'failed'" for status in statuses),
            "success": " and ".join(f"{status} in ['completed', 'skipped']" for status in statuses),
            "exit": "",
        }
        conditions["cancel"] = conditions["abort"] = "run.status == 'cancelled'"
        for kind in _HANDLERS:
            if (node := handlers.get(kind)) is None:
                continue
            step = self._handler(f"on-{kind}", node)
            self.plan.steps.remove(step)
            step.condition = conditions[kind]
            if len(step.condition) > MAX_CONDITION:
                step.condition = ""
                self._leave(step, self._step_keys(node), UntranslatableError("handler", "too many steps"))
            if kind == "exit":
                for other in self.plan.cleanup:
                    step.wait(other.id, "done")
            self.plan.cleanup.append(step)
