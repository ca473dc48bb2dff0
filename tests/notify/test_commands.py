"""Commands as notifications, policies about targets, and `planrun notify`."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from planrun.model.notify import host_of, is_private
from tests.notify.receiver import Receiver
from tests.notify.test_events import until
from tests.notify.test_sending import DOCUMENT, command, execute, failing

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

COMMAND = """\
version: 1
secrets: [PAGER_TOKEN]
notify:
  - command: %s
    on: failed
    secrets: [PAGER_TOKEN]
    timeout: %s
steps:
  - {id: test, run: "exit 3"}
"""


def script(folder: Path, name: str, text: str) -> None:
    """Write an executable script."""
    (folder / name).write_text(f"#!/bin/sh\n{text}", "utf-8")
    (folder / name).chmod(0o755)


def test_a_command_gets_the_document(tmp_path: Path) -> None:
    """Stdin has the document, the variables its parts, the environment is that of steps and the listed secrets."""
    script(tmp_path, "tell.sh", 'cat > got.json; env > got.env; echo "to $PAGER_TOKEN"\n')
    run = execute(
        tmp_path,
        COMMAND % ("[./tell.sh]", "30s"),
        {"PAGER_TOKEN": "pager-token-1", "OTHER_TOKEN": "other-token-2"},
    )
    document = json.loads((tmp_path / "got.json").read_bytes())
    DOCUMENT.validate(document)
    env = dict(
        row.split("=", 1) for row in (tmp_path / "got.env").read_text("utf-8").splitlines() if "=" in row
    )
    assert (env["PLANRUN_EVENT"], env["PLANRUN_RUN"]) == ("failed", run.ledger["run_id"])
    assert env["PLANRUN_EXIT_CODE"] == "1"
    assert env["PLANRUN_TEXT"] == document["text"] == "✗ plan failed: test"
    assert env["PAGER_TOKEN"] == "pager-token-1"
    assert "OTHER_TOKEN" not in env
    [log] = tmp_path.glob(".planrun/runs/*/logs/notify.*.log")
    assert log.read_text("utf-8") == "to ***\n"
    assert run.notes[0]["status"] == "sent"


def test_a_command_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """After its timeout neither it nor a daemon that it left behind lives."""
    script(
        tmp_path,
        "tell.sh",
        "setsid sh -c 'echo $$ > daemon; exec sleep 1000' & echo $$ > own; exec sleep 1000\n",
    )
    run = execute(tmp_path, COMMAND % ("[./tell.sh]", "4s"), {"PAGER_TOKEN": "x"})
    assert run.code == 1
    assert run.notes[0]["message"] == "no end within 4s"
    for name in ("daemon", "own"):
        pid = int((tmp_path / name).read_text("utf-8"))
        until(lambda pid=pid: not _lives(pid))  # type: ignore[misc]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True


def test_each_command_has_its_own_log(tmp_path: Path) -> None:
    """Commands of one event run at the same time; what one prints never is in the log of another."""
    plan = COMMAND.replace("steps:", "  - command: [./other.sh]\n    on: failed\nsteps:")
    script(tmp_path, "tell.sh", "echo one; sleep 0.3; echo one\n")
    script(tmp_path, "other.sh", "echo two; sleep 0.3; echo two\n")
    execute(tmp_path, plan % ("[./tell.sh]", "30s"), {"PAGER_TOKEN": "x-token"})
    logs = sorted(tmp_path.glob(".planrun/runs/*/logs/notify.*.log"))
    assert [log.read_text("utf-8") for log in logs] == ["one\none\n", "two\ntwo\n"]


def test_no_unmasked_output_of_a_command_is_in_a_file(tmp_path: Path) -> None:
    """While it runs there is no log, and at the end one of at most 1 MiB; what it left running delays nothing."""
    script(
        tmp_path,
        "tell.sh",
        'sleep 1000 & echo "to $PAGER_TOKEN"; ls .planrun/runs/*/logs > seen; yes | head -c 3000000; cat > got\n',
    )
    run = execute(tmp_path, COMMAND % ("[./tell.sh]", "30s"), {"PAGER_TOKEN": "pager-token-1"})
    assert run.notes[0]["status"] == "sent"
    assert "notify" not in (tmp_path / "seen").read_text("utf-8")
    DOCUMENT.validate(json.loads((tmp_path / "got").read_bytes()))
    [log] = tmp_path.glob(".planrun/runs/*/logs/notify.*.log")
    assert log.read_text("utf-8").startswith("to ***\ny\n")
    assert log.stat().st_size == 1 << 20


def test_a_command_that_reads_nothing_is_no_failure(tmp_path: Path) -> None:
    """Only its exit code counts; a program that is not there is a warning."""
    assert execute(tmp_path, COMMAND % ("['true']", "5s"), {"PAGER_TOKEN": "x"}).notes[0]["status"] == "sent"
    run = execute(tmp_path, COMMAND % ("[no-such-program]", "5s"), {"PAGER_TOKEN": "x"})
    assert run.code == 1
    assert run.notes[0]["message"] == "cannot be started: No such file or directory"


def test_no_approval_is_asked_for(tmp_path: Path) -> None:
    """A policy that asks before every step asks nothing about a target, which was reviewed with the plan."""
    plan = (COMMAND % ("[touch, told]", "5s")).replace(
        "on: failed", "on: waiting"
    ) + "policy: {auto_approve: none}\n"
    run = execute(tmp_path, plan, {"PAGER_TOKEN": "x"})
    assert run.code == 5
    assert (tmp_path / "told").exists()
    assert [gate["step"] for gate in run.ledger["gates"]] == ["test"]


def test_a_deny_rule_holds_for_commands(tmp_path: Path) -> None:
    """What a policy denies is not started, whatever the plan says."""
    (tmp_path / "policy.yml").write_text("rules: [{deny: {command: 'touch *'}}]\n", "utf-8")
    run = execute(tmp_path, COMMAND % ("[touch, told]", "5s"), {"PAGER_TOKEN": "x"}, "--policy", "policy.yml")
    assert run.code == 1
    assert not (tmp_path / "told").exists()
    assert run.notes[0]["message"].startswith("denied: rule 1 (policy.yml:1) denies it")


def test_a_script_that_was_changed_is_not_started(tmp_path: Path) -> None:
    """The digest covers the script; a step that edits it cannot have planrun start its own text."""
    script(tmp_path, "tell.sh", "touch told\n")
    plan = COMMAND % ("[./tell.sh]", "5s")
    first = execute(tmp_path, plan, {"PAGER_TOKEN": "x"})
    assert (tmp_path / "told").exists()
    script(tmp_path, "tell.sh", "touch told other\n")
    assert (
        execute(tmp_path, plan, {"PAGER_TOKEN": "x"}).ledger["plan"]["digest"]
        != first.ledger["plan"]["digest"]
    )
    script(tmp_path, "stolen.sh", "touch stolen\n")
    edits = plan.replace("exit 3", "cp stolen.sh tell.sh; exit 3")
    run = execute(tmp_path, edits, {"PAGER_TOKEN": "x"})
    assert not (tmp_path / "stolen").exists()
    assert run.notes[0]["message"] == "tell.sh is not what was reviewed"


def test_a_policy_adds_targets_and_rules_others_out(tmp_path: Path) -> None:
    """Targets of a policy come besides those of the plan, with secrets of their own; `false` leaves the plan's out."""
    with Receiver() as receiver:
        policy = (
            f"notify:\n  - webhook: {receiver.url('/policy')}\n    secret_headers: {{X-Key: AUDIT_KEY}}\n"
        )
        (tmp_path / "policy.yml").write_text(policy, "utf-8")
        (tmp_path / "none.yml").write_text("notify: false\n", "utf-8")
        plan = failing(receiver.url("/plan")).replace("echo one", "echo got $AUDIT_KEY")
        run = execute(tmp_path, plan, {"AUDIT_KEY": "audit-key-value"}, "--policy", "policy.yml")
        assert sorted(got.path for got in receiver.got) == ["/plan", "/policy"]
        assert [note["target"] for note in run.notes] == ["plan 1", "policy.yml 1"]
        assert "audit-key-value" in [got.headers.get("x-key") for got in receiver.got]
        [log] = tmp_path.glob(".planrun/runs/*/logs/test/1.log")
        assert "audit-key-value" not in log.read_text("utf-8")
        assert execute(tmp_path, plan, None, "--policy", "none.yml").notes == []
        assert len(receiver.got) == 2


