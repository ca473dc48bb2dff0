"""Find the plans of a folder and read their steps; a broken plan is an entry with its first error.

Without click: a bare `planrun` prints this, and takes compiled plans from the cache.
"""

from __future__ import annotations

import os

from planrun.cliutil.defaultplan import PLAN_FILES, PLANS_FOLDER, folders, plan_of, plans_in
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.load import PROJECT_FILE, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Step

_LEVELS = ("", "read-only", "low", "medium", "high")
_MAIN, _AT_END = "steps", "finally"


class ListedStep(Record):
    """A step of a plan: `text` is its title, else its description, else what it does."""

    id: str
    text: str
    risk: str
    section: str = _MAIN
    instances: int = 0  # of a matrix or foreach whose instances are known


class Listed(Record):
    """A plan of a folder; `error` is the first problem of one that is not valid, with its place."""

    file: str
    name: str = ""
    text: str = ""
    is_default: bool = False
    steps: tuple[ListedStep, ...] = ()
    error: str = ""

    def data(self) -> dict[str, Any]:
        """Return the entry of the JSON document."""
        found = {"file": self.file, "name": self.name, "description": self.text, "default": self.is_default}
        return {
            **found,
            "error": self.error,
            "steps": [
                {name: getattr(step, name) for name in ("id", "text", "risk", "section", "instances")}
                for step in self.steps
            ],
        }


class Listing(Record):
    """The plans of one folder; `folder` is absolute, and empty when it is the current one.

    `error`: why none of them is the default plan, where that is a mistake of the user.
    """

    folder: str = ""
    plans: tuple[Listed, ...] = ()
    error: InvalidInput | None = None


def listing() -> Listing:
    """Return the plans of the current folder, or of the nearest folder above it in the repository that has any."""
    for folder, _below in folders():
        default, error = "", None
        try:
            default = plan_of(folder)
        except InvalidInput as found:  # several plans, or a wrong project file
            error = found if isinstance(found, InvalidPlan) else None
        here = [name for name in PLAN_FILES if os.path.isfile(os.path.join(folder, name))]
        inside = [f"{PLANS_FOLDER}/{name}" for name in plans_in(os.path.join(folder, PLANS_FOLDER))]
        files = list(dict.fromkeys([*([default] if default else []), *[*here, *plans_in(folder), *inside]]))
        plans = tuple([plan for file in files if (plan := _listed(folder, file, default))])
        if plans or error:
            return Listing(folder=folder, plans=plans, error=error)
    return Listing()


def _listed(folder: str, file: str, default: str) -> Listed | None:
    """Return the entry of a file; None for one of another tool, unless it would run."""
    path = os.path.join(folder, file)
    try:
        plan = load(path)
    except InvalidPlan as error:
        if error.problems[0].file == PROJECT_FILE:  # reported once, and no mistake of this plan
            return Listed(file=file, is_default=file == default)
        if file != default and all(problem.code == "E006" for problem in error.problems):
            return None
        problem = next((one for one in error.problems if one.severity == "error"), error.problems[0])
        more = len(error.problems) - 1
        first = f"{file}:{problem.line}:{problem.col}: {problem.text}" + (
            f" (and {more} more)" if more else ""
        )
        return Listed(file=file, error=first, is_default=file == default)
    risks = {step.id: step.risk for step in plan.steps if step.kind not in ("abstract", "group")}
    listed = [step for step in plan.steps if step.section in (_MAIN, _AT_END) and not step.group]
    steps = tuple([_step(step, risks) for step in listed])
    text = plan.title or plan.description
    return Listed(file=file, name=plan.name, text=_line(text), is_default=file == default, steps=steps)


def _step(step: Step, risks: Mapping[str, str]) -> ListedStep:
    members = step.grouping.members if step.kind == "group" else ()
    text = step.title or step.description or _in_a_line(step.action.written())
    return ListedStep(
        id=step.id,
        text=_line(text),
        risk=max([risks.get(name, "") for name in members or (step.id,)], key=_LEVELS.index),
        section=step.section,
        instances=len(members),
    )


def _in_a_line(script: str) -> str:
    """Return a script of several lines as its first one, since joined lines would be another script."""
    first, _, rest = script.strip().partition("\n")
    return f"{first} …" if rest else first


def _line(text: str) -> str:
    return " ".join(text.split())
