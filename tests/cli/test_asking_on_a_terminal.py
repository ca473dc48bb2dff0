"""Gates that ask on the terminal of their run; each test has a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.person import Person, planrun

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PUBLISH = """\
version: 1
name: release
policy: {auto_approve: low}
steps:
  - id: build
    run: touch built
  - id: publish
    title: Publish the package
    depends_on: [build]
    env: {CHANNEL: stable}
    run: |
      touch /tmp/../tmp/planrun-not-there/x || true
      touch published
"""
ME = pwd.getpwuid(os.geteuid()).pw_name


def write(folder: Path, text: str) -> None:
    """Write a plan."""
    (folder / "plan.yml").write_text(textwrap.dedent(text))


def ledger(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the one run."""
    (run,) = (folder / ".planrun" / "runs").iterdir()
    return [json.loads(row) for row in (run / "ledger.jsonl").read_text("utf-8").splitlines()]


def given(folder: Path) -> list[tuple[str, Any, str, str]]:
    """Return the recorded answers: step, answer, how it came, who gave it."""
    return [
        (event["step"], event["answer"], event["via"], event.get("by", ""))
        for event in ledger(folder)
        if event["type"] == "gate_answered"
    ]


def begin(folder: Path, *words: str, **variables: str) -> Person:
    """Execute the plan at a terminal."""
    return Person(planrun("execute", "plan.yml", *words), folder, variables)


# Approvals of steps.


def test_yes_approves_a_step_and_the_run_goes_on(tmp_path: Path, say: Say) -> None:
    """The question shows step, reason and command; answer, user and terminal are in ledger, report and verify."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path) as person:
        shown = person.sees("Run publish? [y/n/show/skip/later/?] ")
        person.types("y\n")
        assert person.ends() == 0
    assert "publish needs an approval: Publish the package\n" in shown
    assert ", limit low, plan.yml:3\n" in shown
    assert "  | touch published\n" in shown
    assert (tmp_path / "published").exists()
    assert given(tmp_path) == [("publish", "approved", "terminal", ME)]
    assert f"publish: approved by {ME} (at the terminal)" in say("report").out
    assert say("verify").out.endswith(f"\n  publish: approved by {ME} (at the terminal)\n")
    (answer,) = json.loads(say("verify", "--json").out)["answers"]
    assert answer == {"step": "publish", "answer": "approved", "via": "terminal", "by": ME}
    assert say("replay").code == 0


def test_no_rejects_a_step_with_a_reason(tmp_path: Path) -> None:
    """It is as `planrun reject --reason`: the step fails, the exit code is 3."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path) as person:
        person.sees("Run publish? ")
        person.types("n not on a Friday\n")
        assert person.ends() == 3
    (answered,) = [event for event in ledger(tmp_path) if event["type"] == "gate_answered"]
    assert (answered["answer"], answered["reason"]) == ("rejected", "not on a Friday")
    assert not (tmp_path / "published").exists()


def test_show_prints_all_that_would_run(tmp_path: Path) -> None:
    """Commands, environment, policy, digest and the differences from the lock; then the question comes again."""
    write(tmp_path, PUBLISH)
    subprocess.run(planrun("lock", "plan.yml"), cwd=tmp_path, check=True, capture_output=True)
    digest = json.loads((tmp_path / "plan.lock.json").read_text("utf-8"))["digest"]
    with begin(tmp_path) as person:
        person.sees("Run publish? ")
        person.types("show\n")
        shown = person.sees("Run publish? ")
        assert "step publish (plan.yml:7)\n" in shown
        assert "  | touch /tmp/../tmp/planrun-not-there/x || true\n  | touch published\n" in shown
        assert "  environment of the step: CHANNEL, " in shown
        assert f"  digest: {digest}\n" in shown
        assert "  lock: nothing differs from plan.lock.json\n" in shown
        assert "stable" not in shown
        person.types("\x04")
        assert person.ends() == 5


def test_show_names_what_differs_from_the_lock(tmp_path: Path) -> None:
    """A step that was changed since the review is named."""
    write(tmp_path, PUBLISH)
    subprocess.run(planrun("lock", "plan.yml"), cwd=tmp_path, check=True, capture_output=True)
    write(tmp_path, PUBLISH.replace("touch published", "touch published twice"))
    with begin(tmp_path) as person:
        person.sees("Run publish? ")
        person.types("s\n")
        assert "    ~ step publish changed\n" in person.sees("Run publish? ")


