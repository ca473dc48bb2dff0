"""Assess a step for policies: its risk and its commands, as written or as about to start."""

from __future__ import annotations

import os

from planrun.actions.outputs import SCRIPT
from planrun.actions.trust import Ground, cleaned, raised
from planrun.approval.rules import asks_for_commands
from planrun.plan.compile.risks import commands_of
from planrun.plan.keys.containers import least
from planrun.risk.classifier import Risk, Setting
from planrun.risk.levels import HIGH, rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.approval.rules import Layers
    from planrun.model.job import Job
    from planrun.model.plan import Step

_OWN = (
    *("PLANRUN_OUTPUT", "PLANRUN_PROGRESS", "PLANRUN_WORKSPACE"),
    *("PLANRUN_RUN", "PLANRUN_STEP", "PLANRUN_ATTEMPT", "PLANRUN_HOOK", "TRACEPARENT"),
)


def as_written(step: Step, layers: Layers | None = None) -> dict[str, Any]:
    """Return the facts about a step from the plan's text, as fields of Facts.

    Its commands are left out where no rule of `layers` asks for them: finding them takes as long as all the rest.
    """
    found = _commands(step) if layers is None or asks_for_commands(layers) else None
    return {
        "risk": step.risk,
        "reason": step.risk_reason,
        "effects": step.effects,
        "text": "\n".join([each.action.written() for each in (step, *step.attached_steps)]),
        **(facts_of_commands(found) if found else {}),
    }


def _commands(step: Step) -> Risk | None:
    found = commands_of(step)
    if found is not None:
        for proof in filter(None, map(commands_of, step.attached_steps)):
            found = _joined(found, proof)
    return found


def as_started(
    step: Step, job: Job, place: RunEnvironment, known: dict[tuple[object, ...], Risk]
) -> tuple[dict[str, Any], Risk]:
    """Return the facts about a job that is about to start, as fields of Facts, and its risk with the commands in it.

    `known`: classes that were found in the same run, and where new ones are kept.
    """
    job = _inside(job)
    found = _classified(step, job, place, known)
    for proof, later in zip(step.attached_steps, job.following, strict=False):
        found = _joined(found, _classified(proof, later, place, known))
    if step.container is not None:
        found = _at_least(found, *least(step.container))
    level = step.declared_risk
    declared = bool(level) and rank(level) > rank(found.level)
    fields = {
        "risk": level if declared else found.level,
        "reason": "the plan declares it" if declared else found.reason,
        "effects": found.effects,
        "text": "\n".join(
            [
                _text(each, of)
                for each, of in zip((step, *step.attached_steps), (job, *job.following), strict=False)
            ]
        ),
        **facts_of_commands(found),
    }
    replaced = [] if "destroys" in found.effects else found.overwrites
    lost = next((path for path in replaced if _holds_data(place.workspace, path)), "")
    if lost:
        fields["effects"] = tuple(sorted({*found.effects, "destroys"}))
        fields["reason"] += f"; it replaces what {lost} holds"
    # A rule allows a command by its words only in the workspace: elsewhere they may name other programs and files.
    if _folder_of(job, place).startswith(("..", "/")):
        fields["is_bare"] = False
    return fields, found


