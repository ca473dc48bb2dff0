"""Rows of the acceptance table as a user sees them: each test starts planrun and reads what it printed and wrote."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planrun.llm.offline import KEYWORDS
from tests.app.replans import PLAN, REPAIRED, draft, step
from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, status

if TYPE_CHECKING:
    from tests.conftest import Command

FATAL = "llm: {model: model-a}"
"""The line of PLAN that names the model; a test puts its own settings there."""
WRONG = draft(step("7", "true", replaces=["4"]), analysis="Wrong.")
"""A draft that does not replace the step that failed."""


def write(folder: Path, text: str, name: str = "plan.yml") -> None:
    """Write a file of the test's folder."""
    (folder / name).write_text(text, "utf-8")


def ledger(folder: Path) -> dict[str, Any]:
    """Return ledger.json of the last run."""
    found: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return found


def rundir(folder: Path) -> Path:
    """Return the folder of the newest run."""
    return max((folder / ".planrun" / "runs").iterdir())


def events(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return the events of these types from the newest run's ledger."""
    rows = (rundir(folder) / "ledger.jsonl").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, rows) if event["type"] in kinds]


def alive(pid: int) -> bool:
    """Say whether a process runs: not when it is gone, nor when it only waits for somebody to take note of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# One run.

ENDS = """\
version: 1
name: ends
defaults: {timeout: 60s}
steps:
  - {id: good, title: Fine, run: echo fine}
  - {id: again, title: Second try, run: test $PLANRUN_ATTEMPT = 2, retries: {max: 1, backoff: {initial: 10ms}}}
  - {id: bad, title: Broken, run: "echo the end of the log >&2; exit 3"}
  - {id: behind, depends_on: [bad], run: "true"}
  - {id: soft, run: exit 1, on_failure: continue}
  - {id: after, depends_on: [soft], run: "true"}
  - {id: heal, depends_on: {hurt: failed}, recovers: [hurt], run: "true"}
  - {id: hurt, run: exit 1}
