"""Look at plan files without running, writing or keeping anything."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.plan.load import check_bytes, take_bounds
from planrun.plan.yaml.file import read_plan, read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planrun.plan.problems import Problem


class Checked(Record):
    """One plan file after the check: its problems, with the bytes they point into by file name.

    `steps` is the number of steps of a valid plan, and None for another. A valid plan may still have problems, all
    of severity `warning`.
    """

    file: str
    steps: int | None = None
    policy: bool = False  # it is a policy file, valid with 0 steps
    later: tuple[str, ...] = ()  # whose instances are not counted: they are known when these steps run
    problems: tuple[Problem, ...] = ()
    sources: Mapping[str, bytes] = {}


def check(file: str) -> Checked:
    """Read and check one plan file; nothing is written, not even the cache of compiled plans."""
    try:
        take_bounds()
        data, file = read_plan(file)
    except InvalidPlan as error:
        return Checked(file=file, problems=error.problems, sources=error.sources)
    found = check_bytes(data, file)
    return Checked(
        file=file,
        steps=found.steps,
        later=found.later,
        problems=found.problems,
        sources={file: data, **found.sources},
    )


def check_policy(file: str) -> Checked:
    """Read and check one policy file, as `--policy` of `execute` reads it."""
    from planrun.plan.keys.policy import policy_in  # plans are checked more often

    warnings: list[Problem] = []
    try:
        data = read_source(file)
        policy_in(data, file, warnings)
    except InvalidPlan as error:
        return Checked(file=file, policy=True, problems=error.problems, sources=error.sources)
    return Checked(file=file, steps=0, policy=True, problems=tuple(warnings), sources={file: data})


def check_all(files: Iterable[str], policies: Iterable[str] = ()) -> list[Checked]:
    """Check several plans and policy files, each named once, in the order given."""
    return [
        *[check(file) for file in dict.fromkeys(files)],
        *[check_policy(file) for file in dict.fromkeys(policies)],
    ]
