"""Advice about plan files: every rule over one plan, what is suppressed, and a better order of the steps.

docs/lint.md has an example of each code.
"""

from __future__ import annotations

import os

from planrun.app.history import weights
from planrun.errors import InvalidInput, InvalidPlan
from planrun.lint.codes import ADVICE
from planrun.lint.order import (
    background,
    constant_conditions,
    hidden_path,
    nameless,
    needless_waits,
    plain_notifications,
    unbounded,
    uncached_files,
    unpinned_servers,
    unstopped,
    unused_params,
    unused_secrets,
)
from planrun.lint.rules import (
    asked_in_finally,
    close_timeouts,
    empty_proofs,
    foreign_files,
    hidden_failures,
    lost_exports,
    not_undone,
    repeated,
    risky_proofs,
    thrown_away,
    unasked,
    unasked_releases,
    unknown_repetition,
    unmonitored,
    untried,
    unverified,
)
from planrun.lint.subject import Subject
from planrun.model.record import Record
from planrun.plan.edit.reorder import by_longest_path, reorder_steps
from planrun.plan.load import load_bytes
from planrun.plan.problems import did_you_mean, in_order
from planrun.plan.readers import shown
from planrun.plan.yaml.file import read_plan, read_source
from planrun.plan.yaml.node import SEQUENCE
from planrun.records import history
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from planrun.model.plan import Plan
    from planrun.plan.problems import Problem

    Rule = Callable[[Subject], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    unasked,
    unasked_releases,
    not_undone,
    asked_in_finally,
    unknown_repetition,
    untried,
    repeated,
    nameless,
    unbounded,
    empty_proofs,
    risky_proofs,
    unused_secrets,
    plain_notifications,
    unpinned_servers,
    unused_params,
    constant_conditions,
    needless_waits,
    hidden_path,
    unstopped,
    background,
    uncached_files,
    close_timeouts,
    hidden_failures,
    thrown_away,
    unverified,
    unmonitored,
    foreign_files,
    lost_exports,
)


class Advised(Record):
    """The findings in one file, in file order, with the bytes they point into by file name.

    `is_plan`: the plan is valid; otherwise the findings are its errors.
    """

    file: str
    is_plan: bool = True
    problems: tuple[Problem, ...] = ()
    sources: Mapping[str, bytes] = {}


def advise(file: str, ignored: Iterable[str] = ()) -> Advised:
    """Return the advice about a plan file; `ignored` are codes to leave out.

    Raises InvalidInput for an unknown code.
    """
    leave_out = _known(ignored)
    try:
        data, file = read_plan(file)
        return advise_bytes(data, file, leave_out)
    except InvalidPlan as error:
        return Advised(file=file, is_plan=False, problems=error.problems, sources=error.sources)


def advise_bytes(data: bytes, file: str, leave_out: Iterable[str] = ()) -> Advised:
    """Return the advice about a plan that was read before; raises InvalidPlan where it has errors."""
    leave_out = set(leave_out)
    warnings: list[Problem] = []
    plan = load_bytes(data, file, cache=False, warnings=warnings)
    seconds = _seconds(plan)
    subject = Subject(plan, seconds)
    leave_out |= _left_out(subject)
    found = [*warnings, *[problem for rule in RULES for problem in rule(subject)]]
    kept = in_order([problem for problem in found if problem.code not in leave_out])
    kept.sort(key=lambda problem: problem.file != file)
    sources = {shown(file, path): text for path, text in plan.files.items()}
    return Advised(file=file, problems=tuple(kept), sources={file: data, **sources})


def reordered(file: str) -> tuple[bytes, bytes, list[str]] | None:
    """Return a plan's bytes, the same with its longest path first, and that order; None where the order is good.

    Raises InvalidPlan, and EditError where the text cannot be reordered.
    """
    data = read_source(file)
    found = reordered_bytes(data, file)
    return None if found is None else (data, *found)


def reordered_bytes(data: bytes, file: str) -> tuple[bytes, list[str]] | None:
    """Return a plan that was read before with its longest path first, and that order; as `reordered`."""
    plan = load_bytes(data, file, cache=False)
    seconds = _seconds(plan)
    subject = Subject(plan, seconds)
    if not list(hidden_path(subject)):
        return None
    order = by_longest_path(subject.before, [step.id for step in plan.main()], seconds)
    return reorder_steps(data, file, order), order


def _seconds(plan: Plan) -> dict[str, float]:
    """Return how long steps took in earlier runs, in tenths of a second: what differs by less must not order them."""
    return weights(history.estimates(history.path_of(os.path.join(os.getcwd(), HOME), plan)))


def _known(codes: Iterable[str]) -> set[str]:
    found = set(codes)
    for code in sorted(found):
        if code not in ADVICE and not code.startswith("W"):
            hint = did_you_mean(code, ADVICE) or "all codes: planrun explain --list"
            raise InvalidInput(f'unknown code of advice: "{code}"; {hint}')
    return found


def _left_out(subject: Subject) -> set[str]:
    """Return the codes that the plan suppresses: `x-lint: {ignore: [L403]}`."""
    node = subject.root.get("x-lint")
    listed = node.get("ignore") if node is not None else None
    if listed is None or listed.kind != SEQUENCE:
        return set()
    return _known([str(each.value) for each in listed.value])
