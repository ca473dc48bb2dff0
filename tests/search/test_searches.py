"""The searches on small random problems, against going through all states; limits, seeds and the order of a plan."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import pytest

from planrun.search.find import find, runner_up
from planrun.search.relaxed import INFINITE, Relaxation
from planrun.search.space import Action, Problem, Space, applied, is_plan, waits
from planrun.search.tree import ALGORITHMS, Limits

WIDE = {"max_tree_depth": 30, "max_tree_nodes": 5000}


def _random_problem(seed: int) -> Problem:
    random = Random(seed)
    facts = [f"f{number}" for number in range(7)]
    actions = []
    for number in range(12):
        needs, gives, takes = (frozenset(random.sample(facts, random.randint(0, most))) for most in (2, 2, 1))
        cost, success = float(random.randint(1, 20)), random.choice((0.5, 0.9, 1.0))
        actions.append(Action(f"a{number}", needs, gives, takes - gives, cost, success))
    return Problem(frozenset(facts[:1]), frozenset(random.sample(facts[1:], 3)), tuple(actions))


def _cheapest(problem: Problem, start: frozenset[str] | None = None) -> float:
    """Return the least cost by going through all states."""
    first = problem.start if start is None else start
    known, heap, count = {first: 0.0}, [(0.0, 0, first)], 0
    while heap:
        cost, _, state = heappop(heap)
        if problem.goal <= state:
            return cost
        for action in problem.actions:
            if action.requires <= state:
                new, total = state - action.deletes | action.provides, cost + action.expected
                if total < known.get(new, INFINITE):
                    known[new], count = total, count + 1
                    heappush(heap, (total, count, new))
    return INFINITE


PROBLEMS = [
    (problem, best) for problem in map(_random_problem, range(40)) if (best := _cheapest(problem)) > 0
]


def test_astar_finds_the_cheapest_plan_and_says_so() -> None:
    """For each problem the cost is that of going through all states; where there is no way, none is claimed."""
    assert sum(best < INFINITE for _, best in PROBLEMS) >= 10 < len(PROBLEMS)
    for problem, best in PROBLEMS:
        found = find(problem, Limits("astar", **WIDE))
        assert found.solved == (best < INFINITE)
        if found.solved:
            assert found.optimal
            assert found.cost == pytest.approx(best)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_plan_is_valid_and_never_cheaper_than_the_cheapest(algorithm: str) -> None:
    """A plan can be carried out action by action, and `optimal` is claimed only of the cheapest."""
    for problem, best in PROBLEMS:
        found = find(problem, Limits(algorithm, **WIDE))
        if found.solved:
            assert is_plan(problem, found.actions)
            assert found.cost >= best - 1e-6
            assert not found.optimal or found.cost == pytest.approx(best)


def test_lower_bounds_never_exceed_the_true_cost() -> None:
    """h_max and LM-cut are admissible in every state on a random walk, and LM-cut is the better bound."""
    random = Random(5)
    for problem, _ in PROBLEMS:
        space = Space(problem)
        relaxed, state, facts = Relaxation(space), space.start, problem.start
        for _ in range(4):
            best = _cheapest(problem, facts)
            assert relaxed.h_max(state) <= relaxed.lm_cut(state) + 1e-6
            assert relaxed.lm_cut(state) <= best + 1e-6
            moves = space.after(state)
            if not moves:
                break
            move, state = random.choice(moves)
            facts = applied(facts, [move.action])


def test_steps_of_a_plan_may_run_in_any_order_that_their_edges_allow() -> None:
    """A random order that respects `waits` reaches the goal as well."""
    random = Random(3)
    orders = 0
    for problem, best in PROBLEMS:
        if best == INFINITE:
            continue
        actions = find(problem, Limits("astar", **WIDE)).actions
        edges = waits(actions)
        for _ in range(5):
            left, order = set(range(len(actions))), []
            while left:
                ready = [at for at in sorted(left) if not left & set(edges[at])]
                order.append(random.choice(ready))
                left.remove(order[-1])
            orders += order != sorted(order)
            assert is_plan(problem, [actions[at] for at in order])
    assert orders > 0


def _trap() -> Problem:
    """Return a problem in which the way that looks cheapest needs a token twice, and bars the other way."""

    def action(name: str, requires: str, provides: str, deletes: str, cost: float) -> Action:
        needs, gives, takes = [frozenset(text.split()) for text in (requires, provides, deletes)]
        return Action(name, needs, gives, takes, cost)

    return Problem(
        frozenset({"token", "permit"}),
        frozenset({"goal"}),
        (
            action("hurry", "permit", "z", "permit", 0.5),
            action("cheap", "z token", "y", "token", 1.0),
            action("cheap-end", "y token", "goal", "", 1.0),
            action("mint", "", "token", "", 100.0),
            action("long", "permit", "x", "", 10.0),
            action("long-end", "x", "goal", "", 10.0),
        ),
    )


def test_each_algorithm_searches_in_its_own_way() -> None:
    """A beam of one walks into the trap and a wider one does not; A* goes by f; MCTS counts its visits."""
    narrow, wide = find(_trap(), Limits("beam", beam_width=1)), find(_trap(), Limits("beam"))
    assert [action.name for action in narrow.actions] == ["hurry", "cheap", "mint", "cheap-end"]
    assert (wide.cost, wide.optimal) == (20.0, True)
    levels = [node.depth for node in narrow.tree.nodes if node.expanded]
    assert len(levels) == len(set(levels))  # one node of each depth
    astar = find(_trap(), Limits("astar"))
    bounds = [
        node.g + node.h for node in sorted(astar.tree.nodes, key=lambda node: node.expanded) if node.expanded
    ]
    assert bounds == sorted(bounds)
    assert (astar.cost, astar.optimal) == (20.0, True)
    assert all(node.visits == 0 for node in (*astar.tree.nodes, *wide.tree.nodes))
    few, many = (find(_trap(), Limits("mcts", mcts_iterations=number)) for number in (1, 100))
    assert (few.cost, many.cost) == (102.5, 20.0)
    assert (few.tree.root.visits, many.tree.root.visits) == (1, 100)
    other = runner_up(astar)
    assert other is not None
    assert ([action.name for action in other.actions], other.cost) == (["long", "hurry", "long-end"], 20.5)


def test_the_runner_up_may_be_another_action_for_the_same_facts() -> None:
    """Two ways to one state: the dearer one is the runner-up, with the rest of the plan, and its whole cost."""
    a, b = (Action(name, provides=frozenset({"x"}), cost=cost) for name, cost in (("a", 3.0), ("b", 5.0)))
    end = Action("end", frozenset({"x"}), frozenset({"goal"}), cost=1.0)
    for algorithm in ("beam", "astar"):
        found = find(Problem(frozenset(), frozenset({"goal"}), (a, b, end)), Limits(algorithm))
        other = runner_up(found)
        assert other is not None
        assert (found.cost, [action.name for action in other.actions], other.cost) == (4.0, ["b", "end"], 6.0)


def test_what_ucb1_leaves_alone_is_visited_less() -> None:
    """With much exploration the visits of the root's children are nearly equal, with none they are not."""
    spread = []
    for exploration in (0.0, 1.414, 100.0):
        tree = find(_trap(), Limits("mcts", mcts_iterations=300, exploration=exploration)).tree
        visits = [node.visits for node in tree.nodes if node.parent is tree.root and node.visits]
        spread.append(max(visits) - min(visits))
    assert spread[0] > spread[1] > spread[2]


