"""Which recipes a plan has, and their order: one after the other, each once, after what it needs."""

from __future__ import annotations

from planrun.convert.draft import quoted
from planrun.convert.reader import UntranslatableError
from planrun.plan.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from planrun.convert.draft import DraftPlan, DraftStep
    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

    Key = tuple[str, Hashable]
    Run = Callable[[str], list[str]]

MAX_STEPS = 1000
MAX_DEPTH = 100
MAX_NAMED = 20  # other recipes that a finding names
PARAM = "task"


def is_known(found: Findings, word: str, names: Sequence[str], known: Collection[str], place: Node) -> bool:
    """Say whether all wanted names are there, and refuse the file otherwise; `word` says what they name."""
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"there are {', '.join(list(known)[:30])}"
        found.refuse("shape", f'there is no {word} "{unknown[0]}"; {hint}', place)
    return not unknown


def emit(  # noqa: PLR0913
    plan: DraftPlan,
    found: Findings,
    word: str,
    *,
    wanted: Sequence[str],
    others: Sequence[str],
    run: Run,
    place: Node,
) -> None:
    """Emit what a run names; all others, and a parameter that chooses one of them, where it names nothing.

    `wanted` has the default where nothing is asked for, and `others` what is left out then. `run` emits the steps of
    one name and returns those that it ends with.
    """
    for name in wanted:
        run(name)
    if wanted and others:
        names = f"{', '.join(others[:MAX_NAMED])}{' …' if len(others) > MAX_NAMED else ''}"
        found.differs(word, f"only {wanted[0]} is converted; --job converts {names}", place)
    ends = {} if wanted else {name: last for name in others if (last := run(name))}
    if len(ends) < 2:
        return
    param = PARAM
    while param in plan.params:
        param = f"wanted_{param}"
    users: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    edges = {step.id: list(step.edges) for step in plan.steps}
    for name, last in ends.items():
        for each in (waiting := list(last)):
            if name not in users[each]:
                users[each].append(name)
                waiting += edges[each]
    for step in plan.steps:
        names_ = users[step.id]
        if len(names_) < len(ends):
            one = f"params.{param} == {quoted(names_[0])}" if len(names_) == 1 else ""
            step.demand(one or f"params.{param} in [{', '.join(map(quoted, names_))}]")
    fragment = {"type": "string", "enum": list(ends), "required": True, "description": f"The {word} to run."}
    plan.params = {param: fragment, **plan.params}
    message = (
        f"no {word} runs by itself: the plan has all of them, and `--param {param}=NAME` chooses one; "
        "--job converts single ones"
    )
    found.differs(word, message, place)


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

    def __init__(self, plan: DraftPlan, find: Callable[[Key], Recipe]) -> None:
        self.plan = plan
        self.find = find
        self.is_choice = False  # only what nothing comes before has its own name then
        self.first = ""  # the step that all others wait for, "" for none
        self._shared: dict[tuple[Key, str], str] = {}
        self._done: set[Key] = set()
        self._open: list[Key] = []
        self._last = ""
        self._top = ""

    def run(self, name: str, args: Hashable = None) -> list[str]:
        """Emit the recipe that one call names; returns the steps that it ends with."""
        self._done, self._open, self._last, self._top = set(), [], self.first, name
        self._visit((name, args))
        return [self._last] if self._last != self.first else []

    def _visit(self, key: Key) -> None:
        if key in self._done:
            return
        circle = any(each[0] == key[0] for each in self._open) and key[1] in (None, ())
        if circle or len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS:
            raise UntranslatableError("shape", f"{key[0]} needs itself, or there are too many steps")
        recipe = self.find(key)
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