def _text(step: Step, job: Job) -> str:
    """Return the script or arguments of a job, also where it is too long to be an argument."""
    if not step.action.is_script or not _is_in_file(job):
        return step.action.written_job(job)
    try:
        with open(job.argv[-1], encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError:  # another step took it away, and so nothing can be run
        return ""


def _is_in_file(job: Job) -> bool:
    return job.argv[-1] == f"{job.env.get('PLANRUN_OUTPUT', '')}{SCRIPT}"


def as_surrounded(
    found: dict[str, Any], risk: Risk, job: Job, workspace: str, *, is_reviewed: bool
) -> tuple[dict[str, Any], Job]:
    """Return the facts with a higher risk where more than the text decides, and the job as it may start.

    What reads whole folders was reviewed with the plan (`is_reviewed`), or its risk is that of the files it meets.
    """
    if job.inside:  # the image decides its environment
        return found, job
    # Only steps that are allowed for their class cost this check.
    ground = Ground(workspace)
    if job.agent and not job.following:  # each of its tools is judged when it is called
        return found, job
    sweeps = () if is_reviewed else risk.sweeps
    above = raised(risk.commands, job.following[0] if job.agent else job, workspace, ground, sweeps)
    if above is not None and rank(above[0]) > rank(found["risk"]):
        found = {**found, "risk": above[0], "reason": above[1]}
    if job.agent:
        return found, job
    return found, cleaned(job, found["risk"], ground)


def facts_of_commands(found: Risk) -> dict[str, Any]:
    """Return the commands of an action, as fields of Facts."""
    return {
        "commands": tuple([command.words for command in found.commands]),
        "is_understood": found.understood,
        "is_bare": found.bare,
    }


def _classified(step: Step, job: Job, place: RunEnvironment, known: dict[tuple[object, ...], Risk]) -> Risk:
    # Variables that the plan adds, including those of its env files, which are read by now.
    inherited = place.env
    env: dict[str, str | None] = {
        name: value
        for name, value in job.env.items()
        if inherited.get(name) != value and name not in _OWN and name not in step.secrets
    }
    # What uses no variable and names no path in a folder does not depend on where the step's own files are.
    # A command is judged by its words alone: an agent also by its patch or plan, a tool by its call.
    is_free = step.action.is_command and "$" not in job.argv[-1]
    is_free = is_free and not any(["/" in word for word in (*job.argv, *env.values())])  # type: ignore[operator]  # noqa: C419 - half the time
    key = (step.action.__class__, job.argv, _folder_of(job, place), *env.items())
    if is_free and key in known:
        return known[key]
    found = _found(step, job, place, env)
    if is_free:
        known[key] = found
    return found


def _holds_data(workspace: str, path: str) -> bool:
    place = os.path.join(workspace, path)
    try:
        return (
            bool(os.listdir(place))
            if path[-1:] == "/"
            else os.path.isfile(place) and os.path.getsize(place) > 0
        )
    except OSError:
        return False


def _inside(job: Job) -> Job:
    """Return a job as what runs, without the container around it."""
    if not job.inside:
        return job
    return job.but(argv=job.inside, following=tuple([_inside(each) for each in job.following]))


def _at_least(found: Risk, level: str, reason: str) -> Risk:
    if rank(level) <= rank(found.level):
        return found
    return found.but(level=level, reason=reason, bare=False)


def _joined(one: Risk, other: Risk) -> Risk:
    """Return the combined risk of two texts of a step: that of the riskier one."""
    worse = other if rank(other.level) > rank(one.level) else one
    return worse.but(
        effects=tuple(sorted({*one.effects, *other.effects})),
        commands=(*one.commands, *other.commands),
        understood=one.understood and other.understood,
        overwrites=(*one.overwrites, *other.overwrites),
        sweeps=(*one.sweeps, *other.sweeps),
        bare=one.bare and other.bare,
    )


def _found(step: Step, job: Job, place: RunEnvironment, env: dict[str, str | None]) -> Risk:
    output = job.env.get("PLANRUN_OUTPUT", "")
    setting = Setting(
        cwd=_folder_of(job, place),
        variables={name: value for name, value in job.env.items() if name in env or name in _OWN},
        places=(
            output,
            job.env.get("PLANRUN_PROGRESS", output),
            f"{place.rundir}/work/{step.folder or step.id}/",
        ),
        workspace=_root(job, place),
    )
    if step.action.is_script and _is_in_file(job):
        reason = "the script is too long to look into"
        return Risk(level=HIGH, reason=reason, effects=("unknown",), understood=False)
    risk: Risk = step.action.classify_job(job, env, setting)
    return risk


def _root(job: Job, place: RunEnvironment) -> str:
    return job.env.get("PLANRUN_WORKSPACE", place.workspace)


def _folder_of(job: Job, place: RunEnvironment) -> str:
    """Return the folder of a job as seen from the workspace, links followed: an earlier step may have made one."""
    root = _root(job, place)
    if job.cwd == root:
        return ""
    path = os.path.relpath(os.path.realpath(job.cwd), os.path.realpath(root))
    return "" if path == "." else path
