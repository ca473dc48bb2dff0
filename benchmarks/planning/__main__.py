"""Measure the searches: `python -m benchmarks.planning [--quick] [--instances N] [--markdown FILE]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from statistics import mean

from benchmarks.planning import domains
from benchmarks.planning.oracles import expected, is_valid, least_expected, optimal_length, plain_order
from benchmarks.planning.runs import replanned, with_candidates
from planrun.planner.trees import record_of
from planrun.search.find import find
from planrun.search.space import Action, Problem, applied
from planrun.search.tree import ALGORITHMS, Found, Limits

_SIZE = {"max_tree_depth": 60, "max_tree_nodes": 20_000, "planning_timeout": 3600.0}
BUDGETS = {
    "beam": Limits("beam", beam_width=60, **_SIZE),  # type: ignore[arg-type]
    "mcts": Limits("mcts", mcts_iterations=1000, **_SIZE),  # type: ignore[arg-type]
    "astar": Limits("astar", **_SIZE),  # type: ignore[arg-type]
}
"""For Blocksworld and Logistics, whose plans are longer than the default depth of 10; a release has the defaults.

Nodes bound the work, not time: how fast the machine is does not change the result.
"""
TARGETS = {"beam": 1.05, "astar": 1.05, "mcts": 1.3}
WORLDS: dict[str, tuple[Callable[[int, int], Problem], int, int]] = {
    "Blocksworld": (domains.blocksworld, 6, 5),
    "Logistics": (domains.logistics, 2, 1),
}
"""A domain: its problems, and its size for all instances and for `--quick`."""
Row = tuple[str, ...]


class Report:
    """Tables, as they are printed and written; `missed`: targets that were not met."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.missed = 0

    def table(self, title: str, head: Row, rows: Iterator[Row]) -> None:
        """Print a table, each row as soon as it is known; a last cell `missed` counts."""
        self._say(f"\n{title}\n\n| {' | '.join(head)} |\n|{'|'.join(['---'] * len(head))}|\n")
        for row in rows:
            self.missed += row[-1] == "missed"
            self._say(f"| {' | '.join(row)} |\n")

    def _say(self, text: str) -> None:
        self.parts.append(text)
        print(text, end="", flush=True)


def verdict(*, met: bool) -> str:
    """Return the last cell of a row."""
    return "met" if met else "missed"


def same_again(problem: Problem, limits: Limits, found: Found) -> bool:
    """Return whether a second search gives the same tree and plan."""
    return record_of(find(problem, limits), "again") == record_of(found, "again")


def plans(count: int, *, quick: bool) -> Iterator[Row]:
    """Yield a row for each domain and algorithm: solved, valid, cost ratio to the optimum, nodes, time."""
    for name, (make, full, small) in WORLDS.items():
        problems = [make(seed, small if quick else full) for seed in range(count)]
        best = [optimal_length(problem) for problem in problems]
        for algorithm in ALGORITHMS:
            yield _of_plans((name, algorithm), problems, best)


def _of_plans(which: tuple[str, str], problems: Sequence[Problem], best: Sequence[int]) -> Row:
    name, algorithm = which
    limits, ratios, nodes, seconds = BUDGETS[algorithm], [], [], []
    valid = truncated = same = 0
    for problem, least in zip(problems, best, strict=True):
        began = time.perf_counter()
        found = find(problem, limits)
        seconds.append(time.perf_counter() - began)
        nodes.append(len(found.tree.nodes))
        truncated += not found.solved and bool(found.truncated)
        valid += found.solved and is_valid(problem, found.actions)
        same += same_again(problem, limits, found)
        if found.solved:
            ratios.append(found.cost / least if least else 1.0)
    count = len(problems)
    met = (
        valid + truncated == count
        and len(ratios) == valid
        and mean(ratios) <= TARGETS[algorithm]
        and same == count
    )
    return (
        *(name, algorithm, f"{valid}/{count}", str(truncated), f"{mean(ratios):.3f}", f"{max(ratios):.3f}"),
        *(
            f"≤ {TARGETS[algorithm]}",
            str(max(nodes)),
            f"{mean(seconds):.2f}",
            f"{same}/{count}",
            verdict(met=met),
        ),
    )