"""


@pytest.mark.shows("GP-27", "N-20", "D-23")
def test_each_attempt_is_on_record(planrun: Command, tmp_path: Path) -> None:
    """Start, end, duration, status, log and error of each attempt are in ledger.json, times in JUnit as well."""
    write(tmp_path, ENDS)
    assert planrun("execute", "plan.yml").returncode == 1
    steps = {each["id"]: each for each in ledger(tmp_path)["steps"]}
    first, second = steps["again"]["attempts"]
    assert (first["n"], first["status"], first["exit_code"]) == (1, "failed", 1)
    assert (second["n"], second["status"], second["exit_code"]) == (2, "completed", 0)
    assert first["started_at"] <= first["ended_at"] <= second["started_at"] <= second["ended_at"]
    assert first["duration_s"] >= 0
    (bad,) = steps["bad"]["attempts"]
    assert bad["error"]["message"] == "exit code 3"
    assert (rundir(tmp_path) / bad["log"]).read_text("utf-8") == "the end of the log\n"
    ended = [event["step_status"] for event in events(tmp_path, "attempt_ended") if event["step"] == "again"]
    assert ended == ["waiting", "completed"]
    cases = ET.parse(tmp_path / "planrun-out" / "junit.xml").getroot().iter("testcase")
    assert all(float(case.attrib["time"]) >= 0 for case in cases)


@pytest.mark.shows("D-14", "V-66")
def test_failures_follow_the_rules_and_the_loop_runs_until_nothing_can_start(
    planrun: Command, tmp_path: Path
) -> None:
    """A failure blocks what needs it, a tolerated one does not, a handler heals one; all that can start has started."""
    write(tmp_path, ENDS)
    planrun("execute", "plan.yml")
    found = {each["id"]: (each["status"], each["reason"]) for each in ledger(tmp_path)["steps"]}
    assert found == {
        "good": ("completed", "ran"),
        "again": ("completed", "flaky"),
        "bad": ("failed", "exit"),
        "behind": ("blocked", "upstream"),
        "soft": ("failed", "exit"),
        "after": ("completed", "ran"),
        "heal": ("completed", "ran"),
        "hurt": ("failed", "exit"),
    }


@pytest.mark.shows("N-68", "GP-62")
def test_reports_of_text_and_markdown(planrun: Command, tmp_path: Path) -> None:
    """The markdown has the counts and a line a step, the text one line with sign, title and duration."""
    write(tmp_path, ENDS)
    planrun("execute", "plan.yml")
    told = planrun("report", "last", "--format", "text").stdout
    line = next(each for each in told.splitlines() if "Fine" in each)
    assert line.lstrip().startswith("✓ Step good: Fine (0.")
    markdown = planrun("report", "last", "--format", "markdown").stdout
    assert markdown == (tmp_path / "planrun-out" / "report.md").read_text("utf-8")
    assert "\n## Execution Summary\n\n**failed (exit code 1), " in markdown
    assert "8 steps: 4 successful, 3 failed, 1 blocked" in markdown
    summary = ledger(tmp_path)["summary"]
    assert (summary["total"], summary["completed"], summary["failed"], summary["blocked"]) == (8, 4, 3, 1)
    for title in ("Fine", "Second try", "Broken"):
        assert title in markdown
    written = tmp_path / "summary.md"
    planrun(
        "execute",
        "plan.yml",
        env={"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_STEP_SUMMARY": str(written)},
    )
    assert "Broken" in written.read_text("utf-8")


@pytest.mark.shows("V-77")
def test_a_failure_stands_out(planrun: Command, tmp_path: Path) -> None:
    """GitHub gets an annotation at the plan's line, JUnit a failure with the end of the log, the others neither."""
    write(tmp_path, ENDS)
    done = planrun("execute", "plan.yml", env={"GITHUB_ACTIONS": "true", "CI": "true"})
    said = done.stdout + done.stderr
    line = ENDS.splitlines().index(next(row for row in ENDS.splitlines() if "id: bad" in row)) + 1
    notes = [row for row in said.splitlines() if row.startswith("::error")]
    assert any(f"file=plan.yml,line={line}" in row for row in notes)
    root = ET.parse(tmp_path / "planrun-out" / "junit.xml").getroot()
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    texts = {case.attrib["name"]: "".join(case.itertext()) for case in failed}
    assert any("the end of the log" in text for text in texts.values())
    assert not any("Fine" in name for name in texts)


@pytest.mark.shows("D-12")
def test_progress_is_drawn_on_a_terminal_only(tmp_path: Path) -> None:
    """A terminal shows a bar that is drawn over itself, a pipe plain lines."""
    write(
        tmp_path, "version: 1\nsteps: [{id: a, run: sleep 0.3}, {id: b, depends_on: [a], run: sleep 0.3}]\n"
    )
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # how Linux says that nobody has the other side any more
                break
            if not piece:
                break
            shown += piece
        assert process.wait(LIMIT) == 0
    os.close(ours)
    assert b"\r" in shown.replace(b"\r\n", b"")
    assert b"1/2" in shown
    plain = subprocess.run(
        words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=LIMIT
    )
    assert b"\r" not in plain.stdout + plain.stderr


@pytest.mark.shows("V-49")
def test_a_run_that_waits_says_so_in_one_line(planrun: Command, tmp_path: Path) -> None:
    """`status` of a run that goes on has a line with how far it is and how long it runs."""
    write(tmp_path, "version: 1\nsteps: [{id: a, run: 'true'}, {id: b, depends_on: [a], run: sleep 60}]\n")
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + LIMIT
        line = ""
        while "1/2" not in line and time.monotonic() < until:
            told = planrun("status").stdout.splitlines()
            line = next((row for row in told if "run 2" in row), "")
        process.terminate()
        process.wait(LIMIT)
    assert "1/2" in line


