"""Replans of real runs: a plan file, one step that fails, and what the run does then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from benchmarks.planning.domains import ESCALATE
from benchmarks.planning.oracles import cheapest
from planrun.search.find import find
from planrun.search.space import Action, Problem, applied, waits
from planrun.search.tree import Limits


def replanned(problem: Problem, failing: int, algorithm: str) -> tuple[float, float, bool]:
    """Run a release whose step `failing` fails; returns what the rest cost, the least that it can cost, and whether
    every finished step stayed as it was.

    The plan has the cheapest way as steps, and all others as parts; `planrun run` replans by itself.
    """
    steps = find(problem, Limits("astar", max_tree_depth=60, max_tree_nodes=20000)).actions
    failing %= len(steps)
    before = frozenset(problem.start)
    state = applied(before, steps[:failing])
    left = tuple(
        action for action in problem.actions if action is not steps[failing] and action not in steps[:failing]
    )
    least = cheapest(Problem(state, problem.goal, left))
    with TemporaryDirectory(prefix="planrun-planning-") as folder:
        with open(os.path.join(folder, "plan.yml"), "w", encoding="utf-8") as file:
            json.dump(_plan(problem, steps, (failing, algorithm)), file)
        command = [sys.executable, "-m", "planrun", "run", "plan.yml", "-q", "--jobs", "1"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"a run failed: {done.stderr}")
        with open(os.path.join(folder, "planrun-out", "ledger.json"), encoding="utf-8") as file:
            ledger = json.load(file)
    by_id = {_id(action): action for action in problem.actions}
    ran = {step["id"]: step for step in ledger["steps"] if step["attempts"]}
    finished = [_id(action) for action in steps[:failing]]
    untouched = all(
        len(ran[name]["attempts"]) == 1 and ran[name]["status"] == "completed" for name in finished
    )
    rest = [by_id[name] for name in ran if name not in finished and name != _id(steps[failing])]
    return sum(action.expected for action in rest), least, untouched


def _id(action: Action) -> str:
    return action.name.replace(" ", "-")


def _plan(problem: Problem, steps: tuple[Action, ...], how: tuple[int, str]) -> dict[str, object]:
    failing, algorithm = how
    edges = waits(steps)
    written = []
    for at, action in enumerate(steps):
        run = "exit 1" if at == failing else "true"
        order = [_id(steps[at - 1])] if at else [_id(steps[before]) for before in edges[at]]
        written.append({**_facts(action), "run": run, **({"depends_on": order} if order else {})})
    parts = [{**_facts(action), "run": "true"} for action in problem.actions if action not in steps]
    search = {"goal": sorted(problem.goal), "algorithm": algorithm, "max_tree_depth": 60, "parts": parts}
    return {"version": 1, "search": search, "steps": written}


def _facts(action: Action) -> dict[str, object]:
    found: dict[str, object] = {"id": _id(action), "provides": sorted(action.provides)}
    if action.requires:
        found["requires"] = sorted(action.requires)
    return found | {"estimated_time": f"{action.cost:g}s", "estimated_success": action.success, "retries": 0}


__all__ = ["ESCALATE", "replanned"]