def releases(count: int) -> Iterator[Row]:
    """Yield a row for each algorithm: the expected cost of releases, against the optimum and the plain order."""
    problems = [domains.release(seed) for seed in range(count)]
    best = [least_expected(problem) for problem in problems]
    plain = [expected(problem, plain_order(problem)) for problem in problems]
    for algorithm in ALGORITHMS:
        valid, costs = 0, []
        for problem in problems:
            found = find(problem, Limits(algorithm))
            valid += found.solved and is_valid(problem, found.actions)
            costs.append(expected(problem, _by_search(problem, algorithm)))
        to_best = [cost / least for cost, least in zip(costs, best, strict=True)]
        to_plain = [cost / other for cost, other in zip(costs, plain, strict=True)]
        target = min(TARGETS[algorithm], 1.05)
        met = valid == count and mean(to_best) <= target and mean(to_plain) <= 0.8
        yield (
            *(algorithm, f"{valid}/{count}", f"{mean(to_best):.3f}", f"{max(to_best):.3f}", f"≤ {target}"),
            *(f"{mean(to_plain):.3f}", "≤ 0.8", verdict(met=met)),
        )


def _by_search(problem: Problem, algorithm: str) -> Callable[[frozenset[str], frozenset[str]], Action]:
    def choose(facts: frozenset[str], dead: frozenset[str]) -> Action:
        left = tuple(action for action in problem.actions if action.name not in dead)
        return find(Problem(facts, problem.goal, left), Limits(algorithm)).actions[0]

    return choose


def replans(count: int, *, quick: bool) -> Iterator[Row]:
    """Yield a row for each domain and algorithm: what follows a failure at a random step, against the optimum."""
    for name, (make, full, small) in WORLDS.items():
        cases = [_failed(make(seed, small if quick else full), seed) for seed in range(count)]
        solvable = [(problem, least) for problem, least in cases if problem is not None]
        if not solvable:
            continue
        for algorithm in ALGORITHMS:
            ratios = []
            for problem, least in solvable:
                found = find(problem, BUDGETS[algorithm])
                if not found.solved or not is_valid(problem, found.actions):
                    raise SystemExit(f"{name}: {algorithm} found no valid way")
                ratios.append(found.cost / least if least else 1.0)
            met = mean(ratios) <= 1.1
            yield (
                name,
                algorithm,
                str(len(ratios)),
                f"{mean(ratios):.3f}",
                "≤ 1.1",
                "",
                verdict(met=met),
            )
    for algorithm in ALGORITHMS:
        found_runs = [replanned(domains.release(seed), seed, algorithm) for seed in range(count)]
        ratios = [cost / least for cost, least, _ in found_runs]
        untouched = sum(each for _, _, each in found_runs)
        met = mean(ratios) <= 1.1 and untouched == count
        yield (
            *("Release, by `planrun run`", algorithm, str(count), f"{mean(ratios):.3f}", "≤ 1.1"),
            *(f"{untouched}/{count}", verdict(met=met)),
        )


def _failed(problem: Problem, seed: int) -> tuple[Problem | None, int]:
    """Return what is left when an action of an optimal plan fails for good, and its optimum.

    The action is drawn among those without which there still is a way; None where there is none such.
    """
    actions = find(problem, BUDGETS["astar"]).actions
    for at in Random(f"failure {seed}").sample(range(len(actions)), len(actions)):
        state = applied(problem.start, actions[:at])
        left = Problem(
            state, problem.goal, tuple(each for each in problem.actions if each is not actions[at])
        )
        if find(left, BUDGETS["astar"]).solved:
            return left, optimal_length(left)
    return None, 0


