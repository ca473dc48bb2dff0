"""`execute`, `status`, `runs`, `explain` and `verify` on a run that has gates."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PLAN = """\
version: 1
name: release
policy:
  auto_approve: medium
  rules:
    - deny: {step: wipe}
steps:
  - {id: test, run: "true"}
  - {id: publish, title: Publish it, run: ./no-such-program, risk: high, depends_on: [test]}
  - {id: wipe, run: rm -rf build}
  - {id: really, ask: {question: "Publish it?"}}
  - id: where
    decide: {question: "Where to?", options: [{label: Staging, value: staging}, {label: prod}]}
  - {id: after, depends_on: [publish], run: "true"}
"""


@pytest.fixture
def waiting(say: Say, tmp_path: Path) -> str:
    """Return a run that waits for three answers; a fourth step was denied, so its exit code is 3."""
    (tmp_path / "plan.yml").write_text(PLAN)
    said = say("execute", "plan.yml")
    assert said.code == 3
    return next((tmp_path / ".planrun" / "runs").iterdir()).name


def document(said: Said) -> Any:
    """Return the JSON document that was printed."""
    return json.loads(said.out)


@pytest.mark.shows("GP-02", "GP-53", "V-20", "V-45")
def test_execute_ends_with_open_gates_and_answer_commands(say: Say, tmp_path: Path) -> None:
    """The policy in force, the gates and denials, and the commands are printed; no input was read."""
    (tmp_path / "plan.yml").write_text(PLAN)
    said = say("execute", "plan.yml")
    run = next((tmp_path / ".planrun" / "runs").iterdir()).name
    assert said.code == 3
    assert "  policy: auto-approve medium, model-written low, 1 rule (plan.yml:4)\n" in said.err
    assert "◔ really needs an answer: Publish it?\n" in said.err
    assert "✗ wipe (failed: denied)\n  plan.yml:10: rule 1 (plan.yml:6) denies it" in said.err
    assert f"    $ planrun approve {run} publish\n    $ planrun reject {run} publish\n" in said.err
    assert f"    $ planrun decide {run} where=staging\n    $ planrun decide {run} where=prod\n" in said.err
    assert f"  to continue once answered: planrun resume {run}\n" in said.err
    ledger = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text("utf-8"))
    assert (ledger["status"], ledger["verdict"], ledger["exit_code"]) == ("paused", "failed", 3)
    assert {gate["step"]: gate["status"] for gate in ledger["gates"]} == {
        "publish": "open",
        "really": "open",
        "where": "open",
    }


@pytest.mark.shows("V-20", "V-02", "V-48")
def test_status_shows_what_a_run_waits_for(say: Say, waiting: str) -> None:
    """The run and its steps are waiting, each with its reason; the commands stand below."""
    said = say("status")
    assert said.code == 0
    assert 'Plan v1: "release" [Waiting]\n' in said.out
    assert "◔ Step where (waiting: decision)\n    it waits for a decision: Where to?\n" in said.out
    assert f"    $ planrun approve {waiting} publish\n" in said.out
    assert f"\nto continue once answered: planrun resume {waiting}\n" in said.out
    assert "next:" in said.out
    found = document(say("status", "--json"))
    assert (found["status"], found["exit_code"]) == ("waiting", 3)
    assert found["next"] == ["after"]
    gates = {gate["step"]: gate for gate in found["waiting"]}
    assert list(gates) == ["publish", "really", "where"]
    assert gates["publish"]["kind"] == "approval"
    assert gates["publish"]["risk"] == "high"
    assert gates["where"]["options"] == ["staging", "prod"]
    assert gates["really"]["commands"] == [
        f"planrun decide {waiting} really=yes",
        f"planrun decide {waiting} really=no",
    ]


def test_runs_lists_what_a_run_waits_for(say: Say, waiting: str) -> None:
    """The waiting steps are listed beside the failed ones; `verify` reports why there is no end."""
    said = say("runs")
    assert "| waiting |" in said.out
    (found,) = document(say("runs", "--json"))["runs"]
    assert (found["run"], found["status"], found["failed"]) == (waiting, "waiting", ["wipe"])
    assert {gate["step"]: gate["kind"] for gate in found["waiting"]} == {
        "publish": "approval",
        "really": "ask",
        "where": "decide",
    }
    assert "unfinished (waiting)" in say("verify").out


@pytest.mark.shows("V-45")
def test_answers_are_shown_until_the_run_is_resumed(say: Say, waiting: str) -> None:
    """`status` and `explain` name the reviewer; with the last answer the run is paused and no longer waits."""
    assert say("approve", waiting, "publish", "--by", "Ann", "--reason", "tested").code == 0
    said = say("status")
    assert "[Waiting]" in said.out
    assert "    it was approved by Ann: tested\n" in said.out
    assert say("decide", waiting, "where=prod", "really=yes").code == 0
    said = say("status")
    assert "[Paused]" in said.out
    assert f"\nto continue: planrun resume {waiting} (denied steps stay denied" in said.out
    assert document(say("runs", "--json"))["runs"][0]["status"] == "paused"
    output = say("explain", "last", "publish").out
    assert "\nGate: approval answered\n" in output
    assert "  approved by Ann: tested at 20" in output


def test_explain_tells_the_gate_and_the_rule(say: Say, waiting: str) -> None:
    """The question, the reason and the answer command; of a denied step the rule; of one that ran the approval."""
    output = say("explain", waiting, "publish").out
    assert "\nRisk: high" in output
    assert "  asked for by plan:auto_approve\n" in output
    assert "\nGate: approval open\n" in output
    assert f"  $ planrun approve {waiting} publish\n" in output
    assert "  denied by plan:rules.1\n" in say("explain", waiting, "wipe").out
    assert "  allowed by plan:auto_approve\n" in say("explain", waiting, "test").out
    found = document(say("explain", waiting, "where", "--json"))
    assert found["gate"]["status"] == "open"
    assert found["decision"] == {"answer": "ask", "rule": ""}


@pytest.mark.shows("GP-02", "GP-53")
def test_a_plan_without_approval_starts_nothing(say: Say, tmp_path: Path) -> None:
    """The whole plan waits; every report says so; approved, it runs."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\npolicy: {auto_approve: none, ask_for: plan}\nsteps: [{id: a, run: 'echo a > a'}]\n"
    )
    said = say("execute", "plan.yml")
    assert said.code == 5
    assert "◔ the plan needs approval: a: risk " in said.err
    run = next((tmp_path / ".planrun" / "runs").iterdir()).name
    assert f"    $ planrun approve {run}\n    $ planrun reject {run}\n" in said.err
    assert not (tmp_path / "a").exists()
    assert "  ◔ the plan needs approval\n    May this plan be executed?\n" in say("report").out
    assert document(say("runs", "--json"))["runs"][0]["waiting"] == [{"step": None, "kind": "approval"}]
    found = document(say("status", "--json"))
    assert (found["status"], found["exit_code"]) == ("waiting", 5)
    ledger = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text("utf-8"))
    assert (ledger["status"], ledger["exit_code"]) == ("awaiting_approval", 5)
    assert "unfinished (waiting)" in say("verify").out
    assert say("approve", run).code == 0
    assert say("resume", run).code == 0
    assert (tmp_path / "a").exists()


