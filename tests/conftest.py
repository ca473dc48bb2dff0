"""What every test shares: a clean environment, the installed command, and honest proof marks.

A test must come out the same on any machine: loaded or idle, in whatever CI, shell, order and locale.
"""

from __future__ import annotations

import codecs
import gc
import locale
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from planrun.executors import hardening
from tests.golden import OPTION, Golden

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

# What a CI system says about itself: a test that wants it sets it, no test inherits it.
CI_MARKS = re.compile(
    r"CI|CI_.*|GITHUB_.*|GITEA_.*|FORGEJO_.*|GITLAB_.*|RUNNER_.*|ACT|ACTIONS_.*|TF_BUILD|AGENT_.*|SYSTEM_.*"
    r"|BUILD_.*|BUILDKITE|BUILDKITE_.*|TEAMCITY_.*|CIRCLECI|CIRCLE_.*|JENKINS_.*|WORKSPACE|CONTINUOUS_INTEGRATION"
    r"|RUN_ID|PLANRUN_.*|_PLANRUN_.*|OTEL_.*|TRACEPARENT|TRACESTATE"
)
# What else changes how shells, Python, git and terminals behave. PYTEST_ADDOPTS is read before, and not passed on.
OTHER_MARKS = (
    *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "PYTEST_ADDOPTS"),
    *("LC_ALL", "LC_CTYPE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME", "LANGUAGE", "TZ"),
    *("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONWARNINGS", "PYTHONDEVMODE"),
    "PYTHONDONTWRITEBYTECODE",  # thousands of starts would compile planrun again
    *("PYTHONTRACEMALLOC", "PYTHONPROFILEIMPORTTIME", "PYTHONVERBOSE", "PYTHONMALLOC"),
    *("BASH_ENV", "ENV", "CDPATH", "POSIXLY_CORRECT", "SHELLOPTS", "BASHOPTS", "GREP_OPTIONS", "GREP_COLORS"),
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS"),
)
UMASK = 0o022
"""What files are made with, whatever the caller's: a test that is about modes says so."""
ROW = re.compile(r"[A-Z]{1,3}-\d{2}|[PRS]\d{1,2}")
GOAL = re.compile(r"[PRS]\d{1,2}")
"""Ids of goals, which are measured; they are no rows of docs/features.md."""
LIMIT = 300
"""Seconds for one command: nobody waits for them unless it hangs."""