def candidates(count: int, algorithms: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each algorithm: replans in real runs with a model that offers steps, against those without."""
    for algorithm in algorithms:
        found = [with_candidates(domains.release(seed), seed, algorithm) for seed in range(count)]
        ratios = [each.cost / each.without for each in found]
        hostile = sum(each.hostile for each in found)
        taken = sum(each.taken > 0 for each in found)
        refused = sum(each.refused for each in found)
        met = max(ratios) <= 1 + 1e-9 and not hostile
        yield (
            *(algorithm, str(count), f"{mean(ratios):.3f}", f"{max(ratios):.3f}", "≤ 1"),
            *(str(sum(each.offered for each in found)), str(taken), str(refused), str(hostile)),
            verdict(met=met),
        )


def growth(*, quick: bool) -> Iterator[Row]:
    """Yield a row for each depth and branching: nodes and milliseconds of each algorithm under the defaults."""
    for depth in (5, 10) if quick else (5, 10, 20, 40):
        for branching in (2, 4) if quick else (2, 4, 8):
            problem, row = domains.chain(depth, branching), [str(depth), str(branching)]
            for algorithm in ALGORITHMS:
                began = time.perf_counter()
                found = find(problem, Limits(algorithm, max_tree_depth=max(10, depth), max_tree_nodes=20_000))
                milliseconds = (time.perf_counter() - began) * 1000
                row.append(f"{len(found.tree.nodes)}, {milliseconds:.0f} ms" if found.solved else "none")
            yield tuple(row)


def measure(count: int, *, quick: bool) -> Report:
    """Measure everything."""
    report = Report()
    head: Row = (
        "Domain",
        "Algorithm",
        "Valid",
        "Truncated",
        "Mean ratio",
        "Worst",
        "Target",
        "Most nodes",
        "Seconds",
    )
    report.table(
        "Plans against the optimum of pyperplan:", (*head, "Same again", "Verdict"), plans(count, quick=quick)
    )
    head = (
        "Algorithm",
        "Valid",
        "To the optimum",
        "Worst",
        "Target",
        "To the plain order",
        "Target",
        "Verdict",
    )
    report.table("Releases, expected cost with retries and alternatives:", head, releases(count))
    head = (
        "Domain",
        "Algorithm",
        "Failures",
        "To the optimum",
        "Target",
        "Finished steps untouched",
        "Verdict",
    )
    report.table("Replans after the failure of one step:", head, replans(count, quick=quick))
    head = (
        "Algorithm",
        "Runs",
        "Expected cost, to that without a model",
        "Worst",
        "Target",
        "Offered",
        "Runs that took one",
        "Refused",
        "Hostile ones that ran",
        "Verdict",
    )
    report.table(
        "Replans with steps that a model offers:",
        head,
        candidates(1 if quick else count, ALGORITHMS[:1] if quick else ALGORITHMS),
    )
    head = ("Depth", "Branching", *[f"{algorithm}: nodes, time" for algorithm in ALGORITHMS])
    report.table("Growth of a chain of stages:", head, growth(quick=quick))
    return report


MARKS = ("<!-- planning -->", "<!-- end of planning -->")


def write_between(path: str, text: str) -> None:
    """Put the tables between the two comments of a file."""
    with open(path, encoding="utf-8") as file:
        before, _, rest = file.read().partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


def main(words: Sequence[str]) -> int:
    """Run the command line; 1 when a target was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("--instances", type=int, default=30, help="problems of each domain")
    parser.add_argument("--quick", action="store_true", help="few small problems: a test of the benchmark")
    parser.add_argument(
        "--markdown", metavar="FILE", help="also writes the tables there, between two comments"
    )
    given = parser.parse_args(words)
    report = measure(3 if given.quick else given.instances, quick=given.quick)
    if given.markdown:
        write_between(given.markdown, "".join(report.parts))
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