@pytest.mark.shows("N-25")
def test_a_timeout_ends_the_whole_tree(planrun: Command, tmp_path: Path) -> None:
    """A child that left its session and ignores the request is gone when the step has failed, and stays gone."""
    script = "setsid sh -c 'trap \\\"\\\" TERM; echo $$ > pid; sleep 100' & sleep 100"
    write(tmp_path, f'version: 1\nsteps: [{{id: a, timeout: 1s, run: "{script}"}}]\n')
    assert planrun("execute", "plan.yml").returncode == 1
    (found,) = ledger(tmp_path)["steps"]
    assert (found["status"], found["reason"]) == ("failed", "timeout")
    assert not alive(int((tmp_path / "pid").read_text("utf-8")))


@pytest.mark.shows("V-51")
def test_runs_are_kept_in_files_that_go_by_their_ids(planrun: Command, tmp_path: Path) -> None:
    """Each run has a ledger; a run is named by its id, by the beginning of one, or by `last`."""
    write(tmp_path, "version: 1\nsteps: [{id: a, run: 'true'}]\n")
    for _ in range(2):
        assert planrun("execute", "plan.yml").returncode == 0
    older, newer = sorted(path.name for path in (tmp_path / ".planrun" / "runs").iterdir())
    assert all((tmp_path / ".planrun" / "runs" / name / "ledger.jsonl").is_file() for name in (older, newer))
    for word, run in ((older, older), (older[:-2], older), ("last", newer)):
        assert json.loads(planrun("report", word, "--format", "json").stdout)["run_id"] == run
    assert planrun("report", "2", "--format", "json").returncode == 2


# Policies and decisions.


@pytest.mark.shows("N-06")
def test_steps_that_only_read_need_no_approval(planrun: Command, tmp_path: Path) -> None:
    """Under `auto_approve: read-only` a step that reads runs, and one that writes waits."""
    text = "version: 1\npolicy: {auto_approve: read-only}\nsteps: [{id: look, run: ls}, {id: make, run: mkdir x}]\n"
    write(tmp_path, text)
    assert planrun("execute", "plan.yml").returncode == 5
    found = {each["id"]: each["status"] for each in ledger(tmp_path)["steps"]}
    assert (found["look"], found["make"] in ("pending", "waiting")) == ("completed", True)
    assert not (tmp_path / "x").exists()


@pytest.mark.shows("V-22")
def test_a_decision_shows_all_its_fields(planrun: Command, tmp_path: Path) -> None:
    """Question, header, options and whether several may be chosen are shown before the run and while it waits."""
    write(
        tmp_path,
        """\
version: 1
steps:
  - id: auth
    decide:
      question: Which way?
      header: Auth
      multi_select: true
      options:
        - {label: Tokens, description: Short-lived ones., value: jwt}
        - {label: Sessions, description: Kept here.}
""",
    )
    shown = planrun("show", "plan.yml").stdout + json.dumps(
        json.loads(planrun("show", "plan.yml", "--json").stdout)
    )
    for part in ("Which way?", "Tokens", "Short-lived ones.", "jwt", "Sessions", "Kept here."):
        assert part in shown
    assert planrun("execute", "plan.yml").returncode == 5
    (gate,) = ledger(tmp_path)["gates"]
    assert (gate["question"], gate["header"], gate["multi_select"]) == ("Which way?", "Auth", True)
    assert [(each["label"], each["value"], each.get("description")) for each in gate["options"]] == [
        ("Tokens", "jwt", "Short-lived ones."),
        ("Sessions", "Sessions", "Kept here."),
    ]
    assert "Auth: Which way?" in planrun("status").stdout


# Words, estimates and advice.


@pytest.mark.shows("D-34", "D-35", "D-36")
@pytest.mark.parametrize("level", ["complex", "medium", "simple"])
def test_words_decide_how_much_a_task_asks_for(planrun: Command, level: str) -> None:
    """Each keyword of the tables is a reason of its level; a text without any has the default as its only reason."""
    texts = {
        "complex": [f"Please {word} it" for word in KEYWORDS["complex"]],
        "medium": [f"Please {word} x" for word in KEYWORDS["medium"] if word != "build a"],
        "simple": ["explain the code", "what does main do?"],
    }[level]
    for text in texts:
        found = json.loads(planrun("classify", "--json", text).stdout)
        assert found["level"] == level, text
        rules = {reason["rule"] for reason in found["reasons"]}
        assert ("default" if level == "simple" else "keyword") in rules, text