# The same examples in every run, no file kept between them, and no clock: what chance finds is for the long proofs.
settings.register_profile(
    "steady", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


class Starts:
    """Counts how often this process started planrun, by whatever call; `by_fixtures` are fixtures that did."""

    def __init__(self) -> None:
        self.count = 0
        self.by_fixtures: set[str] = set()
        sys.addaudithook(self._note)

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
            self.count += _starts_planrun(args[1])


def _starts_planrun(argv: Any) -> bool:
    """Say whether a command line starts planrun: itself, as a module, from a script, or from Python code."""
    words = [os.fsdecode(word) for word in ([argv] if isinstance(argv, str | bytes) else argv)]
    if not words:
        return False
    as_module = any(one == "-m" and two == "planrun" for one, two in pairwise(words))
    return (
        os.path.basename(words[0]) == "planrun"
        or as_module
        or any(STARTING.search(word) for word in words[1:])
    )


STARTING = re.compile(
    r"(?:^|[\s;&|(/'\"])planrun(?:\s+[a-z-]|$)|import planrun\b(?!\.)|planrun\.cli\b|/(?:agents|story|walk)\.sh$"
)
"""What a script or a line of Python holds that starts planrun; three scripts of the documentation do."""
STARTS = Starts()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Remember the fixtures that start planrun: a run is made once and read by several tests."""
    before = STARTS.count
    try:
        return (yield)
    finally:
        if STARTS.count > before:
            STARTS.by_fixtures.add(fixturedef.argname)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a locale in which this process would read what planrun prints as something else.

    Workers take files in the order of `longest_first`; in xdist's own, the most tests first, long files come last.
    """
    config.option.loadscopereorder = False
    if codecs.lookup(locale.getencoding()).name != "utf-8":
        raise pytest.UsageError("the tests read and print UTF-8: set LC_ALL=C.UTF-8 or PYTHONUTF8=1")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, and leave them out of later looks: they live until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Let `-n auto` start two workers for a processor: a third of the tests' time is waiting for steps."""
    return 2 * (os.cpu_count() or 1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--update-goldens` write golden files anew."""
    parser.addoption(OPTION, action="store_true", help="write golden files anew: look at each difference")


class Command:
    """The planrun command, run as a person runs it: in its own process, from a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `planrun WORDS…` in `cwd` (default: the test's folder) to its end and return what it said.

        `env` is added to the test's environment.
        """
        return subprocess.run(
            [sys.executable, "-m", "planrun", *map(str, words)],
            cwd=cwd or self.folder,
            env=os.environ | (env or {}),
            **({"input": given} if given else {"stdin": subprocess.DEVNULL}),
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make the outcome of a test independent of the CI, the terminal and the caches around it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if CI_MARKS.fullmatch(name) or name in OTHER_MARKS:
                patch.delenv(name)
        patch.setenv("LANG", "C.UTF-8")
        patch.setenv("TERM", "xterm")
        # Neither the person's git, which may sign or refuse, nor one that asks for a password.
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_TERMINAL_PROMPT", "0")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        before = os.umask(UMASK)
        yield
        os.umask(before)


@pytest.fixture(scope="session", autouse=True)
def heeded_signals() -> Iterator[None]:
    """Have children take signals for what they are, also where a shell or nohup started the tests without some.

    What is ignored stays ignored in a child; what has a handler is the system's own again.
    """
    ignored = [
        number
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
        if signal.getsignal(number) == signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session", autouse=True)
def open_to_children() -> Iterator[None]:
    """Keep this process readable, and its children able to trace: what `execute` does about that has no way back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardening, "harden", lambda _names: "open")
        yield


@pytest.fixture(autouse=True)
def collector_on() -> Iterator[None]:
    """Undo what `execute` does to a process that it thinks its own: it turns garbage collection off."""
    yield
    gc.enable()


@pytest.fixture
def planrun(tmp_path: Path) -> Command:
    """Give the test the planrun command, standing in the test's own folder."""
    return Command(tmp_path)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Give the test what compares a text with a golden file."""
    return Golden(request.node.nodeid, update=request.config.getoption(OPTION))


@pytest.fixture(autouse=True)
def rows_are_shown_by_running_planrun(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that claims to show a row of docs/features.md and never starts planrun: a user sees no function."""
    rows = [
        row for mark in request.node.iter_markers("shows") for row in mark.args if not GOAL.fullmatch(row)
    ]
    before = STARTS.count
    yield
    if rows and STARTS.count == before and not STARTS.by_fixtures.intersection(request.fixturenames):
        pytest.fail(
            f"shows({', '.join(rows)}) and never starts planrun: show it from the command line", pytrace=False
        )


LONGEST = tuple(
    f"tests/{name}.py"
    for name in (
        *("agents/test_stale_patches", "agents/test_patches", "test_cases", "agents/test_together"),
        *("agents/test_loop_of_agents", "llm/test_model_process", "agents/test_memory", "cli/test_generate"),
        *(
            "agents/test_agents_in_plans",
            "agents/test_tools_of_agents",
            "convert/test_meaning",
            "action/test_act",
        ),
        *(
            "convert/test_workflow_meaning",
            "cluster/test_steps_on_workers",
            "agents/test_kills",
            "agents/test_web",
        ),
        *("agents/test_mcp", "cli/test_slow_reader", "app/test_replans", "app/test_expanding_runs"),
        *(
            "cli/test_expand",
            "convert/test_converted_dagu",
            "convert/test_converted_gitlab",
            "house/test_wheel",
        ),
        *("features/test_rows_shown_by_commands", "reports/test_html_in_a_browser", "docs/test_played_pages"),
        *("executors/test_containers", "app/test_ways_to_run_a_file", "cli/test_model_settings"),
    )
)
"""Files that take longest, longest first; most of it is processes that load the library of a model."""


def longest_first(items: list[pytest.Item], longest: Sequence[str]) -> None:
    """Begin with these files, so that all workers end at the same time; the order of others stays."""
    order = {name: number for number, name in enumerate(longest)}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a `shows` mark that names no row: a proof of nothing would count as one. Begin with the long files."""
    longest_first(items, LONGEST)
    for item in items:
        for mark in item.iter_markers("shows"):
            if not mark.args or not all(isinstance(row, str) and ROW.fullmatch(row) for row in mark.args):
                raise pytest.UsageError(f"{item.nodeid}: shows{mark.args} must name rows such as 'GP-34'")
