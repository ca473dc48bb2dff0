"""The post-checks of a step: `expect` and `verify`, and the result of each."""

from __future__ import annotations

import os

from planrun.actions.containers import beside, in_container, in_shared_container
from planrun.actions.render import brief, render_step
from planrun.actions.validate import CheckScope, run_checks
from planrun.errors import EvaluationError
from planrun.model.job import Outcome, Prepared
from planrun.plan.compile.canonical import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.actions.context import StepContext
    from planrun.actions.render import Recipe
    from planrun.actions.scripts import Copying
    from planrun.model.job import Job, Script
    from planrun.model.plan import Action, Step
    from planrun.model.state import RunState

    Command = tuple[Recipe, Copying | None]

PROBE = ":ready"
"""Suffix of the id of a service in the name of its readiness probe; no id has a colon."""
SHOWN = 200
"""Characters of a command, and of its last line of output, in a result."""


class PostChecks:
    """The post-checks of the running attempts: outcomes so far, by step."""

    def __init__(self, steps: StepContext) -> None:
        self._steps = steps
        self._so_far: dict[str, Outcome] = {}
        self._scopes: dict[str, dict[str, Any]] = {}

    def prepare(self, step: Step, state: RunState, scope: dict[str, Any], prepared: Prepared) -> Prepared:
        """Add the `verify` commands of a step to its job, and keep the names that its `expect` reads."""
        assert prepared.job is not None
        try:
            commands = self._commands(step, state, scope)
        except EvaluationError as error:
            refused = Outcome(status="failed", reason="refused", message=str(error))
            return Prepared(fingerprint="", outcome=refused)
        refusal = next((copying.refusal for _, copying in commands if copying and copying.refusal), "")
        if refusal:
            refused = Outcome(status="failed", reason="refused", message=refusal)
            return Prepared(fingerprint=prepared.fingerprint, outcome=refused)
        self._scopes[step.id] = scope
        return Prepared(
            fingerprint=prepared.fingerprint + self._part(step, commands),
            job=prepared.job.but(
                following=following(
                    prepared.job, commands, step.verify_timeout, service=step.service is not None
                )
            ),
        )

    def part(self, step: Step, state: RunState, scope: dict[str, Any]) -> str:
        """Return the part of a fingerprint for the post-checks of a step; raises EvaluationError."""
        return self._part(step, self._commands(step, state, scope))

    def _commands(self, step: Step, state: RunState, scope: dict[str, Any]) -> list[Command]:
        shell, layers = self._steps.shell(step, scope), self._steps.layers(step, state, scope)
        recipes = [(command, render_step(command, layers, scope, shell)) for command in step.verify_steps]
        return [(recipe, self._steps.copying(command, recipe)) for command, recipe in recipes]

    def _part(self, step: Step, commands: list[Command]) -> str:
        parts = [
            (self._steps.redacted(step, recipe).argv, copying.part if copying else "")
            for recipe, copying in commands
        ]
        return f" proofs:{brief((repr(plain(step.expect)), parts))}"

    def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return the outcome of a step when its action, or one of the `verify` commands, has ended."""
        if job.part:
            return self.of_command(step, job, outcome)
        results: tuple[dict[str, Any], ...] = ()
        if step.expect and outcome.status == "completed":
            place, scope = self._steps.place, own_scope(step, self._scopes[step.id], outcome.outputs)
            folder = job.cwd if job.agent else place.workspace  # an agent works on a copy
            results = run_checks(step.expect, CheckScope(folder, job.env, scope, place.masks))
        return self.of_action(step, outcome, results)

    def of_action(self, step: Step, outcome: Outcome, checks: tuple[dict[str, Any], ...]) -> Outcome:
        """Return the outcome of the action of a step with its `expect` results; kept for the `verify` commands."""
        outcome = _with(outcome, checks)
        if step.verify and outcome.status == "completed":
            self._so_far[step.id] = outcome
        return outcome

    def of_command(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return the outcome of a step when one of its `verify` commands has ended."""
        before = self._so_far.pop(step.id)
        message = (
            "" if outcome.status == "completed" else f"{outcome.message or outcome.reason}{_last(outcome)}"
        )
        result = {
            "name": f"verify: {_shown(step.verify[job.part - 1], job)}",
            "ok": outcome.status == "completed",
            "message": message,
            "exit_code": outcome.exit_code,
            "duration": round(outcome.duration, 4),
            "log": "/".join(job.log.split("/")[-3:]),
        }
        after = _with(before, (result,)).but(duration=before.duration + outcome.duration)
        notes = (*before.notes, *outcome.notes)
        if notes:
            after = after.but(notes=notes)
        if outcome.status == "completed":
            if job.following:
                self._so_far[step.id] = after
            return after
        if outcome.status == "cancelled":
            return after.but(status="cancelled", reason=outcome.reason, message=outcome.message, outputs={})
        kind = "verify" if outcome.reason == "exit" else outcome.reason
        return after.but(reason=kind, exit_code=outcome.exit_code, tail=outcome.tail)


