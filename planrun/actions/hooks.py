"""Hooks: commands of the plan before and after each attempt of a step, recorded with the attempt.

They are among the jobs that follow that of the action, so policies judge them with it. Those before the action start
first; those after it start however it ended.
"""

from __future__ import annotations

import os

from planrun.actions.render import render_step
from planrun.errors import EvaluationError
from planrun.model.job import Outcome, Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.context import StepContext
    from planrun.model.job import Job
    from planrun.model.plan import Hook, Step
    from planrun.model.state import RunState

SHOWN = 200  # characters of a command, and of its last line of output


class Hooks:
    """The hooks of the running attempts: outcomes so far, by step."""

    def __init__(self, steps: StepContext) -> None:
        self._steps = steps
        self._carried: dict[str, Outcome] = {}  # of the action and what verifies it
        self._rows: dict[str, tuple[dict[str, Any], ...]] = {}

    def prepare(self, step: Step, state: RunState, scope: dict[str, Any], prepared: Prepared) -> Prepared:
        """Add the hooks of a step to its job; one that cannot be rendered refuses the attempt."""
        main = prepared.job
        assert main is not None
        self._carried.pop(step.id, None)
        self._rows[step.id] = ()
        jobs = []
        try:
            for number, hook in enumerate(step.hooks, 1):
                jobs.append(self._job(step, state, scope, (main, hook, number)))
        except EvaluationError as error:
            refused = Outcome(status="failed", reason="refused", message=str(error))
            return Prepared(fingerprint=prepared.fingerprint, outcome=refused)
        return prepared.but(job=main.but(following=(*main.following, *jobs)))

    def _job(self, step: Step, state: RunState, scope: dict[str, Any], about: tuple[Job, Hook, int]) -> Job:
        main, hook, number = about
        written = step.hook_steps[number - 1]
        recipe = render_step(written, self._steps.layers(step, state, scope), scope, self._steps.place.shell)
        copying = self._steps.copying(written, recipe)
        if copying and copying.refusal:
            raise EvaluationError(copying.refusal)
        env = {name: value for name, value in main.env.items() if name not in step.secrets}
        env |= {"PLANRUN_HOOK": f"{hook.when}_step", "PLANRUN_OUTPUT": os.devnull}
        env |= {"PLANRUN_WORKSPACE": self._steps.place.workspace}
        return main.but(
            argv=recipe.argv,
            env=env,
            cwd=self._steps.place.workspace,
            log=f"{main.log.removesuffix('.log')}.{hook.when}{number}.log",
            may_omit_shell=recipe.may_omit_shell,
            scripts=copying.scripts if copying else (),
            call={},
            agent={},
            container={},
            inside=(),
            following=(),
            timeout=hook.timeout,
            idle_timeout=None,
            hook=hook.when,
            part=number,
        )

    def keep(self, step: Step, outcome: Outcome) -> None:
        """Keep the outcome of the action, or of what verifies it, while hooks follow."""
        self._carried[step.id] = outcome

    def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt when one of its hooks has ended."""
        hook = step.hooks[job.part - 1]
        ok = outcome.status == "completed"
        message = "" if ok else f"{outcome.message or outcome.reason}{_last(outcome)}"
        row = {
            "name": " ".join(hook.action.written().split())[:SHOWN],
            "when": hook.when,
            "ok": ok,
            "message": message,
            "exit_code": outcome.exit_code,
            "duration": round(outcome.duration, 4),
            "log": "/".join(job.log.split("/")[-3:]),
        }
        self._rows[step.id] = (*self._rows.get(step.id, ()), row)
        before = self._carried.get(step.id, Outcome(status="completed", reason="ran"))
        after = before.but(duration=before.duration + outcome.duration)
        if not ok and outcome.status != "cancelled":
            note = f"the hook {hook.when}_step failed: {row['name']}: {message}"
            if hook.fatal and before.status == "completed":
                after = after.but(
                    status="failed",
                    reason="hook",
                    message=note,
                    outputs={},
                    exit_code=outcome.exit_code,
                    tail=outcome.tail,
                )
            else:
                after = after.but(notes=(*after.notes, note))
        elif outcome.status == "cancelled" and before.status == "completed":
            after = after.but(status="cancelled", reason=outcome.reason, message=outcome.message, outputs={})
        self._carried[step.id] = after
        return self.ended(step, after)

    def ended(self, step: Step, outcome: Outcome) -> Outcome:
        """Return an outcome with what its hooks did."""
        rows = self._rows.get(step.id, ())
        return outcome.but(hooks=rows) if rows else outcome

    def noted(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome of an action with the notes and the time of the hooks before it."""
        before = self._carried.get(step.id)
        if before is None:
            return outcome
        notes = (*before.notes, *outcome.notes)
        outcome = outcome.but(duration=before.duration + outcome.duration)
        return outcome.but(notes=notes) if notes else outcome


def _last(outcome: Outcome) -> str:
    lines = [line.strip() for line in outcome.tail.splitlines() if line.strip()]
    return f": {lines[-1][:SHOWN]}" if lines else ""
