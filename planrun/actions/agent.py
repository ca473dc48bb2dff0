"""The kind `agent` when its step starts: the job of an agent, or of the application of its patch."""

from __future__ import annotations

import os
import shutil

from planrun.actions.render import Recipe, brief
from planrun.actions.tool import process_of
from planrun.expressions.render import render_text
from planrun.model.agenttypes import LEAST_TIMEOUT
from planrun.model.groups import chain
from planrun.model.jsontext import dumps
from planrun.model.progress import PATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.actions.context import StepContext
    from planrun.model.events import AttemptEnded
    from planrun.model.job import Job, Outcome, Prepared
    from planrun.model.plan import Step, Text
    from planrun.model.progress import AttemptState
    from planrun.model.sandbox import Confinement
    from planrun.model.state import RunState
    from planrun.plan.kinds.agent import Agent

_CONFLICT = 3  # `planrun.tools.patching.CONFLICT`
_CUT_OFF = ("lost", "cancelled")  # how an attempt ended that the next one is a part of
_FAILED = frozenset(
    ("budget", "incomplete", "mcp", "model", "patch", "reported", "secrets", "timeout", "turns", "verify")
)
"""Why an attempt failed with whose conversation and copy the next one goes on; its limits count anew."""
_FIELDS = (
    "type",
    "mode",
    "instructions",
    "tools",
    "grantable",
    "mcp",
    "mcp_deny",
    "plan_mode",
    "web",
    "max_tokens",
    "max_turns",
    "max_usd",
    "model",
)


def recipe(step: Step, scope: dict[str, Any], shell: tuple[str, ...]) -> Recipe:  # noqa: ARG001 - as of all kinds
    """Return an agent with its task filled in; raises EvaluationError."""
    action: Agent = step.action  # type: ignore[assignment]
    fields: dict[str, Any] = {name: getattr(action, name) for name in _FIELDS}
    fields |= {"prompt": _parts(action.prompt, scope), "suffix": _parts(action.suffix, scope)}
    fields["workspace"] = "copy" if action.on_copy else "shared" if action.changes else "read"
    argv = (
        "agent",
        action.type,
        dumps({name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}),
    )
    return Recipe(argv=argv, env={}, workdir="", call=fields)


def command(step: Step, recipe: Recipe, file: str) -> tuple[tuple[str, ...], dict[str, Any]]:  # noqa: ARG001
    """Return a placeholder argv; an agent starts no process, and there is no call."""
    return recipe.argv, {}


def prepared(steps: StepContext, step: Step, state: RunState, recipe: Recipe, found: Prepared) -> Prepared:
    """Return the attempt of an agent, or of its patch where one waits to be applied."""
    assert found.job is not None
    known = state.steps[step.id]
    made = known.patched
    if made is not None and made.ended is not None and _is_of(steps, step, state, made):
        return _application(steps, step, made.ended, found)
    job, attempts = found.job, known.attempts[known.anew :]
    session, earlier, counted, failed = job.attempt, [], [], ""
    for attempt in reversed(attempts):
        ended = attempt.ended
        if ended is None or not (ended.status in _CUT_OFF or ended.reason in _FAILED):
            break
        if not _is_of(steps, step, state, attempt):
            break
        session = attempt.n
        if ended.status == "failed" and not failed:
            failed = (ended.error or {}).get("message") or ended.reason
        earlier.append(f"{step.id}.{attempt.n}")
        if not failed:
            counted.append(earlier[-1])
    copy = _copy_of(steps, step, session) if recipe.call["workspace"] == "copy" else ""
    if earlier and not _is_usable(steps, step, session, copy):
        session, earlier, counted, failed = job.attempt, [], [], ""
        copy = _copy_of(steps, step, session) if copy else ""
    agent = {
        **recipe.call,
        "id": f"{step.id}.{job.attempt}",
        "step": step.id,
        "session": session,
        "earlier": earlier,
        "counted": counted,
        "failed": failed,
        "continues": earlier[0] if earlier else "",
        "copy": copy,
    }
    proposed = state.steps[step.id].proposed if earlier else None
    if proposed is not None:
        agent["proposed"] = proposed
    cwd = os.path.join(copy, "tree") if copy else steps.place.workspace
    job = job.but(
        agent=agent,
        cwd=cwd,
        env={**job.env, "PLANRUN_WORKSPACE": cwd},
        timeout=max(LEAST_TIMEOUT, job.timeout),
    )
    return found.but(job=job)


