"""What the names in a workflow's expressions stand for in a plan."""

from __future__ import annotations

import re
from contextlib import contextmanager

from planrun.convert.draft import ACTIONS, step_path
from planrun.convert.github.facts import Job
from planrun.convert.github.grammar import NotAnExpressionError, pieces_of
from planrun.convert.github.spelling import (
    AND,
    CHOICE,
    FALSE,
    JOIN,
    OR,
    TRUE,
    Spelled,
    both,
    const,
    negated,
    spell,
)
from planrun.convert.reader import UntranslatableError, data_of, text_of
from planrun.plan.yaml.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planrun.convert.draft import DraftStep
    from planrun.convert.github.facts import Composite, Workflow
    from planrun.convert.github.grammar import Piece, Tree
    from planrun.plan.yaml.node import Node

# Names of the `github` context that the runner also gives as a variable, GITHUB_ and the name.
_VARIABLES = frozenset((
    "actor", "actor_id", "api_url", "base_ref", "event_path", "graphql_url", "head_ref", "ref_name",
    "ref_protected", "ref_type", "repository", "repository_id", "repository_owner", "repository_owner_id",
    "retention_days", "run_attempt", "run_id", "run_number", "server_url", "triggering_actor", "workflow",
    "workflow_ref", "workflow_sha", "workspace",
))  # fmt: skip
_RUN = {"ref": "run.ref", "sha": "run.sha", "event_name": "run.event"}
_OUTPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_RESULTS = ("success", "failure", "cancelled", "skipped")
_UNFIT = re.compile(r"[^A-Za-z0-9_]")
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

    def call(self, name: str) -> Spelled:
        """Return what a status function says of what came before."""
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
        failed = self._failed()
        return failed if name == "failure" else negated(failed)

    def _failed(self) -> Spelled:
        jobs = [self.job] if self.step_level else self.job.behind()
        counting = [job for job in jobs if self.step_level or not job.is_tolerant]
        text = " or ".join(filter(None, (job.failed() for job in counting)))
        return Spelled(text=text, kind="boolean", level=OR) if text else FALSE

    def compared(self, sign: str, first: Tree, second: Tree) -> Spelled | None:
        """Return how a result is compared with a word; None for any other comparison."""
        for one, other in ((first, second), (second, first)):
            if sign not in ("==", "!=") or one[0] != "path" or other[0] != "const":
                continue
            found = self._result(one[1], str(other[1])) or self._special(one[1], other[1])
            if found is not None:
                return found if sign == "==" else negated(found)
        return None

    def _special(self, names: tuple[str, ...], value: object) -> Spelled | None:
        """Return how an input of an event, which is text, or a secret is compared with a text; None for any other."""
        if names[:3] == ("github", "event", "inputs") and str(value) in ("true", "false"):
            given = self.inputs(names[3:])
            if given.kind == "boolean":
                return given if value == "true" else negated(given)
        secret = self._secret_behind(names)
        if secret and value == "":
            message = f"whether there is a secret {secret} is the parameter has_{secret}"
            self.workflow.found.todo("secret-there", message, self.node)
            self.workflow.param(f"has_{secret}", {"type": "boolean", "default": False})
            return negated(Spelled(text=f"params.has_{secret}", kind="boolean"))
        return None

    def _secret_behind(self, names: tuple[str, ...]) -> str:
        """Return the name of the secret that a path reads, itself or as a variable; "" for any other."""
        if names[0] == "env" and len(names) == 2:
            level = next((each for each in self.env if names[1] in each), None)
            try:
                pieces = pieces_of(text_of(level[names[1]])) if level is not None else []
            except NotAnExpressionError:
                return ""
            if len(pieces) != 1 or isinstance(pieces[0], str) or pieces[0][0] != "path":
                return ""
            names = pieces[0][1]
        if names[0] != "secrets" or len(names) != 2:
            return ""
        return self.workflow.secret_names.get(names[1], names[1])

    def _result(self, names: tuple[str, ...], word: str) -> Spelled | None:
        if len(names) != 3:
            return None
        if names[0] == "needs" and names[2] == "result" and self._is_no_need(names[1]):
            return FALSE
        if names[0] == "needs" and names[2] == "result":
            return job_ended(self._needed(names[1]), word)
        if names[0] == "steps" and names[2] in ("outcome", "conclusion"):
            return self._step_ended(names, word)
        return None

    def _step_ended(self, names: tuple[str, ...], word: str) -> Spelled:
        step = self.job.ids.get(names[1].lower())
        if step is None:
            return (
                const(word == "success") if names[1].lower() in self.job.dropped else const(word == "skipped")
            )
        self.job.read.add(step.id)
        is_tolerated = names[2] == "conclusion" and step.id in self.job.tolerated
        status = step_path(step.id, "status")
        words = {
            "success": "in ['completed', 'failed']" if is_tolerated else "== 'completed'",
            "failure": "== 'failed'",
            "skipped": "in ['skipped', 'blocked']",
            "cancelled": "== 'cancelled'",
        }
        if word not in words or (is_tolerated and word == "failure"):
            return FALSE
        return Spelled(text=f"{status} {words[word]}", kind="boolean", level=JOIN - 1)

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
            raise UntranslatableError(
                "expression", f"`needs.{name}`: the job does not need it, or it is not converted"
            )
        return job

    def github(self, names: tuple[str, ...]) -> Spelled:
        """Return what stands in the context `github`."""
        name = names[0].lower()
        if len(names) == 1 and name in _RUN:
            return Spelled(text=_RUN[name])
        if names == ("action_path",) and self.job.scope is not None:
            return const(self.job.scope.folder)
        if len(names) == 1 and name == "job":
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
        param = re.sub(r"[^A-Za-z0-9_]", "_", name)
        self.workflow.found.todo(
            "param", f"`{there}` is not known here; give it as `--param {param}=…`", self.node
        )
        default: object = [] if kind == "array" else False if kind == "boolean" else ""
        self.workflow.param(param, {"type": kind, "default": default})
        return Spelled(text=f"params.{param}", kind="list" if kind == "array" else kind)

    def whole(self, root: str) -> Spelled:
        """Return a whole context as JSON text, with what of it is known here."""
        if root == "needs":
            parts = [
                f'\'"{job.name}": {{"result": "\' ~ ({self.needs((job.name, "result")).text}) ~ \'"}}\''
                for job in self.job.needs
            ]
            inside = " ~ ', ' ~ ".join(parts) or "''"
            return Spelled(text=f"'{{' ~ {inside} ~ '}}'", level=JOIN)
        if root in ("github", "runner", "job", "steps", "env", "vars", "inputs", "matrix", "strategy"):
            self.note(
                "context", f"`toJSON({root})` is empty: what GitHub says of a whole context is not known here"
            )
            return const("{}")
        raise UntranslatableError("expression", f"`{root}`")

    def inputs(self, names: tuple[str, ...]) -> Spelled:
        """Return what an input of the workflow is: a parameter."""
        if self.job.scope is not None:
            return self.job.scope.given.get(names[0].lower(), const(""))
        if len(names) == 1 and names[0].lower() in self.workflow.given:
            return self.workflow.given[names[0].lower()]
        if len(names) == 1 and names[0].lower() in self.workflow.inputs:
            param = self.workflow.inputs[names[0].lower()]
            kind = str(self.workflow.plan.params[param].get("type", "string"))
            return Spelled(text=f"params.{param}", kind="number" if kind in ("number", "integer") else kind)
        return self._given("_".join(names), f"inputs.{'.'.join(names)}")

    def vars(self, names: tuple[str, ...]) -> Spelled:
        """Return what a variable of the repository is: a parameter."""
        return self._given(f"vars_{'_'.join(names)}", f"vars.{'.'.join(names)}")

    def environment(self, names: tuple[str, ...]) -> Spelled:
        """Return what a variable is; one that is put together is put together here, too."""
        name = names[0]
        if name in self.job.handed:
            raise UntranslatableError(
                "github-env", f"`env.{name}`, which an earlier script sets, stands where no shell reads it"
            )
        if name in self.job.exported:
            return Spelled(text=self.job.exported[name])
        for at, level in enumerate(self.env):
            if name in level:
                if not _OUTPUT.match(name) and "${{" not in text_of(level[name]):
                    return const(text_of(level[name]))
                inner, self.env = self.env, self.env[at + 1 :] if _reads(level[name], name) else self.env
                try:
                    return self._variable(name, text_of(level[name]))
                finally:
                    self.env = inner
        return Spelled(text=f"default(env.{name}, '')") if _OUTPUT.match(name) else const("")

    def _variable(self, name: str, text: str) -> Spelled:
        if "${{" not in text:
            return Spelled(text=f"env.{name}")
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise UntranslatableError("expression", f"`env.{name}` is put together from itself")
        try:
            parts = [
                const(piece) if isinstance(piece, str) else spell(piece, self) for piece in pieces_of(text)
            ]
        except NotAnExpressionError as error:
            raise UntranslatableError("expression", f"`env.{name}`: {error}") from None
        finally:
            self._nesting -= 1
        if len(parts) == 1:
            only = parts[0]
            return (
                only if only.kind == "string" else Spelled(text=f"{only.within(JOIN + 1)} ~ ''", level=JOIN)
            )
        return Spelled(text=" ~ ".join(part.within(JOIN + 1) for part in parts), level=JOIN)

    def matrix(self, names: tuple[str, ...]) -> Spelled:
        """Return what a name of the matrix is."""
        if self.job.row is not None:
            return const(self.job.row.get("_".join(_UNFIT.sub("_", each) for each in names), ""))
        if self.job.matrix is None:
            raise UntranslatableError(
                "matrix", f"`matrix.{'.'.join(names)}`: the job has no matrix that was kept"
            )
        return self.job.matrix.read(names)

    def strategy(self, names: tuple[str, ...]) -> Spelled:
        """Return what is known of the matrix as a whole."""
        matrix = self.job.matrix
        if names == ("job-total",) and (matrix is None or matrix.instances):
            return const(len(matrix.instances) if matrix is not None else 1)
        if names == ("job-index",) and matrix is None and self.job.row is None:
            return const(0)
        if names == ("job-index",) and self.job.row is not None:
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
        otherwise = {"arch": "X64", "temp": "/tmp", "tool_cache": "/tmp", "name": "local", "debug": ""}  # noqa: S108
        if name not in otherwise:
            raise UntranslatableError("expression", f"`runner.{name}`")
        return Spelled(text=f"default(env.RUNNER_{name.upper()}, {const(otherwise[name]).text})")

    def needs(self, names: tuple[str, ...]) -> Spelled:
        """Return an output or the result of a job that is needed."""
        if self._is_no_need(names[0]):
            return const("")
        job = self._needed(names[0])
        if len(names) == 2 and names[1] == "result":
            parts = [f"'{word}' if {job_ended(job, word).text} else " for word in _RESULTS[:2]]
            return Spelled(text=f"{''.join(parts)}'skipped'", level=CHOICE)
        if len(names) != 3 or names[1] != "outputs":
            raise UntranslatableError("expression", f"`needs.{'.'.join(names)}`")
        if job.instances:
            return self._of_instances(job, names[2])
        if job.matrix is not None:
            self.workflow.troubled.add((self.workflow.found.file, job.name))
            raise UntranslatableError(
                "matrix-outputs", f"`needs.{'.'.join(names)}`: of a matrix the last to end counts there"
            )
        if job.called:
            return self._called_output(job.called[0], names[2])
        node = job.outputs.get(names[2])
        if node is None:
            return const("")
        return PlaceNames(self.workflow, job, node, (job.env, self.workflow.env))._variable(
            names[2], text_of(node)
        )

    def _of_instances(self, job: Job, name: str) -> Spelled:
        """Return an output of a job with a matrix: of the last of its instances that has one."""
        self.note(
            "matrix-outputs", "of a job with a matrix the output of the last instance in the file counts"
        )
        found = const("")
        for each in job.instances:
            node = each.outputs.get(name)
            if node is None:
                continue
            inner = PlaceNames(self.workflow, each, node, (each.env, self.workflow.env))
            own = inner._variable(name, text_of(node))
            text = own.within(CHOICE + 1)
            found = own if found.value == "" and found.is_known else Spelled(
                text=f"{text} if {text} != '' else {found.within(CHOICE + 1)}", level=CHOICE
            )  # fmt: skip
        return found

    def _called_output(self, called: Workflow, name: str) -> Spelled:
        """Return an output of a workflow that is called."""
        on = called.root.get("on")
        call = on.get("workflow_call") if on is not None and on.kind == MAPPING else None
        outputs = called.reader.mapping(call.get("outputs") if call is not None else None, "`outputs`")
        node = called.reader.mapping(outputs.get(name), "an output").get("value")
        if node is None:
            return const("")
        last = Job("", called.root)
        last.needs = list(called.jobs.values())
        return PlaceNames(called, last, node)._variable(name, text_of(node))

    def steps(self, names: tuple[str, ...]) -> Spelled:
        """Return an output of an earlier step."""
        name = names[0].lower()
        if len(names) == 2 and names[1] in ("outcome", "conclusion"):
            parts = [
                f"'{word}' if {self._step_ended(('steps', *names), word).text} else " for word in _RESULTS[:2]
            ]
            return Spelled(text=f"{''.join(parts)}'skipped'", level=CHOICE)
        if len(names) != 3 or names[1] != "outputs":
            raise UntranslatableError("expression", f"`steps.{'.'.join(names)}`")
        if name in self.job.composites:
            return self._composite_output(self.job.composites[name], names[2])
        step = self.job.ids.get(name)
        if step is None and (missing := self._of_none(name, names[2])) is not None:
            return missing
        if step is None:
            self.note("no-step", f"`steps.{'.'.join(names)}` is empty: no step before it has this id")
            return const("")
        return self._of_step(step, names)

    def _of_step(self, step: DraftStep, names: tuple[str, ...]) -> Spelled:
        """Return an output of a step of the plan."""
        if set(ACTIONS).isdisjoint(step.keys) and _OUTPUT.match(names[2]):
            declare_outputs(step, [names[2]])  # the author of the step has to write it
            return Spelled(text=f"default({step_path(step.id, 'outputs')}.{names[2]}, '')")
        if names[2] in step.offers:
            step.keys["run"] = f"{step.keys['run'].rstrip(chr(10))}\n{step.offers.pop(names[2])}\n"
            step.renamed.add(names[2])
        if "run" not in step.keys:
            raise UntranslatableError(
                "action-output", f"`steps.{'.'.join(names)}`: nothing here writes this output"
            )
        output = names[2].replace("-", "_") if names[2] in step.renamed else names[2]
        if not _OUTPUT.match(output):
            raise UntranslatableError("output-name", f"an output of a plan cannot be called `{output}`")
        declare_outputs(step, [output])
        return Spelled(text=f"default({step_path(step.id, 'outputs')}.{output}, '')")

    def _of_none(self, name: str, output: str) -> Spelled | None:
        """Return an output of an action that becomes no step; None for one that is not known."""
        return const("false" if output == "cache-hit" else "") if name in self.job.dropped else None

    def _composite_output(self, action: Composite, name: str) -> Spelled:
        """Return an output of an action that is made of steps."""
        node = action.outputs.get(name)
        if node is None or node.kind != MAPPING:
            return const("")
        with inside(self.job, action):
            return PlaceNames(self.workflow, self.job, node)._variable(name, text_of(node.get("value")))

    def own_job(self, names: tuple[str, ...]) -> Spelled:
        """Return how the job stands, or where a service of it listens."""
        if names[0] == "services":
            return self._port(names)
        if names != ("status",):
            raise UntranslatableError("expression", f"`job.{'.'.join(names)}`")
        self.asked = True
        failed = self._failed()
        return Spelled(text=f"'failure' if {failed.text} else 'success'", level=CHOICE)

    def _port(self, names: tuple[str, ...]) -> Spelled:
        """Return the port of the host at which a service answers: a parameter, since nothing here assigns one."""
        services = self.job.node.get("services")
        of_services = services.value if services is not None and services.kind == MAPPING else {}
        fits = len(names) == 4 and names[2] == "ports" and names[1] in of_services
        if not fits or not names[3].isdecimal() or not 0 < int(names[3]) < 65536:
            raise UntranslatableError("expression", f"`job.{'.'.join(names)}`")
        name = re.sub(r"[^A-Za-z0-9_]", "_", f"{names[1]}_port")
        port = int(names[3])
        known = self.workflow.plan.params.get(name, {}).get("default", port)
        if known != port:
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