@pytest.mark.shows("D-46")
def test_steps_without_an_estimate_get_the_one_of_their_kind(planrun: Command) -> None:
    """A plan that is written without a model has an estimate for each step that is still to be written."""
    done = planrun("generate", "--offline", "fix the login", "-o", "plan.yml")
    assert done.returncode == 0, done.stderr
    steps = json.loads(planrun("show", "plan.yml", "--json").stdout)["steps"]
    abstract = [each for each in steps if each["kind"] in ("abstract", "none", "")]
    assert {each["id"]: each["estimated_tokens"] for each in abstract} == {"fix": 4000, "test": 1000}
    said = ("Analyse the logs", "Read the configuration", "Change the parser", "Verify it")
    written = [step(f"step-{at}", "", title=title) for at, title in enumerate(said)]
    with FakeMessages([draft(*written, step("own", "", title="Read it", estimated_tokens=77))]) as api:
        env = {**api.env, "PLANRUN_LLM_MODEL": "model-a"}
        done = planrun("generate", "look at the parser", "-o", "other.yml", env=env)
    assert done.returncode == 0, done.stderr
    steps = json.loads(planrun("show", "other.yml", "--json").stdout)["steps"]
    assert [each["estimated_tokens"] for each in steps] == [2000, 3000, 4000, 1000, 77]


@pytest.mark.shows("D-61")
def test_a_model_would_be_told_of_the_project(planrun: Command, tmp_path: Path) -> None:
    """`generate --dry-run` shows tree, languages, build files and README without asking anything."""
    write(tmp_path, "# Shop\n\nSells apples.\n", "README.md")
    write(tmp_path, '[project]\nname = "shop"\n', "pyproject.toml")
    (tmp_path / "src").mkdir()
    write(tmp_path, "print(1)\n", "src/app.py")
    write(tmp_path, "TOKEN=never-to-be-read\n", ".env")
    done = planrun("generate", "--dry-run", "ship it", "--llm-model", "model-a")
    assert done.returncode == 0, done.stderr
    for part in ("Sells apples.", "pyproject.toml", "src/: app.py"):
        assert part in done.stdout
    assert "never-to-be-read" not in done.stdout


@pytest.mark.shows("D-59")
def test_lint_puts_the_longest_path_first(planrun: Command, tmp_path: Path) -> None:
    """By recorded durations the slow step comes too late: lint says so, and `--fix` moves it with its comment."""
    text = """\
version: 1
limits: {max_parallel: 2}
steps:
  - id: one
    run: sleep 1.5
  - id: two
    run: sleep 1.5
  # the slow one
  - id: slow
    run: sleep 3
"""
    write(tmp_path, text)
    assert planrun("execute", "plan.yml").returncode == 0
    assert "L412" in planrun("lint", "plan.yml").stdout
    assert planrun("lint", "plan.yml", "--fix").returncode == 0
    moved = (tmp_path / "plan.yml").read_text("utf-8")
    assert sorted(moved.splitlines()) == sorted(text.splitlines())
    assert "steps:\n  # the slow one\n  - id: slow\n    run: sleep 3\n" in moved


@pytest.mark.shows("D-62", "N-71")
def test_advice_comes_unasked_and_fails_nothing(planrun: Command, tmp_path: Path) -> None:
    """Steps that wait without need are named with place, code and what it costs; only `--strict` makes it count."""
    steps = """\
  - {id: docs, run: make docs, inputs: "docs/**", produces: build/docs}
  - {id: app, depends_on: [docs], run: make app, inputs: "src/**", produces: build/app}
"""
    write(tmp_path, f"version: 1\nsteps:\n{steps}")
    done = planrun("lint", "plan.yml")
    assert done.returncode == 0
    assert "plan.yml:" in done.stdout
    assert "L411" in done.stdout
    assert planrun("lint", "plan.yml", "--strict").returncode == 1


