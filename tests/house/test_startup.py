"""What a start of planrun costs, without a clock: modules, memory and system calls of plans that were seen before."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PATH = "/usr/bin:/bin"  # short and the same everywhere: looking for a program costs a call per folder
# Whatever is slow to import, and what only some plans need.
NEVER = (
    *("asyncio", "pydantic", "jinja2", "jsonschema", "anthropic", "rich", "logging", "sqlite3"),
    *("importlib.metadata", "xml.sax", "xml", "typing", "re", "enum", "json", "dataclasses", "subprocess"),
    *("signal", "click", "yaml", "junit_xml", "random", "tempfile", "shutil", "pathlib", "inspect"),
    *("contextlib", "functools", "collections", "datetime", "hashlib", "heapq", "socket", "threading"),
)
# All that may come from elsewhere: a new name here needs a reason and a measurement.
STANDARD = frozenset(
    {"__future__", "_sha2", "_sha256", "errno", "fcntl", "gc", "resource", "select"}
    | {"_collections_abc", "_stat", "abc", "_abc", "genericpath", "os", "os.path", "posixpath", "stat"}
)
# Rooms and modules of planrun that a plan without conditions, values, outputs and failures has no use for.
ASLEEP = (
    *("planrun.expressions", "planrun.values", "planrun.model.graph", "planrun.engine.failures"),
    *(
        "planrun.plan.compile.compile",
        "planrun.plan.yaml.document",
        "planrun.plan.problems",
        "planrun.plan.yaml.text",
    ),
    *(
        "planrun.app.selection",
        "planrun.app.resume",
        "planrun.executors.owners",
        "planrun.reports.drawing",
        "planrun.actions.validate",
        "planrun.secrets",
        "planrun.app.secrets",
    ),
)
# What only new plans with expressions, groups or fragments need.
PLAIN = (
    *("planrun.expressions", "planrun.values", "planrun.model.globs", "planrun.model.tools"),
    *("planrun.plan.check.quoting", "planrun.plan.check.references", "planrun.plan.keys.fragments"),
    *("planrun.plan.compile.groups", "planrun.plan.compile.conflicts", "planrun.plan.templates"),
)
MODULES = 70  # of planrun in one run
TRIES = 5  # to count the calls of a step
CALLS = 30  # of planrun alone for one more step: 27.1 measured
KIB = 20 * 1024

PROBE = """
import sys
before = set(sys.modules)
sys.path.insert(0, {root!r})
sys.stdout = None
from planrun.cli import main
code = main(["execute", "plan.yml"])
loaded = sorted(set(sys.modules) - before)
import json
try:
    status = open("/proc/self/status").read().split()
    peak = int(status[status.index("VmHWM:") + 1])
except OSError:
    peak = 0
json.dump({{"code": code, "loaded": loaded, "before": sorted(before), "peak": peak}}, open("probe.json", "w"))
"""


def environment(folder: Path) -> dict[str, str]:
    """The environment of the runs: a cache of their own, no CI, nothing that changes how Python starts."""
    return {
        "PATH": PATH,
        "HOME": str(folder),
        "PLANRUN_CACHE_DIR": str(folder / "cache"),
        "PLANRUN_LLM_MODEL": "a-model",  # set for a whole job, say: a plan that asks no model pays nothing for it
        "PYTHONPATH": str(ROOT),
    }


def prepare(folder: Path, steps: int) -> list[str]:
    """Write a plan of silent steps, run it once so that it was seen before, and return the command that runs it."""
    rows = [f"  - {{id: s{number}, exec: ['true']}}\n" for number in range(steps)]
    (folder / "plan.yml").write_text(f"version: 1\nsteps:\n{''.join(rows)}", encoding="utf-8")
    command = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--jobs", "1", "--quiet"]
    subprocess.run(command, cwd=folder, env=environment(folder), check=True, timeout=300)
    return command


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run of a plan that was seen before leaves in its interpreter, which starts without `site`."""
    folder = tmp_path_factory.mktemp("probe")
    prepare(folder, 1)
    return probed(folder, PROBE.format(root=str(ROOT)))


def probed(folder: Path, script: str) -> dict[str, Any]:
    """What the script, which runs without `site`, writes about the interpreter of a run that succeeded."""
    argv = [sys.executable, "-I", "-S", "-c", script]
    subprocess.run(argv, cwd=folder, env=environment(folder), check=True, timeout=300, capture_output=True)
    found: dict[str, Any] = json.loads((folder / "probe.json").read_bytes())
    assert found["code"] == 0
    return found


