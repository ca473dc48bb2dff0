"""What an approval is about: the commands of a step as they would start, its environment, policy, digest and lock."""

from __future__ import annotations

import os

from planrun.approval.digest import Reviewed
from planrun.approval.lockfile import drift, lock_file, lock_of, read_lock
from planrun.errors import PlanrunError
from planrun.reports.escape import line, plain
from planrun.reports.policies import grounds, in_force, policy_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.model.events import GateOpened
    from planrun.model.job import Job
    from planrun.model.plan import Step
    from planrun.model.state import RunState


class Subjects:
    """The steps of one run that wait for an approval; `place`: where they would start."""

    def __init__(self, place: RunEnvironment) -> None:
        self._place = place
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._jobs: dict[str, Job] = {}

    def keep(self, step: str, facts: Mapping[str, Any], job: Job | None) -> None:
        """Keep what a step would start; `facts`: as the policies judged it."""
        self._facts[step] = facts
        if job is not None:
            self._jobs[step] = job

    def commands(self, step: str) -> str:
        """Return the text of what a step would run; "" of the plan."""
        return str(self._facts[step]["text"]) if step in self._facts else ""

    def details(self, step: str, state: RunState) -> list[str]:
        """Return all that is known of a step, or of the plan for "", one clean line each."""
        rows = self._of_step(state.steps[step].step, state) if step else self._of_plan(state)
        rows += [f"  policy: {in_force(state)}", f"  digest: {state.named.get('digest', '')}"]
        open_ends = state.named.get("uncovered") or {}
        rows += [
            f"  not part of the digest: {line(str(what))}: {line(str(why))}"
            for what, why in open_ends.items()
        ]
        return [*rows, *_lock(state)]

    def _of_step(self, step: Step, state: RunState) -> list[str]:
        opened, facts, job = state.steps[step.id].asked, self._facts.get(step.id, {}), self._jobs.get(step.id)
        rows = [f"step {line(step.id)} ({line(state.plan.file_of(step))}:{step.line})"]
        rows += [f"  title: {line(step.label)}"] if step.label != step.id else []
        rows += _named("depends on", [edge.on for edge in step.edges])
        rows += _grounds(opened)
        rows += [f"  risk: {line(str(facts.get('risk') or step.risk))}: {line(str(facts.get('reason', '')))}"]
        rows += _named("effects", facts.get("effects") or ())
        text = plain(self.commands(step.id)).strip("\n")
        rows += ["  commands:", *[f"  | {row}" for row in text.split("\n")]] if text else []
        if job is not None:
            rows += self._of_job(job)
        rows += _named("secrets", step.secrets)
        return rows

    def _of_job(self, job: Job) -> list[str]:
        inherited = self._place.env
        own = sorted([name for name, value in job.env.items() if inherited.get(name) != value])
        rows = [f"  folder: {line(os.path.relpath(job.cwd, self._place.workspace))}"]
        rows += [f"  container: {line(str(job.container.get('image', '')))}"] if job.container else []
        rows += _named("reviewed scripts", [script.name for script in job.scripts])
        rows += _named("environment of the step", own)
        return rows + _named("environment inherited", sorted(job.env.keys() - set(own)))

    def _of_plan(self, state: RunState) -> list[str]:
        rows = [f"plan {line(state.plan.file)}: {line(state.plan.title or state.plan.name)}"]
        rows += _grounds(state.gate.opened if state.gate else None)
        for param, value in state.params.items():
            rows.append(f"  parameter {line(param)}: {line(str(value))}")
        for step in state.plan.steps:
            rows.append(f"  step {line(step.id)}: risk {step.risk} ({line(step.risk_reason)})")
            text = plain(step.action.written()).strip("\n") if step.kind != "group" else ""
            rows += [f"    | {row}" for row in text.split("\n")] if text else []
        return rows


def _grounds(opened: GateOpened | None) -> list[str]:
    return [f"  why: {grounds(opened)}"] if opened else []


def _named(what: str, names: Iterable[str]) -> list[str]:
    text = ", ".join([line(name) for name in names])
    return [f"  {what}: {text}"] if text else []


def _lock(state: RunState) -> list[str]:
    """Return how the plan differs from the lock beside it; nothing where there is none."""
    path = lock_file(state.plan.file)
    if not os.path.lexists(path):
        return []
    try:
        named = state.named  # as it was reviewed when the run started; the files may have changed since
        reviewed = Reviewed(digest=str(named.get("digest", "")), scripts=named.get("scripts") or {})
        now = lock_of(state.plan, dict(state.params), reviewed)
        found = list(drift(read_lock(path, state.plan), now, policy_of(state)["ceilings"]))
    except PlanrunError as error:
        return [f"  lock: {line(str(error))}"]
    if not found:
        return [f"  lock: nothing differs from {line(path)}"]
    return [f"  lock: the plan differs from {line(path)}", *[f"    {line(row)}" for row in found]]
