"""What the names in a workflow's expressions stand for in a plan."""

from __future__ import annotations

import re
from contextlib import contextmanager

from planrun.convert.draft import ACTIONS, step_path
from planrun.convert.expressions import (
    AND,
    CHOICE,
    FALSE,
    JOIN,
    OR,
    TRUE,
    Spelled,
    both,
    chosen,
    const,
    either,
    fact,
    negated,
    spell,
)
from planrun.convert.github import words
from planrun.convert.github.facts import Job, axis_name
from planrun.convert.github.words import cut, put_together
from planrun.convert.reader import UntranslatableError, data_of, text_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planrun.convert.draft import DraftStep
    from planrun.convert.expressions import Tree
    from planrun.convert.github.facts import Composite, Workflow
    from planrun.plan.yaml.node import Node

# Names of the `github` context that the runner also gives as a variable, GITHUB_ and the name.
_VARIABLES = frozenset((
    "actor", "actor_id", "api_url", "base_ref", "event_path", "graphql_url", "head_ref", "ref_name",
    "ref_protected", "ref_type", "repository", "repository_id", "repository_owner", "repository_owner_id",
    "retention_days", "run_attempt", "run_id", "run_number", "server_url", "triggering_actor", "workflow",
    "workflow_ref", "workflow_sha", "workspace",
))  # fmt: skip
_RUN = {"ref": "run.ref", "sha": "run.sha", "event_name": "run.event"}
_RUNNER = {"arch": "X64", "temp": "/tmp", "tool_cache": "/tmp", "name": "local", "debug": ""}  # noqa: S108
_WHOLE = ("github", "runner", "job", "steps", "env", "vars", "inputs", "matrix", "strategy")
_OUTPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
# Last names of values of an event that are true or false.
_TRUTHS = frozenset(
    ("draft", "merged", "prerelease", "fork", "private", "locked", "deleted", "created", "forced")
)
MAX_NESTING = 10  # variables that are put together from others


