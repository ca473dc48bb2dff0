"""The JSON document of a notification, from the state of a run: everything in it is clean, masked text of bounded size.

`schemas/notification.schema.json` describes it.
"""

from __future__ import annotations

from planrun import __version__
from planrun.reports import facts
from planrun.reports.escape import line, tail
from planrun.reports.gates import commands, open_gates, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.events import GateOpened
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Masks

VERSION = 1
MAX_STEPS = 20
"""Failed steps, and open gates, that are named; the rest is counted."""
_TEXT = 500  # characters of a text
_LAST = 4096  # bytes of a log in which the last line is looked for
_VERBS = {
    "failed": "failed",
    "recovered": "recovered",
    "waiting": "waits for an answer",
    "completed": "completed",
    "cancelled": "was cancelled",
}
_MARKS = {"failed": "✗", "recovered": "✓", "completed": "✓", "waiting": "⏸", "cancelled": "⊗"}


def document(
    event: str, state: RunState, rundir: str, environ: Mapping[str, str], masks: Masks | None = None
) -> dict[str, Any]:
    """Return the document of an event of a run as JSON data."""
    failed = [
        step
        for step in facts.listed(state)
        if step.status == "failed" and state.tolerance(step.step.id) is None
    ]
    waiting = open_gates(state)
    run = {
        "id": line(state.started.run) if state.started else "",
        "status": "waiting" if event == "waiting" else facts.status_of(state),
        "exit_code": 5 if event == "waiting" and state.exit_status is None else state.exit_status,
        "reason": line(facts.ending(state) or facts.objection(state), _TEXT) if event != "waiting" else "",
        "started_at": state.started.at if state.started else "",
        "duration_s": round(facts.elapsed(state), 3),
    }
    found = {
        "notification": VERSION,
        "event": event,
        "text": "",
        "planrun": __version__,
        "run": run,
        "plan": {
            "name": line(state.plan.name, 200),
            "file": line(state.plan.file, _TEXT),
            "digest": state.plan.digest,
        },
        "source": _source(state, environ),
        "summary": state.summary(),
        "failed_steps": [_failed(step, state, rundir) for step in failed[:MAX_STEPS]],
        "more_failed_steps": max(0, len(failed) - MAX_STEPS),
        "waiting": [_waiting(opened, state) for opened in waiting[:MAX_STEPS]],
        "more_waiting": max(0, len(waiting) - MAX_STEPS),
        "commands": _commands(state),
    }
    found["text"] = _text(found)
    masked: dict[str, Any] = masks.mask_value(found) if masks else found
    return masked


