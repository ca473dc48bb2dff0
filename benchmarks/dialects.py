"""The same graph in the language of every tool."""

from __future__ import annotations

import json

from benchmarks.dags import Dag

JOBS = 2  # at a time, in every tool


def _names(dag: Dag, needs: tuple[int, ...], separator: str) -> str:
    return separator.join(dag.steps[need].name for need in needs)


def planrun(dag: Dag, shell: str = "") -> str:
    """A plan; without `shell` as most people write one, so that steps have the default shell."""
    lines = ["version: 1", f"name: {dag.name}"]
    if shell:
        lines.append(f"defaults: {{shell: {shell}}}")
    lines += [f"limits: {{max_parallel: {JOBS}}}", "steps:"]
    for step in dag.steps:
        lines += [f"  - id: {step.name}", f"    run: {json.dumps(step.command)}"]
        if step.needs:
            lines.append(f"    depends_on: [{_names(dag, step.needs, ', ')}]")
    return "\n".join(lines) + "\n"


def planrun_sh(dag: Dag) -> str:
    """A plan whose steps are run by /bin/sh, which all other tools use."""
    return planrun(dag, "sh")


def task(dag: Dag) -> str:
    """A Taskfile; without `run: once` a step would run again for every step that needs it."""
    lines = ["version: '3'", "run: once", "tasks:", "  default:", "    deps:"]
    lines += [f"      - {step.name}" for step in dag.sinks()]
    for step in dag.steps:
        lines += [f"  {step.name}:", "    cmds:", f"      - {json.dumps(step.command)}"]
        if step.needs:
            lines.append(f"    deps: [{_names(dag, step.needs, ', ')}]")
    return "\n".join(lines) + "\n"


def doit(dag: Dag) -> str:
    """A dodo.py with one task generator; tasks without files always run."""
    rows = []
    for step in dag.steps:
        needs = [f"dag:{dag.steps[need].name}" for need in step.needs]
        rows.append(f"    {(step.name, step.command, needs)!r},")
    table = "\n".join(rows)
    return (
        f"STEPS = [\n{table}\n]\n\n\n"
        "def task_dag():\n"
        "    for name, command, needs in STEPS:\n"
        "        yield {'name': name, 'actions': [command], 'task_dep': needs}\n"
    )


def ninja(dag: Dag) -> str:
    """A build.ninja whose outputs are never made, so that every step runs every time."""
    lines = ["rule sh", "  command = $cmd"]
    for step in dag.steps:
        lines += [f"build {step.name}: sh {_names(dag, step.needs, ' ')}".rstrip(), f"  cmd = {step.command}"]
    return "\n".join(lines) + "\n"


def make(dag: Dag) -> str:
    """A makefile of phony targets."""
    everything = " ".join(step.name for step in dag.steps)
    lines = [f".PHONY: all {everything}", "all: " + " ".join(step.name for step in dag.sinks())]
    for step in dag.steps:
        lines += [f"{step.name}: {_names(dag, step.needs, ' ')}".rstrip(), f"\t{step.command}"]
    return "\n".join(lines) + "\n"


def climit(dag: Dag) -> str:
    """What climit.c reads: command, tab, numbers."""
    return "".join(f"{step.command}\t{' '.join(map(str, step.needs))}\n" for step in dag.steps)
