"""Prepare a step: as a job or, if it needs no process, directly its outcome."""

from __future__ import annotations

import os

from planrun.actions import kind_of
from planrun.actions.command import SH
from planrun.actions.environment import layers_of, readable
from planrun.actions.outputs import (
    PROGRESS,
    SCRIPT,
    OutputError,
    evaluated,
    forget_outputs,
    keep_outputs,
    read_outputs,
)
from planrun.actions.render import (
    ROOT,
    Recipe,
    added_environment,
    render_step,
)
from planrun.errors import EvaluationError
from planrun.model.job import Job, Outcome, Prepared, original
from planrun.model.progress import names_within
from planrun.sha256 import span_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.containers import ContainerJobs
    from planrun.actions.environment import Layers, RunEnvironment
    from planrun.actions.files import Filing, Tracking
    from planrun.actions.hooks import Hooks
    from planrun.actions.reported import Reported
    from planrun.actions.scripts import Copying
    from planrun.actions.verify import PostChecks
    from planrun.model.plan import Step
    from planrun.model.state import RunState

TAIL_BYTES = 8192  # of a failed attempt's log, by which its error is classified
NEVER = float("inf")  # a service runs as long as others need it


class Steps:
    """The step runner: every kind but `abstract`, which cannot run."""

    def __init__(self, place: RunEnvironment) -> None:
        self.place = place
        self._fixed = {
            "env": place.env,
            "run": {"id": place.run, **place.context},
            ROOT: place.workspace,
        }
        self._outputs = os.path.join(place.rundir, "outputs")
        self._logs = os.path.join(place.rundir, "logs")
        self._filing: Filing | None = None  # None: no step has named files yet
        self._containers: ContainerJobs | None = None
        self._post_checks: PostChecks | None = None  # of steps that have any
        self._reported: Reported | None = None  # as well
        self._hooks: Hooks | None = None  # as well
        self._tracking: Tracking | None = None  # None: no step is tracked

    def scope(self, state: RunState, step: Step | None = None, attempt: int = 1) -> dict[str, Any]:
        """Return the names that expressions of a step can read."""
        values = state.scope(self._fixed, step)
        if step is not None:
            if step.needs_dir:
                values["step"] = {"dir": self._private(step, attempt)}
            if step.env or state.plan.env or step.group:
                values["env"] = {**self.place.env, **readable(self.layers(step, state, values))}
        return values

    def holds(self, step: Step, state: RunState) -> bool:
        """Evaluate the condition of a step; raises EvaluationError."""
        from planrun.expressions.evaluate import evaluate  # few plans have one

        assert step.condition is not None
        value = evaluate(step.condition, self.scope(state, step))
        if not isinstance(value, bool):
            raise EvaluationError(f"{step.condition_text} is not boolean")
        return value

    def prepare(self, step: Step, attempt: int, state: RunState) -> Prepared:
        """Render a step for one attempt; one that cannot be rendered is `failed(refused)` and never runs."""
        scope = self.scope(state, step, attempt)
        try:
            self._get_ready(step, state, scope)
            if not step.action.starts_process:
                ended: Prepared = kind_of(step.kind).prepare(self, step, state, scope)
                return ended
            recipe = render_step(step, self.layers(step, state, scope), scope, self.shell(step, scope))
        except EvaluationError as error:
            return Prepared(
                fingerprint="", outcome=Outcome(status="failed", reason="refused", message=str(error))
            )
        fingerprint = self.redacted(step, recipe).fingerprint()
        copying = self.copying(step, recipe)
        if copying:
            fingerprint += copying.part
            if copying.refusal:
                refused = Outcome(status="failed", reason="refused", message=copying.refusal)
                return Prepared(fingerprint=fingerprint, outcome=refused)
        job = self._made(step, attempt, recipe)
        if isinstance(job, Outcome):
            return Prepared(fingerprint="", outcome=job)
        if copying and copying.scripts:
            job = job.but(scripts=copying.scripts)
        prepared = Prepared(fingerprint=fingerprint, job=job)
        if step.action.is_agent:
            prepared = kind_of(step.kind).prepared(self, step, state, recipe, prepared)
        if step.container is not None:
            prepared = self.container_jobs().prepare(step, scope, recipe, prepared)
        prepared = self._with_checks(step, state, scope, prepared)
        if step.hooks and prepared.job is not None and "patch" not in prepared.job.agent:
            prepared = self.hooks().prepare(step, state, scope, prepared)
        return self._confined(step, prepared)

    def _with_checks(
        self, step: Step, state: RunState, scope: dict[str, Any], prepared: Prepared
    ) -> Prepared:
        """Return an attempt with its post-checks; those of an agent are made on its copy, before its patch."""
        job = prepared.job
        if job is None or not (step.expect or step.verify) or "patch" in job.agent:
            return prepared
        return self.post_checks().prepare(step, state, scope, prepared)

    def _confined(self, step: Step, prepared: Prepared) -> Prepared:
        """Return it with the sandbox that the plan and policies want for its job."""
        job, confinement = prepared.job, self.place.confinement
        if job is None or job.container:
            return prepared
        if job.agent:
            confined: Prepared = kind_of("agent").confined(step, prepared, confinement)
            return confined
        if confinement is None:
            if step.sandbox is None:
                return prepared
            message = "planrun did not look for a sandbox for this step, and starts it in none"
            return prepared.but(job=None, outcome=Outcome(status="failed", reason="refused", message=message))
        sandbox = confinement.of(step.sandbox)
        return prepared if sandbox is None else prepared.but(job=job.confined(sandbox))

    def _made(self, step: Step, attempt: int, recipe: Recipe) -> Job | Outcome:
        """Return the job of an attempt; its outcome if the files that it needs cannot be written."""
        try:
            if step.needs_dir:
                from planrun.folders import make_private  # few steps have one

                make_private(self._private(step, attempt))
            return self._job(step, attempt, recipe)
        except OSError as error:  # an earlier step deleted the run's folders, or the disk is full
            message = f"cannot write what the step needs: {error.filename}: {error.strerror}"
            return Outcome(status="failed", reason="spawn", message=message)

    def layers(self, step: Step, state: RunState, scope: dict[str, Any]) -> Layers:
        """Return the layers of variables of a step, the plan first; `scope`: the names that it reads itself."""
        return layers_of(step, state, scope, self._fixed)

    def copying(self, step: Step, recipe: Recipe) -> Copying | None:
        """Return the copies that a step runs; None when it names no script, as most do."""
        if not self.place.scripts or not step.action.is_command:
            return None
        from planrun.actions.scripts import Copies  # few plans name scripts

        folder = os.path.join(self.place.rundir, "scripts")
        return Copies(folder, self.place.workspace, self.place.scripts).of(step, recipe)

    def fingerprint(self, step: Step, attempt: int, state: RunState) -> str:
        """Return the fingerprint that an attempt would have now; empty when it cannot be rendered."""
        try:
            scope = self.scope(state, step, attempt)
            if not step.action.starts_process:
                return str(kind_of(step.kind).fingerprint(self, step, state, scope))
            recipe = render_step(step, self.layers(step, state, scope), scope, self.shell(step, scope))
            copying = self.copying(step, recipe)
            fingerprint = self.redacted(step, recipe).fingerprint() + (copying.part if copying else "")
            if step.container is not None:
                fingerprint += self.container_jobs().part(step, scope)
            if step.expect or step.verify:
                fingerprint += self.post_checks().part(step, state, scope)
            return fingerprint
        except EvaluationError:
            return ""

    def added(self, step: Step, attempt: int, state: RunState) -> dict[str, str]:
        """Return the variables that the plan adds for an attempt, secrets as in its fingerprint.

        None when they cannot be rendered.
        """
        try:
            env = added_environment(self.layers(step, state, self.scope(state, step, attempt)))
        except EvaluationError:
            return {}
        return self.redacted(step, Recipe(argv=(), env=env, workdir="")).env

    def opening(self, group: Step, state: RunState) -> dict[str, Any]:
        """Return the fields of StepOpened about the members of a group; raises EvaluationError."""
        from planrun.actions.groups import allow, opening  # few plans have groups

        fields = opening(group, self.scope(state, group))
        allow(group, fields, state, self.place.masks)
        return fields

    def gathered(self, group: Step, state: RunState) -> dict[str, Any]:
        """Return the outputs of a group that completed; raises EvaluationError."""
        from planrun.actions.groups import gathered

        return gathered(group, {**self._fixed, **names_within(state, group.id)})

    def plan_outputs(self, state: RunState) -> tuple[dict[str, Any], str]:
        """Return the outputs of the plan by name, and why others could not be evaluated; "" when all could."""
        return evaluated(state.plan, self.scope(state))

    @property
    def filing(self) -> Filing:
        """The files that steps name: digests before, checks after."""
        if self._filing is None:
            from planrun.actions.files import Filing  # few steps name files

            self._filing = Filing(self.place.workspace, self.place.hidden)
        return self._filing

    def read_now(self, step: Step, state: RunState) -> dict[str, str]:
        """Return the SHA-256 of each file that a step would read now, by path; raises EvaluationError."""
        return self.filing.reading(step, self.scope(state, step))

    def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Read the outputs of a completed attempt, or the end of the log of a failed one."""
        if job.hook:
            return self.hooks().conclude(
                step, job, outcome.but(tail=_tail(job.log)) if outcome.status == "failed" else outcome
            )
        if step.container is not None and step.container.shared:
            self.container_jobs().take_over(step, job, self._output_file(step, job.attempt))
        concluded = self._concluded(step, job, outcome)
        if job.call:
            record_of = kind_of("tool").record_of
            concluded = concluded.but(tools=(record_of(job, concluded, self.place.masks),))
        if self._filing and not job.part:
            concluded = self._filing.ended(step, concluded)
        if step.reports and not job.part:
            concluded = self.reported().ended(step, job, concluded)
        if step.container is not None:
            concluded = self.container_jobs().conclude(step, job, concluded)
        if (step.expect or (step.verify and step.service is None)) and "patch" not in job.agent:
            concluded = self.post_checks().conclude(step, job, concluded)
        goes_on = concluded.status == "completed" and any([not each.hook for each in job.following])  # noqa: C419
        if self._filing and not goes_on:
            concluded = self._filing.settled(step, concluded)
        if self._tracking and not goes_on:
            concluded = self._tracking.ended(step, concluded)
        # Delete output files that may hold secrets; otherwise keep those of failed attempts
        if step.action.is_agent:
            kind_of(step.kind).tidy(self, job, concluded)
        if not job.part:
            if self.place.masks:
                forget_outputs(self._output_file(step, job.attempt))
            elif concluded.status != "completed":
                keep_outputs(self._output_file(step, job.attempt))
        return self._before_hooks(step, job, concluded) if step.hooks else concluded

    def _before_hooks(self, step: Step, job: Job, concluded: Outcome) -> Outcome:
        """Return the outcome of an action, or of what verifies it, with that of the hooks before it."""
        hooks = self.hooks()
        if not job.part:
            concluded = hooks.noted(step, concluded)
        hooks.keep(step, concluded)
        return hooks.ended(step, concluded)

    def hooks(self) -> Hooks:
        """The hooks of steps."""
        if self._hooks is None:
            from planrun.actions.hooks import Hooks  # few plans have any

            self._hooks = Hooks(self)
        return self._hooks

    def shell(self, step: Step, scope: dict[str, Any]) -> tuple[str, ...]:
        """The default shell of a script: in a container one that every image with a shell has.

        Raises EvaluationError.
        """
        return (
            SH
            if step.container is not None and self.container_jobs().is_wanted(step, scope)
            else self.place.shell
        )

    def container_jobs(self) -> ContainerJobs:
        """The containers of steps."""
        if self._containers is None:
            from planrun.actions.containers import ContainerJobs  # few steps run in one

            self._containers = ContainerJobs(self.place)
        return self._containers

    def post_checks(self) -> PostChecks:
        """The post-checks of steps."""
        if self._post_checks is None:
            from planrun.actions.verify import PostChecks  # few steps have any

            self._post_checks = PostChecks(self)
        return self._post_checks

    def reported(self) -> Reported:
        """The reports that steps write themselves."""
        if self._reported is None:
            from planrun.actions.reported import Reported  # few steps have any

            self._reported = Reported(self.place)
        return self._reported

    def tracking(self) -> Tracking:
        """What steps change in the tree."""
        if self._tracking is None:
            from planrun.actions.files import Tracking  # few plans ask for it

            self._tracking = Tracking(self.place.workspace, self.place.hidden)
        return self._tracking

    def _concluded(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        if job.agent:
            ended: Outcome = kind_of("agent").concluded(job, outcome)
            return ended if ended.status == "completed" else ended.but(tail=_tail(job.log))
        if outcome.status == "completed" and not job.part:
            try:
                path = self._output_file(step, job.attempt)
                outputs = read_outputs(path, step.outputs, self.place.masks)
            except OutputError as error:
                return outcome.but(status="failed", reason="outputs", message=str(error))
            return outcome.but(outputs=outputs) if outputs else outcome
        if outcome.reason == "not_ready" and job.following:
            from planrun.actions.verify import not_ready  # few services never are

            return not_ready(outcome, _tail(job.following[0].log))
        if outcome.status != "failed":
            return outcome
        return outcome.but(tail=_tail(job.log), errors=last_errors(job.log, outcome.stderr))

    def _get_ready(self, step: Step, state: RunState, scope: dict[str, Any]) -> None:
        """Check secrets and prepare files before a step is rendered; raises EvaluationError."""
        if step.secrets:
            missing = [
                f"{name} is {self.place.absent[name]}" for name in step.secrets if name in self.place.absent
            ]
            if missing:
                raise EvaluationError(
                    f"{' and '.join(missing)} in planrun's environment, and the step lists it as a secret"
                )
        if step.inputs or step.makes or step.writes or step.cache:
            self.filing.begin(step, scope)
        if step.reports:
            self.reported().begin(step, scope)
        if step.track_files and step.action.starts_process:
            self.tracking().begin(step, state)

    def secrets(self, step: Step) -> dict[str, str]:
        """Return the values of the secrets that a step lists."""
        known = self.place.secrets  # one that is not required may have no value
        return {name: known[name] for name in step.secrets if name in known}

    def redacted(self, step: Step, recipe: Recipe) -> Recipe:
        """Return the recipe that a fingerprint is made of: with the names of secrets instead of values.

        So a new value reruns nothing, and no one can test guessed values against a ledger.
        """
        if step.secrets:
            recipe = recipe.but(env={**recipe.env, **dict.fromkeys(step.secrets, "***")})
        mask = self.place.masks
        if mask is None:
            return recipe
        argv, env, workdir = mask.mask_value((recipe.argv, recipe.env, recipe.workdir))
        return recipe.but(argv=argv, env=env, workdir=workdir)

    def _job(self, step: Step, attempt: int, recipe: Recipe) -> Job:
        place, output = self.place, self._output_file(step, attempt)
        env = {
            **place.env,
            **self._traced(step, attempt),
            **recipe.env,
            **self.secrets(step),
            "PLANRUN_RUN": place.run,
            "PLANRUN_STEP": step.id,
            "PLANRUN_ATTEMPT": str(attempt),
            "PLANRUN_OUTPUT": output,
            "PLANRUN_PROGRESS": output + PROGRESS,
            "PLANRUN_WORKSPACE": place.workspace,
        }
        argv, call = kind_of(step.kind).command(step, recipe, output + SCRIPT)
        fields: dict[str, Any] = {"call": call} if call else {}
        if recipe.may_omit_shell and argv is recipe.argv and step.container is None:
            fields["may_omit_shell"] = True
        return Job(
            step=step.id,
            attempt=attempt,
            argv=argv,
            env=env,
            cwd=os.path.join(place.workspace, recipe.workdir) if recipe.workdir else place.workspace,
            log=f"{self._logs}/{step.folder or step.id}/{attempt}.log",
            timeout=step.timeout if step.service is None else NEVER,
            idle_timeout=step.idle_timeout,
            **fields,
            private=self._private(step, attempt) if step.needs_dir else "",
        )

    def _traced(self, step: Step, attempt: int) -> dict[str, str]:
        """Return the variable that makes what a step records part of the run's trace."""
        trace = self.place.trace
        if not trace:
            return {}
        span = span_id(self.place.run, step.id, str(attempt))
        return {"TRACEPARENT": f"00-{trace['id']}-{span}-{trace.get('flags', '01')}"}

    def _output_file(self, step: Step, attempt: int) -> str:
        return f"{self._outputs}/{step.folder or step.id}.{attempt}"

    def _private(self, step: Step, attempt: int) -> str:
        shared = ""
        if step.container is not None and step.container.shared:
            from planrun.actions.containers import shared_name  # few steps share one

            shared = f"{shared_name(step)}/"
        return f"{self.place.rundir}/work/{shared}{step.folder or step.id}/{attempt}"


def last_errors(path: str, stderr: tuple[int, ...]) -> str:
    """Return the end of an attempt's stderr, of both outputs if they are mixed; empty when there is none."""
    if not stderr:
        return ""
    begin, end = stderr
    return _tail(path) if begin < 0 else _tail(path, begin, end)


def _tail(path: str, begin: int = 0, end: int = -1) -> str:
    """Return the last bytes of a log, or of its part from `begin` to `end`, as text; empty for none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        end = os.fstat(fd).st_size if end < 0 else end
        begin = max(begin, end - TAIL_BYTES)
        return original(os.pread(fd, end - begin, begin).decode("utf-8", "replace"))
    except OSError:  # the step replaced it
        return ""
    finally:
        os.close(fd)