def example(event: str, plan: Any, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return a document for a try: it says that no run is behind it."""
    found: dict[str, Any] = {
        "notification": VERSION,
        "event": event,
        "text": "",
        "planrun": __version__,
        "run": {
            "id": "test",
            "status": "test",
            "exit_code": None,
            "reason": "a test",
            "started_at": "",
            "duration_s": 0.0,
        },
        "plan": {"name": line(plan.name, 200), "file": line(plan.file, _TEXT), "digest": plan.digest},
        "source": _ci(environ),
        "summary": {},
        "failed_steps": [],
        "more_failed_steps": 0,
        "waiting": [],
        "more_waiting": 0,
        "commands": [],
    }
    found["text"] = (
        f"{_MARKS[event]} {found['plan']['name']}: a test of the event `{event}`, no run is behind it"
    )
    return found


def _source(state: RunState, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what CI works on, as the run recorded it, and the address of the CI job."""
    context = state.started.context if state.started else {}
    return {
        **_ci(environ),
        **{name: line(str(context.get(name, "")), 300) for name in ("ref", "sha", "event")},
    }


def _ci(environ: Mapping[str, str]) -> dict[str, Any]:
    from planrun.settings import ci_context

    context = ci_context(environ)
    named = {name: line(str(context[name]), 300) for name in ("ref", "sha", "event")}
    return {"url": job_url(environ), **named}


# Variables of CI systems that hold the address of the job.
_URLS = ("CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "RUN_DISPLAY_URL", "BUILD_URL")


def job_url(environ: Mapping[str, str]) -> str:
    """Return the address of the CI job; empty where none is known."""
    server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    if server and repository and environ.get("GITHUB_RUN_ID"):
        url = f"{server}/{repository}/actions/runs/{environ['GITHUB_RUN_ID']}"
    elif environ.get("SYSTEM_COLLECTIONURI") and environ.get("BUILD_BUILDID"):
        project = environ.get("SYSTEM_TEAMPROJECT", "")
        url = f"{environ['SYSTEM_COLLECTIONURI']}{project}/_build/results?buildId={environ['BUILD_BUILDID']}"
    else:
        url = next((environ[name] for name in _URLS if environ.get(name)), "")
    is_web = url.startswith(("https://", "http://")) and url.isprintable() and not set(' <>|"') & set(url)
    return url if is_web and len(url) < 1000 and "@" not in url.partition("://")[2].partition("/")[0] else ""


def _failed(step: StepState, state: RunState, rundir: str) -> dict[str, Any]:
    attempt = facts.last(step)
    ended = attempt.ended if attempt else None
    error = ended.error if ended and ended.error else {}
    return {
        "id": facts.name(step),
        "title": line(step.step.title, 200),
        "reason": step.reason,
        "class": line(str(error.get("class", "")), 60),
        "exit_code": step.exit_code,
        "message": line(facts.sentence(step), _TEXT),
        "last_line": _last_line(rundir, attempt.started.log) if attempt else "",
        "file": line(state.plan.file_of(step.step), _TEXT),
        "line": step.step.line,
        "duration_s": round(facts.duration(step), 3),
    }


def _last_line(rundir: str, log: str) -> str:
    """Return the last line of a log that is not empty."""
    rows = [row.strip() for row in tail(rundir, log, _LAST).split("\n") if row.strip()] if log else []
    return line(rows[-1], _TEXT) if rows else ""


def _waiting(opened: GateOpened, state: RunState) -> dict[str, Any]:
    return {
        "step": line(opened.step),
        "kind": opened.kind,
        "question": line(opened.question, _TEXT),
        "reason": line(opened.reason, _TEXT),
        "risk": opened.risk,
        "until": until(opened),
        "commands": [line(each, _TEXT) for each in commands(state, opened)[:10]],
    }


def _commands(state: RunState) -> list[str]:
    """Return the commands that show the run and continue it, as far as they apply."""
    run = line(state.started.run) if state.started else "RUN"
    found = [f"planrun runs show {run}"]
    if state.status in ("failed", "cancelled", "paused"):
        found.append(f"planrun resume {run}")
    return found


def _text(found: Mapping[str, Any]) -> str:
    """Return the document in one line: `✗ release failed: build, test (main, 1a2b3c4)`."""
    event = found["event"]
    text = f"{_MARKS[event]} {found['plan']['name']} {_VERBS[event]}"
    named = [each["id"] for each in found["failed_steps"]] if event == "failed" else []
    if event == "waiting":
        named = [each["step"] or "the plan" for each in found["waiting"]]
    if named:
        rest = len(named) - 5 + found["more_failed_steps" if event == "failed" else "more_waiting"]
        text += f": {', '.join(named[:5])}" + (f" and {rest} more" if rest > 0 else "")
    elif found["run"]["reason"] and event != "recovered":
        text += f": {found['run']['reason']}"
    source = found["source"]
    ref = source["ref"].removeprefix("refs/heads/").removeprefix("refs/tags/")
    about = ", ".join([each for each in (ref, source["sha"][:7]) if each])
    return f"{text} ({about})" if about else text


def variables(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a command that is notified."""
    return {
        "PLANRUN_EVENT": found["event"],
        "PLANRUN_TEXT": found["text"],
        "PLANRUN_RUN": found["run"]["id"],
        "PLANRUN_STATUS": found["run"]["status"],
        "PLANRUN_EXIT_CODE": "" if found["run"]["exit_code"] is None else str(found["run"]["exit_code"]),
        "PLANRUN_PLAN": found["plan"]["name"],
        "PLANRUN_URL": found["source"]["url"],
    }
