"""Runs that ask, answered by the installed command: before, while paused, while active; never by steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT, Command
from tests.gated import until

if TYPE_CHECKING:
    from collections.abc import Iterator


ASKING = """\
version: 1
steps:
  - {id: build, run: echo build >> ran}
  - id: sure
    depends_on: [build]
    ask: {question: Publish?}
  - id: auth
    decide:
      question: Which?
      options: [{label: JSON web token, value: jwt}, {label: Session, value: session}]
  - id: publish
    depends_on: [sure, auth]
    run: echo "publish with ${{ steps.auth.outputs.answer }}" >> ran
"""
# `build` runs until there is a file `go`, so that the run is active while it asks.
GOING = ASKING.replace(
    "run: echo build >> ran", 'run: "until test -e go; do sleep 0.02; done; echo build >> ran"'
)
GOING = GOING.replace("    depends_on: [build]\n", "")
APPROVED = """\
version: 1
policy: {rules: [{require: {step: push}}]}
steps:
  - {id: look, run: ls}
  - {id: push, depends_on: [look], run: echo push >> ran}
  - {id: tell, depends_on: [push], run: ls}
  - {id: last, depends_on: [tell], run: ls}
"""
WHOLE = APPROVED.replace("policy: {", "policy: {ask_for: plan, ")


class Folder:
    """A folder with one plan, and its newest run."""

    def __init__(self, planrun: Command) -> None:
        self.planrun = planrun
        self.path = planrun.folder
        self.processes: list[subprocess.Popen[str]] = []

    def execute(
        self, plan: str, *words: str, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Execute a plan."""
        (self.path / "plan.yml").write_text(plan)
        return self.planrun("execute", "plan.yml", *words, env=env)

    def start(self, plan: str, *words: str) -> subprocess.Popen[str]:
        """Start a plan and let it run."""
        (self.path / "plan.yml").write_text(plan)
        process = subprocess.Popen(
            [sys.executable, "-m", "planrun", "execute", "plan.yml", *words],
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def says(self, code: int, *words: str, env: dict[str, str] | None = None) -> str:
        """Run a command, hold its exit code, and return all it said."""
        done = self.planrun(*words, env=env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ran(self) -> list[str]:
        """Return what the steps did."""
        path = self.path / "ran"
        return path.read_text().splitlines() if path.exists() else []

    def step(self, name: str) -> tuple[str, str]:
        """Return status and reason of a step from the reports."""
        ledger = json.loads((self.path / "planrun-out" / "ledger.json").read_text())
        (matches,) = [step for step in ledger["steps"] if step["id"] == name]
        return matches["status"], matches["reason"]

    def events(self, kind: str) -> list[dict[str, object]]:
        """Return the events of a kind in the ledger of the newest run."""
        *_, newest = sorted(self.path.glob(".planrun/runs/*/ledger.jsonl"))
        rows = [json.loads(row) for row in newest.read_text().splitlines(keepends=True) if row.endswith("\n")]
        return [row for row in rows if row["type"] == kind]

    def waits(self, *steps: str) -> bool:
        """Whether these steps have been asked for."""
        if not list(self.path.glob(".planrun/runs/*/ledger.jsonl")):
            return False
        return set(steps) <= {event["step"] for event in self.events("gate_opened")}


@pytest.fixture
def folder(planrun: Command) -> Iterator[Folder]:
    """Give the test its folder; what is left of its runs at the end is killed."""
    made = Folder(planrun)
    yield made
    (made.path / "go").touch()
    for process in made.processes:
        process.kill()
        process.communicate()


@pytest.mark.shows("V-07", "V-20", "V-45", "GP-53", "V-04", "D-28")
def test_a_run_waits_is_answered_and_continues(folder: Folder) -> None:
    """It pauses with exit code 5 after each resume; each answer is recorded with its author."""
    assert folder.execute(ASKING).returncode == 5
    assert folder.ran() == ["build"]
    assert (folder.step("sure"), folder.step("auth")) == (("waiting", "decision"), ("waiting", "decision"))
    folder.says(5, "resume", "last")
    output = folder.says(0, "decide", "last", "auth=JSON web token", "--by", "Ann")
    assert 'auth is answered with "jwt"' in output
    assert "still waiting: sure (ask): Publish?" in output
    folder.says(5, "resume", "last")
    report = json.loads(folder.says(0, "decide", "last", "sure=yes", "--reason", "It is Monday", "--json"))
    assert (report["recorded"][0]["answer"], report["waiting"], report["status"]) == (True, [], "paused")
    assert folder.planrun("runs").stdout.count("paused") == 1
    folder.says(0, "resume", "last")
    assert folder.ran() == ["build", "publish with jwt"]
    auth, sure = folder.events("gate_answered")
    assert (auth["answer"], auth["via"], auth["by"]) == ("jwt", "command", "Ann")
    assert (sure["answer"], sure["reason"]) == (True, "It is Monday")
    folder.says(0, "verify", "last")


@pytest.mark.shows("N-17", "N-18", "V-46", "D-56")
@pytest.mark.parametrize("way", ["option", "variable", "file", "policy"])
def test_what_is_answered_before_is_not_asked(folder: Folder, way: str) -> None:
    """By options, by a variable, by a file, by the plan's policy: the run does not wait."""
    plan, words, env = ASKING, [], {}
    if way == "option":
        words = ["--decide", "sure=yes", "--decide", "auth=session"]
    elif way == "variable":
        env = {"PLANRUN_DECIDE": "sure=yes\nauth=session\n"}
    elif way == "file":
        (folder.path / "answers.yml").write_text("sure: yes\nauth: session\n")
        words = ["--decisions", "answers.yml"]
    else:
        plan = ASKING.replace("steps:", "policy: {decisions: {sure: true, auth: session}}\nsteps:", 1)
    assert folder.execute(plan, *words, env=env).returncode == 0
    assert folder.ran() == ["build", "publish with session"]
    via = {"variable": "option"}.get(way, way)
    assert {str(event["via"]) for event in folder.events("gate_answered")} == {via}


def test_what_was_answered_at_the_start_holds_on_a_resume(folder: Folder) -> None:
    """An answer is given once, also when its step was not ready yet."""
    assert (
        folder.execute(
            ASKING.replace("decide:", "depends_on: [sure]\n    decide:"), "--decide", "auth=jwt"
        ).returncode
        == 5
    )
    folder.says(0, "decide", "last", "sure=y", "--resume")
    assert folder.ran() == ["build", "publish with jwt"]


@pytest.mark.shows("V-07", "V-47")
def test_a_wrong_answer_runs_nothing(folder: Folder) -> None:
    """No option, an unknown step, one that asks nothing, two answers: exit code 2 before anything starts."""
    for words, said in (
        (["--decide", "auth=jtw"], 'did you mean "jwt"?'),
        (["--decide", "auth=jwt,session"], "takes one option, got 2"),
        (["--decide", "shure=yes"], 'did you mean "sure"?'),
        (["--decide", "build=yes"], "asks nothing"),
        (["--decide", "sure=yes", "--decide", "sure=no"], "in two ways"),
        (["--decisions", "none.yml"], "no such file"),
    ):
        done = folder.execute(ASKING, *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    (folder.path / "answers.yml").write_text("auth: jwt\nsure: perhaps\n")
    done = folder.execute(ASKING, "--decisions", "answers.yml")
    assert done.returncode == 2
    assert "answers.yml:2:7: error[E222]" in done.stderr
    assert folder.ran() == []
    assert not list(folder.path.glob(".planrun/runs/*"))
    assert folder.execute(ASKING).returncode == 5
    folder.says(2, "decide", "last", "auth=jtw")
    folder.says(2, "resume", "last", "--decide", "auth=jtw")
    assert folder.events("gate_answered") == []


@pytest.mark.shows("N-17")
def test_no_is_a_denial_that_stays(folder: Folder) -> None:
    """The step failed (denied), exit code 3, not run again by a resume or a retry, but asked in a changed plan."""
    assert folder.execute(ASKING, "--decide", "auth=jwt", "--decide", "sure=no").returncode == 3
    assert folder.step("sure") == ("failed", "denied")
    assert folder.step("publish") == ("blocked", "upstream")
    folder.says(3, "resume", "last")
    assert "was rejected" in folder.says(2, "retry", "last", "sure")
    folder.says(2, "decide", "last", "sure=yes")
    (folder.path / "plan.yml").write_text(ASKING.replace("Publish?", "Publish it after all?"))
    folder.says(5, "resume", "last", "--plan", "plan.yml")
    folder.says(0, "approve", "last", "sure", "--resume")
    assert folder.ran() == ["build", "publish with jwt"]


@pytest.mark.shows("GP-53", "N-08")
def test_a_step_is_approved_or_rejected(folder: Folder) -> None:
    """Approved, it runs; rejected, it is denied with who and why, and no resume changes that."""
    assert folder.execute(APPROVED).returncode == 5
    assert "does not wait for an answer: it is pending" in folder.says(2, "approve", "last", "tell")
    folder.says(0, "approve", "last", "push", "--resume")
    assert folder.ran() == ["push"]
    assert "it ended completed" in folder.says(2, "approve", "last", "push")
    assert folder.execute(APPROVED).returncode == 5
    folder.says(3, "reject", "last", "push", "--by", "Ann", "--reason", "Not today", "--resume")
    assert folder.step("push") == ("failed", "denied")
    folder.says(3, "resume", "last")
    assert "was rejected by Ann: Not today" in folder.says(2, "retry", "last", "push")
    assert folder.ran() == ["push"]
    (folder.path / "plan.yml").write_text(APPROVED.replace("echo push", "echo push more gently"))
    folder.says(5, "resume", "last", "--plan", "plan.yml")
    folder.says(0, "approve", "last", "push", "--resume")
    assert folder.ran() == ["push", "push more gently"]


@pytest.mark.shows("GP-53", "N-09")
def test_a_plan_that_is_rejected_is_cancelled(folder: Folder) -> None:
    """Nothing ran and nothing will: verdict cancelled, exit code 3, which every resume returns."""
    assert folder.execute(WHOLE).returncode == 5
    digest = str(folder.events("run_started")[0]["plan"]["digest"])  # type: ignore[index]
    assert "this run has" in folder.says(2, "approve", "last", "--digest", "0" * 64)
    assert "cancelled" in folder.says(0, "reject", "last", "--digest", digest, "--reason", "Too risky")
    ledger = json.loads((folder.path / "planrun-out" / "ledger.json").read_text())
    assert (ledger["verdict"], ledger["exit_code"]) == ("cancelled", 3)
    assert "was rejected" in folder.says(3, "resume", "last")
    assert "it ended cancelled" in folder.says(2, "approve", "last")
    folder.says(0, "verify", "last")
    assert folder.ran() == []


@pytest.mark.shows("N-10", "GP-53")
def test_steps_are_left_out_when_a_plan_is_approved(folder: Folder) -> None:
    """What is left out is skipped (approval), and so is everything that depends on it, however far."""
    assert folder.execute(WHOLE).returncode == 5
    assert "push is left out" in folder.says(0, "approve", "last", "--skip", "push", "--resume")
    assert folder.ran() == []
    assert folder.step("look")[0] == "completed"
    for name in ("push", "tell", "last"):
        assert folder.step(name) == ("skipped", "approval")
    assert "left out" in folder.says(2, "retry", "last", "push")
    folder.says(0, "retry", "last", "look")
    assert folder.step("last") == ("skipped", "approval")
    assert folder.ran() == []


def test_what_waits_can_be_cancelled(folder: Folder) -> None:
    """`cancel` ends a paused run, whatever it waits for, also when it is answered already."""
    assert folder.execute(WHOLE).returncode == 5
    folder.says(0, "cancel", "last")
    assert folder.execute(ASKING).returncode == 5
    folder.says(0, "decide", "last", "sure=yes")
    folder.says(0, "cancel", "last")
    assert folder.planrun("runs").stdout.count("cancelled") == 2


@pytest.mark.shows("N-39", "V-59")
def test_time_takes_the_default_or_fails(folder: Folder) -> None:
    """Without an answer in time the default counts; without a default the step failed (timeout)."""
    plan = ASKING.replace("{question: Publish?}", "{question: Publish?, timeout: 300ms, default: false}")
    assert folder.execute(plan, "--decide", "auth=jwt").returncode == 3
    assert folder.step("sure") == ("failed", "denied")
    assert [event["via"] for event in folder.events("gate_answered")] == ["option", "timeout"]
    plan = ASKING.replace("{question: Publish?}", "{question: Publish?, timeout: 300ms}")
    assert folder.execute(plan, "--decide", "auth=jwt").returncode == 1
    assert folder.step("sure") == ("failed", "timeout")


@pytest.mark.shows("V-07", "V-45")
def test_an_active_run_takes_an_answer(folder: Folder) -> None:
    """From another shell, while a step runs: the same process continues; wrong answers change nothing."""
    process = folder.start(GOING)
    until(lambda: folder.waits("sure", "auth"))
    assert "is not an option" in folder.says(2, "decide", "last", "auth=x")
    assert "does not wait" in folder.says(2, "approve", "last", "publish")
    report = json.loads(folder.says(0, "decide", "last", "auth=session", "--json"))
    assert (report["live"], report["recorded"][0]["answer"]) == (True, "session")
    assert "was answered already" in folder.says(2, "decide", "last", "auth=jwt")
    folder.says(0, "approve", "last", "sure", "--by", "Ann")
    (folder.path / "go").touch()
    assert process.wait(LIMIT) == 0
    assert sorted(folder.ran()) == ["build", "publish with session"]
    folder.says(0, "verify", "last")
    assert not list(folder.path.glob(".planrun/runs/*/door"))


def test_a_run_that_asks_nothing_takes_no_answer(folder: Folder) -> None:
    """An active run without an open question refuses an answer at once and records nothing."""
    process = folder.start(
        GOING.replace("  - id: sure\n", "  - id: sure\n    depends_on: [build]\n"), "--decide", "auth=jwt"
    )
    until(lambda: bool(list(folder.path.glob(".planrun/runs/*/ledger.jsonl"))))
    for words in (("decide", "last", "sure=yes"), ("approve", "last"), ("reject", "last")):
        assert "no gate is open" in folder.says(2, *words)
    (folder.path / "go").touch()
    assert process.wait(LIMIT) == 5


def test_two_answer_at_once(folder: Folder) -> None:
    """One of them has the ledger, the other waits for it: both answers are there."""
    assert folder.execute(ASKING).returncode == 5
    command = [sys.executable, "-m", "planrun", "decide", "last"]
    both = [subprocess.Popen([*command, word], cwd=folder.path) for word in ("sure=yes", "auth=jwt")]
    assert [each.wait(LIMIT) for each in both] == [0, 0]
    folder.says(0, "resume", "last")
    assert folder.ran() == ["build", "publish with jwt"]


@pytest.mark.shows("N-10")
def test_an_active_run_skips_rejected_steps(folder: Folder) -> None:
    """A step that waits, and one that does not wait yet: neither runs, nor what depends on them."""
    process = folder.start(
        APPROVED.replace("run: ls}", 'run: "until test -e go; do sleep 0.02; done"}', 1).replace(
            ", depends_on: [look]", ""
        )
    )
    until(lambda: folder.waits("push"))
    folder.says(0, "approve", "last", "--skip", "push", "--skip", "last")
    (folder.path / "go").touch()
    assert process.wait(LIMIT) == 0
    assert [folder.step(name) for name in ("push", "tell", "last")] == [("skipped", "approval")] * 3
    assert folder.ran() == []


@pytest.mark.shows("V-59")
def test_a_gate_with_a_time_is_answered_before_it(folder: Folder) -> None:
    """Nothing runs, and the process waits; an answer ends that at once."""
    plan = ASKING.replace("{question: Publish?}", "{question: Publish?, timeout: 1h}")
    process = folder.start(plan, "--decide", "auth=jwt")
    until(lambda: folder.waits("sure"))
    folder.says(0, "decide", "last", "sure=yes")
    assert process.wait(LIMIT) == 0
    assert folder.ran() == ["build", "publish with jwt"]


def test_a_run_that_was_killed_is_answered_and_resumed(folder: Folder) -> None:
    """Its questions are in its ledger; the socket that it left blocks no answer."""
    process = folder.start(GOING)
    until(lambda: folder.waits("sure", "auth") and bool(list(folder.path.glob(".planrun/runs/*/door"))))
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT)
    folder.says(0, "decide", "last", "auth=jwt")
    assert not list(folder.path.glob(".planrun/runs/*/door"))
    folder.says(0, "approve", "last", "sure")
    (folder.path / "go").touch()
    folder.says(0, "resume", "last")
    assert "publish with jwt" in folder.ran()


# Each tries to answer from inside of a step; $P is the interpreter, $D the socket.
ATTEMPTS = {
    "verb": '"$P" -m planrun approve last sure',
    "without the environment": 'env -i PATH="$PATH" PYTHONPATH="$PYTHONPATH" "$P" -m planrun approve last sure',
    "in a session of its own": 'setsid -w env -i PYTHONPATH="$PYTHONPATH" "$P" -m planrun approve last sure',
    "through the socket": '"$P" client.py "$D"',
    "through the socket, without environment": 'env -i "$P" client.py "$D"',
    "as a daemon": '(setsid env -i "$P" client.py "$D" >it 2>&1 &); while ! test -s it; do sleep 0.02; done; cat it',
}


@pytest.mark.parametrize("way", ATTEMPTS)
def test_a_step_cannot_answer(folder: Folder, way: str) -> None:
    """By verb or by socket, with or without its environment, its session and its parents: it is refused."""
    (folder.path / "client.py").write_text(
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        's.sendall(b\'{"verb": "approve", "steps": ["sure"]}\\n\')\nprint(s.makefile().read(), flush=True)\n'
    )
    plan = f"""\
version: 1
env: {{P: {json.dumps(sys.executable)}, PYTHONPATH: {json.dumps(os.environ.get("PYTHONPATH", ""))}}}
steps:
  - id: sure
    ask: {{question: Publish?}}
  - id: try
    run: |
      until test -e .planrun/runs/*/door; do sleep 0.02; done
      D=$(echo .planrun/runs/*/door)
      {ATTEMPTS[way]} 2>&1 || true
  - {{id: publish, depends_on: [sure], run: echo publish >> ran}}
"""
    finished = folder.execute(plan, "--logs", "all")
    assert finished.returncode == 5, finished.stdout + finished.stderr
    (log,) = folder.path.glob(".planrun/runs/*/logs/try/1.log")
    assert "cannot answer" in log.read_text()
    assert folder.events("gate_answered") == []
    assert folder.ran() == []


def test_a_step_cannot_answer_for_another_run(
    folder: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nor can it in another folder, without its environment: a step is no person anywhere."""
    other = Folder(Command(tmp_path_factory.mktemp("other")))
    waits = "version: 1\nsteps:\n  - {id: sure, ask: {question: Publish?}}\n"
    assert other.execute(waits).returncode == 5
    done = folder.execute(f"""\
version: 1
env: {{P: {json.dumps(sys.executable)}, PYTHONPATH: {json.dumps(os.environ.get("PYTHONPATH", ""))}}}
steps:
  - id: try
    run: |
      cd {other.path}
      env -u PLANRUN_RUN -u PLANRUN_STEP "$P" -m planrun approve last sure || test $? = 3
      env -i PYTHONPATH="$PYTHONPATH" setsid -w "$P" -m planrun approve last sure || test $? = 3
""")
    assert done.returncode == 0, done.stdout + done.stderr
    assert other.events("gate_answered") == []


def test_errors_name_what_waits(folder: Folder) -> None:
    """Nothing to answer, no such run, no such step: exit code 2 with the way on."""
    assert "no runs in this folder" in folder.says(2, "approve", "last")
    assert folder.execute(ASKING).returncode == 5
    output = folder.says(2, "approve", "last")
    assert "no approval is asked for" in output
    assert '"sure" waits for yes or no: planrun decide' in output
    assert '"auth" waits for an answer: planrun decide' in output
    assert "the question does not take yes or no" in folder.says(2, "approve", "last", "auth")
    assert 'did you mean "sure"?' in folder.says(2, "approve", "last", "shure")
    assert "name the step that is rejected" in folder.says(2, "reject", "last")
    assert "write an answer as id=value" in folder.says(2, "decide", "last", "sure")
    assert "choose one" in folder.says(2, "approve", "last", "sure", "--skip", "sure")


def test_an_answer_holds_no_secret(folder: Folder) -> None:
    """Answers are recorded, so one that holds a secret is refused wherever it is given."""
    plan = ASKING.replace("steps:", "secrets: [TOKEN]\nsteps:", 1).replace(
        "Publish?}", "Publish?, type: string}"
    )
    env = {"TOKEN": "correct-horse-battery"}
    done = folder.execute(plan, "--decide", "sure=correct-horse-battery", env=env)
    assert (done.returncode, "correct-horse" in done.stderr) == (2, False)
    assert "holds the value of TOKEN" in done.stderr
    assert folder.execute(plan, env=env).returncode == 5
    output = folder.says(2, "decide", "last", "sure=correct-horse-battery", env=env)
    assert "holds the value of TOKEN" in output
    assert "correct-horse" not in output