def _reads(node: Node, name: str) -> bool:
    """Say whether the value of a variable reads the variable of the same name of an outer level."""
    return re.search(rf"\$\{{\{{[^}}]*\benv\.{re.escape(name)}\b", text_of(node)) is not None


def given_value(node: Node | None, kind: str, names: PlaceNames) -> Spelled:
    """Return the value that is given for an input of a type; raises UntranslatableError."""
    text = text_of(node)
    pieces = cut_text(text)
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return spell(pieces[0], names)
    if any(not isinstance(piece, str) for piece in pieces):
        return names._variable("", text)
    if kind == "boolean":
        return const(text.lower() == "true")
    if kind == "number":
        value = data_of(node) if node is not None else 0
        return const(value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0)
    return const(text)


def cut_text(text: str) -> list[Piece]:
    """Return the pieces of a text; raises UntranslatableError where one is no expression."""
    try:
        return pieces_of(text)
    except NotAnExpressionError as error:
        raise UntranslatableError("expression", f"not an expression: {error}") from None


def job_ended(job: Job, word: str) -> Spelled:
    """Return whether a job ended so, as the others see it: a tolerant one does not fail."""
    failed = "" if job.is_tolerant else job.failed()
    tips = [] if job.is_tolerant else [step for step in job.tips if step.id in job.plain]
    done = " and ".join(f"{step_path(step.id, 'status')} == 'completed'" for step in tips)
    if word == "failure":
        return Spelled(text=failed, kind="boolean", level=OR) if failed else FALSE
    if word == "success":
        if not done:
            good = negated(Spelled(text=failed, kind="boolean", level=OR)) if failed else TRUE
            return both(negated(job_ended(job, "skipped")), good) if job.anchor else good
        return Spelled(text=done, kind="boolean", level=AND)
    if word != "skipped" or not (job.anchor or job.needs):  # nothing skips it
        return FALSE
    always = next((step.id for step in job.made if step.id in job.plain), "")
    if not job.anchor and not always:
        raise UntranslatableError(
            "result", f"whether {job.name} was skipped: each of its steps has a condition"
        )
    path = step_path(job.anchor or always, "status")
    skipped = Spelled(text=f"{path} in ['skipped', 'blocked']", kind="boolean", level=JOIN - 1)
    if job.anchor or not failed:
        return skipped
    return both(skipped, negated(Spelled(text=failed, kind="boolean", level=OR)))


def declare_outputs(step: DraftStep, names: list[str]) -> None:
    """Declare outputs of a step, each with the nothing that GitHub reads where there is none."""
    declared = step.keys.setdefault("outputs", {})
    for name in names:
        declared.setdefault(name, {"type": "string", "default": ""})
