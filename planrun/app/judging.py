"""What a step would do, for those who decide about it: its risk and its commands, as written or as about to start."""

from __future__ import annotations

import os

from planrun.app.describing import action
from planrun.model.plan import Exec, Run
from planrun.risk.actions import of_argv, of_script
from planrun.risk.classify import Risk, Setting
from planrun.risk.levels import worst
from planrun.steps.outputs import SCRIPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.model.job import Job
    from planrun.model.plan import Plan, Step

_OWN = ("PLANRUN_OUTPUT", "PLANRUN_WORKSPACE", "PLANRUN_RUN", "PLANRUN_STEP", "PLANRUN_ATTEMPT")


def as_written(step: Step) -> dict[str, Any]:
    """Return what the text of a plan tells of a step, as fields of Facts."""
    return {
        "risk": step.risk,
        "reason": step.risk_reason,
        "effects": step.effects,
        "text": action(step),
        # Its commands are known when it starts; until then a rule about commands is looked for in the text.
        "is_understood": False,
    }


def as_started(step: Step, plan: Plan, job: Job, workspace: str) -> tuple[dict[str, Any], Risk]:
    """Return what is about to start, as fields of Facts, and its class with the commands in it."""
    found = _classified(step, plan, job, workspace)
    risk = worst(found.level, step.declared_risk) if step.declared_risk else found.level
    fields = {
        "risk": risk,
        "reason": found.reason if risk == found.level else "declared in the plan",
        "effects": found.effects,
        "text": job.argv[-1] if isinstance(step.action, Run) else " ".join(job.argv),
        **_commands(found),
    }
    return fields, found


def _commands(found: Risk) -> dict[str, Any]:
    return {
        "commands": tuple([command.words for command in found.commands]),
        "is_understood": found.understood,
        "is_bare": found.bare,
    }


def _classified(step: Step, plan: Plan, job: Job, workspace: str) -> Risk:
    env = {name: job.env.get(name) for name in _names(step, plan)}
    output = job.env.get("PLANRUN_OUTPUT", "")
    own = {name: job.env[name] for name in _OWN if name in job.env}
    setting = Setting(
        cwd=_below(job.cwd, workspace),
        variables={**{name: value for name, value in env.items() if value is not None}, **own},
        places=(output, f"{os.path.dirname(os.path.dirname(output))}/work/{step.id}/"),
        workspace=workspace,
    )
    if isinstance(step.action, Exec):
        return of_argv(job.argv, env, setting)
    if job.argv[-1] == f"{output}{SCRIPT}":
        return Risk(level="high", reason="the script is too long to look into", understood=False)
    return of_script(job.argv[-1], job.argv[:-1], env, setting)


def _names(step: Step, plan: Plan) -> Iterable[str]:
    """The variables that the plan sets for a step, but for those of env files."""
    return dict.fromkeys([*plan.env, *step.env])


def _below(folder: str, workspace: str) -> str:
    path = os.path.relpath(folder, workspace)
    return "" if path == "." else path
