"""One plan per rule: every folder under `cases/` is run by the installed command and held against what it expects.

A case is a folder with

    plan.yml        its head may say `# shows: GP-24 GP-31`, the rows that it proves
    commands        shell lines, run one after the other in a fresh folder; left out: `planrun execute plan.yml`
    expected.txt    what they did; `pytest --update-goldens` writes it anew
    expected/       copies of reports that are compared as a whole: report.md, junit.xml, ledger.json
    anything else   is there when the commands run

A command that executes a plan is told from its ledger: exit code, verdict, and a line for each step in file order
with its status, its reason and its attempts. Any other command is told by what it printed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.app.copies import plans_of
from planrun.errors import InvalidInput
from planrun.records.reading import read_ledger
from planrun.replays.replay import replay_run
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.replays.recorded import Difference
    from tests.golden import Golden

ROOT = Path(__file__).parent / "cases"
SCRIPTS = sysconfig.get_path("scripts")
DEFAULT = "planrun execute plan.yml"
CALLER = {"PLANRUN_JOBS": "2"}  # else it is the number of processors, and a machine may have one
LIMITED = re.compile(r"^limits:.*\bmax_parallel:", re.MULTILINE)
"""What a plan says of that itself, and the variable would override."""
NOT_COPIED = ("commands", "expected.txt", "expected")
EXECUTES = re.compile(r"\bplanrun\S? (?:execute|resume|retry)\b")
SHOWS = re.compile(r"^# shows: (.+)$", re.MULTILINE)
# What differs from run to run, and what stands for it in a golden file.
CHANGING = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"(?<=digest )(`?)[0-9a-f]{12}\b"), r"\1HASH"),
    (re.compile(r'(?<=time=")[\d.]+'), "0"),
    (re.compile(r'(?<=name="planrun\.step_seconds" value=")[\d.]+'), "0"),
    (re.compile(r'(?<=hostname=")[^"]*'), "HOST"),
    (re.compile(r"(?m)^by .+(?=, for one run, until )"), "by USER"),  # of an approval: who runs the tests
    (re.compile(r'(?<="duration_s":)[\d.]+'), "0"),
    (re.compile(r"(?<= error, )\d+\.\ds$", re.MULTILINE), "0.0s"),
    # How long a step or a run took, where the console and the report of a run show it.
    (
        re.compile(
            r"(?<=[( ])\d+(?:\.\ds|m\d\ds|h\d\dm)(?=\)$|, [\w ]+: .+\)$|: \d+ steps?: )", re.MULTILINE
        ),
        "0.0s",
    ),
)
DURATION = re.compile(r"\b\d+\.\ds\b")  # as reports show it; in a message it may be what the plan says


def cases() -> list[Any]:
    """Return a parameter for each case, marked with the rows that it shows."""
    found = []
    for folder in sorted(path for path in ROOT.iterdir() if path.is_dir()):
        plan = folder / "plan.yml"
        rows = SHOWS.findall(plan.read_text(encoding="utf-8")) if plan.exists() else []
        marks = [pytest.mark.shows(*line.split()) for line in rows]
        found.append(pytest.param(folder, id=folder.name, marks=marks))
    return found


@pytest.mark.parametrize("case", cases())
def test_case(case: Path, tmp_path: Path, golden: Golden) -> None:
    """What the commands of a case do is what stands in its golden files."""
    shutil.copytree(case, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    told = tell(case, tmp_path)
    for run in tmp_path.glob(".planrun/runs/*"):
        assert differences(run) == (), "the loop does something else with what is on record"
    golden(case / "expected.txt", told)
    for path in sorted((case / "expected").glob("*")):
        report = (tmp_path / "planrun-out" / path.name).read_text(encoding="utf-8")
        golden(path, DURATION.sub("0.0s", steady(report, tmp_path)))


def test_every_rule_has_its_case() -> None:
    """docs/semantics.md names every case, and no case that is not there."""
    text = (ROOT.parent.parent / "docs" / "semantics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\(\.\./tests/cases/([^/)]+)/plan\.yml\)", text))
    assert named == {path.name for path in ROOT.iterdir()}


def differences(run: Path) -> tuple[Difference, ...]:
    """Return where a replay of a run is not what its ledger says; nothing for a run whose plan somebody altered."""
    reading = read_ledger(str(run / "ledger.jsonl"))
    try:
        plans = plans_of(str(run), reading)
    except InvalidInput:
        return ()
    return replay_run(str(run), reading, plans).differences


def tell(case: Path, folder: Path) -> str:
    """Run the commands of a case in a folder and tell what they did."""
    file = case / "commands"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else [DEFAULT]
    parts: list[str] = []
    for line in lines:
        if line and not line.startswith("#"):
            parts += command(line, folder)
    return "\n".join(parts) + "\n"


def command(line: str, folder: Path) -> Iterator[str]:
    """Run one command line and tell what it did."""
    ledger = folder / "planrun-out" / "ledger.json"
    ledger.unlink(missing_ok=True)
    code, out, err = shell(line, folder)
    assert "internal error" not in err, err  # never what a case expects, not even with --update-goldens
    yield f"$ {line}"
    if EXECUTES.search(line) and ledger.exists():
        yield f"exit {code}"
        yield from (steady(text, folder) for text in run_told(json.loads(ledger.read_text("utf-8")), folder))
        return
    if code or "planrun" in line:
        yield f"exit {code}"
    for sign, text in ((">", out), ("!", err)):
        yield from (f"{sign} {row}".rstrip() for row in steady(text, folder).splitlines())


def shell(line: str, folder: Path) -> tuple[int, str, str]:
    """Run a shell line to its end and return exit code, stdout and stderr."""
    plan = folder / "plan.yml"
    caller = {} if plan.exists() and LIMITED.search(plan.read_text("utf-8", "replace")) else CALLER
    with subprocess.Popen(
        ["sh", "-c", line],
        cwd=folder,
        env=os.environ | caller | {"PATH": SCRIPTS + os.pathsep + os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # planrun, too, so that it ends what it started
            raise
    return process.returncode, out, err


def is_alone(step: dict[str, Any]) -> bool:
    """Say whether a step is a group that ended without members: it failed or was skipped before it had any."""
    return step["kind"] == "group" and not step["members"] and step["status"] not in ("pending", "running")


def run_told(ledger: dict[str, Any], folder: Path) -> Iterator[str]:
    """Tell a run: its verdict, and each step with what its records say beyond `ledger.json`."""
    notes = events(folder / ".planrun" / "runs" / ledger["run_id"] / "ledger.jsonl")
    yield f"{ledger['status']}, verdict {ledger['verdict']}"
    if ledger["rollback"]["status"] != "none":
        yield f"rollback {ledger['rollback']['status']}:"
        yield from (step_told(step, notes.get(step["id"], [])) for step in ledger["rollback"]["steps"])
    counted = [step for step in ledger["steps"] if step["kind"] != "group" or is_alone(step)]
    assert ledger["summary"]["total"] == len(counted)
    if ledger["ended_at"]:
        ends = ("completed", "failed", "skipped", "blocked", "cancelled")
        assert sum(ledger["summary"][end] for end in ends) == len(counted), "the counts do not add up"
    section = "steps"
    for step in ledger["steps"]:
        if step["section"] != section:
            section = step["section"]
            yield f"{section}:"
        yield step_told(step, notes.get(step["id"], []))
        if step["outputs"]:
            yield f"    outputs {json.dumps(step['outputs'], ensure_ascii=False)[:200]}"
        yield from checks_told(step, notes)


def step_told(step: dict[str, Any], notes: list[dict[str, Any]]) -> str:
    """Tell a step: status, reason, how often it was tried, and why it is what it is."""
    told = f"  {step['id']} {step['status']}" + (f"({step['reason']})" if step["reason"] else "")
    attempts = step["attempts"]
    if len(attempts) > 1:
        pauses = {event["n"]: event.get("delay", 0) for event in notes if event["type"] == "attempt_ended"}
        ways = [way_told(attempt, pauses.get(attempt["n"], 0)) for attempt in attempts]
        told += f" {len(attempts)} attempts: {', '.join(ways)}"
    elif attempts:
        told += " 1 attempt"
    error = attempts[-1]["error"] if attempts and step["status"] == "failed" else None
    if error:
        return f"{told} [{error['class']}, {error['rule']}] {error['message']}".rstrip()
    moved = notes[-1].get("message", "") if notes and notes[-1]["type"] == "step_moved" else ""
    return f"{told} {moved}".rstrip()


def way_told(attempt: dict[str, Any], pause: float) -> str:
    """Tell how one of several attempts ended, and the pause after it."""
    way: str = attempt["reason"]
    if way == "exit":
        way += f" {attempt['exit_code']}"
    return f"{way} +{pause:g}s" if pause else way


def checks_told(step: dict[str, Any], notes: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Tell the checks of a `validate` step."""
    for event in notes.get(step["id"], []):
        for check in event.get("checks", []):
            yield f"    {'ok ' if check['ok'] else 'not ok '}{check['name']} {check['message']}".rstrip()


def events(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the events of a ledger by the step that they are about."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        found.setdefault(event.get("step", ""), []).append(event)
    return found


def steady(text: str, folder: Path) -> str:
    """Return a text without what differs from run to run."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text
