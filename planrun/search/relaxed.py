"""Lower bounds and estimates of the cost to the goal, from the problem without deletions: h_max, LM-cut, h_add."""

from __future__ import annotations

from heapq import heappop, heappush

from planrun.search.space import Space

INFINITE = float("inf")
_NEAR = 1e-9  # two costs that differ by less are the same


class Relaxation:
    """The problem without deletions; estimates are kept by state.

    `lm_cut` and `h_max` never exceed the true cost (they are admissible); `h_add` may, and is closer to it.
    """

    def __init__(self, space: Space) -> None:
        self._count = len(space.facts)
        self._true, self._end = self._count, self._count + 1  # holds always; holds when the goal does
        self.requires: list[tuple[int, ...]] = []
        self.provides: list[tuple[int, ...]] = []
        self.costs: list[float] = []
        for move in space.moves:
            self._add(self._indices(move.requires), self._indices(move.provides), move.cost)
        self._add(self._indices(space.goal), (self._end,), 0.0)
        self._users: list[list[int]] = [[] for _ in range(self._count + 2)]
        self._makers: list[list[int]] = [[] for _ in range(self._count + 2)]
        for action, (needs, gives) in enumerate(zip(self.requires, self.provides, strict=True)):
            for fact in needs:
                self._users[fact].append(action)
            for fact in gives:
                self._makers[fact].append(action)
        self._cuts: dict[int, float] = {}
        self._sums: dict[int, float] = {}

    def _add(self, requires: tuple[int, ...], provides: tuple[int, ...], cost: float) -> None:
        self.requires.append(requires or (self._true,))
        self.provides.append(provides)
        self.costs.append(cost)

    def _indices(self, state: int) -> tuple[int, ...]:
        found = []
        while state:
            low = state & -state
            found.append(low.bit_length() - 1)
            state ^= low
        return tuple(found)

    def h_max(self, state: int) -> float:
        """Return the cost of the dearest fact that the goal needs."""
        return self._reach(state, self.costs)[0][self._end]

    def h_add(self, state: int) -> float:
        """Return the sum of the costs of all facts that the goal needs, what they share counted again."""
        found = self._sums.get(state)
        if found is None:
            found = self._sums[state] = self._sum(state)
        return found

    def lm_cut(self, state: int) -> float:
        """Return the sum over sets of actions of which any plan needs one: the cheapest of each."""
        found = self._cuts.get(state)
        if found is None:
            found = self._cuts[state] = self._cut(state)
        return found

    def _reach(self, state: int, costs: list[float]) -> tuple[list[float], list[int]]:
        """Return the cost of each fact by its dearest requirement, and for each action which fact that is."""
        value = [INFINITE] * (self._count + 2)
        missing = [len(needs) for needs in self.requires]
        supporter = [-1] * len(missing)
        heap: list[tuple[float, int]] = []
        for fact in (*self._indices(state), self._true):
            value[fact] = 0.0
            heap.append((0.0, fact))
        done = [False] * (self._count + 2)
        while heap:
            at, fact = heappop(heap)
            if done[fact]:
                continue
            done[fact] = True
            for action in self._users[fact]:
                missing[action] -= 1
                if missing[action]:
                    continue
                supporter[action] = fact  # the last one is the dearest
                reached = at + costs[action]
                for made in self.provides[action]:
                    if reached < value[made]:
                        value[made] = reached
                        heappush(heap, (reached, made))
        return value, supporter

    def _sum(self, state: int) -> float:
        value = [INFINITE] * (self._count + 2)
        missing = [len(needs) for needs in self.requires]
        total = list(self.costs)
        heap: list[tuple[float, int]] = []
        for fact in (*self._indices(state), self._true):
            value[fact] = 0.0
            heap.append((0.0, fact))
        done = [False] * (self._count + 2)
        while heap:
            at, fact = heappop(heap)
            if done[fact]:
                continue
            done[fact] = True
            if fact == self._end:
                break
            for action in self._users[fact]:
                total[action] += at
                missing[action] -= 1
                if missing[action]:
                    continue
                for made in self.provides[action]:
                    if total[action] < value[made]:
                        value[made] = total[action]
                        heappush(heap, (value[made], made))
        return value[self._end]

    def _cut(self, state: int) -> float:
        costs, found = list(self.costs), 0.0
        while True:
            value, supporter = self._reach(state, costs)
            left = value[self._end]
            if left == INFINITE:
                return INFINITE
            if left < _NEAR:
                return found
            cut = self._landmark(state, (supporter, costs))
            least = min(costs[action] for action in cut)
            found += least
            for action in cut:
                costs[action] = max(0.0, costs[action] - least)

    def _landmark(self, state: int, labels: tuple[list[int], list[float]]) -> list[int]:
        """Return actions of which every plan needs one: those that lead to where the goal costs nothing more."""
        supporter, costs = labels
        near = {self._end}  # facts from which the goal costs nothing more
        waiting = [self._end]
        while waiting:
            for action in self._makers[waiting.pop()]:
                fact = supporter[action]
                if fact >= 0 and costs[action] < _NEAR and fact not in near:
                    near.add(fact)
                    waiting.append(fact)
        reached = {*self._indices(state), self._true}
        waiting, cut = sorted(reached), []
        while waiting:
            fact = waiting.pop()
            for action in self._users[fact]:
                if supporter[action] != fact:
                    continue
                if any(made in near for made in self.provides[action]):
                    cut.append(action)
                    continue
                for made in self.provides[action]:
                    if made not in reached:
                        reached.add(made)
                        waiting.append(made)
        return cut
