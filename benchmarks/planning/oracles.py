"""What is optimal, found without planrun's search: pyperplan for plans, exact recursion for expected costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from benchmarks.planning.domains import ATTEMPTS, ESCALATE
from planrun.search.space import Action, Problem

Choice = Callable[[frozenset[str], frozenset[str]], Action]
"""A policy: from the facts that hold and the actions that have failed to the action that comes next."""


def optimal_length(problem: Problem) -> int:
    """Return the least number of actions that reach the goal, by A* with LM-cut of pyperplan."""
    from pyperplan.heuristics.lm_cut import LmCutHeuristic  # type: ignore[import-untyped]
    from pyperplan.search import astar_search  # type: ignore[import-untyped]
    from pyperplan.task import Operator, Task  # type: ignore[import-untyped]

    facts = problem.start | problem.goal
    for action in problem.actions:
        facts |= action.requires | action.provides | action.deletes
    operators = [
        Operator(each.name, each.requires, each.provides, each.deletes - each.provides)
        for each in problem.actions
    ]
    task = Task("problem", set(facts), problem.start, problem.goal, operators)
    plan = astar_search(task, LmCutHeuristic(task))
    assert plan is not None
    return len(plan)


def is_valid(problem: Problem, actions: Iterable[Action]) -> bool:
    """Return whether actions reach the goal; written apart from planrun's own check."""
    state = set(problem.start)
    for action in actions:
        if action not in problem.actions or not all(fact in state for fact in action.requires):
            return False
        for fact in action.deletes:
            state.discard(fact)
        for fact in action.provides:
            state.add(fact)
    return all(fact in state for fact in problem.goal)


def cheapest(problem: Problem) -> float:
    """Return the least expected cost of actions that all succeed, by going through all states (Dijkstra)."""
    from heapq import heappop, heappush

    known, heap, number = {problem.start: 0.0}, [(0.0, 0, problem.start)], 0
    while heap:
        cost, _, state = heappop(heap)
        if problem.goal <= state:
            return cost
        if cost > known[state]:
            continue
        for action in problem.actions:
            new = state - action.deletes | action.provides
            if action.requires <= state and cost + action.cost / action.success < known.get(
                new, float("inf")
            ):
                known[new] = cost + action.cost / action.success
                number += 1
                heappush(heap, (known[new], number, new))
    return float("inf")


def tried(action: Action) -> tuple[float, float]:
    """Return the expected cost of an action with its retries, and the probability that one of them succeeds."""
    success = 1 - (1 - action.success) ** ATTEMPTS
    return action.cost * success / action.success, success


def useful(problem: Problem, facts: frozenset[str], dead: frozenset[str]) -> list[Action]:
    """Return what may come next: what can start, has not failed, and changes something."""
    return [
        action
        for action in problem.actions
        if action.requires <= facts and action.name not in dead and not action.provides <= facts
    ]


def least_expected(problem: Problem) -> float:
    """Return the least expected cost of any policy: every order, every reaction to failures, exactly."""

    @cache
    def value(facts: frozenset[str], dead: frozenset[str]) -> float:
        if problem.goal <= facts:
            return 0.0
        found = float("inf")
        for action in useful(problem, facts, dead):
            cost, success = tried(action)
            total = cost + success * value(*_kept(problem, facts | action.provides, dead))
            if success < 1:
                total += (1 - success) * value(*_kept(problem, facts, dead | {action.name}))
            found = min(found, total)
        return found

    return value(problem.start, frozenset())


def expected(problem: Problem, choose: Choice) -> float:
    """Return the expected cost of a policy, exactly."""

    @cache
    def value(facts: frozenset[str], dead: frozenset[str]) -> float:
        if problem.goal <= facts:
            return 0.0
        action = choose(facts, dead)
        cost, success = tried(action)
        total = cost + success * value(*_kept(problem, facts | action.provides, dead))
        if success < 1:
            total += (1 - success) * value(*_kept(problem, facts, dead | {action.name}))
        return total

    return value(problem.start, frozenset())


def _kept(
    problem: Problem, facts: frozenset[str], dead: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Leave out failures of what nobody needs any more."""
    by_name = {action.name: action for action in problem.actions}
    return facts, frozenset([name for name in dead if not by_name[name].provides <= facts])


def plain_order(problem: Problem) -> Choice:
    """Return the policy of a script: each stage by its first way in the file that has not failed, then by the next."""

    def choose(facts: frozenset[str], dead: frozenset[str]) -> Action:
        for action in useful(problem, facts, dead):
            if action.name != ESCALATE and not action.name.startswith("warm "):
                return action
            if action.name.startswith("warm ") and _is_next(problem, action, (facts, dead)):
                return action
        return next(action for action in problem.actions if action.name == ESCALATE)

    return choose


def _is_next(problem: Problem, warming: Action, at: tuple[frozenset[str], frozenset[str]]) -> bool:
    """Return whether the way that needs a cache comes next: its stage does, and no earlier way of it is left."""
    facts, dead = at
    for action in problem.actions:
        if action.name == ESCALATE or action.name.startswith("warm ") or action.provides <= facts:
            continue
        if action.name not in dead and action.requires <= facts | warming.provides:
            return bool(warming.provides & action.requires)
    return False
