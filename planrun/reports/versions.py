"""The versions of a run's plan: what each of them changed, and how plannings ended that made none.

Loaded for runs whose plan was revised, or was to be.
"""

from __future__ import annotations

from planrun.model.planning import lineage
from planrun.reports import facts
from planrun.reports.document import BELOW, Section
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.events import PlanningEnded, RunResumed, RunStarted
    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState
    from planrun.reports.document import Part

    Cause = RunStarted | RunResumed | PlanningEnded

_MOST = 50  # steps that are named of one version, and plannings that are shown
OUTCOMES = {
    "denied": "the model's plan is not allowed; none of it ran",
    "invalid": "the model wrote no valid plan",
    "infeasible": "the model reports that there is no way",
    "failed": "no answer was received",
    "budget": "nothing more may be asked",
    "stopped": "planning was stopped before there was an answer",
}


_OF_SEARCH = {
    **OUTCOMES,
    "denied": "a policy denies the way that was found",
    "invalid": "the way that was found does not fit into the plan",
    "infeasible": "the search found no other way",
    "failed": "the search failed",
    "stopped": "the search was stopped",
}


def outcome_words(state: RunState, ended: PlanningEnded) -> str:
    """Return in words how a planning ended, of a model or of a search."""
    planning = state.planning
    begun = [each.model for each in (planning.started if planning else ()) if each.steps == ended.steps]
    known = _OF_SEARCH if begun and begun[-1].startswith("search: ") else OUTCOMES
    return known.get(ended.outcome, ended.outcome)


def versions(state: RunState) -> list[dict[str, Any]]:
    """Return every plan that a run went by, the first one first, as plain data.

    Keys: version, digest, sha256 (of its copy in the run's folder), cause (file, resume, expand, replan), at, model,
    message, added (ids of new steps), replaced (id to the ids that take its place).
    """
    known: list[dict[str, Any]] = []
    before: Plan | None = None
    for cause in _causes(state):
        named = cause.plan
        if known and known[-1]["version"] == named.get("version"):
            # The same text, with other scripts or parameters.
            known[-1]["digest"] = named.get("digest", "")
            continue
        plan = state.versions.get(named.get("version", 1)) or (state.plan if not known else None)
        known.append(_version(cause, state, plan, before))
        before = plan
    return known


def _causes(state: RunState) -> list[Cause]:
    """Return the events that name a plan, in the order of their times."""
    first: list[Cause] = [state.started] if state.started else []
    later: list[Cause] = [*state.resumed]
    later += [event for event in (state.planning.ended if state.planning else ()) if event.plan]
    return [*first, *sorted([event for event in later if event.plan], key=lambda event: event.at)]


def _version(cause: Cause, state: RunState, plan: Plan | None, before: Plan | None) -> dict[str, Any]:
    purpose = getattr(cause, "purpose", "")
    kind = purpose or ("resume" if hasattr(cause, "rerun") else "file")
    old = {step.id for step in before.steps} if before else set()
    steps = [step for step in plan.steps if step.id not in old] if plan and before else []
    replaced: dict[str, list[str]] = {}
    for step in steps:
        for name in step.replaces:
            replaced.setdefault(name, []).append(step.id)
    return {
        "version": cause.plan.get("version", 1),
        "digest": cause.plan.get("digest", ""),
        "sha256": cause.plan.get("sha256", ""),
        "file": cause.plan.get("file", ""),
        "cause": kind,
        "at": cause.at,
        "model": _model(state, cause) if purpose else "",
        "message": getattr(cause, "message", ""),
        "added": [step.id for step in steps],
        "replaced": replaced,
    }


def _model(state: RunState, cause: Cause) -> str:
    planning = state.planning
    if planning is None:
        return ""
    pairs = zip(planning.started, planning.ended, strict=False)
    return next((started.model for started, ended in pairs if ended is cause), "")


def version_properties(state: RunState) -> dict[str, str]:
    """Return what a test report says of the versions."""
    values = {"planrun.plan_version": str(state.plan.version)}
    if state.planning and (count := state.planning.count("replan")):
        values["planrun.replans"] = str(count)
    labels = lineage(state.plan)
    if labels:
        values["planrun.lineage"] = line(
            ", ".join([f"{name}={label}" for name, label in list(labels.items())[:_MOST]])
        )
    return values


# For people.


