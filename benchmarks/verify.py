"""Proofs that a tool kept to a graph, from what its steps left in the workspace."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.dags import Dag


def faults(dag: Dag, marks: str) -> list[str]:
    """Return which `marking` steps did not run exactly once and after all they need."""
    order = [int(number) for number in re.findall(r"<(\d+)>", marks)]
    found = []
    places: dict[int, int] = {}
    for place, index in enumerate(order):
        if index in places:
            found.append(f"step {index} ran more than once")
        places.setdefault(index, place)
    for index, step in enumerate(dag.steps):
        if index not in places:
            found.append(f"step {index} did not run")
            continue
        late = [need for need in step.needs if places.get(need, len(order)) > places[index]]
        found += [f"step {index} ran before step {need}, which it needs" for need in late]
    return found


def unrecorded(dag: Dag, folder: Path) -> list[str]:
    """Return which `witnessing` steps started before the end of a step they need was in the ledger."""
    found = []
    for index, step in enumerate(dag.steps):
        # A reader beside the writer may see half of the newest line: only whole ones count.
        lines = (folder / f"seen.{index}").read_text().split("\n")[:-1]
        events = [json.loads(line) for line in lines]
        ended = {event["step"] for event in events if event["type"] == "attempt_ended"}
        late = [dag.steps[need].name for need in step.needs if dag.steps[need].name not in ended]
        found += [f"{step.name} started before the end of {name} was recorded" for name in late]
    return found


def took(folder: Path) -> float:
    """Return the duration in seconds of the newest run in a folder, from its ledger."""
    newest = max((folder / ".planrun" / "runs").iterdir())
    last = (newest / "ledger.jsonl").read_text().rstrip("\n").split("\n")[-1]
    return float(json.loads(last)["duration"])