def test_later_leaves_a_gate_open_and_the_run_ends_with_5(tmp_path: Path, say: Say) -> None:
    """As without a terminal; the resumed run asks again."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path) as person:
        person.sees("Run publish? ")
        person.types("later\n")
        assert person.ends() == 5
        assert "$ planrun approve " in person.text
    assert given(tmp_path) == []
    with Person(planrun("resume", "last"), tmp_path) as person:
        person.sees("Run publish? ")
        person.types("yes\n")
        assert person.ends() == 0
    assert given(tmp_path) == [("publish", "approved", "terminal", ME)]
    assert say("verify").code == 0


def test_skip_leaves_one_step_out_and_approves_nothing_else(tmp_path: Path) -> None:
    """`approve --skip` without a step approves all others; the word `skip` is about the one that is asked about."""
    write(
        tmp_path,
        """\
        version: 1
        policy: {auto_approve: none}
        steps:
          - {id: a, run: touch a}
          - {id: b, run: touch b}
        """,
    )
    with begin(tmp_path) as person:
        person.sees("Run a? (1 more question) ")
        person.types("skip\n")
        person.sees("Run b? [")
        person.types("y\n")
        person.ends()
    assert given(tmp_path) == [("a", "skipped", "terminal", ME), ("b", "approved", "terminal", ME)]
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b").exists()


def test_what_is_no_answer_is_asked_again(tmp_path: Path) -> None:
    """An empty line approves nothing; a wrong word says so; `?` explains the answers."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path) as person:
        person.sees("Run publish? ")
        person.types("\n")
        assert "Enter alone is no answer" in person.sees("Run publish? ")
        person.types("yy\n")
        assert "'yy' is no answer; ? explains the answers" in person.sees("Run publish? ")
        person.types("y\x1b[D\n")
        assert "control characters" in person.sees("Run publish? ")
        person.types("?\n")
        shown = person.sees("Run publish? ")
        assert "  later  leave this question open" in shown
        assert "  skip   skip the step: it does not run" in shown
        assert given(tmp_path) == []


@pytest.mark.parametrize("word", ["q\n", "\x04"])
def test_quitting_leaves_all_questions_open(tmp_path: Path, word: str) -> None:
    """No question is asked any more, also not by gates that open later."""
    write(
        tmp_path,
        """\
        version: 1
        policy: {auto_approve: none}
        steps:
          - {id: a, ask: {question: Go?}}
          - {id: b, ask: {question: And?}}
        """,
    )
    with begin(tmp_path) as person:
        person.sees("a: yes or no? (1 more question) [y/n/skip/later/?] ")
        person.types(word)
        assert person.ends() == 5
        assert "b: yes or no?" not in person.text
    assert given(tmp_path) == []


# Other kinds of gates.


def test_values_are_checked_and_have_a_default(tmp_path: Path) -> None:
    """A wrong value is asked again with the reason; Enter takes the default; a text may be any line."""
    write(
        tmp_path,
        """\
        version: 1
        steps:
          - {id: size, ask: {question: How many?, type: integer, minimum: 2, default: 3}}
          - {id: where, depends_on: [size], ask: {question: Where?, type: string, enum: [prod, stage]}}
          - {id: name, depends_on: [where], ask: {question: Which name?, type: string}}
          - {id: sure, depends_on: [name], ask: {question: Sure?, default: true}}
        """,
    )
    with begin(tmp_path) as person:
        assert "size: How many?\n  answer: integer, minimum 2\n" in person.sees("size: which value? [")
        person.sees("skip/later/?; Enter: 3] ")
        person.types("one\n")
        assert '"one"' in person.sees("size: which value? ")
        person.types("1\n")
        assert "1" in person.sees("size: which value? ")
        person.types("\n")
        asked = person.sees("where: which value? [prod/stage/skip/later/?] ")
        assert "where: Where?" in asked
        assert "answer: string" not in asked  # the values stand in the prompt
        person.types("test\n")
        assert 'not one of "prod", "stage"' in person.sees("where: which value? ")
        person.types("prod\n")
        person.sees("name: which value? [:?] ")
        person.types(":?\n")
        assert ":later" in person.sees("name: which value? ")
        person.types("later\n")
        person.sees("sure: yes or no? [y/n/skip/later/?; Enter: yes] ")
        person.types("\n")
        assert person.ends() == 0
    assert [answer for _, answer, _, _ in given(tmp_path)] == [3, "prod", "later", True]