@pytest.mark.shows("V-76")
def test_statistics_add_up_runs(planrun: Command, tmp_path: Path) -> None:
    """Runs, failures and durations of plans and steps are counted from the ledgers of the folder."""
    write(tmp_path, "version: 1\nname: night\nsteps: [{id: a, run: test -e good}]\n")
    assert planrun("execute", "plan.yml").returncode == 1
    write(tmp_path, "", "good")
    assert planrun("execute", "plan.yml").returncode == 0
    told = planrun("stats").stdout
    assert "night" in told
    data = json.loads(planrun("stats", "--json").stdout)
    (plan,) = data["plans"]
    assert (plan["runs"]["count"], plan["runs"]["verdicts"]) == (2, {"completed": 1, "failed": 1})


# Runs that a model plans anew: a real service on loopback, and the real process that asks it.


def replanned(planrun: Command, folder: Path, api: FakeMessages, settings: str = "") -> int:
    """Execute PLAN against a service, with other settings of `llm` and limits; returns the exit code."""
    write(folder, PLAN.replace(FATAL, settings) if settings else PLAN)
    return planrun("execute", "plan.yml", env=api.env).returncode


@pytest.mark.shows("GP-26", "GP-59")
def test_tokens_are_counted_for_steps_and_the_run(planrun: Command, tmp_path: Path) -> None:
    """What a planning used belongs to the step that failed, and the run's usage is the sum; time is each attempt's."""
    slow = {**REPAIRED["steps"][0], "run": "sleep 0.3; echo 7 >> ran"}
    with FakeMessages([{**REPAIRED, "steps": [slow, REPAIRED["steps"][1]]}]) as api:
        assert replanned(planrun, tmp_path, api) == 0
    found = ledger(tmp_path)
    assert found["usage"]["input_tokens"] + found["usage"]["cache_write_tokens"] > 0
    assert found["usage"]["output_tokens"] > 0
    steps = {each["id"]: each for each in found["steps"]}
    assert steps["3"]["usage"]["output_tokens"] == found["usage"]["output_tokens"]
    assert [each["usage"]["output_tokens"] for name, each in steps.items() if name != "3"] == [0] * (
        len(steps) - 1
    )
    assert min(each["duration_s"] for each in steps["7"]["attempts"]) >= 0.3
    assert all(attempt["duration_s"] >= 0 for each in found["steps"] for attempt in each["attempts"])


@pytest.mark.shows("GP-61", "GP-63", "GP-64", "GP-65")
def test_a_report_shows_both_versions_of_a_plan(planrun: Command, tmp_path: Path) -> None:
    """Heading with the version, the step that failed, its replacement with a prime, and the step that was replaced."""
    with FakeMessages([REPAIRED]) as api:
        assert replanned(planrun, tmp_path, api) == 0
    told = planrun("report", "last", "--format", "text").stdout
    assert told.startswith('Plan v2: "shop" [Partial]\n')
    assert "✗ Step 3: Generate (failed: exit 77)\n" in told
    assert "✓ Step 3': Generate by hand (replan as 7, " in told
    assert "⊘ Step 4: Check (skipped: replaced by replan)\n" in told


@pytest.mark.shows("GP-49")
def test_a_draft_that_stays_wrong_is_refused_with_every_problem(planrun: Command, tmp_path: Path) -> None:
    """After two repairs the ledger has the problems, and nothing of the draft ran."""
    with FakeMessages([WRONG, WRONG, WRONG]) as api:
        assert replanned(planrun, tmp_path, api) == 1
        asked = len(api.journal.entries)
    assert asked == 3
    (ended,) = events(tmp_path, "planning_ended")
    assert ended["outcome"] == "invalid"
    assert ended["problems"]
    assert not [each for each in ledger(tmp_path)["steps"] if each["id"] == "7"]


