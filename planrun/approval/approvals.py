"""Approval files in a run: which of them covers a step, why the others do not, and how often each was used.

Approvals of plans before they run: what a reviewer approves, and the approval file.
"""

from __future__ import annotations

import json
import os
import pwd
import time
from datetime import UTC, datetime

from planrun.approval.digest import gaps
from planrun.approval.policies import MOST_USES, VERSION, all_given, approval_in, moment, not_committed
from planrun.errors import InvalidInput
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.opening import read_record
from planrun.plan.problems import name_hint
from planrun.plan.schema.forms import as_duration
from planrun.records.ledger import sync_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from planrun.approval.digest import Reviewed
    from planrun.approval.policies import Approval
    from planrun.model.plan import Plan

USES = "approvals.jsonl"
"""In `.planrun`: a line for each run that used an approval."""


def read_approvals(files: Iterable[str]) -> tuple[Approval, ...]:
    """Read approval files, once; a pattern may name several, or none. Raises InvalidInput, InvalidPlan."""
    result: dict[str, Approval] = {}
    for given in [given for file in files for given in all_given(file, "approval")]:
        approval = approval_in(given.data, given.name)
        other = result.get(approval.id)
        if other is not None and other.but(file="") != approval.but(file=""):
            raise InvalidInput(f"{other.file} and {given.name} have the same id and different contents")
        result.setdefault(approval.id, approval)
    return tuple(result.values())


def without_effect(files: Iterable[str]) -> tuple[str, ...]:
    """Return why files of this checkout have no effect: they differ from the commit of the approvals."""
    result: list[str] = []
    for file in files:
        result += [given.ignored for given in all_given(file, "approval") if given.ignored]
        result += not_committed(file)
    return tuple(dict.fromkeys(result))


