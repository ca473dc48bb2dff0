"""Reports and consoles bear any text: random bytes in every field and log, read as the readers of each form do.

Every report has to be well-formed and within its size, nothing a terminal, a browser or a CI system would obey may
be in it, and on the consoles of CI systems only planrun's own marks may stand. Each planted fault must be found.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import jinja2

from planrun.model import commands
from planrun.model.state import RunState
from planrun.reports import ci, elements, escape, github
from planrun.reports import escape as logs
from planrun.reports.ci import look_of
from planrun.reports.console import BATCH, Console
from planrun.reports.grouped import HEAD, TAIL
from planrun.reports.html import page
from planrun.reports.screen import Screen
from planrun.reports.write import render
from proofs import calm
from proofs.hostility import Drawn, output, steps, tell, word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Literal

    from tests.reports.runs import Story

ROOT = Path(__file__).parents[1]
VENDORS = {
    "github": {"GITHUB_ACTIONS": "true", "CI": "true"},
    "gitea": {"GITEA_ACTIONS": "true", "GITHUB_ACTIONS": "true"},
    "gitlab": {"GITLAB_CI": "true", "CI": "true"},
    "azure": {"TF_BUILD": "True"},
    "buildkite": {"BUILDKITE": "true", "CI": "true"},
    "teamcity": {"TEAMCITY_VERSION": "2026.1"},
    "circleci": {"CIRCLECI": "true", "CI": "true"},
    "jenkins": {"JENKINS_URL": "https://ci.example.com/"},
    "": {},
}
"""What tells planrun where it is, for each system that it knows."""
LINE = 1_000_000_000
"""Bytes of the longest line."""
MEMORY = 60
"""MiB of resident memory that a run with such a line may take."""
LIMIT = 900


class Options(NamedTuple):
    """What the caller asked for, as the console wants to know it."""

    color: Literal["auto", "always", "never"] = "never"
    output: Literal["auto", "stream", "group", "failed", "quiet"] = "group"
    verbose: bool = False
    json: bool = False
    in_program: bool = False


def in_story(story: Story) -> Iterator[str]:
    """Yield what is wrong with any report or console of a told run, with where it is."""
    state, rundir = story.state, str(story.rundir)
    count = len(state.steps)
    failures = sum(step.status == "failed" for step in state.steps.values())
    for dialect in ("default", *calm.SCHEMAS):
        data = render(state, rundir, "junit", dialect=dialect)
        yield from _named(f"junit {dialect}", calm.in_junit(data, count, dialect))
    yield from _named("json", calm.in_json(render(state, rundir, "json"), count))
    yield from _named("markdown", calm.in_markdown(render(state, rundir, "markdown"), count, failures))
    yield from _named("html", calm.in_html(render(state, rundir, "html"), count, failures))
    yield from _named("text", calm.in_text(render(state, rundir, "text").decode()))
    yield from _named("outputs", calm.in_outputs(_outputs(story)))
    yield from _named("summary", calm.in_markdown(_summary(story), count, failures, calm.SUMMARY))
    for vendor in VENDORS:
        yield from _named(f"console {vendor}", calm.in_console(vendor, shown(story, vendor), failures))


def _named(where: str, found: Iterator[str]) -> Iterator[str]:
    return (f"{where}: {problem}" for problem in found)


def _outputs(story: Story) -> bytes:
    path = story.rundir / "outputs"
    path.unlink(missing_ok=True)
    github.write_outputs(github.outputs(story.state, {"junit": story.plan.file}), str(path))
    return path.read_bytes()


def _summary(story: Story) -> bytes:
    path = story.rundir / "summary.md"
    path.unlink(missing_ok=True)
    github.write_summary(story.state, str(story.rundir), str(path))
    return path.read_bytes()


def shown(story: Story, vendor: str) -> str:
    """Return what the console says of a run under a CI system, all logs included."""
    out = io.StringIO()
    variables = VENDORS[vendor]
    with mock.patch.dict(os.environ, variables, clear=True):
        state = RunState(story.plan)
        look = look_of(out, variables, Options())
        now = [0.0]
        console = Console(Screen(out, lambda: now[0]), look, state, str(story.rundir))
        for event in story.events:
            state.apply(event)
            console.on_event(event, state)
            now[0] += BATCH  # lines are pending for so long
            console.tick()
    return out.getvalue()


def in_stories(count: int, seed: int, enough: int = 20) -> list[str]:
    """Tell so many runs and return their problems, each with its seed, as soon as there are enough."""
    found: list[str] = []
    for number in range(seed, seed + count):
        chance = random.Random(number)
        with tempfile.TemporaryDirectory(prefix="reports-") as folder:
            story = tell(Path(folder), steps(chance), word(chance))
            if chance.random() < 0.5:
                story.end(1)
            found += [f"seed {number}: {problem}" for problem in in_story(story)]
        if len(found) >= enough:
            break
    return found


def in_a_large_run(seed: int, count: int = 2000) -> list[str]:
    """Return a run of many failures with long logs, for which no report has room."""
    chance = random.Random(seed)
    log = b"".join([output(chance) for _ in range(40)])[-20_000:]
    drawn = [Drawn(f"s{number}", word(chance), "failed", log, {}) for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="reports-") as folder:
        story = tell(Path(folder), drawn, "large")
        story.end(1)
        said = shown(story, "github")
        return [
            *_named("junit", calm.in_junit(render(story.state, folder, "junit"), count)),
            *_named("summary", calm.in_markdown(_summary(story), count, count, calm.SUMMARY)),
            *_named("console github", calm.in_console("github", said, count)),
        ]


# Real runs: what real steps print, read where CI systems and people read it.

_PLAN = """\
version: 1
name: loud
params: {said: {type: string, required: true}}
defaults: {shell: sh}
steps:
"""
_STEP = """\
  - id: s%(number)d
    title: %(title)s
    on_failure: continue
    outputs: {said: {type: string, default: none}}
    env: {SAID: "${{ params.said }}"}
    run: |
      cat log%(number)d; cat log%(number)d >&2; printf '%%s' "$SAID"
      cat output%(number)d >> "$PLANRUN_OUTPUT"
      exit %(code)d
