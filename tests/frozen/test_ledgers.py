"""What runs leave on record stays: for each case below, `ledgers/NAME.jsonl` holds exit codes and events.

The cases are those of `tests/cases/`, run again one step at a time so that the order of events is certain, and
`asking/` in this folder: a model expands a plan and plans anew after a failure, answering from `asking/recordings`.
A file has a line for each command of the case that starts planrun, then the events of each run in their order. What
differs from run to run is replaced: ids, times, durations, paths, hosts, process ids, and hashes of these. Texts for
people are `TEXT`; digests of plans, fingerprints of commands and keys of cached results are kept.

A difference that is no mistake is accepted by `pytest tests/frozen --update-goldens`; the commit message says why.
Ledgers of earlier versions have to stay readable: an event may get new fields, and never loses or renames one.
`asking/recordings` is recorded anew at the same time when a prompt was changed.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, draft, step
from tests.frozen.quick import PROCESSES, ROOT
from tests.frozen.table import HERE
from tests.golden import OPTION

if TYPE_CHECKING:
    from tests.golden import Golden

CASES = {
    "seed-example": "run, retries",
    "recovers-completes": "recovers",
    "exec-takes-anything": "exec",
    "tools-work-together": "tool",
    "validate-passes": "validate",
    "validate-fails": "validate that fails",
    "asks-and-is-answered": "ask, decide, gates, resume",
    "matrix-ask": "what becomes of failed instances is asked",
    "uses-another-plan": "uses",
    "uses-cleanup": "finally and rollback of a used plan",
    "matrix-combinations": "matrix",
    "matrix-fail-fast": "matrix that is stopped",
    "foreach-found-while-running": "foreach",
    "services-serve": "service, ready",
    "finally-after-failure": "finally",
    "rollback-then-resume": "rollback, resume",
    "retries-filters": "retries, on",
    "resume-after-kill": "lost attempts, resume",
    "retry-after-abort": "retry",
    "cache-used-again": "cache",
    "edges-on-left-out": "gates, approve, steps left out",
    "policy-ask-for-plan": "approval of a plan, approval files",
    "secrets-in-outputs": "secrets",
    "on-failure-abort": "abort",
    "edges-on-failed": "edges",
    "cancelled": "signals",
    "finalize-after-cancel": "finalize",
    "timeout-of-step": "timeout",
    "errors-by-exit-code": "classes of failures",
    "outputs-typed": "outputs",
    "proofs-fail": "expect, verify, criteria",
    "schedule-levels": "schedule",
    "select-tag": "selection",
}
"""What is run, and what for."""
ASKING = HERE / "asking"
REPLIES = [
    draft([step("2", "echo 2 >> ran", title="Write the list")], "It is one command."),
    draft([step("5", "echo 5 >> ran", title="Pack elsewhere", replaces=["3"])], "It may not write there."),
]
"""What the model says in `asking/`: of the abstract step, and of the failure."""
STALE = "a prompt is another than when tests/frozen/asking was recorded: --update-goldens records it anew"
VERB = re.compile(r"\bplanrun\S? (\w+)")
LOOKS = re.compile(r"planrun (?:show|validate|explain|report|status|verify)\b[^>]*")
"""Commands of cases that leave nothing behind; they are left out for speed."""
RECORDS = ".planrun/runs/*/ledger.jsonl"
OF_A_RUN = {"at", "duration", "hash", "pid", "seq", "trace", "until"}
OF_A_MACHINE = {"env_left_out", "host", "planrun"}
OF_LOGS = {"log_bytes", "log_sha256", "stderr"}
"""What is another in each run, on each machine or in each version; and of logs, which may hold times or texts."""
FOR_PEOPLE = {"memory", "message", "notes", "prices", "problems", "told", "uncovered"}
COUNTS = {"reserved", "usage"}
"""Tokens of calls, of which only the kinds are kept: a prompt may get longer."""
WORDS = re.compile(r"[a-z_]*|[a-z]+:[\w-]+")
"""A reason as a program reads it. Any other is a sentence."""
CHANGING = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\ba-[0-9a-f]{16}\b"), "APPROVAL"),
)
HASH = re.compile(r"[0-9a-f]{64}")
HASHES = {"before", "digest", "key", "sha256"}
"""Fields whose hashes come from plans and from what steps make, and not from times."""
KEY = re.compile(r'(?<="key": ")[0-9a-f]{64}')
OWN_KEYS = (platform.system(), platform.machine()) == ("Linux", "x86_64")
"""The keys of cached results hold the platform: those on record are of this one."""


class Runs:
    """Cases, each run once, two at a time; `lines` of one are what its data file holds."""

    def __init__(self, top: Path, names: list[str]) -> None:
        self._top = top
        with ThreadPoolExecutor(PROCESSES) as pool:
            self._found = dict(zip(names, pool.map(self._run, names), strict=True))

    def lines(self, name: str) -> list[str]:
        """Return exit codes and events of a case."""
        return self._found[name]

    def _run(self, name: str) -> list[str]:
        case, folder = ROOT / "tests" / "cases" / name, self._top / name
        shutil.copytree(case, folder, ignore=shutil.ignore_patterns("commands", "expected*"))
        file = case / "commands"
        rows = file.read_text("utf-8").splitlines() if file.exists() else ["planrun execute plan.yml"]
        return play(
            [row for row in rows if row and not row.startswith("#") and not LOOKS.fullmatch(row)], folder
        )


def play(rows: list[str], folder: Path, **env: str) -> list[str]:
    """Run shell lines in a folder; return the exit codes of those that start planrun, and the events of all runs."""
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    found = []
    for row in rows:
        done = subprocess.run(
            ["sh", "-c", row],
            cwd=folder,
            env={
                **os.environ,
                "PATH": path,
                "HOME": str(folder),
                "XDG_CACHE_HOME": f"{folder}.cache",  # a result that another test kept would be restored
                "PLANRUN_JOBS": "1",
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        verb = VERB.search(row)
        if verb:
            found.append(json.dumps({"exit": done.returncode, "verb": verb[1]}))
    ledgers = [file.read_text("utf-8").splitlines() for file in folder.glob(RECORDS)]
    for ledger in sorted(ledgers, key=lambda each: json.loads(each[0])["at"]):
        found += [json.dumps(steady(json.loads(event), folder), sort_keys=True) for event in ledger]
    return found


USER = pwd.getpwuid(os.geteuid()).pw_name


def steady(value: Any, folder: Path, key: str = "") -> Any:
    """Return a part of an event without what differs from run to run."""
    if value and (key in FOR_PEOPLE or (key == "why" and isinstance(value, dict))):
        return "TEXT"
    if key in COUNTS and isinstance(value, dict):
        return sorted(value)
    if isinstance(value, dict):
        left_out = (
            OF_A_RUN | OF_A_MACHINE | OF_LOGS | ({"sha256"} if "digest" in value else set())
        )  # of a plan file, with its comments
        if value.get("kind") == "failure":
            value = {**value, "question": "TEXT", "options": [each["value"] for each in value["options"]]}
        return {name: steady(each, folder, name) for name, each in value.items() if name not in left_out}
    if isinstance(value, list):
        return [steady(each, folder, key) for each in value]
    if isinstance(value, str):
        return steady_text(value, folder, key)
    return "SOME" if key == "delay" and value else value


def steady_text(value: str, folder: Path, key: str) -> str:
    """Return a text of an event without what differs from run to run."""
    if key == "program":
        return "PATH"
    if key == "by" and value == USER:
        return "USER"
    if key in ("reason", "why") and not WORDS.fullmatch(value):
        return "TEXT"
    if key not in HASHES and HASH.fullmatch(value):
        return "HASH"
    for pattern, instead in CHANGING:
        value = pattern.sub(instead, value)
    return value.replace(str(folder), "FOLDER")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Runs:
    """Run the cases whose tests were chosen."""
    chosen = [item.name for item in request.session.items if item.name.startswith("test_ledger_stays[")]
    names = [name for name in CASES if f"test_ledger_stays[{name}]" in chosen]
    return Runs(tmp_path_factory.mktemp("runs"), names)


def without_keys(text: str) -> str:
    """Return events without the keys of cached results."""
    return KEY.sub("KEY", text)


@pytest.mark.parametrize("name", CASES)
def test_ledger_stays(name: str, runs: Runs, golden: Golden) -> None:
    """A case ends with the exit codes and leaves the events that it did."""
    text = "\n".join(runs.lines(name)) + "\n"
    golden(HERE / "ledgers" / f"{name}.jsonl", text, str if OWN_KEYS else without_keys)


def test_no_ledger_is_left_over() -> None:
    """Each data file belongs to a case."""
    assert {path.stem for path in (HERE / "ledgers").iterdir()} == {*CASES, "asking"}


def test_ledger_of_plannings_stays(tmp_path: Path, golden: Golden, pytestconfig: pytest.Config) -> None:
    """A run that a model expands and plans anew, from recordings, leaves the events that it did."""
    if pytestconfig.getoption(OPTION):
        shutil.rmtree(ASKING / "recordings", ignore_errors=True)
        shutil.copytree(ASKING, tmp_path / "asked")
        with FakeMessages(list(REPLIES)) as api:
            record = f"planrun execute plan.yml --expand --llm-record {ASKING / 'recordings'}"
            play([record], tmp_path / "asked", **api.env)
    shutil.copytree(ASKING, tmp_path / "replayed", ignore=shutil.ignore_patterns("recordings"))
    replay = f"planrun execute plan.yml --expand --llm-replay {ASKING / 'recordings'}"
    lines = play([replay], tmp_path / "replayed")
    assert any('"outcome": "revised"' in line for line in lines), STALE
    golden(HERE / "ledgers" / "asking.jsonl", "\n".join(lines) + "\n")
