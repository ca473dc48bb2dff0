"""The patch of an agent: its facts, its risk, and the search for secrets in it."""

from __future__ import annotations

import json
import os

from planrun.model.keyshapes import find
from planrun.opening import read_record
from planrun.risk.classifier import Setting, ground_of
from planrun.risk.paths import writing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.ports import Masks

_NAMED = 3  # files in a reason


class Refused(Exception):
    """A patch that cannot be offered; the message says why."""


def facts_of(out: str, rundir: str, masks: Masks | None) -> dict[str, Any]:
    """Return the facts about the patch in a file of a run; empty when nothing changed. Raises Refused."""
    found: dict[str, Any] = json.loads(read_record(f"{out}.json"))
    if not found["files"]:
        return {}
    text = read_record(out).decode("utf-8", "surrogateescape")
    if why := secret_in(text, masks):
        os.unlink(out)  # records keep no secret
        raise Refused(why)
    level, reason = risk_of([each["path"] for each in found["files"]])
    return {
        "path": os.path.relpath(out, rundir),
        "sha256": found["sha256"],
        "bytes": found["bytes"],
        "base": found["base"],
        "insertions": found["insertions"],
        "deletions": found["deletions"],
        "files": found["files"],
        "risk": level,
        "risk_reason": reason,
    }


def secret_in(patch: str, masks: Masks | None) -> str:
    """Return why a patch holds a secret: a value that is masked, or the form of a credential in an added line."""
    if masks is not None and masks.mask_text(patch) != patch:
        return "the patch holds the value of a secret of this run"
    added = "\n".join([line[1:] for line in patch.split("\n") if line.startswith("+")])
    for _, kind in find(added):
        return f"the patch adds what looks like {kind}"
    return ""


def risk_of(paths: list[str]) -> tuple[str, str]:
    """Return the class of a patch and the reason: high for files that control what runs later."""
    ground = ground_of(Setting())
    found = [reason for path in paths if (reason := writing(path, "", ground))]
    if found:
        more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return "high", f"the patch changes {'; '.join(found[:_NAMED])}{more}"
    return "low", f"the patch changes {len(paths)} file{'' if len(paths) == 1 else 's'} of the workspace"


def line_of(patch: dict[str, Any]) -> str:
    """Return a patch in one line: `2 files, +12 -3, sha256 0123456789ab`."""
    count = len(patch["files"])
    files = f"{count} file{'' if count == 1 else 's'}"
    return f"{files}, +{patch['insertions']} -{patch['deletions']}, sha256 {patch['sha256'][:12]}"
