"""The report on two plans: the difference, their sources, and the approvals that the new one needs."""

from __future__ import annotations

import os

from planrun.app.secrets import read_secrets
from planrun.approval.digest import Listing
from planrun.approval.scripts import names_of_steps
from planrun.diff.approvals import Approvals, approvals
from planrun.diff.differences import Difference, renamed
from planrun.diff.plans import compare
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.revisions import blob_name, blobs, files_of_commit, read_side
from planrun.plan.yaml.file import NotRegular, read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from planrun.diff.approvals import Terms
    from planrun.plan.problems import Problem
    from planrun.plan.revisions import Side


class Script(Record):
    """A script that both plans run, with changed content, removed or added."""

    path: str
    change: Literal["changed", "removed", "added"]
    steps: tuple[str, ...]  # of the new plan that run it


class Report(Record):
    """Two sides, their differences, and the approvals that the new plan needs (None: there is no new plan)."""

    old: Side
    new: Side
    difference: Difference
    scripts: tuple[Script, ...] = ()
    approvals: Approvals | None = None

    @property
    def differs(self) -> bool:
        """Whether the two plans, or the scripts that both run, are not the same."""
        return bool(self.difference) or bool(self.scripts)


def read_report(old: str, new: str, terms: Terms) -> Report:
    """Read and compare what two words of the command line name: see `revisions.read_side`.

    Raises InvalidPlan with the problems of both sides, InvalidInput for what cannot be read.
    """
    if old == new == "-":
        raise InvalidInput("only one of the two can be standard input")
    sides: list[Side] = []
    problems: list[Problem] = []
    sources: dict[str, bytes] = {}
    for name, other in ((old, new), (new, old)):
        try:
            sides.append(read_side(name, stand_in=other))
        except InvalidPlan as error:
            problems += error.problems
            sources.update(error.sources)
    if problems:
        raise InvalidPlan(problems, sources=sources)
    if all(side.plan is None for side in sides):
        raise InvalidInput(f"there is no plan on either side: {old}, {new}")
    first, second = sides
    return report(first, second, terms)


def report(old: Side, new: Side, terms: Terms) -> Report:
    """Compare two sides, at least one of which has a plan; `terms`: the settings under which the new one would run."""
    was = renamed(old.plan, new.plan) if old.plan and new.plan else {}
    found = compare(old.plan, new.plan, was)
    scripts = tuple(_scripts(old, new))
    needed = approvals(old, new, terms)
    return Report(old=old, new=new, difference=found, scripts=scripts, approvals=needed)


def _scripts(old: Side, new: Side) -> Iterator[Script]:
    """Yield the scripts of both plans that are not the same in both; files of one folder are."""
    if old.plan is None or new.plan is None or old.commit == new.commit:
        return
    here = [] if old.commit and new.commit else Listing(os.getcwd()).names
    paths = {path for side in (old, new) for path in (files_of_commit(side.commit) if side.commit else here)}
    paths -= {os.path.normpath(side.plan.file) for side in (old, new) if side.plan}
    was = {path for named in names_of_steps(old.plan, paths).values() for path in named}
    now = names_of_steps(new.plan, paths)
    steps: dict[str, list[str]] = {}
    for name in [step.id for step in new.plan.steps]:
        for path in sorted(now.get(name, set()) & was):
            steps.setdefault(path, []).append(name)
    before, after = _contents((old, new), list(steps))
    for path, ids in steps.items():
        if before.get(path) != after.get(path):
            yield Script(path=path, change=_became(path, before, after), steps=tuple(ids))


def _became(
    path: str, before: dict[str, str], after: dict[str, str]
) -> Literal["changed", "removed", "added"]:
    if path in before and path in after:
        return "changed"
    return "removed" if path in before else "added"


def _contents(sides: tuple[Side, Side], paths: list[str]) -> list[dict[str, str]]:
    """Return git's names for the contents of scripts on both sides, one of which is a commit."""
    if not paths:
        return [{}, {}]
    known = {side.commit: blobs(side.commit, paths) for side in sides if side.commit}
    like = max([side.commit for side in sides], key=len)
    return [known[side.commit] if side.commit else _in_workspace(paths, like) for side in sides]


def _in_workspace(paths: list[str], like: str) -> dict[str, str]:
    found = {}
    for path in paths:
        try:
            found[path] = blob_name(read_script(os.path.realpath(path)), like)
        except (OSError, ValueError, NotRegular):  # an unreadable file is reported by approve and execute
            continue
    return found


def masked(report: Report, content: Any) -> Any:
    """Return a text, or plain data, without the values of the secrets that one of the plans declares."""
    for side in (report.old, report.new):
        if side.plan and side.plan.secrets:
            redactor = read_secrets(side.plan).redactor
            if redactor:
                content = (
                    redactor.mask_text(content) if isinstance(content, str) else redactor.mask_value(content)
                )
    return content