def _sections(state: RunState) -> Iterator[Section]:
    """Yield each version with what it changed, and each planning without a new version.

    On the HTML page the steps of each version stand beside those of the version before it, too.
    """
    lines: list[tuple[str, str]] = []
    for version in versions(state):
        lines.append(("", f"v{version['version']}: {_origin(version)}, digest {version['digest'][:12]}"))
        rows = [*([version["message"]] if version["message"] else []), *_changes(state, version)]
        lines += [(BELOW, row) for row in rows]
    for ended in _fruitless(state):
        lines.append(("", _planning_row(state, ended)))
        lines += [(BELOW, row) for row in _refusals(ended)]
    yield Section(heading="Plan versions", lines=lines)
    from itertools import pairwise

    hidden = facts.has_secret_in_plan(state)
    for before, after in pairwise(versions(state)):
        old, new = state.versions.get(before["version"]), state.versions.get(after["version"])
        beside, same = _beside(old, new, hidden=hidden) if old and new else ([], 0)
        yield Section(
            heading=f"Plan versions {before['version']} and {after['version']}",
            columns=((f"Version {before['version']}", "code"), (f"Version {after['version']}", "code")),
            rows=beside,
            note=f"{same} step{' is' if same == 1 else 's are'} the same in both." if same else "",
            forms=("html",),
        )


def _beside(old: Plan, new: Plan, *, hidden: bool) -> tuple[list[tuple[str, str]], int]:
    """Return steps of two versions side by side, those that replace others beside these, and how many are the same."""
    known = {step.id: step for step in old.steps}
    instead: dict[str, list[Step]] = {}
    added: list[Step] = []
    for step in new.steps:
        if step.id not in known:
            first = next((name for name in step.replaces if name in known), "")
            (instead.setdefault(first, []) if first else added).append(step)
    replaced = {name for step in new.steps if step.id not in known for name in step.replaces}
    rows = []
    for name in [name for name in known if name in replaced][:_MOST]:
        beside = instead.get(name, [])
        rows.append(
            (
                _written(known[name], hidden=hidden),
                "\n\n".join([_written(each, hidden=hidden) for each in beside]),
            )
        )
    rows += [("", _written(step, hidden=hidden)) for step in added[:_MOST]]
    return rows, len(set(known) - replaced)


def _written(step: Step, *, hidden: bool) -> str:
    """Return a step as it is written, in a few lines."""
    waits = ", ".join([edge.on for edge in step.edges])
    rows = [f"{line(step.id)}: {line(step.title)}" if step.title else line(step.id)]
    rows += [f"depends on: {line(waits)}"] if waits else []
    rows += [] if hidden else [step.action.written()[:1000]]
    return "\n".join(filter(None, rows))


def _origin(version: Mapping[str, Any]) -> str:
    """Say where a version comes from."""
    cause, model = version["cause"], version["model"] or "a model"
    if cause == "replan":
        return f"replanned by {model}"
    if cause == "expand":
        return f"expanded by {model}"
    return f"`resume --plan {version['file']}`" if cause == "resume" else str(version["file"])


def _changes(state: RunState, version: Mapping[str, Any]) -> Iterator[str]:
    """Say in words what a version added and put in the place of what."""
    plan = state.versions.get(version["version"])
    steps: dict[str, Step] = {step.id: step for step in plan.steps} if plan else {}
    for name in version["added"][:_MOST]:
        step = steps.get(name)
        title = f": {step.title}" if step and step.title else ""
        instead = f", replaces {', '.join(step.replaces)}" if step and step.replaces else ""
        yield f"+ step {name}{title}{instead}"
    if len(version["added"]) > _MOST:
        yield f"and {len(version['added']) - _MOST} more"
    for name, others in list(version["replaced"].items())[:_MOST]:
        old = state.steps.get(name)
        ended = f"{old.status}: {facts.cause(old)}" if old and old.ended else "replaced"
        yield f"- step {name} ({ended}), replaced by {', '.join(others)}"


def _fruitless(state: RunState) -> list[PlanningEnded]:
    """Return the plannings that made no version."""
    ended = state.planning.ended if state.planning else []
    return [event for event in ended if event.outcome != "revised"][:_MOST]


def _planning_row(state: RunState, ended: PlanningEnded) -> str:
    what = "replanning" if ended.purpose == "replan" else "expanding"
    why = outcome_words(state, ended)
    message = f": {ended.message}" if ended.message and not ended.refusals else ""
    return f"{what} {', '.join(ended.steps[:_MOST])}: {why}{message}"


def _refusals(ended: PlanningEnded) -> Iterator[str]:
    """Name each refusal with its rule, and each problem."""
    for refusal in ended.refusals[:_MOST]:
        step = f"step {refusal['step']}" if refusal.get("step") else "the plan"
        yield f"{step} denied by {refusal.get('rule', '')}: {refusal.get('reason', '')}"
    yield from ended.problems[:_MOST]


VERSIONS: Part = {
    "sections": _sections,
    "properties": version_properties,
    "ledger": {"versions": versions},
}
