"""Recipes in the order in which make and just run them: one after the other, each once, after what it needs."""

from __future__ import annotations

from planrun.convert.reader import UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from planrun.convert.draft import DraftPlan, DraftStep
    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

    Key = tuple[str, Hashable]

MAX_STEPS = 1000
MAX_DEPTH = 100


class Recipe:
    """One recipe: what runs before and after it, and the function that makes its step from an id (None: no step)."""

    def __init__(self, name: str, place: Node, make: Callable[[str], DraftStep | None]) -> None:
        self.name = name
        self.place = place
        self.make = make
        self.before: list[Key] = []
        self.after: list[Key] = []


class Order:
    """Puts recipes into a plan; `find` returns the recipe of a name with its arguments."""

    def __init__(self, plan: DraftPlan, found: Findings, find: Callable[[Key], Recipe | None]) -> None:
        self.plan = plan
        self.found = found
        self.find = find
        self.is_choice = (
            False  # whether a run takes one of several: only what nothing comes before has its own name
        )
        self.first = ""  # the step that all others wait for, "" for none
        self._shared: dict[tuple[Key, str], str] = {}
        self._done: set[Key] = set()
        self._open: list[Key] = []
        self._last = ""
        self._top = ""

    def run(self, keys: Sequence[Key]) -> list[str]:
        """Emit recipes that one call names; returns the steps that it ends with."""
        self._done, self._open, self._last = set(), [], self.first
        for key in keys:
            self._top = key[0]
            self._visit(key)
        return [self._last] if self._last != self.first else []

    def _visit(self, key: Key) -> None:
        if key in self._done:
            return
        recipe = self.find(key)
        if recipe is None:
            return
        circle = any(each[0] == key[0] for each in self._open) and key[1] in (None, ())
        if circle or len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS:
            raise UntranslatableError("shape", f"{key[0]} needs itself, or there are too many steps")
        self._open.append(key)
        for other in recipe.before:
            self._visit(other)
        self._emit(key, recipe)
        self._open.pop()
        self._done.add(key)
        if recipe.after:  # just runs these, and what they need, again
            before, self._done = self._done, set()
            for other in recipe.after:
                self._visit(other)
            self._done = before

    def _emit(self, key: Key, recipe: Recipe) -> None:
        shared = self._shared.get((key, self._last))
        if shared is not None:
            self._last = shared
            return
        is_part = self.is_choice and self._last != self.first and recipe.name != self._top
        preferred = f"{self._top}.{recipe.name}" if is_part else recipe.name
        name = self.plan.name(preferred.replace("::", "."))
        step = recipe.make(name)
        if step is None:
            self.plan.give_back(name)
            return
        step.node = recipe.place
        if self._last:
            step.wait(self._last)
        self.plan.add(step)
        self._shared[key, self._last] = step.id
        self._last = step.id