class Approvals:
    """The approvals that a run was given; `home`: its `.planrun`, whose lock it holds.

    Runs use up an approval, not steps: a resumed run uses what it has used before.
    """

    def __init__(
        self,
        given: tuple[Approval, ...],
        home: str,
        run: str,
        now: Callable[[], float] = time.time,
        without_effect: tuple[str, ...] = (),
    ) -> None:
        self._given = given
        self._without_effect = without_effect
        self._path = os.path.join(home, USES)
        self._run = run
        self._now = now
        self._broken = ""

    def find(self, step: str, digest: str) -> Approval | None:
        """Return the first approval that covers a step now; an empty step means the whole plan."""
        return next((one for one in self._given if not self._against(one, step, digest)), None)

    def covers(self, step: str, digest: str) -> bool:
        """Return whether an approval covers a step; records no use."""
        return self.find(step, digest) is not None

    def cover(self, step: str, digest: str) -> str:
        """Return the id of an approval that covers a step, after its use is on disk; "" when none does.

        None does either when that cannot be written: a use that is not counted would be one more.
        """
        found = self.find(step, digest)
        if found is None:
            return ""
        try:
            if self._run not in self._runs(found.id):
                self._count(found, digest)
        except OSError as error:
            self._broken = f"its use cannot be written: {self._path}: {error.strerror}"
            return ""
        return found.id

    def approver(self, approval: str) -> str:
        """Return the approver of an approval."""
        return next((one.approver for one in self._given if one.id == approval), "")

    def why_not(self, step: str, digest: str) -> str:
        """Return for each approval why it does not cover a step, and which files have no effect; empty without any."""
        reasons = [(one, self._against(one, step, digest)) for one in self._given]
        texts = [f"{one.file}: {reason}" for one, reason in reasons if reason]
        return "; ".join([*texts, *self._without_effect])

    def _against(self, approval: Approval, step: str, digest: str) -> str:
        if self._broken:
            return self._broken
        if approval.digest != digest:
            return f"it approves {approval.digest[:12]}; this plan is {digest[:12]}"
        if not approval.names(step):
            return "it does not name this step" if step else "it does not approve the whole plan"
        if moment(approval.expires) <= datetime.fromtimestamp(self._now(), UTC):
            return f"it expired at {approval.expires}"
        try:
            runs = self._runs(approval.id)
        except OSError as error:
            return f"its uses cannot be read: {self._path}: {error.strerror}"
        if self._run not in runs and len(runs) >= approval.uses:
            times = "run" if approval.uses == 1 else "runs"
            return f"it was valid for {approval.uses} {times}, and is used up"
        return ""

    def _runs(self, approval: str) -> set[str]:
        begin = _begin(approval)
        result: set[str] = set()
        for number, line in enumerate(self._lines()):
            try:
                entry = json.loads(line)
                if entry["id"] == approval:
                    result.add(str(entry["run"]))
            except (ValueError, KeyError, TypeError, RecursionError):
                text = line.decode("utf-8", "replace")
                if text.startswith(begin) or begin.startswith(text):
                    result.add(f"line {number}")
        return result

    def _lines(self) -> list[bytes]:
        try:
            data = read_record(self._path)
        except FileNotFoundError:
            return []
        return [line for line in data.split(b"\n") if line.strip(b"\0 ")]

    def _count(self, approval: Approval, digest: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now()))
        rest = dumps({"run": self._run, "at": at, "approver": approval.approver, "digest": digest})
        line = f"{_begin(approval.id)},{rest[1:]}\n".encode()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self._path, flags, 0o600)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":  # the last writer was killed
                line = b"\n" + line
            while line:
                line = line[os.write(fd, line) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        sync_path(os.path.dirname(self._path))


def _begin(approval: str) -> str:
    return f'{{"id":{dumps(approval)}'


_DAY = 86400.0
_LONGEST = 10 * 366 * _DAY  # seconds of what an approval may last
# Variables of CI systems for the user who started the job.
_ACTORS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILDKITE_BUILD_CREATOR")


class Grant(Record):
    """The terms of a new approval; no steps: the whole plan."""

    steps: tuple[str, ...] = ()
    expires: str = "168h"
    uses: int = 1
    approver: str | None = None  # None: the user of the CI system, or of this system


def approval_file(plan: str) -> str:
    """Return the default path of an approval of a plan file: `release.approval.json`."""
    return os.path.splitext(plan)[0] + ".approval.json"


def approval_of(plan: Plan, reviewed: Reviewed, grant: Grant) -> dict[str, Any]:
    """Return the data of an approval file; raises InvalidInput for an impossible grant."""
    known = [step.id for step in plan.steps]
    for name in grant.steps:
        if name not in known:
            hint = name_hint(name, known, "steps")
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
    """Return the end of a duration such as `168h` or `7d`, or of an RFC 3339 time; raises InvalidInput."""
    try:
        end = moment(text).timestamp()
    except ValueError:
        end = time.time() + _span(text)
    if end <= time.time():
        raise InvalidInput(f"the approval would be expired already: {text}")
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
    """Return the default approver: the user that the CI system names, else the current user."""
    for name in _ACTORS:
        if os.environ.get(name):
            return os.environ[name]
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def summary(plan: Plan, reviewed: Reviewed, approval: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines for the approver: steps with risk and reason, scripts, and what the approval does not cover."""
    yield f"approved: {plan.file}, digest {reviewed.digest}"
    chosen = approval["steps"]
    for step in plan.steps:
        if chosen == ["*"] or step.id in chosen:
            risk = step.declared_risk or step.risk
            yield f"  {step.id}: {risk}" + (f", {step.risk_reason}" if step.risk_reason else "")
    for path, digest in sorted(reviewed.scripts.items()):
        yield f"  script {path}: {digest[:12]}"
    for what, why in gaps(reviewed).items():
        yield f"  not part of it: {what}: {why}"
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
    """Return the text of an approval file."""
    return json.dumps(approval, indent=2, ensure_ascii=False) + "\n"