DECIDE = """\
version: 1
steps:
  - id: auth
    decide:
      question: Which kind?
      options: [{label: Tokens, value: jwt}, {label: Cookies, value: session, description: as now}]
  - id: all
    depends_on: [auth]
    decide:
      question: Which of them?
      multi_select: true
      options: [{label: "one, two", value: a}, {label: B, value: b}, {label: C, value: c}]
  - id: count
    depends_on: [all]
    decide:
      question: How many?
      options: [{label: "2"}, {label: "4"}, {label: "8"}]
"""


def test_options_are_chosen_by_number_or_name(tmp_path: Path) -> None:
    """Several with commas; where options are numbers themselves, a number is the option and no place in the list."""
    write(tmp_path, DECIDE)
    with begin(tmp_path) as person:
        shown = person.sees("auth: choose one [1-2/skip/later/?] ")
        assert "  1. jwt: Tokens\n  2. session: Cookies - as now\n" in shown
        person.types("3\n")
        assert "there is no option 3; the last one is 2" in person.sees("auth: choose one ")
        person.types("1,2\n")
        assert "choose one option" in person.sees("auth: choose one ")
        person.types("2\n")
        person.sees("all: choose some [1-3/skip/later/?] ")
        person.types("nothing\n")
        assert "is not an option of the step" in person.sees("all: choose some ")
        person.types("3,1\n")
        shown = person.sees("count: choose one [NAME/skip/later/?] ")
        assert "  - 2\n" in shown
        person.types("4\n")
        assert person.ends() == 0
    assert given(tmp_path) == [
        ("auth", "session", "terminal", ME),
        ("all", ["a", "c"], "terminal", ME),
        ("count", "4", "terminal", ME),
    ]


def test_a_failure_is_asked_about(tmp_path: Path) -> None:
    """`skip` is the option of that name here, and retrying runs the step again."""
    write(
        tmp_path,
        """\
        version: 1
        steps: [{id: bad, run: 'test -e again || { touch again; exit 1; }', on_failure: ask}]
        """,
    )
    with begin(tmp_path) as person:
        shown = person.sees("bad: choose one [1-5/later/?] ")
        assert "bad failed (exit code 1). What should planrun do?" in shown
        assert "  1. retry - try once more\n" in shown
        person.types("retry\n")
        assert person.ends() == 0
    assert given(tmp_path) == [("bad", "retry", "terminal", ME)]


PLAN_GATE = """\
version: 1
policy: {auto_approve: low, ask_for: plan}
steps:
  - {id: first, run: touch first}
  - {id: second, run: curl https://example.invalid/x || touch second, depends_on: [first]}
"""


def test_a_plan_is_approved_before_its_first_step(tmp_path: Path, say: Say) -> None:
    """`show` lists its steps with their commands."""
    write(tmp_path, PLAN_GATE)
    with begin(tmp_path) as person:
        assert "why: second: risk " in person.sees("Run this plan? [y/n/show/later/?] ")
        assert not (tmp_path / "first").exists()
        person.types("show\n")
        assert "    | touch first\n" in person.sees("Run this plan? ")
        person.types("y\n")
        assert person.ends() == 0
        assert person.text.count("2 steps, 2 at a time") == 1
    assert ("", "approved", "terminal", ME) in given(tmp_path)
    assert (tmp_path / "second").exists()
    assert say("verify").code == 0
    assert say("replay").code == 0


@pytest.mark.parametrize(
    ("typed", "code", "status"), [("n\n", 3, "cancelled"), ("later\n", 5, ""), ("\x03", 130, "cancelled")]
)
def test_a_plan_that_is_not_approved_runs_nothing(
    tmp_path: Path, say: Say, typed: str, code: int, status: str
) -> None:
    """Rejected: exit code 3; left open: 5; Ctrl-C: as any cancelled run."""
    write(tmp_path, PLAN_GATE)
    with begin(tmp_path) as person:
        person.sees("Run this plan? ")
        person.types(typed)
        assert person.ends() == code
    assert not (tmp_path / "first").exists()
    ends = [event["verdict"] for event in ledger(tmp_path) if event["type"] == "run_ended"]
    assert ends == ([status] if status else [])
    assert say("verify").code == (0 if status else say("verify").code)


