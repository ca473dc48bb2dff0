"""The subject of the lint rules: a plan with its places in the file, its risks, and the durations of its steps."""

from __future__ import annotations

from planrun.expressions.check import references
from planrun.model import graph
from planrun.plan.compile.risks import commands_of
from planrun.plan.includes import IncludedPlans, check
from planrun.plan.problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.plan.keys.outline import RawStep
    from planrun.risk.classifier import Command, Risk


# Commands that pass, print or wait, and check nothing.
IDLE = frozenset(("true", ":", "echo", "printf", "sleep", "exit"))


class Subject:
    """A valid plan; `seconds` are the medians of its steps in earlier runs, empty where none is on record."""

    def __init__(self, plan: Plan, seconds: Mapping[str, float]) -> None:
        self.plan = plan
        self.seconds = seconds
        checked, _ = check(plan.source, plan.file, IncludedPlans(plan.file))
        assert checked is not None  # it was loaded
        self.checked = checked
        self.root = checked.outline.root
        origins = checked.outline.origins
        texts = [plan.source, *(origins.sources.values() if origins else ())]
        self.text = b"\n".join(texts).decode("utf-8", "replace")
        self.drafts: dict[str, RawStep] = self.checked.outline.by_id
        self.by_id = {step.id: step for step in plan.steps}
        self.before = graph.waits(plan.main())
        found = {
            (formula.owner.id, str(reference.path[1]))
            for formula in self.checked.formulas.listed
            if formula.owner is not None
            for reference in formula.references
            if len(reference.path) > 1 and reference.path[0] == "steps"
        }
        for step in self.plan.steps:
            if step.condition is not None:
                found.update(
                    [(step.id, str(word)) for each in references(step.condition) for word in each.path]
                )
        self.read = found
        self._risks: dict[str, Risk | None] = {}

    def steps(self) -> Iterator[Step]:
        """Yield the steps that start something and are written in this file; of several instances, the first."""
        seen: set[tuple[int, int]] = set()
        for step in self.plan.steps:
            place = (step.line, step.col)
            if self.draft(step) is None or step.kind == "group" or place in seen:
                continue
            seen.add(place)
            yield step

    def draft(self, step: Step) -> RawStep | None:
        """Return a step as the file has it; None for one of a plan in use."""
        found = self.drafts.get(step.group or step.id)
        if step.file and (found is None or self.checked.outline.path_of(found.at) != step.file):
            return None
        return found

    def says(self, step: Step, key: str) -> bool:
        """Whether a step, or `defaults` for all of them, has a key."""
        draft, defaults = self.draft(step), self.root.get("defaults")
        return bool(draft and key in draft.keys) or bool(defaults and defaults.get(key))

    def risk(self, step: Step) -> Risk | None:
        """Return the class of a step's action with its commands; None for one that starts no process."""
        if step.id not in self._risks:
            self._risks[step.id] = commands_of(step)
        return self._risks[step.id]

    def commands(self, step: Step) -> tuple[Command, ...]:
        """Return the simple commands of a step's action, as far as they are understood."""
        risk = self.risk(step)
        return risk.commands if risk else ()

    def works(self, step: Step) -> bool:
        """Whether some command of a step is known to do more than pass, print or wait."""
        return any(command.words and command.words[0] not in IDLE for command in self.commands(step))

    def script(self, step: Step) -> str:
        """Return a step's script as written where it is one text without interpolations, else ""."""
        action = step.action
        return action.script if isinstance(action.script, str) else ""

    def advice(
        self, code: str, message: str, step: Step | None = None, key: str = "", hint: str = ""
    ) -> Problem:
        """Return a finding about a key of a step, or about the step; without a step, about a key of the plan."""
        place: dict[str, Any] = {}
        file = self.plan.file
        if step is None:
            node = self.root.key(key)
            file = self.checked.outline.file_of(node)
            place = {"line": node.line, "col": node.col, "end_col": node.end_col}
        else:
            draft = self.draft(step)
            node_of = draft.node.key(key) if draft is not None and key in draft.keys else None
            found = node_of or (draft.at if draft is not None else None)
            place = {"line": step.line, "col": step.col}
            if found is not None:
                file = self.checked.outline.file_of(found)
                place = {"line": found.line, "col": found.col, "end_col": found.end_col}
        return Problem(code=code, message=message, file=file, hint=hint, severity="advice", **place)

    @property
    def actions(self) -> Iterator[Step]:
        """The steps that run a script or a program."""
        return (step for step in self.steps() if step.action.is_command)
