"""The tools: where they are, how a graph is written for them, how they are called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import dialects
from benchmarks.dags import Dag

SOURCES = Path(__file__).parent
C_LOOP, C_LOGS = "C loop", "C loop, logs"
PLANRUN, PLANRUN_SH = "planrun", "planrun, sh"


@dataclass(frozen=True)
class Tool:
    """A way to run a graph: the file it reads, and its command line with `{file}` for that file."""

    name: str
    file: str
    write: Callable[[Dag], str]
    argv: Sequence[str]

    def command(self) -> list[str]:
        """The command line, to be run in the folder of the file."""
        return [self.file if word == "{file}" else word for word in self.argv]


def find(program: str) -> str | None:
    """The absolute path of a program: beside the running interpreter, else on PATH."""
    beside = Path(sys.executable).parent / program
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(program)


def planrun_command() -> list[str]:
    """How planrun is started: the installed script, else as a module of the running interpreter."""
    script = find("planrun")
    return [script] if script else [sys.executable, "-m", "planrun"]


def compiled(name: str, folder: Path) -> Path:
    """Compile one of the C programs into a folder."""
    compiler = find("cc")
    if compiler is None:
        raise FileNotFoundError("a C compiler named cc is needed for the launcher and the C loop")
    target = folder / name
    subprocess.run([compiler, "-O2", "-o", target, SOURCES / f"{name}.c"], check=True)
    return target


def planrun() -> Tool:
    """The tool that is measured, with its defaults."""
    return Tool(PLANRUN, "plan.yml", dialects.planrun, (*planrun_command(), "execute", "{file}"))


def planrun_sh() -> Tool:
    """The same with steps that are run by /bin/sh."""
    return Tool(PLANRUN_SH, "plan.yml", dialects.planrun_sh, (*planrun_command(), "execute", "{file}"))


def peers(climit: Path) -> dict[str, Tool]:
    """The peers that this machine has, by name."""
    jobs = str(dialects.JOBS)
    spelled = [
        Tool("make", "Makefile", dialects.make, ("make", "-j", jobs, "-f", "{file}")),
        Tool("ninja", "build.ninja", dialects.ninja, ("ninja", "-j", jobs, "-f", "{file}")),
        Tool("task", "Taskfile.yml", dialects.task, ("task", "-C", jobs, "-t", "{file}")),
        Tool("doit", "dodo.py", dialects.doit, ("doit", "-n", jobs, "-P", "thread", "-f", "{file}")),
    ]
    tools = {
        C_LOOP: Tool(C_LOOP, "dag.txt", dialects.climit, (str(climit), jobs, "{file}")),
        C_LOGS: Tool(C_LOGS, "dag.txt", dialects.climit, (str(climit), jobs, "{file}", ".")),
    }
    for tool in spelled:
        path = find(tool.argv[0])
        if path is not None:
            tools[tool.name] = Tool(tool.name, tool.file, tool.write, (path, *tool.argv[1:]))
    return tools
