"""Look at plan files without running, writing or keeping anything."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.source.load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planrun.model.plan import Plan
    from planrun.source.problems import Problem


class Checked(Record):
    """One plan file after the check: a plan, or None and its problems with the bytes they point into, by file name.

    A plan that is valid may still have problems, all of severity `warning`.
    """

    file: str
    plan: Plan | None = None
    problems: tuple[Problem, ...] = ()
    sources: Mapping[str, bytes] = {}


def check(file: str) -> Checked:
    """Read and check one plan file; nothing is written, not even the cache of compiled plans."""
    warnings: list[Problem] = []
    try:
        plan = load(file, cache=False, warnings=warnings)
    except InvalidPlan as error:
        return Checked(file=file, problems=error.problems, sources=error.sources)
    return Checked(file=file, plan=plan, problems=tuple(warnings), sources={file: plan.source})


def check_all(files: Iterable[str]) -> list[Checked]:
    """Check several files, each named once, in the order given."""
    return [check(file) for file in dict.fromkeys(files)]