def test_a_try_sends_and_shows(tmp_path: Path, planrun: Command) -> None:
    """`planrun notify` sends a test that names no run; `--dry-run` prints the same and sends nothing."""
    with Receiver() as receiver:
        (tmp_path / "plan.yml").write_text(failing(receiver.url()), "utf-8")
        dry = planrun("notify", "plan.yml", "--dry-run", "--json")
        assert receiver.got == []
        done = planrun("notify", "plan.yml")
    [got] = receiver.got
    DOCUMENT.validate(got.json)
    assert json.loads(dry.stdout)["notifications"][0]["body"] == got.json
    assert got.json["run"]["id"] == "test"
    assert (done.returncode, done.stdout) == (
        0,
        f"webhook 127.0.0.1:{receiver.port} (failed): sent, HTTP 200\n",
    )
    gone = planrun("notify", "plan.yml", "--on", "failed")
    assert gone.returncode == 1
    assert "not sent: connection refused" in gone.stdout
    nobody = planrun("notify", "plan.yml", "--on", "waiting")
    assert (nobody.returncode, nobody.stdout) == (2, "")
    assert "no target is notified of `waiting`: add `notify` to the plan, e.g. `notify: [{" in nobody.stderr


def test_a_plan_without_targets_loads_nothing_of_it(tmp_path: Path) -> None:
    """No module of notifications, and no file, where nobody is to be notified."""
    plan = "version: 1\nsteps:\n  - {id: test, run: 'exit 3'}\n"
    (tmp_path / "plan.yml").write_text(plan, "utf-8")
    done = command(tmp_path, ["execute", "plan.yml"], {"PYTHONVERBOSE": "1"})
    assert "import 'planrun.reports" in done.err
    assert "planrun.notify" not in done.err
    assert "planrun.reports.notifications" not in done.err
    assert not list(tmp_path.glob(".planrun/runs/*/notifications.jsonl"))


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("http://127.0.0.1:80/x", True),
        ("http://localhost/x", True),
        ("http://[::1]:8/x", True),
        ("http://10.2.3.4/", True),
        ("http://hooks/", True),
        ("http://ci.internal/", True),
        ("http://8.8.8.8/", False),
        ("http://ci.example.com:8080/x", False),
        ("http://[2001:4860:4860::8888]/", False),
    ],
)
def test_hosts_that_lint_calls_private(url: str, private: bool) -> None:  # noqa: FBT001
    """Loopback, private networks by address, and names without a dot or under private domains."""
    assert is_private(host_of(url)) is private
