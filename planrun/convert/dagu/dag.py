"""A Dagu file as a plan: steps, their order, handlers, and DAGs of the same file that steps call."""

from __future__ import annotations

import os
import shlex

from planrun.convert.dagu.steps import StepReading
from planrun.convert.dagu.values import Keys, Variables, pairs_of, whole
from planrun.convert.draft import DraftPlan, DraftStep, step_path
from planrun.convert.reader import Findings, Reader, UntranslatableError, text_of
from planrun.convert.recipes.scripts import TOP_FINDINGS, shell_of
from planrun.errors import InvalidInput
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

_KNOWN = frozenset((
    "name", "description", "group", "tags", "labels", "params", "env", "steps", "handleron", "preconditions",
    "precondition", "timeoutsec", "maxactivesteps", "dotenv", "type", "shell", "shellargs", "workingdir", "container",
    "secrets", "consts", "defaults", "version", "artifacts", "catchupwindow", "otel", "runconfig", "overlappolicy",
    "maxcleanuptimesec", "logoutput", "restartwaitsec", "ssh", "s3", "redis", "llm", "harness", "harnesses",
    "kubernetes",
    "smtp", "webhook", "profile", "waitmail", "actions", "steptypes",
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
MAX_DEPTH = 5  # of DAGs that call each other
MAX_STEPS = 1000


def convert_dag(
    root: Node, found: Findings, jobs: Collection[str] = (), others: Mapping[str, Node] | None = None
) -> DraftPlan:
    """Return the plan that a Dagu file becomes; a part of one cannot be chosen. `others`: its other documents."""
    if jobs:
        message = "--job chooses jobs of workflows and tasks; a Dagu file is converted as a whole"
        found.refuse("shape", message, root)
    dag = Dag(root, Reader(found), DraftPlan(), others or {})
    try:
        dag.convert()
    except (RecursionError, UntranslatableError) as why:
        found.refuse("too-large", getattr(why, "message", "the file is nested too deeply"), root)
    return dag.plan


class Dag:
    """One DAG while it is being converted; `prefix` and `given` are those of one that a step calls."""

    def __init__(  # noqa: PLR0913
        self, root: Node, reader: Reader, plan: DraftPlan, others: Mapping[str, Node],
        *, prefix: str = "", given: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.reader, self.found, self.plan, self.others = reader, reader.found, plan, others
        self.prefix, self.given = prefix, given
        self.keys = Keys(root, "a Dagu file", reader)
        self.variables = Variables(plan, reader)
        self.reading = StepReading(reader, self.variables)
        self.named: dict[str, DraftStep] = {}
        self.last: dict[str, list[str]] = {}  # by a step's id: the steps that its dependents wait for
        self.skippable: set[str] = set()  # steps that may be skipped, and skip what waits for them
        self.handed: list[tuple[DraftStep, str]] = []  # variables that steps hand on
        self.unsure = ""
        self.depth = prefix.count(".")
        self.env: dict[str, str] = {}
        self.common: dict[str, Any] = {}  # keys of all steps

    def convert(self, first: list[str] | None = None) -> list[str]:
        """Emit the steps, after others where a step calls the DAG; returns those that nothing waits for."""
        self._head()
        begin = list(first or [])
        handlers = Keys(self.keys.get("handleron"), "`handlerOn`", self.reader)
        if (node := handlers.get("init")) is not None:
            begin = [self._plain_step("on-init", self._named(node, ""), begin).id]
        gate = self._gate(begin)
        items = list(self._listed())
        steps = [(self._labelled(keys), keys, group) for keys, group in items]
        waited = self._order(steps)
        for step, keys, _ in steps:
            self._emit(step, keys, waited[step.id], begin, gate)
        self._handlers(handlers)
        inner = {name for step in self.plan.steps for name in step.edges}
        return [name for step, _, _ in steps for name in self.last[step.id] if name not in inner]

    def _head(self) -> None:
        keys, found = self.keys, self.found
        for name in keys.unknown({*_KNOWN, *_NOT_KEPT}):
            self._doubt(f"`{name}`", keys.node.key(name))
        for key, difference in _NOT_KEPT.items():
            if keys.get(key) is not None:
                found.differs(key, difference, keys.place(key))
        if (kind := keys.text("type")) not in ("", "graph", "chain"):
            self._doubt(f"`type: {kind}`", keys.place("type"))
        try:
            words = self.reader.texts(keys.get("shell"), "`shell`")
            words = [
                *(words[0].split() if len(words) == 1 else words),
                *self.reader.texts(keys.get("shellargs"), "`shell_args`"),
            ]
            if words:
                shell, self.reading.strict = shell_of(words)
                self.reading.shell = shlex.join(shell)
            self.variables.read_consts(keys.get("consts"))
            self.variables.params(keys.get("params"), self.given)
            self.variables.env["DAG_NAME"] = (
                keys.text("name") or os.path.splitext(os.path.basename(found.file))[0]
            )
            env = self.variables.environment(keys.get("env"))
            self.variables.env |= env
            self.env = {**{key: value for key, value in self.variables.env.items() if key != "DAG_NAME"}}
            if (folder := keys.text("workingdir")) and folder.startswith("~"):
                raise UntranslatableError("path", f"the folder {folder}")
            if folder:
                self.common["workdir"] = self.variables.template(folder)
            if (container := keys.get("container")) is not None:
                self.common["container"] = self.reading.container(container)
        except (UntranslatableError, ValueError) as why:
            self._doubt(getattr(why, "message", "quotes that are not closed"), keys.node)
        if secrets := self.variables.secrets(keys.get("secrets")):
            self.common["secrets"] = secrets
        self._files()
        if self.prefix:
            self.common |= {"env": self.env} if self.env else {}
            self.common |= {"shell": self.reading.shell}
            return
        plan = self.plan
        name, description = (" ".join(keys.text(each).split()) for each in ("name", "description"))
        plan.keys |= {
            key: text
            for key, text in (("name", name), ("description", description))
            if text and text.isprintable()
        }
        plan.keys["defaults"] = {"shell": self.reading.shell, "timeout": "24h"}
        if "workdir" in self.common:
            plan.keys["defaults"]["workdir"] = self.common.pop("workdir")
        limits: dict[str, Any] = {}
        if most := whole(keys.get("maxactivesteps")):
            limits["max_parallel"] = most
        if seconds := whole(keys.get("timeoutsec")):
            limits["deadline"] = f"{seconds}s"
        plan.keys |= {key: value for key, value in (("limits", limits), ("env", self.env)) if value}
        message = "commands are for `bash -e`; Dagu takes the shell of its user"
        found.differs("shell", message, keys.node)
        for code, text in TOP_FINDINGS:
            found.differs(code, text.format("Dagu"), keys.node)

    def _doubt(self, why: str, place: Node) -> None:
        self.unsure = self.unsure or why
        self.found.todo("dag", f"it makes all steps uncertain: {why}", place)

    def _files(self) -> None:
        """Give the plan the files of variables."""
        kept = []
        for name in self.reader.texts(self.keys.get("dotenv"), "`dotenv`"):
            path = os.path.join(os.path.dirname(self.found.file), name)
            place = self.keys.place("dotenv")
            if "$" in name or not os.path.isfile(path):
                message = f"the file {name} is not there: where it is to be read, add it to `env_file`"
                self.found.todo("dotenv", message, place)
                continue
            try:
                text = read_source(path, "file").decode("utf-8", "replace")
            except InvalidInput as error:
                text = f"`{error}"
            if any(sign in text for sign in "$`") or self.prefix:
                self._doubt(f"Dagu fills variables in {name} in", place)
            kept.append(name)
        if kept and not self.prefix:
            self.plan.keys["env_file"] = kept
            self.found.differs(
                "dotenv", "a file of variables has to be there, and `env` wins over it", self.keys.node
            )

    def _listed(self) -> Iterator[tuple[Keys, int]]:
        """Yield the keys of each step, with the number of its group: those of one run at the same time."""
        node = self.keys.get("steps")
        if node is not None and node.kind == MAPPING:
            for at, (name, member) in enumerate(node.value.items()):
                yield self._named(member, name), at
            return
        for at, item in enumerate(self.reader.items(node, "`steps`")):
            for each in item.value if item.kind == SEQUENCE else [item]:
                yield self._named(each, ""), at

    def _named(self, node: Node, name: str) -> Keys:
        if node.kind == SCALAR:
            text, node = node, Node(MAPPING, {"run": node}, node.line, node.col)
            node.keys = {"run": text}
        if name and node.kind == MAPPING and "name" not in node.value:
            label = Node(SCALAR, name, node.line, node.col)
            named = Node(MAPPING, {**node.value, "name": label}, node.line, node.col)
            named.keys = {**node.keys, "name": label}
            node = named
        return Keys(node, "a step", self.reader).with_defaults(self.keys.get("defaults"))

    def _labelled(self, keys: Keys) -> DraftStep:
        label = keys.text("id") or keys.text("name") or f"step-{len(self.named) + 1}"
        step = DraftStep(self.plan.name(f"{self.prefix}{label}"))
        step.node = keys.node
        title = " ".join(keys.text("name").split())
        if title and title != step.id and title.isprintable():
            step.keys["title"] = title[:200]
        for name in dict.fromkeys(each for each in (keys.text("id"), keys.text("name"), step.id) if each):
            self.named.setdefault(name, step)
        return step

    def _order(self, steps: list[tuple[DraftStep, Keys, int]]) -> dict[str, list[DraftStep]]:
        """Return the steps that each one waits for; raises UntranslatableError for a circle."""
        has_edges = any(keys.get("depends") is not None for _, keys, _ in steps)
        kind = self.keys.text("type")
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
                    self.found.refuse(
                        "shape", f'there is no step "{name}" to wait for', keys.place("depends")
                    )
        waiting = {name: {other.id for other in others} for name, others in found.items()}
        while free := [name for name, others in waiting.items() if not others & waiting.keys()]:
            for name in free:
                del waiting[name]
        if waiting:
            raise UntranslatableError("shape", f"dependency cycle: {', '.join(waiting)}")
        return found

    def _gate(self, begin: list[str]) -> DraftStep | None:
        """Emit the step that checks the preconditions of the whole DAG."""
        node = self.keys.get("preconditions", "precondition")
        name = f"{self.prefix}preconditions"
        if node is None:
            return None
        try:
            gate = self.reading.check(self.plan.name(name), node, ())
            if gate is None:
                return None
        except UntranslatableError as why:
            gate = DraftStep(self.plan.name(name))
            self._make_abstract(gate, self.keys, why)
        gate.keys |= {
            key: value for key, value in self.common.items() if key != "container" and "run" in gate.keys
        }
        for each in begin:
            gate.wait(each)
        return self.plan.add(gate)

    def _behind(self, names: list[str]) -> list[str]:
        """Return steps with those that they wait for, the nearest first."""
        by_id = {step.id: step for step in self.plan.steps}
        found: list[str] = []
        for name in (waiting := list(names)):
            if name not in found and name in by_id:
                found.append(name)
                waiting += by_id[name].edges
        return found

    def _emit(  # noqa: C901, PLR0912, PLR0915
        self, step: DraftStep, keys: Keys, waited: list[DraftStep], begin: list[str], gate: DraftStep | None
    ) -> None:
        edges: dict[str, str] = dict.fromkeys([] if waited else begin, "ok")
        ran: list[str] = []  # that steps ran whose failure is tolerated
        for other in waited:
            tolerated = other.id in self.skippable and other.keys.get("on_failure") == "continue"
            ran += [f"{step_path(other.id, 'status')} != 'skipped'"] if tolerated else []
            kind = "completed" if other.id in self.skippable and not tolerated else "ok"
            edges |= dict.fromkeys(self.last.get(other.id, [other.id]), kind)
        if gate is not None and "run" in gate.keys:
            edges[gate.id] = "completed"
        elif gate is not None:
            edges[gate.id] = "ok"
        before = self._behind(list(edges))
        may_skip = any(other.id in self.skippable for other in waited)
        check = None
        if (node := keys.get("preconditions", "precondition")) is not None:
            may_skip = True
            try:
                check = self.reading.check(self.plan.name(f"{step.id}.check"), node, before)
            except UntranslatableError as why:
                self._make_abstract(step, keys, why)
        met = [f"{step_path(gate.id, 'outputs')}.met"] if gate is not None and "run" in gate.keys else []
        conditions = [*met, *ran]
        if check is not None:
            check.edges, check.condition = dict(edges), " and ".join(conditions)
            self._share(check, before)
            self.plan.add(check)
            edges = {**edges, check.id: "completed"}
            conditions.append(f"{step_path(check.id, 'outputs')}.met")
        step.edges |= edges
        step.condition = " and ".join(conditions)
        if may_skip or conditions:
            self.skippable.add(step.id)
        if step.notes:  # it is abstract
            self.plan.add(step)
            self.last[step.id] = [step.id]
            return
        try:
            if (node := keys.get("continueon")) is not None and "skipped" in self.reading.continues(node):
                self.skippable.discard(step.id)
            if self.unsure:
                raise UntranslatableError("dag", self.unsure)
            if (
                (inside := self._called(keys)) is not None
                and not conditions
                and len(self.plan.steps) < MAX_STEPS
            ):
                self.last[step.id] = self._inline(step, keys, inside, edges)
                return
            if keys.text("action") == "human.task":
                self._ask(step, Keys(keys.get("with"), "`with`", self.reader))
            else:
                self.reading.fill(step, keys, before)
        except (UntranslatableError, ValueError) as why:
            self._make_abstract(step, keys, why)
        self._share(step, before)
        self.plan.add(step)
        self.last[step.id] = [step.id]
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
                self._make_abstract(ask, keys, why)
            ask.wait(step.id, "completed" if step.id in self.skippable else "ok")
            self.last[step.id] = [self.plan.add(ask).id]

    def _share(self, step: DraftStep, before: list[str]) -> None:
        """Give a step what all steps have, and the variables that those before it hand on."""
        if "run" not in step.keys:
            return
        for key, value in self.common.items():
            own = step.keys.get(key)
            step.keys[key] = {**value, **own} if key == "env" and own else own or value
        for producer, name in self.handed:
            if producer.id in before and name not in step.keys.get("env", {}):
                nearest = min((each for each, other in self.handed if other == name and each.id in before),
                              key=lambda each: before.index(each.id))  # fmt: skip
                value = f"${{{{ default({step_path(nearest.id, 'outputs')}.{name}, '') }}}}"
                step.keys.setdefault("env", {})[name] = value
        if "DAG_NAME" in str(step.keys["run"]):
            step.keys.setdefault("env", {}).setdefault("DAG_NAME", self.variables.env["DAG_NAME"])

    def _ask(self, step: DraftStep, keys: Keys, question: str = "") -> None:
        """Make a question of a step; raises UntranslatableError where it asks for values."""
        text = self.variables.template(keys.text("prompt")) or question
        if list(keys.unknown(("prompt",))) or not text.strip():
            raise UntranslatableError("approval", "a question that asks for values")
        step.keys["ask"] = {"question": " ".join(text.split())}

    def _called(self, keys: Keys) -> Node | None:
        """Return the DAG of the same file that a step calls, None for any other step."""
        own = Keys(keys.get("with"), "`with`", self.reader) if keys.text("action") == "dag.run" else None
        name = own.text("dag") if own is not None else keys.text("call")
        known = {"id", "name", "description", "call", "params", "depends", "action", "with"}
        return (
            self.others.get(name)
            if name and not list(keys.unknown(known)) and self.depth < MAX_DEPTH
            else None
        )

    def _inline(self, step: DraftStep, keys: Keys, root: Node, edges: dict[str, str]) -> list[str]:
        """Emit the steps of a DAG that a step calls; raises UntranslatableError."""
        inner = Keys(root, "a DAG", self.reader)
        if any(
            inner.get(name) is not None
            for name in ("handleron", "preconditions", "precondition", "timeoutsec", "dotenv")
        ):
            raise UntranslatableError(
                "sub-dag", "a DAG with handlers, preconditions, limits or files of variables"
            )
        if any(kind != "ok" for kind in edges.values()):
            raise UntranslatableError("sub-dag", "a DAG after a step that may be skipped")
        own = Keys(keys.get("with"), "`with`", self.reader) if keys.text("action") == "dag.run" else keys
        given: dict[str, str] = {}
        node = own.get("params")
        if node is not None and node.kind == SCALAR:
            words = text_of(node).split()
            if any("=" not in word or re_quotes(word) for word in words):
                raise UntranslatableError("sub-dag", "parameters without names")
            given = {
                name: self.variables.template(value)
                for name, _, value in (word.partition("=") for word in words)
            }
        else:
            given = {
                name: self.variables.template(text_of(value))
                for name, value in pairs_of(node, "`params`", self.reader)
            }
        count = len(self.plan.steps)
        child = Dag(root, self.reader, self.plan, self.others, prefix=f"{step.id}.", given=given)
        child.common |= {key: value for key, value in self.common.items() if key == "secrets"}
        ends = child.convert(list(edges))
        self.plan.give_back(step.id)
        return ends if len(self.plan.steps) > count else list(edges)

    def _make_abstract(self, step: DraftStep, keys: Keys, why: Exception) -> None:
        """Leave a step to a person or a model, with its text."""
        code, message = (
            (why.code, why.message) if isinstance(why, UntranslatableError) else ("shape", str(why))
        )
        step.leave(self.found, code, f"the step {step.id}: {message}", keys.node)
        step.keys.pop("on_failure", None)

    def _plain_step(self, name: str, keys: Keys, after: list[str]) -> DraftStep:
        """Emit a step that no other one refers to."""
        step = DraftStep(self.plan.name(f"{self.prefix}{name}"))
        try:
            if self.unsure or keys.get("preconditions", "precondition") is not None:
                raise UntranslatableError("handler", self.unsure or "a handler with preconditions")
            self.reading.fill(step, keys, ())
        except (UntranslatableError, ValueError) as why:
            self._make_abstract(step, keys, why)
        self._share(step, [])
        for each in after:
            step.wait(each)
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
            step = self._plain_step(f"on-{kind}", self._named(node, ""), [])
            self.plan.steps.remove(step)
            step.condition = conditions[kind] if len(conditions[kind]) < 8000 else ""
            if len(conditions[kind]) >= 8000:
                self._make_abstract(
                    step, self._named(node, ""), UntranslatableError("handler", "too many steps")
                )
            if kind == "exit":
                for other in self.plan.cleanup:
                    step.wait(other.id, "done")
            self.plan.cleanup.append(step)


def re_quotes(word: str) -> bool:
    """Say whether a word has quotes or signs of a shell."""
    return any(sign in word for sign in "'\"`\\")