@pytest.mark.shows("GP-49")
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"depends_on": ["99"]}, 'there is no step "99" that'),
        ({"depends_on": ["7"]}, "a step cannot depend on itself"),
        ({"depends_on": ["8"]}, "dependency cycle: 7 → 8 → 7"),
        ({"depends_on": ["3"]}, '"3" is replaced'),
        ({"id": "2"}, '"2" is, or was, the id of a step'),
    ],
)
def test_a_graph_that_cannot_run_is_sent_back_with_its_problem(
    planrun: Command, tmp_path: Path, wrong: dict[str, Any], problem: str
) -> None:
    """An unknown step, itself, a cycle, the failed step, an id that is taken: the next answer is what runs."""
    seven, eight = (step["id"] for step in REPAIRED["steps"])
    first = {**REPAIRED["steps"][0], **wrong}
    with FakeMessages([{**REPAIRED, "steps": [first, REPAIRED["steps"][1]]}, REPAIRED]) as api:
        assert replanned(planrun, tmp_path, api) == 0
        _, again = api.journal.entries
    assert json.dumps(problem, ensure_ascii=False)[1:-1] in again.body["messages"][-1]["content"][0]["text"]
    (ended,) = events(tmp_path, "planning_ended")
    assert ended["outcome"] == "revised"
    assert [each for each in (tmp_path / "ran").read_text().split() if each in (seven, eight)] == ["7", "8"]


@pytest.mark.shows("GP-52", "GM-39")
def test_three_replans_are_the_most_and_the_limit_can_be_set(planrun: Command, tmp_path: Path) -> None:
    """Each replacement fails fatally as well: planning is asked for three times, or as often as the plan says."""

    def failing(asked: Any) -> dict[str, Any]:
        failed = asked.find(r'step "(\d+)" failed')
        number = str(max(7, int(failed) + 1))
        return draft(step(number, "exit 77", replaces=[failed], depends_on=["2"]), keep=["4", "5"])

    for settings, most in (("", 3), ("llm: {model: model-a}\nlimits: {max_replans: 1}", 1)):
        folder = tmp_path / str(most)
        folder.mkdir()
        with FakeMessages(failing) as api:
            write(folder, PLAN.replace(FATAL, settings) if settings else PLAN)
            assert planrun("execute", "plan.yml", cwd=folder, env=api.env).returncode == 1
        assert len(events(folder, "planning_started")) == most


@pytest.mark.shows("GM-38", "V-56")
def test_settings_say_when_a_model_is_asked(planrun: Command, tmp_path: Path) -> None:
    """By default a fatal failure asks and no other does, with `any` each, with `never` or `enabled: false` none."""
    for name, settings, asked in (
        ("default", FATAL, 1),
        ("other", "llm: {model: model-a}", 0),
        ("any", "llm: {model: model-a, replan_on_failure: any}", 1),
        ("never", "llm: {model: model-a, replan_on_failure: never}", 0),
        ("off", "llm: {model: model-a, enabled: false}", 0),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with FakeMessages([REPAIRED]) as api:
            other = name in ("other", "any")
            write(folder, PLAN.replace(FATAL, settings).replace("exit 77", "exit 1" if other else "exit 77"))
            code = planrun("execute", "plan.yml", cwd=folder, env=api.env).returncode
            assert (len(api.journal.entries), code) == (asked, 0 if asked else 1), name


@pytest.mark.shows("V-68")
def test_a_rate_limit_is_waited_out(planrun: Command, tmp_path: Path) -> None:
    """The service says when to come back; the call is repeated then, and the ledger has both attempts."""
    with FakeMessages([status(429, retry_after=1), REPAIRED]) as api:
        assert replanned(planrun, tmp_path, api) == 0
        first, second = api.journal.entries
    assert second.arrived - first.arrived >= 1
    (answered,) = events(tmp_path, "model_answered")
    assert answered["attempts"] == 2


@pytest.mark.shows("GP-66")
def test_without_credentials_the_run_says_so_and_asks_nothing(planrun: Command, tmp_path: Path) -> None:
    """A failure stays a failure where there is nobody to ask."""
    write(tmp_path, PLAN)
    done = planrun("execute", "plan.yml", env={"ANTHROPIC_API_KEY": ""})
    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert not events(tmp_path, "model_asked")
