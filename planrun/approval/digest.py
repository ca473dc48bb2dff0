"""The digest over plan, parameters and scripts: only what was reviewed runs. HOT."""

from __future__ import annotations

from planrun.actions.render import is_literal
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan

FORM = "planrun-reviewed-1"  # changes when the same input gets another digest


class Reviewed(Record):
    """What a run may execute: scripts by workspace-relative path, each with its sha256, read once.

    `uncovered`: files that steps run and that could not be read, and why. `later`: steps whose scripts depend on values
    that are known only during the run. `contents`: bytes by sha256.
    """

    digest: str
    scripts: Mapping[str, str] = {}
    uncovered: Mapping[str, str] = {}
    later: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = {}


def review(plan: Plan, params: Mapping[str, Any], workspace: str) -> Reviewed:
    """Read each script that a plan names, once, and return what a run of it may execute.

    Raises InvalidInput for a script that is no regular file or leads out of the workspace.
    """
    if plan.notify or any(step.scripts or step.mentions or not is_literal(step) for step in plan.reviewed()):
        from planrun.approval.scripts import collect  # few plans name scripts

        found = collect(plan, params, workspace)
        return Reviewed(
            digest=digest_of(plan.digest, params, found.known),
            scripts=found.known,
            uncovered=found.uncovered,
            later=found.later,
            contents=found.contents,
        )
    return Reviewed(digest=digest_of(plan.digest, params, {}))


def named_plan(plan: Plan, reviewed: Reviewed) -> dict[str, Any]:
    """Return the ledger's record of a run's plan and of its review."""
    named: dict[str, Any] = {
        "name": plan.name,
        "version": plan.version,
        "digest": reviewed.digest,
        "sha256": sha256(plan.source).hexdigest(),  # of the copy in the run's folder
        "file": plan.file,
    }
    if plan.goal:
        named["goal"] = plan.goal
    if plan.files:
        named["files"] = files_of(plan)
    if reviewed.scripts:
        named["scripts"] = dict(sorted(reviewed.scripts.items()))
    if reviewed.uncovered:
        named["uncovered"] = dict(sorted(reviewed.uncovered.items()))
    # The author of a step is not part of the text; in a plan that a model wrote, every step has a model as author.
    if plan.version > 1 or plan.steps[0].origin != "file":
        origins = {step.id: step.origin for step in plan.steps if step.origin != "file"}
        if origins:
            named["origins"] = origins
    return named


def files_of(plan: Plan) -> dict[str, str]:
    """Return the sha256 of each file that a plan uses, by its path from the plan's folder."""
    return {path: str(sha256(data).hexdigest()) for path, data in sorted(plan.files.items())}


def digest_of(canonical: str, params: Mapping[str, Any], scripts: Mapping[str, str]) -> str:
    """Return the digest of what was reviewed, hex; `canonical` is that of the plan alone."""
    parts = [FORM, canonical, _ordered(params), sorted(scripts.items())]
    return str(sha256(dumps(parts).encode()).hexdigest())


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list | tuple) else value