def test_a_plan_may_be_approved_from_another_shell_while_it_is_asked_about(tmp_path: Path) -> None:
    """The question is withdrawn and the run goes on; questions of its steps follow."""
    write(
        tmp_path,
        """\
        version: 1
        policy: {auto_approve: low, ask_for: plan}
        steps:
          - {id: first, run: touch first}
          - {id: sure, ask: {question: Sure?}, depends_on: [first]}
        """,
    )
    with begin(tmp_path) as person:
        person.sees("Run this plan? ")
        done = subprocess.run(planrun("approve", "last"), cwd=tmp_path, check=False, capture_output=True)
        assert done.returncode == 0
        person.sees("The question about the plan is withdrawn: approved by ")
        person.sees("sure: yes or no? ")
        person.types("y\n")
        assert person.ends() == 0
    assert [(step, via) for step, _, via, _ in given(tmp_path)] == [("", "command"), ("sure", "terminal")]


# What else may happen to a question.


def test_other_steps_run_on_while_a_question_is_open(tmp_path: Path) -> None:
    """Their ends are shown above the question; the run waits and does not end with 5."""
    write(
        tmp_path,
        """\
        version: 1
        limits: {max_parallel: 2}
        steps:
          - {id: sure, ask: {question: Sure?}}
          - {id: slow, run: sleep 1; touch slow}
          - {id: after, depends_on: [slow], run: touch after}
        """,
    )
    with begin(tmp_path) as person:
        person.sees("sure: yes or no? ")
        person.sees("✓ after (")
        assert (tmp_path / "after").exists()
        person.rests(0.5)
        person.types("y\n")
        assert person.ends() == 0


def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    """Text typed ahead, also a whole line, is dropped when a question is shown."""
    write(
        tmp_path,
        """\
        version: 1
        steps:
          - {id: wait, run: touch begun; sleep 1.5}
          - {id: one, depends_on: [wait], ask: {question: One?}}
          - {id: two, depends_on: [one], ask: {question: Two?}}
        """,
    )
    with begin(tmp_path) as person:
        while not (tmp_path / "begun").exists():
            person.rests(0.1)
        person.types("y\ny\ny")
        person.sees("one: yes or no? ")
        person.rests(1)
        assert given(tmp_path) == []
        person.types("y\ny\n")
        person.sees("two: yes or no? ")
        person.rests(1)
        assert [step for step, *_ in given(tmp_path)] == ["one"]
        person.types("n\n")
        assert person.ends() == 3


def test_an_answer_from_another_shell_withdraws_the_question(tmp_path: Path) -> None:
    """It says so, and what is typed right then answers nothing."""
    write(
        tmp_path,
        """\
        version: 1
        steps:
          - {id: one, ask: {question: One?}}
          - {id: two, ask: {question: Two?}}
        """,
    )
    with begin(tmp_path) as person:
        person.sees("one: yes or no? (1 more question) ")
        done = subprocess.run(
            planrun("decide", "last", "one=yes", "--by", "kim"),
            cwd=tmp_path,
            check=False,
            capture_output=True,
        )
        assert done.returncode == 0
        person.sees("The question about one is withdrawn: answered yes by kim\n")
        person.types("n\n")
        person.sees("two: yes or no? [")
        person.rests(0.5)
        assert [step for step, *_ in given(tmp_path)] == ["one"]
        person.types("y\n")
        assert person.ends() == 0
    assert given(tmp_path) == [("one", True, "command", "kim"), ("two", True, "terminal", ME)]


def test_a_time_limit_withdraws_the_question(tmp_path: Path) -> None:
    """The default is taken, or the step fails; another question follows."""
    write(
        tmp_path,
        """\
        version: 1
        steps:
          - {id: one, ask: {question: One?, default: true, timeout: 1s}}
          - {id: two, ask: {question: Two?}}
        """,
    )
    with begin(tmp_path) as person:
        assert "until " in person.sees("one: yes or no? (1 more question) ")
        person.sees("The question about one is withdrawn: answered yes by default")
        person.sees("two: yes or no? ")
        person.types("y\n")
        assert person.ends() == 0


def test_ctrl_c_cancels_the_run(tmp_path: Path, say: Say) -> None:
    """As without a question; a replay follows the record."""
    write(tmp_path, "version: 1\nsteps: [{id: sure, ask: {question: Sure?}}]\n")
    with begin(tmp_path) as person:
        person.sees("sure: yes or no? ")
        person.types("\x03")
        assert person.ends() == 130
    assert given(tmp_path) == []
    assert say("replay").code == 0