def confined(step: Step, prepared: Prepared, confinement: Confinement | None) -> Prepared:
    """Return an attempt of an agent with its post-checks in a sandbox: they run what it wrote.

    Its own calls are confined one by one; the process that applies a patch is planrun's.
    """
    job = prepared.job
    sandbox = confinement.of_agent(step.sandbox, "medium") if confinement and job else None
    if job is None or sandbox is None or "patch" in job.agent:
        return prepared
    copy = job.cwd if job.agent["copy"] else ""
    following = tuple([each.but(sandbox=sandbox, copy=copy) for each in job.following])
    return prepared.but(job=job.but(sandbox=sandbox, following=following))


def _is_of(steps: StepContext, step: Step, state: RunState, attempt: AttemptState) -> bool:
    """Whether an attempt was made for the step as it is now, after the last end of what it depends on."""
    if attempt.ended is None or attempt.started.fingerprint != steps.fingerprint(step, attempt.n, state):
        return False
    edges = [edge.on for name in (step.id, *chain(state, step.id)) for edge in state.steps[name].step.edges]
    return all(state.steps[name].ended_at <= attempt.started.at for name in edges)


def _copy_of(steps: StepContext, step: Step, session: int) -> str:
    return os.path.join(steps.place.rundir, "copies", step.folder or step.id, str(session))


def _is_usable(steps: StepContext, step: Step, session: int, copy: str) -> bool:
    """Whether an earlier process got so far that its work can be gone on with."""
    if copy:
        return os.path.isfile(os.path.join(copy, "base"))
    folder = os.path.join(steps.place.rundir, "agents", step.folder or step.id)
    return os.path.isfile(os.path.join(folder, f"{session}.jsonl"))


def _application(steps: StepContext, step: Step, made: AttemptEnded, found: Prepared) -> Prepared:
    """Return the attempt that applies the patch of an earlier one to the workspace."""
    assert found.job is not None
    place, job, patch = steps.place, found.job, made.patch
    args = {
        "patch": os.path.join(place.rundir, patch["path"]),
        "sha256": patch["sha256"],
        "files": [{name: each[name] for name in ("path", "op", "mode")} for each in patch["files"]],
        "stage": _stage_of(steps, patch),
    }
    base = os.path.join(place.rundir, "agents", step.folder or step.id, f"{job.attempt}.apply.args")
    os.makedirs(os.path.dirname(base), 0o700, exist_ok=True)
    job = job.but(
        argv=process_of({"name": "patching.apply", "args": args}, base),
        agent={"patch": patch, "outputs": made.outputs},
        env={**job.env, "PLANRUN_OUTPUT": ""},
    )
    return found.but(fingerprint=f"{PATCH}{brief(patch['sha256'])}", job=job)


def _stage_of(steps: StepContext, patch: dict[str, Any]) -> str:
    return os.path.join(steps.place.rundir, f"{patch['path'].removesuffix('.patch')}.{patch['sha256']}.stage")


def concluded(job: Job, outcome: Outcome) -> Outcome:
    """Return the outcome of an agent as it is, and of the application of a patch with the outputs of its agent."""
    if "patch" not in job.agent:
        return outcome
    if outcome.status == "completed":
        return outcome.but(reason="applied", outputs=job.agent["outputs"])
    if outcome.exit_code == _CONFLICT:
        message = "the patch does not fit the workspace as it is now; nothing was changed"
        return outcome.but(reason="conflict", message=message)
    return outcome


def tidy(steps: StepContext, job: Job, outcome: Outcome) -> None:
    """Remove the copy of an agent whose step needs it no more, and what the application of a patch needed."""
    if outcome.status != "completed" or job.following:
        return
    if "patch" in job.agent:
        shutil.rmtree(_stage_of(steps, job.agent["patch"]), ignore_errors=True)
    copies = os.path.join(steps.place.rundir, "copies") + os.sep
    folder = os.path.dirname(job.cwd)
    if folder.startswith(copies):
        shutil.rmtree(folder, ignore_errors=True)


def _parts(text: Text, scope: dict[str, Any]) -> list[list[str]]:
    """Return a text in parts: `text` as the plan has it, and values of other steps with their names, which are data."""
    if isinstance(text, str):
        return [["text", text]] if text else []
    found: list[list[str]] = []
    for part in text[1]:
        if isinstance(part, str):
            found.append(["text", part])
            continue
        value = render_text(("template", (part,)), scope)
        source = part[1].strip()
        found.append(
            ["value", source, value] if source.startswith(("steps", "item", "matrix")) else ["text", value]
        )
    return found