class PlaceNames:
    """The names at one place of a job; `env` are the variables there, the innermost first.

    `step_level`: status functions speak of the steps before, otherwise of the jobs that are needed.
    """

    def __init__(
        self, workflow: Workflow, job: Job, node: Node, env: tuple[Mapping[str, Node], ...] = ()
    ) -> None:
        self.workflow = workflow
        self.job = job
        self.node = node
        self.env = env
        self.step_level = True
        self.asked = False  # whether a status function was used
        self._nesting = 0

    def note(self, code: str, message: str) -> None:
        """Report that something has another meaning, at this place."""
        self.workflow.found.differs(code, message, self.node)

    def path(self, names: tuple[str, ...]) -> Spelled:
        """Return what a path reads."""
        root = names[0]
        if names[:2] == ("github", "event") and "*" in names:
            return self._given("_".join(name for name in names[1:] if name != "*"), ".".join(names), "array")
        if names == ("needs", "*", "result"):
            results = [self.needs((job.name, "result")).within(JOIN) for job in self.job.needs]
            return Spelled(text=f"[{', '.join(results)}]", kind="list")
        if "*" in names:
            raise UntranslatableError("expression", f"`{'.'.join(names)}`: a filter over several values")
        if root in _READERS and len(names) > 1:
            return _READERS[root](self, names[1:])
        raise UntranslatableError("expression", f"`{'.'.join(names)}`")

    def call(self, name: str, arguments: tuple[Tree, ...]) -> Spelled:
        """Return what a function gives; a status function says how what came before ended."""
        if (
            name == "tojson"
            and len(arguments) == 1
            and arguments[0][0] == "path"
            and len(arguments[0][1]) == 1
        ):
            return self._whole(arguments[0][1][0])
        if name not in ("success", "failure", "always", "cancelled") or arguments:
            return words.call(name, arguments, self)
        self.asked = True
        if name == "always":
            return TRUE
        if name == "cancelled":
            self.note("cancelled", "nothing starts after a cancel but `finally`: `cancelled()` is false")
            return FALSE
        if name == "success" and not self.step_level:  # a job that was skipped is none that succeeded
            met = TRUE
            for job in self.job.behind():
                met = both(met, job_ended(job, "success"))
            return met
        return self._failed() if name == "failure" else negated(self._failed())

    def _failed(self) -> Spelled:
        if self.step_level:
            return _any_failed(self.job)
        found = FALSE
        for job in self.job.behind():
            found = found if job.is_tolerant else either(found, _any_failed(job))
        return found

    def compare(self, sign: str, first: Tree, second: Tree) -> Spelled:
        """Return a comparison, in which a result has words of its own, and a secret is there or not."""
        for one, other in ((first, second), (second, first)):
            if sign in ("==", "!=") and one[0] == "path" and other[0] == "const":
                found = self._compared(one[1], other[1])
                if found is not None:
                    return found if sign == "==" else negated(found)
        return words.compare(sign, first, second, self)

    def _compared(self, names: tuple[str, ...], value: object) -> Spelled | None:
        """Return whether a result, an input of an event or a secret is a word; None for anything else."""
        if len(names) == 3 and names[0] == "needs" and names[2] == "result":
            return FALSE if self._is_no_need(names[1]) else job_ended(self._needed(names[1]), str(value))
        if len(names) == 3 and names[0] == "steps" and names[2] in ("outcome", "conclusion"):
            return self._step_ended(names[1], names[2], str(value))
        if names[:3] == ("github", "event", "inputs") and str(value) in ("true", "false"):
            given = self.inputs(names[3:])  # all are texts there
            if given.kind == "boolean":
                return given if value == "true" else negated(given)
        if value == "" and names[0] == "env" and len(names) == 2:
            level = next((each for each in self.env if names[1] in each), {})
            pieces = cut(text_of(level.get(names[1])))
            if len(pieces) == 1 and not isinstance(pieces[0], str) and pieces[0][0] == "path":
                names = pieces[0][1]
        if value == "" and names[0] == "secrets" and len(names) == 2:
            secret = self.workflow.secret_names.get(names[1], names[1])
            message = f"whether there is a secret {secret} is the parameter has_{secret}"
            self.workflow.found.todo("secret-there", message, self.node)
            self.workflow.param(f"has_{secret}", {"type": "boolean", "default": False})
            return negated(fact(f"params.has_{secret}", 6))
        return None

    def _step_ended(self, name: str, field: str, word: str) -> Spelled:
        step = self.job.ids.get(name.lower())
        if step is None:
            return const(word == ("success" if name.lower() in self.job.dropped else "skipped"))
        is_tolerated = field == "conclusion" and step.id in self.job.tolerated
        found = {
            "success": "in ['completed', 'failed']" if is_tolerated else "== 'completed'",
            "failure": "" if is_tolerated else "== 'failed'",
            "skipped": "in ['skipped', 'blocked']",
            "cancelled": "== 'cancelled'",
        }.get(word)
        return fact(f"{step_path(step.id, 'status')} {found}") if found else FALSE

    def _is_no_need(self, name: str) -> bool:
        """Say whether a job of the workflow is none that the job needs itself: GitHub knows nothing of it there."""
        job = self.workflow.jobs.get(name)
        if job is None or job in self.job.needs or not self.job.needs:
            return False
        self.note("needs", f"`needs.{name}` is empty: {self.job.name} does not name it under `needs`")
        return True

    def _needed(self, name: str) -> Job:
        job = self.workflow.jobs.get(name)
        if job is None or job not in self.job.needs:
            message = f"`needs.{name}`: the job does not need it, or it is not converted"
            raise UntranslatableError("expression", message)
        return job

    def github(self, names: tuple[str, ...]) -> Spelled:
        """Return what stands in the context `github`."""
        name = names[0].lower()
        if len(names) == 1 and name in _RUN:
            return Spelled(text=_RUN[name])
        if names == ("action_path",) and self.job.scope is not None:
            return const(self.job.scope.folder)
        if names == ("job",):
            return const(self.job.name)
        if len(names) == 1 and name in _VARIABLES:
            otherwise = "'.'" if name == "workspace" else "''"
            self.note("github-context", "the values of `github.…` are empty outside GitHub's runner")
            return Spelled(text=f"default(env.GITHUB_{name.upper()}, {otherwise})")
        if name == "event" and len(names) == 3 and names[1] == "inputs":
            return self.inputs(names[2:])
        if name == "event" and len(names) > 1:
            kind = "boolean" if names[-1] in _TRUTHS else "string"
            return self._given("_".join(names), f"github.{'.'.join(names)}", kind)
        if name == "token":
            raise UntranslatableError("secret", "`github.token` is used where planrun inserts no secrets")
        return self._given(f"github_{'_'.join(names)}", f"github.{'.'.join(names)}")

    def _given(self, name: str, there: str, kind: str = "string") -> Spelled:
        param = axis_name(name)
        message = f"`{there}` is not known here; give it as `--param {param}=…`"
        self.workflow.found.todo("param", message, self.node)
        default: object = [] if kind == "array" else False if kind == "boolean" else ""
        self.workflow.param(param, {"type": kind, "default": default})
        return Spelled(text=f"params.{param}", kind="list" if kind == "array" else kind)

    def _whole(self, root: str) -> Spelled:
        """Return a whole context as JSON text, with what of it is known here."""
        if root == "needs":
            parts = [
                f'\'"{job.name}": {{"result": "\' ~ ({self.needs((job.name, "result")).text}) ~ \'"}}\''
                for job in self.job.needs
            ]
            return Spelled(text=" ~ ".join(["'{'", " ~ ', ' ~ ".join(parts) or "''", "'}'"]), level=JOIN)
        if root not in _WHOLE:
            raise UntranslatableError("expression", f"`{root}`")
        message = f"`toJSON({root})` is empty: what GitHub says of a whole context is not known here"
        self.note("context", message)
        return const("{}")

    def inputs(self, names: tuple[str, ...]) -> Spelled:
        """Return what an input of the workflow is: a parameter."""
        name = names[0].lower()
        if self.job.scope is not None:
            return self.job.scope.given.get(name, const(""))
        if len(names) == 1 and name in self.workflow.given:
            return self.workflow.given[name]
        if len(names) == 1 and name in self.workflow.inputs:
            param = self.workflow.inputs[name]
            kind = str(self.workflow.plan.params[param].get("type", "string"))
            return Spelled(text=f"params.{param}", kind=kind)
        return self._given("_".join(names), f"inputs.{'.'.join(names)}")

    def vars(self, names: tuple[str, ...]) -> Spelled:
        """Return what a variable of the repository is: a parameter."""
        return self._given(f"vars_{'_'.join(names)}", f"vars.{'.'.join(names)}")

    def environment(self, names: tuple[str, ...]) -> Spelled:
        """Return what a variable is; one that is put together is put together here, too."""
        name = names[0]
        if name in self.job.exported:
            return Spelled(text=self.job.exported[name], level=CHOICE)
        for at, level in enumerate(self.env):
            if name not in level:
                continue
            text = text_of(level[name])
            if "${{" not in text:
                return Spelled(text=f"env.{name}") if _OUTPUT.match(name) else const(text)
            reads_outer = re.search(rf"\$\{{\{{[^}}]*\benv\.{re.escape(name)}\b", text)
            inner, self.env = self.env, self.env[at + 1 :] if reads_outer else self.env
            try:
                return self.put(name, text)
            finally:
                self.env = inner
        return Spelled(text=f"default(env.{name}, '')") if _OUTPUT.match(name) else const("")

    def put(self, name: str, text: str) -> Spelled:
        """Return a text with expressions as one expression; `name` is that of the variable or output."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise UntranslatableError("expression", f"`{name}` is put together from itself")
        try:
            return put_together(
                [const(piece) if isinstance(piece, str) else spell(piece, self) for piece in cut(text)]
            )
        finally:
            self._nesting -= 1

    def matrix(self, names: tuple[str, ...]) -> Spelled:
        """Return what a name of the matrix is."""
        if self.job.row is not None:
            return const(self.job.row.get("_".join(map(axis_name, names)), ""))
        if self.job.matrix is None:
            message = f"`matrix.{'.'.join(names)}`: the job has no matrix that was kept"
            raise UntranslatableError("matrix", message)
        return self.job.matrix.read(names)

    def strategy(self, names: tuple[str, ...]) -> Spelled:
        """Return what is known of the matrix as a whole."""
        matrix = self.job.matrix
        if names == ("job-total",) and (matrix is None or matrix.instances) and self.job.row is None:
            return const(len(matrix.instances) if matrix is not None else 1)
        if names == ("job-index",) and matrix is None:
            return const(self.job.row_at)
        raise UntranslatableError("expression", f"`strategy.{'.'.join(names)}`")

    def runner(self, names: tuple[str, ...]) -> Spelled:
        """Return what the runner is: the machine that the plan is for."""
        name = names[0].lower()
        if name == "os":
            self.note("runner-os", f"`runner.os` is taken to be {self.workflow.machine}")
            return const(self.workflow.machine)
        if name == "workspace":
            return Spelled(text="default(env.RUNNER_WORKSPACE, '..')")
        if name not in _RUNNER:
            raise UntranslatableError("expression", f"`runner.{name}`")
        return Spelled(text=f"default(env.RUNNER_{name.upper()}, {const(_RUNNER[name]).text})")

    def needs(self, names: tuple[str, ...]) -> Spelled:
        """Return an output or the result of a job that is needed."""
        if self._is_no_need(names[0]):
            return const("")
        job = self._needed(names[0])
        if len(names) == 2 and names[1] == "result":
            return _word(job_ended(job, "success"), job_ended(job, "failure"))
        if len(names) != 3 or names[1] != "outputs":
            raise UntranslatableError("expression", f"`needs.{'.'.join(names)}`")
        if job.matrix is not None:
            message = f"`needs.{'.'.join(names)}`: of a matrix the last to end counts there"
            raise UntranslatableError("matrix-outputs", message)
        if job.called:
            return _called_output(job.called[0], names[2])
        if job.instances:
            self.note(
                "matrix-outputs", "of a job with a matrix the output of the last instance in the file counts"
            )
        found = const("")
        for each in job.instances or [job]:
            node = each.outputs.get(names[2])
            if node is None:
                continue
            own = PlaceNames(self.workflow, each, node, (each.env, self.workflow.env)).put(
                names[2], text_of(node)
            )
            if found.is_known and not found.value:
                found = own
            else:
                text = own.within(CHOICE + 1)
                text = f"{text} if {text} != '' else {found.within(CHOICE + 1)}"
                found = Spelled(text=text, level=CHOICE)
        return found

    def steps(self, names: tuple[str, ...]) -> Spelled:
        """Return an output of an earlier step."""
        name = names[0].lower()
        if len(names) == 2 and names[1] in ("outcome", "conclusion"):
            return _word(*(self._step_ended(name, names[1], word) for word in ("success", "failure")))
        if len(names) != 3 or names[1] != "outputs":
            raise UntranslatableError("expression", f"`steps.{'.'.join(names)}`")
        output, step = names[2], self.job.ids.get(name)
        if name in self.job.composites:
            action = self.job.composites[name]
            node = action.outputs.get(output)
            if node is None or node.kind != MAPPING:
                return const("")
            with inside(self.job, action):
                return PlaceNames(self.workflow, self.job, node).put(output, text_of(node.get("value")))
        if step is None:
            if name not in self.job.dropped:
                self.note("no-step", f"`steps.{'.'.join(names)}` is empty: no step before it has this id")
            return const("false" if name in self.job.dropped and output == "cache-hit" else "")
        if output in step.offers:
            step.keys["run"] = f"{step.keys['run'].rstrip(chr(10))}\n{step.offers.pop(output)}\n"
            step.renamed.add(output)
        is_left = set(ACTIONS).isdisjoint(step.keys)  # the author of the step has to write it
        if "run" not in step.keys and not (is_left and _OUTPUT.match(output)):
            message = f"`steps.{'.'.join(names)}`: nothing here writes this output"
            raise UntranslatableError("action-output", message)
        output = output.replace("-", "_") if output in step.renamed else output
        if not _OUTPUT.match(output):
            raise UntranslatableError("output-name", f"an output of a plan cannot be called `{output}`")
        declare_outputs(step, [output])
        return Spelled(text=f"default({step_path(step.id, 'outputs')}.{output}, '')")

    def own_job(self, names: tuple[str, ...]) -> Spelled:
        """Return how the job stands, or the port at which a service answers: a parameter, as nothing assigns one."""
        if names == ("status",):
            self.asked = True
            return chosen(self._failed(), const("failure"), const("success"))
        services = self.job.node.get("services")
        of_services = services.value if services is not None and services.kind == MAPPING else {}
        fits = len(names) == 4 and names[::2] == ("services", "ports") and names[1] in of_services
        if not fits or not names[3].isdecimal() or not 0 < int(names[3]) < 65536:
            raise UntranslatableError("expression", f"`job.{'.'.join(names)}`")
        name, port = axis_name(f"{names[1]}_port"), int(names[3])
        if self.workflow.plan.params.get(name, {}).get("default", port) != port:
            name = f"{name}_{port}"
        message = f"nothing assigns ports here: `{names[1]}` has to answer at the port that `--param {name}=…` names"
        self.workflow.found.todo("service-port", message, self.node)
        self.workflow.param(name, {"type": "integer", "minimum": 1, "maximum": 65535, "default": port})
        return Spelled(text=f"params.{name}", kind="number")

    def secret(self, names: tuple[str, ...]) -> Spelled:
        """Refuse a secret where none can be."""
        raise UntranslatableError("secret", f"`secrets.{names[0]}` is used where planrun inserts no secrets")


_READERS: dict[str, Callable[[PlaceNames, tuple[str, ...]], Spelled]] = {
    "github": PlaceNames.github,
    "env": PlaceNames.environment,
    "inputs": PlaceNames.inputs,
    "job": PlaceNames.own_job,
    "jobs": PlaceNames.needs,
    "matrix": PlaceNames.matrix,
    "needs": PlaceNames.needs,
    "runner": PlaceNames.runner,
    "secrets": PlaceNames.secret,
    "steps": PlaceNames.steps,
    "strategy": PlaceNames.strategy,
    "vars": PlaceNames.vars,
}


@contextmanager
def inside(job: Job, action: Composite) -> Iterator[None]:
    """Let names of steps and inputs be those of an action."""
    before = (job.scope, job.ids, job.dropped, job.composites)
    job.scope, job.ids, job.dropped, job.composites = action, action.ids, action.dropped, action.composites
    try:
        yield
    finally:
        job.scope, job.ids, job.dropped, job.composites = before


def given_value(node: Node | None, kind: str, names: PlaceNames) -> Spelled:
    """Return the value that is given for an input of a type; raises UntranslatableError."""
    text = text_of(node)
    pieces = cut(text)
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return spell(pieces[0], names)
    if any(not isinstance(piece, str) for piece in pieces):
        return names.put("", text)
    if kind == "boolean":
        return const(text.lower() == "true")
    if kind == "number":
        value = data_of(node) if node is not None else 0
        return const(value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0)
    return const(text)


def call_of(workflow: Workflow) -> Mapping[str, Node]:
    """Return what a workflow says under `on.workflow_call`."""
    on = workflow.root.get("on")
    return workflow.reader.mapping(
        on.get("workflow_call") if on is not None and on.kind == MAPPING else None, "`workflow_call`"
    )


def _called_output(called: Workflow, name: str) -> Spelled:
    """Return an output of a workflow that is called."""
    outputs = called.reader.mapping(call_of(called).get("outputs"), "`outputs`")
    node = called.reader.mapping(outputs.get(name), "an output").get("value")
    if node is None:
        return const("")
    last = Job("", called.root)
    last.needs = list(called.jobs.values())
    return PlaceNames(called, last, node).put(name, text_of(node))


def _any_failed(job: Job) -> Spelled:
    text = job.failed()
    return fact(text, OR) if text else FALSE


def _word(good: Spelled, bad: Spelled) -> Spelled:
    return chosen(good, const("success"), chosen(bad, const("failure"), const("skipped")))


def job_ended(job: Job, word: str) -> Spelled:
    """Return whether a job ended so, as the others see it: a tolerant one does not fail."""
    failed = FALSE if job.is_tolerant else _any_failed(job)
    tips = [] if job.is_tolerant else [step for step in job.tips if step.id in job.plain]
    if word == "failure":
        return failed
    if word == "success":
        if tips:
            return fact(" and ".join(f"{step_path(step.id, 'status')} == 'completed'" for step in tips), AND)
        return both(negated(job_ended(job, "skipped")), negated(failed)) if job.anchor else negated(failed)
    if word != "skipped" or not (job.anchor or job.needs):  # nothing skips it
        return FALSE
    always = next((step.id for step in job.made if step.id in job.plain), "")
    if not job.anchor and not always:
        raise UntranslatableError(
            "result", f"whether {job.name} was skipped: each of its steps has a condition"
        )
    skipped = fact(f"{step_path(job.anchor or always, 'status')} in ['skipped', 'blocked']")
    return skipped if job.anchor else both(skipped, negated(failed))


def declare_outputs(step: DraftStep, names: list[str]) -> None:
    """Declare outputs of a step, each with the nothing that GitHub reads where there is none."""
    declared = step.keys.setdefault("outputs", {})
    for name in names:
        declared.setdefault(name, {"type": "string", "default": ""})
