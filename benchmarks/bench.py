"""One session of measuring: its temporary folders, its tools, and the contenders made from them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import dags, peers, verify
from benchmarks.dags import MARKS, Dag
from benchmarks.measure import TRIES, Contender, MeasureError, Workspace, run_once, take_turns
from benchmarks.peers import Tool
from benchmarks.progress import Progress

# Variables of the caller that a program may see. Not CI or GITHUB_*: they change what planrun prints. Not
# PYTHONDONTWRITEBYTECODE: with it every Python peer may compile itself each time.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
NO_SYNC = "PLANRUN_NO_SYNC"
REPORTS = ("junit.xml", "report.md", "ledger.json")  # that every measured run has to write


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int  # of short runs
    long_rounds: int  # of runs above a second
    steps: int  # of the usual graphs
    chain: int  # steps of a chain
    many_steps: int  # of the large graph
    validated: tuple[int, int]  # steps of the two plans that are validated
    printed: int  # bytes that one step prints
    flooded: int | None  # bytes for the memory measurement; None: left out
    graphs: int  # that are scheduled in no time
    slept: int  # graphs of steps that sleep
    slept_seconds: float  # the bound of each of them
    tries: int = TRIES  # how often a run is repeated while other processes use the machine


FULL = Size(rounds=11, long_rounds=5, steps=1_000, chain=100, many_steps=10_000, validated=(10_000, 100_000),
            printed=200_000_000, flooded=None, graphs=200, slept=4, slept_seconds=4.0)  # fmt: skip
QUICK = Size(rounds=2, long_rounds=1, steps=50, chain=20, many_steps=300, validated=(300, 3_000),
             printed=5_000_000, flooded=None, graphs=12, slept=1, slept_seconds=1.0, tries=1)  # fmt: skip


@dataclass
class Bench:
    """Everything a row needs; `folder` is temporary."""

    folder: Path
    size: Size
    progress: Progress = field(default_factory=Progress)
    launcher: Path = field(init=False)
    planrun: Tool = field(init=False)
    planrun_sh: Tool = field(init=False)
    peers: dict[str, Tool] = field(init=False)
    trash: Path = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        """Compile the C programs and look for the tools."""
        for name in ("home", "trash", "cache"):
            (self.folder / name).mkdir()
        self.trash = self.folder / "trash"
        self.launcher = peers.compiled("launch", self.folder)
        self.planrun = peers.planrun()
        self.planrun_sh = peers.planrun_sh()
        self.peers = peers.peers(peers.compiled("climit", self.folder))

    def environment(self) -> dict[str, str]:
        """The environment of every program: small, with its own home and cache."""
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {**env, "HOME": str(self.folder / "home"), "XDG_CACHE_HOME": str(self.folder / "cache")}

    def fresh_cache(self, env: dict[str, str]) -> None:
        """Give the next run an empty cache folder."""
        self._made += 1
        empty = self.folder / f"cache{self._made}"
        empty.mkdir()
        env["XDG_CACHE_HOME"] = str(empty)

    def purge(self, _env: dict[str, str]) -> None:
        """Delete what earlier runs left, so that the disk is not busy writing it."""
        shutil.rmtree(self.trash)
        self.trash.mkdir()

    def workspace(self, inputs: dict[str, str]) -> Workspace:
        """A new folder with these files in it."""
        self._made += 1
        folder = self.folder / f"work{self._made}"
        folder.mkdir()
        for name, text in inputs.items():
            (folder / name).write_text(text, encoding="utf-8")
        # Python peers keep their compiled input, as they would in a checkout that is used again.
        return Workspace(folder, self.trash, frozenset({*inputs, "__pycache__"}))

    def program(self, name: str, argv: Sequence[str]) -> Contender:
        """A contender without input."""
        return Contender(name, argv, self.workspace({}), self.environment())

    def contender(self, tool: Tool, dag: Dag, *, name: str = "") -> Contender:
        """A tool on a graph."""
        workspace = self.workspace({tool.file: tool.write(dag)})
        return Contender(name or tool.name, tool.command(), workspace, self.environment())

    def masked(self, dag: Dag, secrets: Mapping[str, str], *, name: str) -> Contender:
        """Planrun on a graph with these secrets declared, so that all output passes through the masks."""
        contender = self.contender(self.planrun, dag, name=name)
        plan = contender.workspace.folder / self.planrun.file
        plan.write_text(f"secrets: [{', '.join(secrets)}]\n{plan.read_text('utf-8')}", "utf-8")
        contender.env.update(secrets)
        return contender

    def new_plan(self, dag: Dag, name: str = "planrun, new plan") -> Contender:
        """Planrun on a plan that it has never seen."""
        contender = self.contender(self.planrun, dag, name=name)
        contender.before = self.fresh_cache
        return contender

    def against(self, dag: Dag, names: Sequence[str]) -> list[Contender]:
        """The named peers, as far as they are here, on a graph."""
        return [self.contender(self.peers[name], dag) for name in names if name in self.peers]

    def compare(self, work: str, contenders: Sequence[Contender], rounds: int) -> dict[str, Contender]:
        """Run them in turn; by name."""

        def show(number: int, program: str) -> None:
            self.progress.show(work, number, rounds, program)

        take_turns(self.launcher, contenders, rounds, tries=self.size.tries, show=show)
        return {contender.name: contender for contender in contenders}

    def doubts(self) -> list[str]:
        """Why planrun's speed would mean nothing: steps not run, records not written."""
        dag = dags.layers(3, 5, dags.marking)
        found = self.verified(dag, (self.planrun,))[self.planrun.name]
        contender = self.contender(self.planrun, dag)
        status = run_once(self.launcher, contender, may_fail=True).status
        reports = contender.workspace.folder / "planrun-out"
        return found + [f"no {name} after exit {status}" for name in REPORTS if not (reports / name).exists()]

    def insist_on_refusal(self) -> None:
        """Raise MeasureError when planrun does not refuse a plan in which a step waits for itself."""
        bad = self.workspace({"plan.yml": "version: 1\nsteps: [{id: a, run: 'true', depends_on: [a]}]\n"})
        command = [*peers.planrun_command(), "validate", "plan.yml"]
        validation = Contender("validate", command, bad, self.environment())
        status = run_once(self.launcher, validation, may_fail=True).status
        if status != 2:
            raise MeasureError(f"validate answers a step that waits for itself with {status}, not 2")

    def verified(self, dag: Dag, tools: Iterable[Tool]) -> dict[str, list[str]]:
        """Run a graph of `marking` steps with tools; what was wrong, by tool."""
        found = {}
        for tool in tools:
            contender = self.contender(tool, dag)
            try:
                run_once(self.launcher, contender)
            except MeasureError as error:
                found[tool.name] = [str(error)]
                continue
            marks = contender.workspace.folder / MARKS
            found[tool.name] = verify.faults(dag, marks.read_text() if marks.exists() else "")
        return found
