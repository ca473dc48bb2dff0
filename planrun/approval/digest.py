"""The digest over plan, parameters and scripts: only what was reviewed runs. HOT."""

from __future__ import annotations

import os

from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan import cache as kept
from planrun.plan.yaml.file import NotRegular, read_script
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan

FORM = "planrun-reviewed-2"  # changes when the same input gets another digest


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


def review(plan: Plan, params: Mapping[str, Any], workspace: str, *, recalls: bool = False) -> Reviewed:
    """Read each file that a plan can name, once, and return what a run of it may execute.

    `recalls`: what was found before is taken as long as no file changed its name, size, time or number; without it
    every file is read. Raises InvalidInput for a script that is no regular file or leads out of the workspace.
    """
    if not plan.notify and not any(step.action.starts_process for step in plan.reviewed()):
        return Reviewed(digest=digest_of(plan.digest, params, {}))
    from planrun.approval.listing import Listing, state_of

    listing = Listing(workspace)
    key = ""
    if recalls:
        facts = (
            FORM,
            plan.digest,
            plan.file,
            dumps(_ordered(params)),
            workspace,
            listing.is_git,
            listing.stamp,
        )
        key = kept.key_of(repr(facts).encode("utf-8", "surrogatepass"), "scripts")
        known = kept.read(key)
        if known is not None and all(
            [state_of(os.path.join(workspace, path)) == state for path, state in known["seen"].items()]  # noqa: C419 - half the time
        ):
            contents = _contents(workspace, known["ran"])
            if contents is not None:
                return Reviewed(**known["fields"], contents=contents)
    from planrun.approval.scripts import collect  # once for each state of the files

    found = collect(plan, params, workspace, listing)
    fields: dict[str, Any] = {
        "digest": digest_of(plan.digest, params, found.known),
        "scripts": found.known,
        "uncovered": found.uncovered,
        "later": found.later,
    }
    if key:
        ran = {path: digest for path, digest in found.known.items() if digest in found.contents}
        kept.write(key, {"seen": found.seen, "ran": ran, "fields": fields})
    return Reviewed(**fields, contents=found.contents)


def _contents(workspace: str, ran: Mapping[str, str]) -> dict[str, bytes] | None:
    """Return the bytes of scripts by their sha256; None when one is not what it was."""
    found: dict[str, bytes] = {}
    for path, digest in ran.items():
        try:
            data = read_script(os.path.realpath(os.path.join(workspace, path)))
        except (OSError, ValueError, NotRegular):
            return None
        if sha256(data).hexdigest() != digest:
            return None
        found[digest] = data
    return found


def gaps(reviewed: Reviewed) -> dict[str, str]:
    """Return what may run and is no part of the digest, sorted, with the reason."""
    later = {
        f"{name}: a value of another step": "it is known when the step starts" for name in reviewed.later
    }
    return dict(sorted({**reviewed.uncovered, **later}.items()))


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
    if uncovered := gaps(reviewed):
        named["uncovered"] = uncovered
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
