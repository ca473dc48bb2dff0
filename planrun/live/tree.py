"""The steps of a run as a tree: instances below their group, or each step below the last one that it waits for."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from planrun.model.plan import Plan
    from planrun.model.state import RunState

SHAPES = ("list", "groups", "dependencies")
"""What a key goes through: a list without groups, and two trees."""
_DEEPEST = 10  # levels that are indented


class Entry(Record):
    """A step in the tree; `below`: steps right below it; `is_open`: they are shown."""

    step: str
    depth: int = 0
    below: int = 0
    is_open: bool = False

    def label(self, name: str, *, unicode: bool) -> str:
        """Return the name with its place in the tree."""
        marks = "▾▸" if unicode else "-+"
        mark = f"{marks[not self.is_open]} " if self.below else "  "
        return "  " * min(self.depth, _DEEPEST) + mark + name


class Tree:
    """Which steps stand below which, and which of them are folded."""

    def __init__(self) -> None:
        self.shape = SHAPES[0]
        self.folded: set[str] = set()
        self._of: tuple[Plan, str, int] | None = None
        self._parents: Mapping[str, str] = {}
        self._below: Mapping[str, Sequence[str]] = {}

    def next_shape(self) -> None:
        """Change from the list to the trees, and back."""
        self.shape = SHAPES[(SHAPES.index(self.shape) + 1) % len(SHAPES)]
        self.folded.clear()

    def entries(self, state: RunState, listed: Sequence[str], *, only: bool) -> list[Entry]:
        """Return what is shown of the steps that are listed; `only`: with what they stand below, whatever is folded."""
        if self.shape == "list":
            return [Entry(step=name) for name in listed]
        self._read(state)
        wanted = set(listed)
        if only:
            for name in listed:
                wanted.update(self._above(name))
        found: list[Entry] = []
        stack = [(name, 0) for name in reversed(self._below[""])]
        while stack:  # plans may be deeper than Python's recursion
            name, depth = stack.pop()
            below = self._below.get(name, ())
            if only and name not in wanted:
                continue
            is_open = only or name not in self.folded
            found.append(Entry(step=name, depth=depth, below=len(below), is_open=is_open))
            if is_open:
                stack += [(each, depth + 1) for each in reversed(below)]
        return found

    def fold_all(self) -> None:
        """Show the first level alone."""
        self.folded = {name for name in self._below if name}

    def parent(self, name: str) -> str:
        """Return what a step stands below; empty on the first level."""
        return self._parents.get(name, "")

    def visible(self, name: str) -> str:
        """Return a step or, where it is folded away, the one that is shown in its place."""
        return next(reversed([each for each in (name, *self._above(name)) if each in self.folded]), name)

    def _above(self, name: str) -> Iterator[str]:
        while name := self._parents.get(name, ""):
            yield name

    def _read(self, state: RunState) -> None:
        """Read the tree anew when the plan has changed, as it does when a group is opened."""
        key = (state.plan, self.shape, len(state.undoing))
        if self._of is not None and self._of[0] is key[0] and self._of[1:] == key[1:]:
            return
        self._of = key
        shown = [*state.steps, *[name for name in state.undoing if name not in state.steps]]
        parents = _by_group(state) if self.shape == "groups" else _by_dependency(state)
        self._parents = {name: parents.get(name, "") for name in shown}
        self._below = _below(shown, self._parents)


def _by_group(state: RunState) -> dict[str, str]:
    return {name: step.step.group for name, step in state.steps.items() if step.step.group in state.steps}


def _by_dependency(state: RunState) -> dict[str, str]:
    """Return for each step the deepest one of those that it waits for, the first one of equals."""
    steps = [step.step for step in state.steps.values()]
    waits = {step.id: [edge.on for edge in step.edges if edge.on in state.steps] for step in steps}
    depth: dict[str, int] = {}
    for name in _in_order(waits):
        depth[name] = 1 + max([depth.get(on, 0) for on in waits[name]], default=0)
    return {name: max(on, key=lambda each: depth.get(each, 0)) for name, on in waits.items() if on}


def _in_order(waits: Mapping[str, Collection[str]]) -> Iterable[str]:
    """Return the steps, each behind those that it waits for."""
    done: dict[str, None] = {}
    for first in waits:
        stack = [(first, iter(waits[first]))]
        on_way = {first}
        while stack:
            name, others = stack[-1]
            following = next((each for each in others if each not in done and each not in on_way), None)
            if following is None:
                stack.pop()
                on_way.discard(name)
                done[name] = None
            else:
                on_way.add(following)
                stack.append((following, iter(waits.get(following, ()))))
    return done


def _below(names: Iterable[str], parents: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"": []}
    for name in names:
        found.setdefault(parents[name], []).append(name)
    return found