def test_a_failure_that_is_asked_about_waits_like_any_gate(say: Say, tmp_path: Path) -> None:
    """The choices for the failure are shown in every view; the answer, too."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: bad, run: exit 3, on_failure: ask}]\n")
    said = say("execute", "plan.yml")
    assert said.code == 5
    run = next((tmp_path / ".planrun" / "runs").iterdir()).name
    assert "◔ bad: attempt 1 failed: exit code 3\n" in said.err
    assert "◔ bad needs a decision: bad failed (exit code 3). What should planrun do?\n" in said.err
    assert "    answer: retry - try once more\n" in said.err
    assert f"    $ planrun decide {run} bad=retry\n    $ planrun decide {run} bad=skip\n" in said.err
    assert "[Waiting]" in say("status").out
    (gate,) = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text("utf-8"))["gates"]
    assert (gate["step"], gate["kind"], gate["status"]) == ("bad", "failure", "open")
    assert "\nGate: decision about its failure open\n" in say("explain", "last", "bad").out
    assert "waiting for decision: bad failed" in (tmp_path / "planrun-out" / "junit.xml").read_text("utf-8")
    assert say("decide", run, "bad=skip").code == 0
    assert "    it was answered skip by " in say("status").out
    assert say("resume", run).code == 0


def test_several_chosen_options_hold_when_the_run_is_resumed(say: Say, tmp_path: Path) -> None:
    """The advised command for several answers works unchanged, and resume reads the answer back as given."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: all, decide: {question: Which?, multi_select: true, options: [{label: a}, {label: b}]}}\n"
        "  - {id: list, ask: {question: Whom?, type: array}}\n"
        '  - {id: after, depends_on: [all, list], run: "test ${{ steps.all.outputs.answer[1] }} = b"}\n'
    )
    said = say("execute", "plan.yml")
    run = next((tmp_path / ".planrun" / "runs").iterdir()).name
    assert f"    $ planrun decide {run} all=b\n    $ planrun decide {run} all=a,b\n" in said.err
    assert say("decide", run, "all=a,b", 'list=["x"]').code == 0
    assert say("resume", run).code == 0


