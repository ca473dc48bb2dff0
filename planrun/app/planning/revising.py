"""From a model's draft to the next version of a run's plan, or to everything that is wrong with it.

Each step that has not started is kept or replaced; what has ended stays, and nobody but planrun gives numbers.
"""

from __future__ import annotations

import re

from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.faults import Fault
from planrun.llm.writing import step_text
from planrun.model import graph
from planrun.source.editing import append_steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from planrun.app.planning.adopting import Adoption
    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.plan import Plan
    from planrun.model.state import RunState

_FIRST = re.compile(r"\s*- id: \"?([A-Za-z0-9_][A-Za-z0-9._-]*)\"?\s*$")  # as planrun writes new steps
_NEVER_OK = ("failed", "blocked", "cancelled")  # how steps end on which nothing can depend


class Revision:
    """The next version of a run's plan, as far as one draft gives it; `failed` are the steps of the planning.

    `text`: the exact bytes of the plan that the run has.
    """

    def __init__(self, state: RunState, failed: tuple[str, ...], text: bytes) -> None:
        self._state = state
        self.failed = failed
        self.text = text
        self.pending = tuple(
            [
                name
                for name, found in state.steps.items()
                if not found.ended and found.step.section == "steps" and name not in state.replaced
            ]
        )
        self._main = [name for name, found in state.steps.items() if found.step.section == "steps"]
        self._taken = frozenset([*state.steps, *state.dropped])
        self.first = self._first_number()  # of the new steps; 0: they have names

    def _first_number(self) -> int:
        if not all(name.isascii() and name.isdecimal() for name in self._taken):
            return 0
        return max(map(int, self._taken)) + 1

    def next_plan(self, draft: Draft, adoption: Adoption) -> tuple[Plan, tuple[str, ...]] | list[Fault]:
        """Return the plan that the run would go over to, with the ids of its new steps, or every fault of the draft."""
        faults = [*self._about_ids(draft), *self._about_places(draft), *self._about_edges(draft)]
        if faults:
            return faults
        steps = self._complete(draft)
        new = tuple([step.id for step in steps])
        try:
            data = append_steps(self.text, self._file, "\n".join([step_text(step, 0, {}) for step in steps]))
            plan = adoption.next_version(data, self._state, "replanned", new)
        except InvalidPlan as error:
            return list(self._faults_of(error, new))
        except InvalidInput as error:
            return [Fault(path="steps", rule="plan", message=str(error))]
        return adoption.next_version(data, self._state, "replanned", self._later(plan, new)), new

    @property
    def _file(self) -> str:
        return str(self._state.named.get("file") or self._state.plan.file)

    # What a draft says.

    def _about_ids(self, draft: Draft) -> Iterator[Fault]:
        seen: set[str] = set()
        numbers = {str(self.first + at) for at in range(len(draft.steps))} if self.first else set()
        for at, step in enumerate(draft.steps):
            path = f"steps[{at}].id"
            if step.id in self._taken:
                message = f'"{step.id}" is, or was, the id of a step of this plan'
                yield Fault(path=path, rule="id_taken", message=message)
            elif step.id in seen:
                yield Fault(path=path, rule="id_twice", message=f'two new steps have the id "{step.id}"')
            elif step.id in numbers and step.id != str(self.first + at):
                message = f"the step at this place gets the number {self.first + at}"
                yield Fault(path=path, rule="id_order", message=message, allowed=(str(self.first + at),))
            seen.add(step.id)
            if not step.run.strip():
                message = "a step that takes the place of another has to say what it runs"
                yield Fault(path=f"steps[{at}].run", rule="required", message=message)

    def _about_places(self, draft: Draft) -> Iterator[Fault]:
        replaceable = (*self.failed, *self.pending)
        replaced = {name for step in draft.steps for name in step.replaces}
        for at, name in enumerate(draft.keep):
            if name not in self.pending:
                message = self._why_not(name, "kept")
                yield Fault(path=f"keep[{at}]", rule="not_pending", message=message, allowed=self.pending)
            elif name in replaced:
                message = f'"{name}" is replaced by a new step; it is one or the other'
                yield Fault(path=f"keep[{at}]", rule="kept_and_replaced", message=message)
        for at, step in enumerate(draft.steps):
            for which, name in enumerate(step.replaces):
                if name not in replaceable:
                    path = f"steps[{at}].replaces[{which}]"
                    message = self._why_not(name, "replaced")
                    yield Fault(path=path, rule="not_replaceable", message=message, allowed=replaceable)
        for name in self.failed:
            if name not in replaced:
                message = f'no new step replaces the failed step "{name}"'
                yield Fault(path="steps", rule="must_replace", message=message)

    def _why_not(self, name: str, what: str) -> str:
        found = self._state.steps.get(name)
        if found is None:
            return f'there is no step "{name}"'
        if found.step.section == "finally":
            return f'"{name}" stands under finally and cannot be {what}'
        return (
            f'"{name}" has {found.status} and cannot be {what}'
            if found.ended
            else f'"{name}" cannot be {what}'
        )

    def _about_edges(self, draft: Draft) -> Iterator[Fault]:
        new = [step.id for step in draft.steps]
        kept = [name for name in draft.keep if name in self.pending]
        gone = {name for step in draft.steps for name in step.replaces} | (set(self.pending) - set(kept))
        for at, step in enumerate(draft.steps):
            for which, name in enumerate(step.depends_on):
                why = self._why_no_edge(name, step, new, gone)
                if why:
                    path = f"steps[{at}].depends_on[{which}]"
                    yield Fault(
                        path=path, rule="depends_on", message=why, allowed=self._edges_for(step, new, kept)
                    )

    def _why_no_edge(self, name: str, step: DraftStep, new: list[str], gone: Iterable[str]) -> str:
        if name == step.id:
            return "a step cannot depend on itself"
        if name in new:
            return ""
        found = self._state.steps.get(name)
        if found is None or name not in self._main:
            return f'there is no step "{name}" that a new step can depend on'
        if name in gone or name in self._state.replaced:
            return f'"{name}" is replaced; depend on what takes its place'
        if found.status in _NEVER_OK and self._state.tolerance(name) != "continue":
            return f'"{name}" has {found.status}: what depends on it would never start'
        return ""

    def _edges_for(self, step: DraftStep, new: list[str], kept: list[str]) -> tuple[str, ...]:
        done = [name for name in self._main if self._state.steps[name].status == "completed"]
        return (*done, *kept, *[name for name in new if name != step.id])

    # What becomes of it.

    def _complete(self, draft: Draft) -> list[DraftStep]:
        """Return the new steps with their final ids, and with what nobody kept in the place of the last."""
        steps = list(draft.steps)
        if self.first:
            names = {step.id: str(self.first + at) for at, step in enumerate(steps)}
            steps = [_renamed(step, names) for step in steps]
        placed = {*draft.keep, *[name for step in steps for name in step.replaces]}
        left = tuple([name for name in self.pending if name not in placed])
        if left:
            steps[-1] = steps[-1].but(replaces=(*steps[-1].replaces, *left))
        return steps

    def _later(self, plan: Plan, new: Iterable[str]) -> set[str]:
        """Return the new steps and all that comes after them: what was reviewed came after other steps."""
        found, waits = set(new), graph.waits(plan.main())
        left = set(self.pending) - {name for step in plan.steps for name in step.replaces}
        for name in graph.order(waits):
            if name in left and not found.isdisjoint(waits[name]):
                found.add(name)
        return found

    def _faults_of(self, error: InvalidPlan, new: tuple[str, ...]) -> Iterator[Fault]:
        """Tell what is wrong with the whole text where the model can mend it."""
        lines = error.sources.get(self._file, b"").decode("utf-8", "replace").splitlines()
        for problem in error.problems:
            name = _step_at(lines, problem.line)
            named = [other for other in new if f'"{other}"' in problem.message]
            name = name if name in new else named[0] if named else name
            path = f"steps[{new.index(name)}]" if name in new else "keep" if name in self.pending else "steps"
            hint = f"; {problem.hint}" if problem.hint else ""
            yield Fault(path=path, rule=problem.code, message=f"{problem.message}{hint}")


