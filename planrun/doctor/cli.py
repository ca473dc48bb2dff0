"""What this machine, this folder and this environment offer to planrun, and what to do where something is missing.

Nothing is run but programs that print their version or state, nothing stays in the folder, and no value of a credential
is read into a result.

`planrun doctor`: check this machine and folder, and advise on what is missing.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata

import click

from planrun import __version__
from planrun.actions.containers import CHOSEN, NoEngine, engine_of
from planrun.app.caching import max_size, own_store
from planrun.app.inspect import known_runs, listing
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.executors.mark import Marks
from planrun.llm.credentials import NO_LIBRARY, AddressError, endpoint_of
from planrun.model.record import Record
from planrun.records.lock import holder
from planrun.records.reading import BROKEN
from planrun.reports.ci import from_checkout, vendor
from planrun.reports.facts import size as size_text
from planrun.settings import default_jobs
from planrun.store.entries import size as bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Literal

LIBRARIES = ("click", "PyYAML", "jsonschema", "pydantic", "Jinja2", "junit-xml")
"""The libraries that planrun requires; anthropic is needed only to ask a model."""
LEAST_SPACE = 1 << 30
"""Bytes. Below this a log, a report or the cache of a usual build may not fit."""
LEAST_FILES = 1024
"""Open files: each running step takes a few, and a run with many steps at once needs more than 256."""
SHALLOW = "fetch the whole history (actions/checkout: fetch-depth: 0), or --policy COMMIT:PATH and review find no base"
_PATIENCE = 10.0  # seconds for one program
# What an engine answers only when it could start a container: Podman has no server to ask.
_DOCKER = ("version", "--format", "{{.Server.Version}}")
_PODMAN = ("info", "--format", "{{.Version.Version}}")
_MOST_RUNS = 50  # newest runs that are checked


class Check(Record):
    """One line of the result.

    `status`: ok, warning (planrun works, with a limit), problem (runs will fail), none (not there, and not needed).
    """

    name: str
    status: Literal["ok", "warning", "problem", "none"]
    found: str
    todo: str = ""


def check_all(environ: Mapping[str, str]) -> list[Check]:
    """Return every check for the current folder; an unexpected failure of one is a problem of its own line."""
    return [found for check in CHECKS for found in _guarded(check, environ)]


def _guarded(
    check: Callable[[Mapping[str, str]], Iterator[Check]], environ: Mapping[str, str]
) -> list[Check]:
    name = check.__name__.strip("_").replace("_", " ")
    try:
        return list(check(environ))
    except Exception as error:  # noqa: BLE001 - a machine that is odd enough to break a check is what doctor is for
        return [
            Check(name=name, status="problem", found=f"the check failed: {type(error).__name__}: {error}")
        ]


def _planrun(_environ: Mapping[str, str]) -> Iterator[Check]:
    place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield Check(name="planrun", status="ok", found=f"{__version__} in {place}")


def _python(_environ: Mapping[str, str]) -> Iterator[Check]:
    found = f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    old = sys.version_info < (3, 11)
    todo = "install Python 3.11 or later" if old else ""
    yield Check(name="python", status="problem" if old else "ok", found=found, todo=todo)
    versions, missing = [], []
    for name in LIBRARIES:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        todo = "install planrun again: pip install --force-reinstall planrun"
        yield Check(name="libraries", status="problem", found=f"missing: {', '.join(missing)}", todo=todo)
    else:
        yield Check(name="libraries", status="ok", found=", ".join(versions))


def _system(_environ: Mapping[str, str]) -> Iterator[Check]:
    lacking = []
    if not Marks().works:
        lacking.append("processes of steps cannot be marked")
    if not _has_pidfd():
        lacking.append("no pidfd")
    if not os.path.exists("/proc/self/stat"):
        lacking.append("no /proc")
    found = platform.platform()
    if lacking:
        todo = (
            "a process that leaves its session and process group may survive its step; use Linux 5.3 or later"
        )
        yield Check(name="system", status="warning", found=f"{found}: {', '.join(lacking)}", todo=todo)
    else:
        yield Check(
            name="system", status="ok", found=f"{found}; every process of a step can be found and ended"
        )


def _has_pidfd() -> bool:
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _processors(_environ: Mapping[str, str]) -> Iterator[Check]:
    jobs, limit = default_jobs(), _cpu_limit()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = f"{jobs} usable, so {jobs} steps run at once unless limits.max_parallel or --jobs says otherwise"
    if limit and limit < jobs:
        todo = f"set limits.max_parallel or PLANRUN_JOBS={max(1, int(limit))}"
        found = f"{jobs} usable, but the control group allows {limit:g} processors of time"
        yield Check(name="processors", status="warning", found=found, todo=todo)
    else:
        yield Check(name="processors", status="ok", found=found)
    if 0 < files < LEAST_FILES:
        todo = f"raise it: ulimit -n {LEAST_FILES}"
        yield Check(name="open files", status="warning", found=f"at most {files}", todo=todo)


def _cpu_limit() -> float:
    """Return how many processors the control group of this container allows (cgroup v2), 0 without a limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        return 0.0 if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return 0.0