def test_a_secret_is_no_answer(tmp_path: Path) -> None:
    """Answers are recorded; the value is not repeated by planrun."""
    write(
        tmp_path,
        """\
        version: 1
        secrets: [TOKEN]
        steps:
          - {id: name, ask: {question: Which name?, type: string}}
          - {id: use, run: "true", secrets: [TOKEN]}
        """,
    )
    with begin(tmp_path, TOKEN="hunter2hunter2") as person:
        person.sees("name: which value? ")
        person.types("hunter2hunter2\n")
        shown = person.sees("name: which value? ")
        assert "holds the value of" in shown
        assert shown.count("hunter2hunter2") == 1  # the terminal's own echo
        person.types("fine\n")
        assert person.ends() == 0
    assert given(tmp_path) == [("name", "fine", "terminal", ME)]
    found = [path for path in (tmp_path / ".planrun").rglob("*") if path.is_file()]
    assert not any(b"hunter2hunter2" in path.read_bytes() for path in found)


# Where nothing is asked.


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (("--no-input",), {}),
        ((), {"PLANRUN_NO_INPUT": "1"}),
        (("--json",), {}),
        ((), {"CI": "1"}),
        ((), {"GITHUB_ACTIONS": "true"}),
    ],
)
def test_nothing_is_asked_where_no_person_is(
    tmp_path: Path, words: tuple[str, ...], variables: dict[str, str]
) -> None:
    """The run ends with exit code 5, as without a terminal."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path, *words, **variables) as person:
        assert person.ends() == 5
        assert "Run publish?" not in person.text


@pytest.mark.parametrize("redirected", ["< /dev/null", "2> errors"])
def test_both_stdin_and_stderr_must_be_terminals(tmp_path: Path, redirected: str) -> None:
    """The question would not be seen, or nobody could answer it."""
    write(tmp_path, PUBLISH)
    command = f"{sys.executable} -m planrun execute plan.yml {redirected}"
    with Person(["/bin/sh", "-c", command], tmp_path) as person:
        assert person.ends() == 5
        assert "Run publish?" not in person.text


def test_a_quiet_run_asks_too(tmp_path: Path) -> None:
    """It prints only the question, what failed, and the end."""
    write(tmp_path, PUBLISH)
    with begin(tmp_path, "--quiet") as person:
        assert "publish needs an approval" in person.sees("Run publish? ")
        person.types("y\n")
        assert person.ends() == 0


def test_a_run_in_the_background_asks_nothing_and_is_not_stopped(tmp_path: Path) -> None:
    """The shell's `&` puts it into another process group; reading the terminal would stop it."""
    write(tmp_path, PUBLISH)
    script = f"set -m; {sys.executable} -m planrun execute plan.yml & wait $!; echo code $?"
    with Person(["/bin/bash", "-c", script], tmp_path) as person:
        person.sees("code 5")
        assert "Run publish?" not in person.text


def test_a_stopped_run_asks_again_when_it_goes_on(tmp_path: Path) -> None:
    """Ctrl-Z stops planrun; `fg` shows the question again, which then is answered; what was typed is gone."""
    write(tmp_path, PUBLISH)
    with Person(["/bin/bash", "--norc", "-i"], tmp_path, {"PS1": "ready> "}) as person:
        person.sees("ready> ")
        person.types(f"{sys.executable} -m planrun execute plan.yml; echo code $?\n")
        person.sees("Run publish? ")
        person.types("y\x1a")
        person.sees("ready> ")
        assert given(tmp_path) == []
        person.types("fg\n")
        person.sees("Run publish? ")
        person.types("y\n")
        person.sees("ready> ")
        person.types("exit\n")
    assert given(tmp_path) == [("publish", "approved", "terminal", ME)]


def test_a_run_that_is_sent_to_the_background_pauses_for_its_gates(tmp_path: Path) -> None:
    """Ctrl-Z and `bg`: the question cannot be answered there, so the run ends with 5 and can be resumed."""
    write(tmp_path, PUBLISH)
    with Person(["/bin/bash", "--norc", "-i"], tmp_path, {"PS1": "ready> "}) as person:
        person.sees("ready> ")
        person.types(f"{sys.executable} -m planrun execute plan.yml\n")
        person.sees("Run publish? ")
        person.types("\x1a")
        person.sees("ready> ")
        person.types("bg\n")
        person.sees("to continue once answered")
        person.types("wait; echo; jobs; echo over\n")
        person.sees("\nover")
        person.types("exit\n")
    assert given(tmp_path) == []


