"""Approvals of plans that do not run yet: what somebody approves, and the file that says so."""

from __future__ import annotations

import json
import os
import time

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.source.approvalfile import MOST_USES, VERSION, moment
from planrun.source.forms import as_duration
from planrun.source.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.app.reviewed import Reviewed
    from planrun.model.plan import Plan

_DAY = 86400.0
_LONGEST = 10 * 366 * _DAY  # seconds of what an approval may last
# Where CI systems say who started the job.
_ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILDKITE_BUILD_CREATOR")


class Grant(Record):
    """What somebody grants, as given; no steps: the whole plan."""

    steps: tuple[str, ...] = ()
    expires: str = "168h"
    uses: int = 1
    approver: str | None = None  # None: whom the CI system or the system names


def approval_file(plan: str) -> str:
    """Return where an approval of a plan file stands when nothing else is said: `release.approval.json`."""
    return os.path.splitext(plan)[0] + ".approval.json"


def approval_of(plan: Plan, reviewed: Reviewed, grant: Grant) -> dict[str, Any]:
    """Return what an approval file says; raises InvalidInput for a grant that cannot be made."""
    known = [step.id for step in plan.steps]
    for name in grant.steps:
        if name not in known:
            hint = did_you_mean(name, known)
            raise InvalidInput(f'no step "{name}" in {plan.file}' + (f"; {hint}" if hint else ""))
    if not 0 < grant.uses <= MOST_USES:
        raise InvalidInput(f"an approval has from 1 to {MOST_USES} uses, not {grant.uses}")
    approver = default_approver() if grant.approver is None else grant.approver
    if not approver.strip() or len(approver) > 200 or not approver.isprintable():
        raise InvalidInput("the approver is a line of 1 to 200 characters")
    return {
        "version": VERSION,
        "id": f"a-{os.urandom(8).hex()}",
        "digest": reviewed.digest,
        "steps": list(dict.fromkeys(grant.steps)) or ["*"],
        "approver": approver,
        "expires": expiry(grant.expires),
        "uses": grant.uses,
    }


def expiry(text: str) -> str:
    """Return when something ends that lasts `168h` or `7d`, or that ends at an RFC 3339 time; raises InvalidInput."""
    try:
        end = moment(text).timestamp()
    except ValueError:
        end = time.time() + _span(text)
    if end <= time.time():
        raise InvalidInput(f"an approval that expires at {text} is of no use")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))


def _span(text: str) -> float:
    days, mark, rest = text.partition("d")
    try:
        if mark and days.isascii() and days.isdecimal() and len(days) < 6:
            seconds = int(days) * _DAY + (as_duration(rest) if rest else 0.0)
        else:
            seconds = as_duration(text)
    except ValueError:
        raise InvalidInput(
            f'--expires takes a duration such as 168h or 7d, or a time such as 2026-01-31T09:30:00Z, not "{text}"'
        ) from None
    if not 0 < seconds <= _LONGEST:
        raise InvalidInput(f"an approval lasts ten years at most, not {text}")
    return seconds


def default_approver() -> str:
    """Return who approves when nobody is named: whom the CI system names, else the user."""
    import pwd

    for name in _ACTORS:
        if os.environ.get(name):
            return os.environ[name]
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def told(plan: Plan, reviewed: Reviewed, approval: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is approved, for whoever approves it: steps with risk and reason, scripts, and what is left open."""
    yield f"approved: {plan.file}, digest {reviewed.digest}"
    chosen = approval["steps"]
    for step in plan.steps:
        if chosen == ["*"] or step.id in chosen:
            risk = step.declared_risk or step.risk
            yield f"  {step.id}: {risk}" + (f", {step.risk_reason}" if step.risk_reason else "")
    for path, digest in sorted(reviewed.scripts.items()):
        yield f"  script {path}: {digest[:12]}"
    for path, why in sorted(reviewed.uncovered.items()):
        yield f"  not part of it: {path}: {why}"
    for name in reviewed.later:
        yield f"  not part of it: scripts of {name} whose names are not known before it starts"
    times = "one run" if approval["uses"] == 1 else f"{approval['uses']} runs"
    yield f"by {approval['approver']}, for {times}, until {approval['expires']}"


def write_approval(path: str, approval: Mapping[str, Any]) -> None:
    """Write an approval file, and the folders on its way; raises InvalidInput. A file is never overwritten."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(as_text(approval))
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; -o names another file") from None
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from None


def as_text(approval: Mapping[str, Any]) -> str:
    """Return an approval as it is written."""
    return json.dumps(approval, indent=2, ensure_ascii=False) + "\n"