def _shell(environ: Mapping[str, str]) -> Iterator[Check]:
    path = shutil.which("bash", path=environ.get("PATH", os.defpath))
    if path:
        version = _first_line(_output((path, "--version")))
        yield Check(name="shell", status="ok", found=f"{path}: {version}; run: steps use bash -euo pipefail")
        return
    sh = shutil.which("sh", path=environ.get("PATH", os.defpath))
    if sh:
        todo = "install bash, or write scripts for sh: without bash, run: steps use sh -eu, which has no pipefail"
        yield Check(name="shell", status="warning", found=f"no bash on PATH; {sh}", todo=todo)
    else:
        todo = "install bash, or put it on PATH"
        yield Check(name="shell", status="problem", found="neither bash nor sh on PATH", todo=todo)


def _git(environ: Mapping[str, str]) -> Iterator[Check]:
    path = shutil.which("git", path=environ.get("PATH", os.defpath))
    if not path:
        todo = "install git: review, diff of commits and policies of commits (COMMIT:PATH) need it; other runs do not"
        yield Check(name="git", status="warning", found="no git on PATH", todo=todo)
        return
    version = _output((path, "--version")).strip().removeprefix("git version ")
    code, out, error = _answer((path, "rev-parse", "--show-toplevel", "--is-shallow-repository"))
    if code == 0:
        root, _, shallow = out.strip().partition("\n")
        found = f"{version}, {path}; repository {root}"
        if shallow == "true":
            yield Check(name="git", status="warning", found=f"{found}, a shallow clone", todo=SHALLOW)
        else:
            yield Check(name="git", status="ok", found=found)
    elif "dubious ownership" in error:
        todo = f"git config --global --add safe.directory {os.getcwd()}"
        found = f"{version}, {path}; git refuses this repository, since another user owns it"
        yield Check(name="git", status="problem", found=found, todo=todo)
    else:
        yield Check(name="git", status="ok", found=f"{version}, {path}; this folder is in no repository")


def _space(_environ: Mapping[str, str]) -> Iterator[Check]:
    store = own_store()
    places = {"this folder": os.getcwd(), "temporary files": tempfile.gettempdir()}
    if store:
        places["cache"] = _nearest(store.path)
    low, shown = [], []
    for name, path in places.items():
        status = os.statvfs(path)
        free = status.f_bavail * status.f_frsize
        text = f"{name} {size_text(free)}"
        shown.append(text)
        if free < LEAST_SPACE:
            low.append(f"{text} in {path}")
        elif status.f_files and not status.f_favail:
            low.append(f"{name}: no inode is free in {path}")
    if low:
        todo = "free some: planrun prune deletes finished runs, planrun cache prune cached results"
        yield Check(name="space", status="warning", found=f"free: {'; '.join(low)}", todo=todo)
    else:
        yield Check(name="space", status="ok", found=f"free: {', '.join(shown)}")