def _with(outcome: Outcome, checks: tuple[dict[str, Any], ...]) -> Outcome:
    """Return an outcome with more checks; failed(verify) when one of them fails."""
    if not checks:
        return outcome
    outcome = outcome.but(checks=(*outcome.checks, *checks))
    failed = [check for check in checks if not check["ok"]]
    if not failed:
        return outcome
    message = "; ".join(f"{check['name']}: {check['message']}" for check in failed)
    return outcome.but(status="failed", reason="verify", message=message, outputs={})


def _last(outcome: Outcome) -> str:
    lines = [line.strip() for line in outcome.tail.splitlines() if line.strip()]
    return f": {lines[-1][:SHOWN]}" if lines else ""


def not_ready(outcome: Outcome, tail: str) -> Outcome:
    """Return the outcome of a service that never became ready; `tail`: the last output of its probes."""
    outcome = outcome.but(tail=tail)
    return outcome.but(message=f"{outcome.message}{_last(outcome)}")


def _shown(action: Action, job: Job) -> str:
    words = job.argv[-1] if action.is_script else " ".join(job.argv)
    line = " ".join(words.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def following(
    main: Job, commands: Sequence[Command], timeout: float | None = None, *, service: bool = False
) -> tuple[Job, ...]:
    """Return the jobs that verify a step, in order; each has a log of its own beside that of the action.

    `timeout`: seconds for each of them; None: as many as for the action. For a service it is the
    readiness probe, under a name of its own: it runs while the service does.
    """
    jobs = []
    bound = main.timeout if timeout is None or service else timeout
    # This distinguishes its processes from those of the service.
    mark = {"PLANRUN_STEP": f"{main.step}{PROBE}"} if service else {}
    for number, (recipe, copying) in enumerate(commands, 1):
        own = {"step": f"{main.step}{PROBE}"} if service else {"part": number}
        job = main.but(
            argv=recipe.argv,
            env={**main.env, **mark, "PLANRUN_OUTPUT": os.devnull},
            log=f"{main.log.removesuffix('.log')}.{'ready' if service else f'verify{number}'}.log",
            may_omit_shell=recipe.may_omit_shell and not main.container,
            scripts=_in_copy(main, copying.scripts) if copying else (),
            call={},
            agent={},
            following=(),
            inside=(),
            timeout=bound,
            **own,
        )
        if main.container and service:
            job = beside(job, main.container).but(container={})
        elif "room" in main.container:
            job = in_shared_container(job, main.container)
        elif main.container:
            job = in_container(job, main.container, f"{main.container['name']}-{number}")
        jobs.append(job)
    return tuple(jobs)


def _in_copy(main: Job, scripts: tuple[Script, ...]) -> tuple[Script, ...]:
    """Return reviewed scripts as they are placed for a job: for one on a copy of the workspace, in the copy."""
    if not main.agent:
        return scripts
    root = main.env["PLANRUN_WORKSPACE"]
    return tuple([script.but(file=os.path.join(root, script.name)) for script in scripts])


def own_scope(step: Step, scope: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    """Return a scope in which a step that is about to end can read its own outputs."""
    steps, name = scope["steps"], step.id.rpartition("/")[2]
    if name in steps:
        steps[name] = {**steps[name], "status": "completed", "outputs": outputs}
    return scope
