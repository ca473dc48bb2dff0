"""A change of a plan as a pull request proposes it: is it valid, what does it change and need? Nothing runs."""

from __future__ import annotations

import os

from planrun.app.check import check
from planrun.diff import phrases
from planrun.diff.data import as_data
from planrun.diff.markdown import markdown
from planrun.diff.report import masked, report
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan.printing import render_text
from planrun.plan.revisions import NOWHERE, commit_of, is_file, path_from_root, read_side
from planrun.reports.escape import code, fence, inline, line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.check import Checked
    from planrun.diff.approvals import Terms
    from planrun.diff.report import Report
    from planrun.plan.revisions import Side

_SHOWN = 20_000  # characters of the problems of a plan


class Proposal(Record):
    """What is proposed for a plan: the check of its file (None: it is gone), and the report where it is valid or gone.

    `base`: the full name of the commit that it is compared with; empty: with nothing. `notes` are for people.
    """

    plan: str
    base: str = ""
    checked: Checked | None = None
    report: Report | None = None
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the plan may be merged as far as `validate` goes; one that is gone may."""
        return self.report is not None


def propose(plan: str, base: str, terms: Terms) -> Proposal:
    """Compare a plan of this checkout with that of a commit; `base`: its name, empty to compare with nothing.

    Raises InvalidInput, InvalidPlan for a policy or an approval that is none, a commit that is not there, and a plan
    that is neither here nor there.
    """
    if plan == "-":
        raise InvalidInput("review needs a file, not standard input")
    commit = commit_of(base) if base else ""
    exists = os.path.lexists(plan)
    if commit:
        _refuse_detour(plan)
    checked = check(plan) if exists else None
    if checked is not None and checked.steps is None:
        return Proposal(plan=plan, base=commit, checked=checked)
    old, notes = _before(plan, base, commit)
    if not exists and old.plan is None:
        raise InvalidInput(f"there is no plan {plan}, neither here nor in {base or 'a commit'}")
    here = plan if is_file(plan) else f"./{plan}"
    new = read_side(here if exists else NOWHERE)
    if new.plan is not None:
        new = new.but(path=plan)
    found = report(old, new, terms)
    return Proposal(plan=plan, base=commit, checked=checked, report=found, notes=notes)


def _refuse_detour(plan: str) -> None:
    """Raise InvalidInput for a plan that is a link out of the repository, or into what git keeps: it would be shown."""
    root = os.path.realpath(os.path.join(".", *[".."] * _depth()))
    inside = os.path.relpath(os.path.realpath(plan), root).split(os.sep)
    if inside[0] in ("..", ".git"):
        raise InvalidInput(f"{plan} is outside of the repository, so it is not read")


def _depth() -> int:
    prefix = path_from_root("./")
    return prefix.count("/") + 1 if prefix else 0


def _before(plan: str, base: str, commit: str) -> tuple[Side, tuple[str, ...]]:
    """Return the plan of the commit; where it is none, nothing, and a note."""
    if not commit:
        return read_side(NOWHERE), ("There is nothing to compare with: everything counts as new.",)
    path = path_from_root(os.path.join(".", os.path.relpath(plan)))
    try:
        return read_side(f"{commit}:{path}"), ()
    except InvalidPlan:
        return read_side(NOWHERE), (f"The plan in {base} is not valid, so all of this one counts as new.",)


def summary(proposal: Proposal) -> str:
    """Return what a reviewer reads, as markdown."""
    if proposal.report is None:
        return _problems(proposal)
    text = markdown(proposal.report)
    head, _, rest = text.partition("\n\n")
    told = [f"Compared with commit {code(proposal.base[:12])}."] if proposal.base else []
    told += [inline(note, 1_000) for note in proposal.notes]
    notes = "\n".join([f"> {text}" for text in told])
    return str(masked(proposal.report, f"{head}\n\n{notes}\n\n{rest}" if notes else text))


def _problems(proposal: Proposal) -> str:
    assert proposal.checked is not None
    problems = proposal.checked.problems
    text = plain(render_text(problems, proposal.checked.sources))
    cut = text if len(text) < _SHOWN else f"{text[:_SHOWN]}\n…"
    return f"### ✗ Plan {code(line(proposal.plan))} is not valid\n\n{fence(cut)}"


def as_document(proposal: Proposal) -> dict[str, Any]:
    """Return what programs read: the difference as `diff --json` has it, and what the review adds."""
    found = proposal.report
    problems = proposal.checked.problems if proposal.checked else ()
    return {
        "plan": proposal.plan,
        "valid": proposal.valid,
        "base": proposal.base or None,
        "problems": [vars(problem) for problem in problems],
        "notes": list(proposal.notes),
        "diff": masked(found, as_data(found)) if found else None,
    }


def outputs(proposal: Proposal, path: str) -> dict[str, str]:
    """Return the outputs of the action; `path`: of the report. Lists are JSON, since ids may contain commas."""
    found = proposal.report
    needed = found.approvals if found else None
    return {
        "result": "valid" if proposal.valid else "invalid",
        "digest": needed.digest if needed else "",
        "changed": "true" if found is None or found.differs else "false",
        "approvals-needed": dumps(["*"] if needed.whole else list(needed.asked)) if needed else "[]",
        "denied-steps": dumps(
            [gate.step for gate in needed.needed if gate.answer == "deny"] if needed else []
        ),
        "highest-risk": phrases.highest_changed(found.difference) if found else "",
        "report-path": path,
    }