"""


def in_a_real_run(seed: int) -> list[str]:
    """Run a plan whose steps print hostile bytes, under one CI system after the other."""
    chance = random.Random(seed)
    vendor = list(VENDORS)[seed % len(VENDORS)]
    with tempfile.TemporaryDirectory(prefix="reports-") as folder:
        path = Path(folder)
        plan = _PLAN
        for number in range(3):
            (path / f"log{number}").write_bytes(output(chance))
            # An odd form fails the step, which is a message in every report.
            (path / f"output{number}").write_bytes(b"said=" + output(chance)[:200])
            title = json.dumps(chance.choice(("<b>x</b> | `y` @user #1", "[a](javascript:x)", "::error::x")))
            plan += _STEP % {"number": number, "title": title, "code": chance.choice((0, 3))}
        (path / "plan.yml").write_text(plan, "utf-8")
        said = b"said=" + word(chance).replace("\0", "").encode("utf-8", "surrogatepass")
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "planrun",
                "execute",
                "plan.yml",
                "--html",
                "--logs",
                "all",
                "--param",
                said,
            ],
            cwd=folder,
            env=_environment(path, vendor),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        return [f"seed {seed}: {problem}" for problem in _in_what_it_left(path, vendor, done)]


def _environment(folder: Path, vendor: str) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), "PLANRUN_CACHE_DIR": str(folder / "cache")}
    files = {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_OUTPUT": str(folder / "outputs")}
    return kept | files | VENDORS[vendor] | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def _in_what_it_left(folder: Path, vendor: str, done: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    try:
        said = (done.stdout + done.stderr).decode()
    except UnicodeDecodeError as error:
        yield f"console {vendor}: {error}"
        return
    if done.returncode or "internal error" in said or "Traceback" in said:
        yield f"exit {done.returncode}: {said[-300:]!r}"
        return
    out = folder / "planrun-out"
    ledger = json.loads((out / "ledger.json").read_bytes())
    failures = sum(step["status"] == "failed" for step in ledger["steps"])
    yield from _named(f"console {vendor}", calm.in_console(vendor, said, failures))
    yield from _named("junit", calm.in_junit((out / "junit.xml").read_bytes(), 3))
    yield from _named("json", calm.in_json((out / "ledger.json").read_bytes(), 3))
    yield from _named("markdown", calm.in_markdown((out / "report.md").read_bytes(), 3, failures))
    yield from _named("html", calm.in_html((out / "report.html").read_bytes(), 3, failures))
    if vendor in ("github", "gitea"):
        summary = (folder / "summary.md").read_bytes()
        yield from _named("summary", calm.in_markdown(summary, 3, failures, calm.SUMMARY))
        yield from _named("outputs", calm.in_outputs((folder / "outputs").read_bytes()))


_LONG = """\
version: 1
defaults: {shell: sh, timeout: 30m}
steps:
  - {id: line, run: "head -c %d /dev/zero | tr '\\\\0' x; exit 3"}