def _nearest(path: str) -> str:
    """Return the nearest folder above a path that exists."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _writing(environ: Mapping[str, str]) -> Iterator[Check]:
    for name in (".", ".planrun", "planrun-out"):
        if name != "." and not os.path.lexists(name):
            continue
        problem = _cannot_write(name)
        if problem:
            todo = f"make it writable for user {os.geteuid()}, or start planrun in another folder"
            found = f"{os.path.abspath(name)}: {problem}"
            yield Check(name="write permission", status="problem", found=found, todo=todo)
            return
    place = os.getcwd()
    if os.statvfs(".").f_flag & getattr(os, "ST_NOEXEC", 8):
        todo = "start scripts by their shell (run: bash x.sh), or mount the file system without noexec"
        found = f"{place}: the file system is mounted noexec, so ./x.sh cannot start"
        yield Check(name="write permission", status="warning", found=found, todo=todo)
    else:
        known = from_checkout(os.path.join(place, "x"), environ)
        inside = "" if os.path.isabs(known) else "; inside the checkout of the CI system"
        yield Check(name="write permission", status="ok", found=f"{place}; files can be locked{inside}")


def _cannot_write(folder: str) -> str:
    """Return why a file cannot be made and locked in a folder, "" when it can."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _cache(_environ: Mapping[str, str]) -> Iterator[Check]:
    store = own_store()
    if store is None:
        todo = "set PLANRUN_CACHE_DIR, XDG_CACHE_HOME or HOME: without it nothing is cached, and locks are refused"
        yield Check(
            name="cache", status="warning", found="the environment names no folder for caches", todo=todo
        )
        return
    folder = os.path.dirname(store.path)
    problem = _cannot_write(_nearest(folder))
    if problem:
        todo = "make it writable, or set PLANRUN_CACHE_DIR to a folder of your own"
        yield Check(name="cache", status="warning", found=f"{folder}: {problem}", todo=todo)
    elif os.path.isdir(store.path) and not store.is_ours():
        todo = f"only its owner may write there: chmod go-w {store.path}"
        yield Check(
            name="cache", status="warning", found=f"{store.path}: other users may write there", todo=todo
        )
    else:
        used = bytes_of(store) if os.path.isdir(store.path) else 0
        yield Check(
            name="cache", status="ok", found=f"{folder}: {size_text(used)} of {size_text(max_size())}"
        )


def _containers(environ: Mapping[str, str]) -> Iterator[Check]:
    name = "container engine"
    try:
        engine = engine_of()
    except NoEngine as error:
        named = environ.get(CHOSEN, "")
        todo = f"correct {CHOSEN}" if named else "install Docker or Podman if a plan has container: steps"
        yield Check(name=name, status="problem" if named else "none", found=str(error), todo=todo)
        return
    question = _PODMAN if "podman" in os.path.basename(engine) else _DOCKER
    code, out, error_text = _answer((engine, *question))
    if code == 0 and out.strip():
        yield Check(name=name, status="ok", found=f"{engine}: engine {_first_line(out)} answers")
        return
    todo = "start the engine and see that this user may use it; only container: steps need it"
    detail = error_text.strip().rpartition("\n")[2].strip() or f"exit code {code}"
    yield Check(
        name=name, status="warning", found=f"{engine}: the engine does not answer: {detail}", todo=todo
    )


def _sandbox(_environ: Mapping[str, str]) -> Iterator[Check]:
    from planrun.executors.sandbox.probe import BACKENDS, why_not  # starts sandboxed processes

    missing = {backend: why_not(backend) for backend in BACKENDS}
    working = [backend for backend, why in missing.items() if not why]
    if not working:
        found = "; ".join([f"{backend}: {why}" for backend, why in missing.items()])
        todo = "only steps with `sandbox:` and steps that a model wrote need one"
        yield Check(name="sandbox", status="warning", found=found, todo=todo)
        return
    others = "".join([f"; {backend}: {why}" for backend, why in missing.items() if why])
    tried = f"{' and '.join(working)}: a process in it was refused what it may not do"
    yield Check(name="sandbox", status="ok", found=tried + others)


def _mcp(environ: Mapping[str, str]) -> Iterator[Check]:
    from planrun.doctor.servers import tried  # starts the servers of a plan

    for status, found, todo in tried(environ):
        yield Check(name="MCP server", status=status, found=found, todo=todo)


def _model(environ: Mapping[str, str]) -> Iterator[Check]:
    name = "model credentials"
    try:
        endpoint = endpoint_of("", environ)
    except AddressError as error:
        yield Check(name=name, status="problem", found=str(error), todo="correct ANTHROPIC_BASE_URL")
        return
    if endpoint.credentials is None:
        todo = "set ANTHROPIC_API_KEY if plans ask a model; everything else works without"
        yield Check(name=name, status="none", found=endpoint.lacking.partition(": set ")[0], todo=todo)
        return
    try:
        library = f"anthropic {metadata.version('anthropic')}"
    except metadata.PackageNotFoundError:
        found, _, todo = NO_LIBRARY.partition(": ")
        yield Check(name=name, status="problem", found=found, todo=todo)
        return
    model = environ.get("PLANRUN_LLM_MODEL", "")
    named = f"model {model}" if model else "no model named (--llm-model, or llm.model in the plan)"
    found = (
        f"present in {endpoint.credentials.source} (not shown) for {endpoint.base_url}; {named}; {library}"
    )
    yield Check(name=name, status="ok", found=found)