@pytest.mark.shows("P11")
def test_a_run_imports_nothing_that_is_slow(probe: dict[str, Any]) -> None:
    """After `execute` of a plain plan that was seen before none of the slow modules is loaded."""
    assert not set(NEVER) & {*probe["loaded"], *probe["before"]}


def test_a_run_imports_little_of_the_standard_library(probe: dict[str, Any]) -> None:
    """Besides its own modules a run loads only those that are listed here one by one."""
    foreign = {name for name in probe["loaded"] if name.partition(".")[0] != "planrun"}
    assert foreign <= STANDARD


def test_a_run_imports_only_what_it_needs_of_planrun(probe: dict[str, Any]) -> None:
    """What only conditions, values, failures, checks or new plans need stays unloaded; the rest is not many."""
    own = {name for name in probe["loaded"] if name.partition(".")[0] == "planrun"}
    assert not {name for name in own if name.startswith(ASLEEP)}
    assert len(own) <= MODULES


def test_a_run_without_a_plan_imports_no_more(tmp_path: Path) -> None:
    """`run` in a folder with plan.yml loads exactly the modules that `execute plan.yml` loads."""
    prepare(tmp_path, 1)
    loaded = []
    for words in (["execute", "plan.yml"], ["run"]):
        script = PROBE.format(root=str(ROOT)).replace('["execute", "plan.yml"]', json.dumps(words))
        loaded.append(probed(tmp_path, script)["loaded"])
    assert loaded[0] == loaded[1]


def test_a_new_plan_loads_no_more_of_yaml_than_its_parser(tmp_path: Path) -> None:
    """A plan that was never seen is read by libyaml's binding; one without files of commands loads no `re`, too."""
    steps = "{id: a, run: df, timeout: 5m, retries: 2, env: {A: b}}, {id: b.c-d, run: ls, depends_on: [a]}"
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps: [{steps}]\n", encoding="utf-8")
    folder = Path(yaml.__file__).parents[1]
    script = PROBE.format(root=str(ROOT)).replace(
        "sys.stdout", f"sys.path.append({str(folder)!r})\nsys.stdout", 1
    )
    found = probed(tmp_path, script)
    assert not {name for name in found["loaded"] if name.startswith(PLAIN)}
    assert not ({*NEVER} - {"yaml"}) & {*found["loaded"], *found["before"]}
    if yaml.__with_libyaml__:
        parts = {name for name in found["loaded"] if name.startswith("yaml.")}
        assert parts == {"yaml._yaml", "yaml.error", "yaml.events", "yaml.nodes", "yaml.tokens"}


def test_a_run_stays_small(probe: dict[str, Any]) -> None:
    """The largest resident set of a run is at most 20 MiB, as the kernel counted it."""
    if not probe["peak"]:
        pytest.skip("no /proc/self/status on this system")
    assert probe["peak"] <= KIB


def calls_of_planrun(folder: Path, steps: int) -> int:
    """Count the system calls of planrun alone, not those of its steps, in a run of so many steps."""
    folder.mkdir()
    command = prepare(folder, steps)
    tracing = ["strace", "-qq", "-o", "trace"]  # without -f: children are not followed
    subprocess.run([*tracing, *command], cwd=folder, env=environment(folder), check=True, timeout=300)
    trace = (folder / "trace").read_text(encoding="utf-8", errors="replace")
    # A look at a process that somebody else on this machine started meanwhile is not the step's doing; where that is
    # somebody else's process, its limits are read from a file.
    trace = re.sub(r'^openat\([^"]*"/proc/\d+/limits"(?s:.*?)^close\(.*\n', "", trace, flags=re.MULTILINE)
    rows = trace.splitlines()
    return sum("(" in row and not row.startswith(("---", "prlimit64(")) for row in rows) + 2 * steps


@pytest.mark.shows("P11")
def test_a_step_costs_a_fixed_number_of_system_calls(tmp_path: Path) -> None:
    """Each step more costs planrun at most so many system calls, measured between 20 and 120 silent steps."""
    if platform.system() != "Linux" or shutil.which("strace") is None:
        pytest.skip("needs strace")
    refused = subprocess.run(
        ["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, text=True, timeout=300, check=False
    )
    if refused.returncode:
        pytest.skip(f"strace may not trace here: {refused.stderr.strip()[:200]}")
    # Processes that other programs start meanwhile make planrun look for its own among them: that only adds calls.
    costs: list[float] = []
    while not costs or (min(costs) > CALLS and len(costs) < TRIES):
        folder = tmp_path / str(len(costs))
        folder.mkdir()
        costs.append((calls_of_planrun(folder / "many", 120) - calls_of_planrun(folder / "few", 20)) / 100)
    assert min(costs) <= CALLS