class _Clock:
    """A clock that goes on by a second with each look at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_when_the_time_is_up_the_best_plan_so_far_counts() -> None:
    """The beam has found a dear plan when the time ends, and returns it as truncated."""
    stages = tuple(
        Action(
            f"s{stage}-{way}",
            frozenset({f"s{stage - 1}"} if stage else ()),
            frozenset({f"s{stage}"}),
            frozenset(),
            10.0 + (stage * 7 + way * 13) % 11,
        )
        for stage in range(6)
        for way in range(4)
    )
    direct = Action("direct", frozenset(), frozenset({"s5"}), frozenset(), 1000.0)
    problem = Problem(frozenset(), frozenset({"s5"}), (*stages, direct))
    found = find(problem, Limits("beam", planning_timeout=12.0), _Clock())
    assert (found.solved, found.truncated, found.optimal) == (True, ("planning_timeout",), False)
    assert [action.name for action in found.actions] == ["direct"]
    assert find(problem, Limits("beam")).cost < 1000.0


def test_the_same_seed_gives_the_same_tree_and_another_seed_another_one() -> None:
    """Rollouts are drawn from the seed alone."""
    problem = next(problem for problem, best in PROBLEMS if best < INFINITE and len(problem.actions) > 8)

    def visits(seed: int) -> list[tuple[int, float]]:
        tree = find(problem, Limits("mcts", seed=seed, **WIDE)).tree
        return [(node.visits, node.value) for node in tree.nodes]

    assert visits(1) == visits(1)
    assert len({str(visits(seed)) for seed in range(5)}) > 1