def _ci(environ: Mapping[str, str]) -> Iterator[Check]:
    system = vendor(environ)
    if not system:
        yield Check(name="CI system", status="none", found="none found; output is for a person")
        return
    shown = "unknown system, found by CI or a variable like it" if system == "other" else system
    unusable = [
        f"{name} ({environ[name]})"
        for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
        if environ.get(name) and not os.access(environ[name], os.W_OK)
    ]
    if unusable:
        todo = "pass these files into the container or job that runs planrun"
        found = f"{shown}; cannot be written: {', '.join(unusable)}"
        yield Check(name="CI system", status="warning", found=found, todo=todo)
    else:
        yield Check(name="CI system", status="ok", found=shown)


def _runs(_environ: Mapping[str, str]) -> Iterator[Check]:
    names = known_runs()
    if not names:
        yield Check(name="runs", status="ok", found="none in this folder")
        return
    held = holder("")
    found = f"{len(names)} in this folder"
    if held:
        found += f"; {held.run} is running as process {held.pid} on {held.host}"
    broken, open_ = [], []
    for row in listing(names[:_MOST_RUNS]):
        if row.status in (*BROKEN, "unreadable"):
            broken.append(f"{row.run} is {row.status}")
        elif row.status in ("waiting", "paused", "unfinished"):
            open_.append(f"{row.run} is {row.status}")
    if broken:
        todo = "planrun verify RUN shows why"
        yield Check(name="runs", status="warning", found=f"{found}; {', '.join(broken)}", todo=todo)
    elif open_:
        todo = "planrun status RUN shows why; planrun resume RUN continues it, planrun finalize RUN cleans up"
        yield Check(name="runs", status="warning", found=f"{found}; {', '.join(open_)}", todo=todo)
    else:
        yield Check(name="runs", status="ok", found=found)


def _terminal(_environ: Mapping[str, str]) -> Iterator[Check]:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "") == "utf8":
        yield Check(name="text", status="ok", found="UTF-8")
    else:
        todo = "set LANG=C.UTF-8 or PYTHONUTF8=1"
        yield Check(
            name="text", status="warning", found=f"{encoding}: other characters are escaped", todo=todo
        )


CHECKS = (
    *(_planrun, _python, _system, _processors, _shell, _git, _space, _writing, _cache),
    *(_containers, _sandbox, _mcp, _model, _ci, _terminal, _runs),
)
"""In the order in which they are shown."""


def _output(words: tuple[str, ...]) -> str:
    return _answer(words)[1]


def _answer(words: tuple[str, ...]) -> tuple[int, str, str]:
    """Run a program and return exit code, stdout and stderr; -1 where it cannot start or does not end in time."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            env={**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
        )
    except subprocess.TimeoutExpired:
        return -1, "", f"no answer in {_PATIENCE:g} s"
    except OSError as error:
        return -1, "", error.strerror or ""
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


_SIGNS = {"ok": "ok", "warning": "WARNING", "problem": "PROBLEM", "none": "-"}


@click.command(short_help="Check this machine and folder, with advice on what is missing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def doctor(*, as_json: bool) -> int:
    """Check what planrun needs on this machine and in this folder.

    Python, libraries, system, processors, shell, git, space, write permission, cache, container engine, sandbox,
    model credentials (their presence, never a value), CI system, and the runs of this folder. Each line that is not
    "ok" says what to do. Nothing is changed. Put the output into a bug report.

    The exit code is 1 when there is a PROBLEM, otherwise 0.

    \b
    Examples:
      planrun doctor
      planrun doctor --json | jq '.checks[] | select(.status == "problem")'
    """
    checks = check_all(os.environ)
    problems = sum(each.status == "problem" for each in checks)
    warnings = sum(each.status == "warning" for each in checks)
    if as_json:
        rows = [{"name": c.name, "status": c.status, "found": c.found, "todo": c.todo} for c in checks]
        say_json({"problems": problems, "warnings": warnings, "checks": rows})
    else:
        say(
            "\n".join(
                [*_lines(checks), "", f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}"]
            )
        )
    return 1 if problems else 0


def _lines(checks: list[Check]) -> Iterator[str]:
    wide = max(len(each.name) for each in checks)
    for each in checks:
        yield f"{_SIGNS[each.status]:7}  {each.name:{wide}}  {printable(each.found)}"
        if each.todo:
            yield f"{'':7}  {'':{wide}}  -> {printable(each.todo)}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