def _step_at(lines: list[str], number: int) -> str:
    """Return the id of the step that a line stands in, of those that name it first."""
    for text in reversed(lines[:number]):
        found = _FIRST.match(text)
        if found:
            return found[1]
    return ""


def _renamed(step: DraftStep, names: dict[str, str]) -> DraftStep:
    """Give a step its number, and every reference to a new step that of its own."""

    def of(name: str) -> str:
        return names.get(name, name)

    changed = {old: new for old, new in names.items() if old != new}
    rename = _references(changed) if changed else str
    return step.but(
        id=of(step.id),
        depends_on=tuple(map(of, step.depends_on)),
        condition=rename(step.condition),
        run=rename(step.run),
    )


def _references(names: dict[str, str]) -> Callable[[str], str]:
    """Return what renames steps in expressions: `steps.a.`, `steps['a']`, `step_a_failed`."""
    some = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    dotted = re.compile(rf"(?<![\w.])steps\.(?:{some})(?=\.)")
    quoted = re.compile(rf"(?<![\w.])steps\[\s*(['\"])({some})\1\s*\]")
    seeded = re.compile(rf"(?<![\w.])step_({some})_(?=(?:failed|succeeded)\b)")

    def rename(text: str) -> str:
        text = dotted.sub(lambda found: f'steps["{names[found[0].partition(".")[2]]}"]', text)
        text = quoted.sub(lambda found: f'steps["{names[found[2]]}"]', text)
        return seeded.sub(lambda found: f"step_{names[found[1]]}_", text)

    return rename