# Steps cannot answer.

REACH = """\
import fcntl, os, sys, termios
found = []
try:
    os.open("/dev/tty", os.O_RDWR)
    found.append("opened /dev/tty")
except OSError as error:
    found.append(f"tty {error.errno}")
found.append(f"stdin {os.readlink('/proc/self/fd/0')}" if os.path.isdir("/proc") else "stdin ?")
try:
    terminal = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
    for letter in "y\\n":
        fcntl.ioctl(terminal, termios.TIOCSTI, letter)
    found.append("typed")
except OSError as error:
    found.append(f"ioctl {error.errno}")
try:
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    found.append("took the terminal")
except OSError as error:
    found.append(f"control {error.errno}")
open("reached", "w").write("; ".join(found))
"""
WITHOUT_ADMIN = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 21, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_ADMIN: who has it may type on every terminal
os.execv(sys.executable, [sys.executable, "-m", "planrun", "execute", "plan.yml"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/pts and TIOCSTI as Linux has them")
def test_a_step_cannot_type_an_answer(tmp_path: Path) -> None:
    """It has no terminal: /dev/tty cannot be opened, its stdin is /dev/null, and TIOCSTI on the device is refused."""
    (tmp_path / "reach.py").write_text(REACH)
    (tmp_path / "start.py").write_text(WITHOUT_ADMIN)
    write(
        tmp_path,
        f"""\
        version: 1
        limits: {{max_parallel: 2}}
        steps:
          - {{id: sure, ask: {{question: Sure?}}}}
          - {{id: reach, run: 'sleep 1; {sys.executable} reach.py "$(cat terminal)"; touch over'}}
        """,
    )
    script = f'tty > terminal; exec "{sys.executable}" start.py'
    with Person(["/bin/sh", "-c", script], tmp_path) as person:
        person.sees("sure: yes or no? ")
        while not (tmp_path / "over").exists():
            person.rests(0.2)
        person.rests(1)
        assert given(tmp_path) == []
        person.types("y\n")
        assert person.ends() == 0
    reached = (tmp_path / "reached").read_text("utf-8")
    assert "tty 6; stdin /dev/null; ioctl " in reached  # ENXIO
    assert "typed" not in reached
    assert "took" not in reached
    assert given(tmp_path) == [("sure", True, "terminal", ME)]


def test_a_run_inside_of_a_step_asks_nothing(tmp_path: Path) -> None:
    """A step could make a terminal and answer there for the user."""
    inner = tmp_path / "inner"
    inner.mkdir()
    write(inner, PUBLISH)
    (tmp_path / "type.py").write_text(
        "import os, pty, sys\n"
        "pid, terminal = pty.fork()\n"
        "if pid == 0:\n"
        "    os.chdir('inner')\n"
        "    for name in ('PLANRUN_RUN', 'PLANRUN_STEP', 'PLANRUN_OUTPUT'):\n"
        "        os.environ.pop(name, None)\n"
        f"    os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'planrun', 'execute', 'plan.yml'])\n"
        "os.write(terminal, b'y\\n' * 5)\n"
        "shown = b''\n"
        "try:\n"
        "    while data := os.read(terminal, 4096):\n"
        "        shown += data\n"
        "        os.write(terminal, b'y\\n') if b'Run publish?' in data else None\n"
        "except OSError:\n"
        "    pass\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "open('code', 'w').write(f'{code} {b\"Run publish?\" in shown}')\n"
    )
    write(tmp_path, f"version: 1\nsteps: [{{id: outer, run: '{sys.executable} type.py'}}]\n")
    subprocess.run(planrun("execute", "plan.yml"), cwd=tmp_path, check=False, capture_output=True)
    assert (tmp_path / "code").read_text("utf-8") == "5 False"
    assert not (inner / "published").exists()


def test_nothing_of_it_is_imported_without_a_terminal(tmp_path: Path) -> None:
    """A run with gates elsewhere does not pay for it."""
    write(tmp_path, PUBLISH)
    code = (
        "import sys; from planrun.cli import main; main(['execute', 'plan.yml'])\n"
        "print([name for name in sys.modules if name.endswith(('.prompt', '.terminal', '.asking', '.questions'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, stdin=subprocess.DEVNULL
    )
    assert done.stdout.decode().splitlines()[-1] == "[]"
