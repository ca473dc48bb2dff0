"""What is searched: states of facts, actions that change them, and how the actions of a plan depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

NOTHING: frozenset[str] = frozenset()
RISK_SECONDS = {"read-only": 0.0, "low": 1.0, "medium": 10.0, "high": 60.0}
"""What a class of risk adds to the cost of an action, in seconds: the time of a person who looks at it."""
TOKENS_A_SECOND = 50.0
"""How many tokens weigh as much as a second."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action: it can start when `requires` hold; then `provides` hold and `deletes` do not.

    `cost`: seconds of one attempt, with what risk and tokens add; `success`: the probability that an attempt succeeds.
    `kind`: toolcall, delegate, decompose or verify.
    """

    name: str
    requires: frozenset[str] = NOTHING
    provides: frozenset[str] = NOTHING
    deletes: frozenset[str] = NOTHING
    cost: float = 1.0
    success: float = 1.0
    kind: str = "toolcall"
    parts: tuple[tuple[str, float], ...] = ()  # of `cost`, by name
    source: str = ""  # where it is from, for people

    @property
    def expected(self) -> float:
        """The expected cost of one success: attempts are repeated, or an alternative is as dear.

        Of m attempts at most, (1-(1-p)^m)/p are made on average, and 1-(1-p)^m of all succeed: cost/p for each success,
        whatever m is.
        """
        return self.cost / self.success


@dataclass(frozen=True, slots=True)
class Problem:
    """What a plan is wanted for: the facts that hold, those that are to hold, and the actions that there are."""

    start: frozenset[str]
    goal: frozenset[str]
    actions: tuple[Action, ...]


def weight(
    seconds: float, tokens: float = 0.0, risk: str = ""
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """Return the cost of an attempt in seconds, and its parts by name."""
    parts = (
        ("time", seconds),
        ("tokens", tokens / TOKENS_A_SECOND),
        ("risk", RISK_SECONDS.get(risk, 0.0)),
    )
    return sum(part for _, part in parts), parts


@dataclass(slots=True)
class Move:
    """An action in bits: a state is a number, and each fact is a bit of it."""

    action: Action
    requires: int
    provides: int
    keeps: int  # all bits but those that it deletes
    cost: float


@dataclass(slots=True)
class Space:
    """A problem in bits; facts that nothing needs are left out, so that they make no two states differ."""

    problem: Problem
    facts: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    start: int = 0
    goal: int = 0
    bits: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        needed = problem.goal.union(*[action.requires for action in problem.actions])
        self.facts = tuple(sorted(needed))
        self.bits = {fact: 1 << at for at, fact in enumerate(self.facts)}
        self.start, self.goal = self.number(problem.start), self.number(problem.goal)
        self.moves = tuple(
            Move(
                action,
                self.number(action.requires),
                self.number(action.provides),
                ~self.number(action.deletes - action.provides),
                action.expected,
            )
            for action in problem.actions
        )

    def number(self, facts: Iterable[str]) -> int:
        """Return a state as a number."""
        found = 0
        for fact in facts:
            found |= self.bits.get(fact, 0)
        return found

    def names(self, state: int) -> tuple[str, ...]:
        """Return the facts of a state."""
        return tuple(fact for fact, bit in self.bits.items() if state & bit)

    def after(self, state: int) -> list[tuple[Move, int]]:
        """Return every move that can be made in a state and changes it, with the state after it."""
        return [
            (move, new)
            for move in self.moves
            if state & move.requires == move.requires and (new := state & move.keeps | move.provides) != state
        ]

    def holds(self, state: int) -> bool:
        """Return whether a state has all that is wanted."""
        return state & self.goal == self.goal


def applied(state: frozenset[str], actions: Iterable[Action]) -> frozenset[str]:
    """Return the state after some actions; raises ValueError for one that cannot start."""
    for action in actions:
        if missing := action.requires - state:
            raise ValueError(f"{action.name} requires {', '.join(sorted(missing))}")
        state = state - action.deletes | action.provides
    return state


def is_plan(problem: Problem, actions: Sequence[Action]) -> bool:
    """Return whether actions, one after the other, reach the goal."""
    try:
        return problem.goal <= applied(problem.start, actions)
    except ValueError:
        return False


def cost_of(actions: Iterable[Action]) -> float:
    """Return the expected cost of actions that all have to succeed."""
    return sum(action.expected for action in actions)


def waits(actions: Sequence[Action]) -> list[tuple[int, ...]]:
    """Return for each action of a plan the earlier ones that it waits for, none of which another of them implies.

    Any order in which all these have ended reaches the same state: an action waits for who provides what it requires,
    and for all whose facts it deletes or that delete facts of its own.
    """
    found: list[tuple[int, ...]] = []
    behind: list[set[int]] = []  # all that must have ended, directly or not
    for at, action in enumerate(actions):
        direct = set(_providers(actions, at))
        for before in range(at):
            other = actions[before]
            if action.deletes & (other.requires | other.provides) or other.deletes & (
                action.requires | action.provides
            ):
                direct.add(before)
        implied = set().union(*[behind[each] for each in direct])
        found.append(tuple(sorted(direct - implied)))
        behind.append(direct | implied)
    return found


def _providers(actions: Sequence[Action], at: int) -> Iterable[int]:
    for fact in sorted(actions[at].requires):
        for before in range(at - 1, -1, -1):
            if fact in actions[before].provides:
                yield before
                break