"""
_MEASURED = """\
import sys
from planrun.cli import main
code = main(["execute", "plan.yml", "--logs", "all"])
with open("/proc/self/status") as file:
    (peak,) = [row.split()[1] for row in file if row.startswith("VmHWM:")]
with open("peak", "w") as file:
    print(code, peak, file=file)
"""


def in_a_long_line(size: int) -> list[str]:
    """Run a step that prints one line of so many bytes and fails; planrun's memory and the reports stay small."""
    with tempfile.TemporaryDirectory(prefix="reports-") as folder:
        path = Path(folder)
        (path / "plan.yml").write_text(_LONG % size, "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED],
            cwd=folder,
            env=_environment(path, "github"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=True,
        )
        code, peak = map(int, (path / "peak").read_text().split())
        sizes = {file.name: file.stat().st_size for file in (path / "planrun-out").iterdir()}
        (log,) = path.glob(".planrun/runs/*/logs/line/1.log")
        print(f"one line of {log.stat().st_size} bytes: {peak // 1024} MiB of memory, reports of {sizes}")
        found = (
            [] if (code, log.stat().st_size) == (1, size) else [f"exit {code}, {log.stat().st_size} bytes"]
        )
        if peak > MEMORY * 1024:
            found.append(f"{peak // 1024} MiB of memory, more than {MEMORY}")
        if len(done.stdout) > HEAD + TAIL + 100_000 or max(sizes.values()) > 200_000:
            found.append(f"{len(done.stdout)} bytes on the console, reports of {sizes}")
        return found


def _as_it_is(text: Any) -> Any:
    return text


ENVIRONMENT = jinja2.Environment
LARGE = "summaries have no budget"
FAULTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": nullcontext,
    "commands of CI systems are kept": lambda: mock.patch.object(commands, "broken", _as_it_is),
    "control characters are kept": lambda: mock.patch.object(escape, "_REPLACED", {}),
    "XML is not escaped": lambda: mock.patch.object(elements, "escape", _as_it_is),
    "markdown is not escaped": lambda: mock.patch.object(escape, "_ESCAPES", {}),
    "HTML is not escaped": lambda: mock.patch.object(
        jinja2, "Environment", lambda **options: ENVIRONMENT(**{**options, "autoescape": False})
    ),
    "names in HTML are not cleaned": lambda: mock.patch.object(page, "_finalize", _as_it_is),
    "links are kept": lambda: mock.patch.object(escape, "_without_links", _as_it_is),
    "fences have three marks": lambda: mock.patch.object(escape, "longest_run", return_value=0),
    "Buildkite sees rows as they are": lambda: mock.patch.object(ci.Buildkite, "indent", b""),
    "annotations are not encoded": lambda: mock.patch.object(ci, "_property", _as_it_is),
    "a line end in an output": lambda: mock.patch.object(github, "_assignment", "{}={}\n".format),
    "bytes are shown as they are": lambda: mock.patch.object(logs, "plain", _as_it_is),
    LARGE: lambda: mock.patch.object(github, "SUMMARY_BYTES", 2**40),
}
"""Faults to plant; the empty name is planrun as it is."""


def is_caught(fault: str, count: int = 200) -> bool:
    """Plant a fault; return whether told runs find it."""
    with FAULTS[fault]():
        found = in_a_large_run(1, 150) if fault == LARGE else in_stories(count, 0, 1)
    print(f"planted fault: {fault}: {found[0][:150] if found else 'NOT CAUGHT'}")
    return bool(found)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when anything was wrong with a report, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs reports", description=__doc__)
    parser.add_argument("--told", type=int, default=5000, help="runs that are only told")
    parser.add_argument("--real", type=int, default=300, help="runs of real steps")
    parser.add_argument("--line", type=int, default=LINE, help="bytes of the longest line")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--fault", choices=[name for name in FAULTS if name], default="", help="plant one")
    chosen = parser.parse_args(words)
    if chosen.fault:
        return int(is_caught(chosen.fault))
    print(f"{chosen.told} told runs and {chosen.real} real ones, seed {chosen.seed}")
    found = in_stories(chosen.told, chosen.seed) + in_a_large_run(chosen.seed)
    with ThreadPoolExecutor(2) as pool:
        for problems in pool.map(in_a_real_run, range(chosen.seed, chosen.seed + chosen.real)):
            found += problems
    found += in_a_long_line(chosen.line)
    print(*found[:20], f"{len(found)} problems", sep="\n")
    missed = [fault for fault in FAULTS if fault and not is_caught(fault)]
    return int(bool(found or missed))
