"""`planrun tree`: what a search found, what it expanded, and why others lost; of a plan, or of a run."""

from __future__ import annotations

import os
from io import BytesIO

import click

from planrun.app.copies import state_of
from planrun.app.inspect import find
from planrun.cliutil.click import JSON, STANDARD_OUTPUT, tabled, write_file
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.options import Option, parse
from planrun.cliutil.printing import say, say_bytes, say_json
from planrun.cliutil.searching import LIMITS
from planrun.errors import EXIT_FAILED, EXIT_OK, InvalidInput
from planrun.plan.load import load
from planrun.planner.facts import Estimates, beginning, limits_of, problem_of
from planrun.planner.trees import lines_of, mermaid, record_of, statistics
from planrun.records.history import path_of, read
from planrun.records.reading import read_ledger
from planrun.records.rundir import HOME, LEDGER
from planrun.reports.escape import line
from planrun.reports.html.page import write_svg
from planrun.reports.searches import read_searches
from planrun.search.find import find as search_plan
from planrun.settings import current_folder, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_SCOPE = "TREE"
TREE = (
    Option(
        flags=("--stats",),
        name="stats",
        kind="flag",
        scope=_SCOPE,
        help="Print statistics alone: algorithm, active trees, nodes, replans.",
    ),
    Option(
        flags=("--explain",),
        name="explain",
        kind="flag",
        scope=_SCOPE,
        help="Also print every expanded node with the parts of its score, and why the runner-up lost.",
    ),
    Option(
        flags=("--mermaid",),
        name="mermaid",
        kind="flag",
        scope=_SCOPE,
        help="Print the tree as a mermaid graph.",
    ),
    Option(
        flags=("--svg",),
        name="svg",
        kind="text",
        metavar="FILE",
        scope=_SCOPE,
        help="Write the tree as an SVG picture to FILE; `-` is standard output.",
    ),
    *LIMITS,
    JSON,
)


def _run(words: list[str]) -> int:
    subject, values = parse(words, TREE, "plan file or RUN id (or `last`)")
    own = {name: bool(values.pop(name, False)) for name in ("stats", "explain", "mermaid")}
    target = str(values.pop("svg", "") or "")
    settings = settings_of(values)
    if subject.endswith((".yml", ".yaml")) or os.path.isfile(subject):
        plan = load(subject)
        history = read(path_of(os.path.join(current_folder(), HOME), plan))
        problem = problem_of(plan, beginning(plan), Estimates(history=history))
        if not problem.goal:
            raise InvalidInput(
                f"{plan.file}: no step provides a fact, so there is nothing to search; "
                "add `provides` and `requires` to its steps"
            )
        records, counts = (
            [record_of(search_plan(problem, limits_of(plan, settings)), "tree")],
            {"active": 0, "replans": 0},
        )
    else:
        if settings.algorithm or settings.thoroughness or settings.seed is not None:
            raise InvalidInput(
                "--algorithm, --thoroughness and --seed are for a plan: a run has searched already"
            )
        records, counts = _of_run(subject)
    if target:
        data = BytesIO()
        write_svg(records, data)
        if target == STANDARD_OUTPUT:
            say_bytes(data.getvalue())
        else:
            write_file(target, data.getvalue(), forced=True)
    else:
        stats = statistics(records, **counts)
        if settings.json:
            say_json(stats if own["stats"] else {"statistics": stats, "searches": records})
        elif own["mermaid"]:
            for record in records:
                say(mermaid(record))
        elif own["stats"]:
            for name, value in stats.items():
                say(f"{name}: {', '.join(value) or 'none' if isinstance(value, list) else value}")
        else:
            for at, record in enumerate(records):
                if at:
                    say("")
                for each in lines_of(record, explain=own["explain"]):
                    say(line(each))
    return EXIT_OK if all(record["solved"] for record in records) else EXIT_FAILED


def _of_run(run: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the searches of a run, in their order, and how many trees are in use and replans were made."""
    rundir = find(run, current_folder())
    state = state_of(rundir, read_ledger(os.path.join(rundir, LEDGER)))
    ended = state.planning.ended if state.planning else []
    found = [*read_searches(rundir, len(ended) + 1)]
    if not found:
        raise InvalidInput(f"the run {os.path.basename(rundir)} has not searched")
    revised = [event for event in ended if event.outcome == "revised"]
    return found, {"active": int(bool(revised) and state.ended is None), "replans": len(ended)}


tree = tabled(
    "tree",
    [click.Argument(["plan_or_run"], shell_complete=complete_runs)],
    TREE,
    """Show how planrun searched a way to a goal: the plan found, the tree, and why others lost.

    For a plan file it searches now, from the beginning, and runs nothing. For the id of a run, or `last`, it shows the
    searches that replaced failed steps. Each node has a score of named parts; the plan has the lowest expected cost.

    \b
    Examples:
      planrun tree plan.yml --explain
      planrun tree plan.yml --algorithm astar --json
      planrun tree last --stats

    \b
    Exit codes:
      0    a way was found
      1    no way was found within the limits
      2    no step provides a fact, or the run has not searched
    """,
    _run,
)