def test_the_advice_to_write_an_approval_names_the_parameters(say: Say, tmp_path: Path) -> None:
    """The line can be copied into a shell unchanged, and it approves the gate that the run opened."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\npolicy: {auto_approve: low}\nparams:\n"
        "  to: {type: string, default: here}\n  n: {type: integer, default: 1}\n"
        "  big: {type: boolean, default: false}\n"
        'steps:\n  - {id: go, run: "true", risk: high}\n'
    )
    given = ("-p", "to=out there", "-p", "big=true")
    said = say("execute", "plan.yml", *given)
    assert said.code == 5
    (command,) = [
        command
        for gate in json.loads(say("status", "--json").out)["waiting"]
        for command in gate["commands"]
        if " -o " in command
    ]
    words = shlex.split(command, comments=True)
    assert words[0] == "planrun"
    assert say(*words[1:]).code == 0
    assert say("execute", "plan.yml", *given, "--approval", words[-1]).code == 0


def test_resume_is_not_suggested_after_a_denial(say: Say, tmp_path: Path) -> None:
    """After a denial the advice names what resume does not change; after another failure it is unchanged."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: sure, ask: {question: Sure?}}]\n")
    said = say("execute", "plan.yml", "--decide", "sure=no")
    assert said.code == 3
    advice = r"^  to continue: planrun resume [\w-]+"
    assert re.search(
        advice + r" \(denied steps stay denied, unless --plan FILE changes them\)$", said.err, re.MULTILINE
    )
    (tmp_path / "plan.yml").write_text('version: 1\nsteps: [{id: sure, run: "false"}]\n')
    assert re.search(f"{advice}$", say("execute", "plan.yml").err, re.MULTILINE)


def test_a_step_does_not_wait_any_more_when_the_plan_is_approved(say: Say, waiting: str) -> None:
    """`approve RUN` allows steps that wait now and steps that come later; only the questions are left."""
    said = say("approve", waiting)
    assert f"run {waiting}: the plan is approved\nrun {waiting}: publish is approved\n" in said.out
    assert "still waits: publish" not in said.out
    assert "still waiting: really (ask)" in said.out
    assert [gate["step"] for gate in json.loads(say("status", "--json").out)["waiting"]] == [
        "really",
        "where",
    ]
