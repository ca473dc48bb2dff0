"""When notifications are sent: recovered over two runs, waiting once for each gate, never twice after a kill."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT
from tests.notify.receiver import Answer, Receiver
from tests.notify.test_sending import DOCUMENT, command, execute, failing

if TYPE_CHECKING:
    from collections.abc import Callable

SWITCHED = """\
version: 1
notify:
  - webhook: %s
    on: [failed, recovered, completed]
steps:
  - {id: test, run: "test -e good"}
"""
GATED = """\
version: 1
notify:
  - webhook: %s
    on: waiting
policy: {rules: [{require: {step: "ship*"}}]}
steps:
  - {id: build, run: "true"}
  - {id: ship, run: "true", depends_on: [build]}
  - {id: ship-more, run: "true", depends_on: [ship]}
"""


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    for _ in range(LIMIT * 50):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


def test_a_run_recovers_after_a_failed_one(tmp_path: Path) -> None:
    """The first run that completes after a failed one recovers; the next one completes; each says one thing."""
    with Receiver() as receiver:
        plan = SWITCHED % receiver.url()
        execute(tmp_path, plan)
        (tmp_path / "good").touch()
        execute(tmp_path, plan)
        execute(tmp_path, plan)
    assert receiver.events() == ["failed", "recovered", "completed"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict":"failed"', '"verdict":"cancelled"'),  # a signal ended it
        ('"at":"20', '"at":"29'),  # it began after this run, which a resume continues
        ('"plan":{', '"plan":[],"other":{'),
        ('{"seq"', '[{"seq"'),
    ],
)
def test_only_an_earlier_failure_counts(tmp_path: Path, old: str, new: str) -> None:
    """Of a cancelled run, of a later one, and of a ledger that nobody can read, no run recovers."""
    with Receiver() as receiver:
        plan = SWITCHED % receiver.url()
        execute(tmp_path, plan)
        [ledger] = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
        text = ledger.read_text("utf-8")
        assert old in text
        ledger.write_text(text.replace(old, new), "utf-8")
        (tmp_path / "good").touch()
        assert execute(tmp_path, plan).code == 0
    assert receiver.events() == ["failed", "completed"]


def test_another_branch_does_not_recover(tmp_path: Path) -> None:
    """Only a failure of the same ref counts."""
    with Receiver() as receiver:
        plan = SWITCHED % receiver.url()
        execute(tmp_path, plan, {"GITHUB_REF": "refs/heads/a"})
        (tmp_path / "good").touch()
        execute(tmp_path, plan, {"GITHUB_REF": "refs/heads/b"})
        execute(tmp_path, plan, {"GITHUB_REF": "refs/heads/a"})
    assert receiver.events() == ["failed", "completed", "recovered"]


def test_a_resumed_run_recovers(tmp_path: Path) -> None:
    """A run that was notified as failed and then completes has recovered; its ledger ends once more, intact."""
    with Receiver() as receiver:
        execute(tmp_path, SWITCHED % receiver.url())
        (tmp_path / "good").touch()
        run = command(tmp_path, ["resume", "last"])
        assert command(tmp_path, ["verify", "last"]).code == 0
    assert receiver.events() == ["failed", "recovered"]
    assert [note["event"] for note in run.notes] == ["failed", "recovered"]


def test_a_cancelled_run_is_no_failure(tmp_path: Path) -> None:
    """A signal cancels a run: those who asked for `cancelled` hear of it, and nobody hears `failed`."""
    with Receiver() as receiver:
        plan = failing(receiver.url(), "on: [failed, cancelled]").replace(
            "exit 3", "touch began; exec sleep 100"
        )
        (tmp_path / "plan.yml").write_text(plan, "utf-8")
        process = subprocess.Popen([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=tmp_path)
        until((tmp_path / "began").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
    assert receiver.events() == ["cancelled"]


def test_a_gate_is_notified_once(tmp_path: Path) -> None:
    """A run that waits says so once, with the command that answers; a resume says nothing of the same gate."""
    with Receiver() as receiver:
        run = execute(tmp_path, GATED % receiver.url())
        again = command(tmp_path, ["resume", "last"])
        assert command(tmp_path, ["approve", "last", "ship"]).code == 0
        more = command(tmp_path, ["resume", "last"])
    assert (run.code, again.code, more.code) == (5, 5, 5)
    first, second = receiver.got
    DOCUMENT.validate(first.json)
    assert [gate["step"] for gate in first.json["waiting"]] == ["ship"]
    assert f"planrun approve {run.ledger['run_id']} ship" in first.json["waiting"][0]["commands"]
    assert [gate["step"] for gate in second.json["waiting"]] == ["ship-more"]
    assert first.json["run"]["status"] == "waiting"
    assert first.json["run"]["exit_code"] == 5


def test_a_gate_is_notified_while_steps_run(tmp_path: Path) -> None:
    """Who answers need not wait for steps that run beside the gate, and these do not wait for the notification."""
    with Receiver() as receiver:
        plan = GATED % receiver.url()
        plan += '  - {id: long, run: "until test -e go; do sleep 0.05; done"}\n'
        (tmp_path / "plan.yml").write_text(plan, "utf-8")
        process = subprocess.Popen([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=tmp_path)
        assert receiver.came.wait(LIMIT)
        assert process.poll() is None
        assert receiver.events() == ["waiting"]
        (tmp_path / "go").touch()
        assert process.wait(LIMIT) == 5
    assert receiver.events() == ["waiting"]


def test_a_kill_while_sending_sends_nothing_twice(tmp_path: Path) -> None:
    """After kill -9 the sender ends by itself and records that; neither resume nor finalize sends it again."""
    with Receiver(Answer(seconds=1.0)) as receiver:
        plan = failing(receiver.url())
        (tmp_path / "plan.yml").write_text(plan, "utf-8")
        process = subprocess.Popen([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=tmp_path)
        assert receiver.came.wait(LIMIT)
        process.kill()
        process.wait()
        [book] = tmp_path.glob(".planrun/runs/*/notifications.jsonl")
        until(lambda: b'"sent"' in book.read_bytes())
        for _ in range(2):
            assert command(tmp_path, ["finalize", "last"]).notes[0]["status"] == "sent"
        assert receiver.events() == ["failed"]
        assert command(tmp_path, ["verify", "last"]).code == 0


def test_finalize_sends_what_was_not_begun(tmp_path: Path) -> None:
    """A run that was killed between its end and its notifications has them sent by `finalize`, once."""
    with Receiver() as receiver:
        execute(tmp_path, failing(receiver.url()))
        [book] = tmp_path.glob(".planrun/runs/*/notifications.jsonl")
        book.unlink()
        command(tmp_path, ["finalize", "last"])
        run = command(tmp_path, ["finalize", "last"])
    assert receiver.events() == ["failed", "failed"]
    assert len(run.notes) == 1


def test_a_begun_notification_is_not_sent_again(tmp_path: Path) -> None:
    """When the machine stopped while it was sent, nobody knows whether it arrived: its status is unknown."""
    with Receiver() as receiver:
        execute(tmp_path, failing(receiver.url()))
        [book] = tmp_path.glob(".planrun/runs/*/notifications.jsonl")
        begun, _end = book.read_text("utf-8").splitlines()
        book.write_text(begun + '\n{"at": "20', "utf-8")
        run = command(tmp_path, ["finalize", "last"])
    assert len(receiver.got) == 1
    assert run.notes[0]["status"] == "unknown"


def test_a_server_that_hangs_costs_the_time_that_is_allowed(tmp_path: Path) -> None:
    """The bound holds for all tries together, and the run ends as it would have."""
    with Receiver(Answer(seconds=LIMIT)) as receiver:
        run = execute(tmp_path, failing(receiver.url(), "timeout: 1s"))
    assert run.code == 1
    assert run.notes[0]["status"] == "failed"
    assert "no end within 1s" in run.notes[0]["message"] or "no answer in time" in run.notes[0]["message"]


def test_a_signal_ends_the_sending_at_once(tmp_path: Path) -> None:
    """Ctrl-C while a notification hangs: planrun ends with the exit code of the run, and records the interruption."""
    with Receiver(Answer(seconds=LIMIT)) as receiver:
        (tmp_path / "plan.yml").write_text(failing(receiver.url(), "timeout: 1m"), "utf-8")
        process = subprocess.Popen([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=tmp_path)
        assert receiver.came.wait(LIMIT)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 1
    ledger = json.loads((tmp_path / "planrun-out" / "ledger.json").read_bytes())
    assert [note["status"] for note in ledger["notifications"]] == ["interrupted"]


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """The document and its secret headers go to the host that the plan names."""
    with Receiver() as other, Receiver(Answer(307, {"Location": "PLACE"})) as receiver:
        receiver.script[0].headers["Location"] = other.url()
        run = execute(tmp_path, failing(receiver.url()))
    assert other.got == []
    assert run.notes[0]["code"] == 307
    assert "redirects are not followed" in run.notes[0]["message"]


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    """A server that nobody vouches for gets nothing, at one try; with its certificate trusted it does."""
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key.pem"),
            *("-out", "cert.pem", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl cannot make a certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with Receiver(tls=context) as receiver:
        run = execute(tmp_path, failing(receiver.url()))
        assert receiver.got == []
        assert run.notes[0]["tries"] == 1
        assert "the certificate cannot be verified" in run.notes[0]["message"]
        trusted = execute(tmp_path, failing(receiver.url()), {"SSL_CERT_FILE": str(tmp_path / "cert.pem")})
    assert trusted.notes[0]["status"] == "sent"


def test_a_slack_message_is_bounded(tmp_path: Path) -> None:
    """Sixty failed steps with long last lines: no block over 3,000 characters, the rest is counted, no mentions."""
    steps = "".join(
        f"  - {{id: step-{number}, run: \"printf '<!channel> & %0400d' 0; exit 1\", on_failure: block}}\n"
        for number in range(60)
    )
    with Receiver() as receiver:
        target = f"{{url: {receiver.url()}, channel: '#ci'}}"
        plan = f"version: 1\nlimits: {{max_steps: 100}}\nnotify:\n  - slack: {target}\nsteps:\n{steps}"
        run = execute(tmp_path, plan)
    assert run.notes[0]["status"] == "sent"
    [got] = receiver.got
    texts = [block["text"]["text"] for block in got.json["blocks"] if "text" in block]
    assert got.json["channel"] == "#ci"
    assert all(len(text) <= 3000 for text in texts)
    shown = texts[1].count("*step-")
    assert texts[1].endswith(f"_{60 - shown} more_")
    assert "<!channel>" not in got.body.decode()
    assert "&lt;!channel&gt; &amp; 0" in texts[1]


def test_secrets_of_steps_are_masked(tmp_path: Path) -> None:
    """A secret that a failed step prints does not reach a webhook, a chat or a command."""
    with Receiver() as receiver:
        plan = f"""\
version: 1
secrets: [DEPLOY_TOKEN]
notify:
  - webhook: {receiver.url()}
  - slack: {{url: {receiver.url()}}}
  - command: [tee, got.json]
steps:
  - {{id: test, secrets: [DEPLOY_TOKEN], run: 'echo "no access with $DEPLOY_TOKEN"; exit 1'}}
"""
        run = execute(tmp_path, plan, {"DEPLOY_TOKEN": "s3cr3t-value-42"})
    assert [note["status"] for note in run.notes] == ["sent"] * 3
    bodies = [*[got.body for got in receiver.got], (tmp_path / "got.json").read_bytes()]
    assert all(b"no access with ***" in body and b"s3cr3t" not in body for body in bodies)


def test_the_ci_job_is_named(tmp_path: Path) -> None:
    """The document has the page of the job, the ref and the commit."""
    env = {
        "GITHUB_SERVER_URL": "https://github.example.com",
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_RUN_ID": "77",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_SHA": "1a2b3c4d5e6f",
    }
    with Receiver() as receiver:
        execute(tmp_path, failing(receiver.url()), env)
    [got] = receiver.got
    assert got.json["source"]["url"] == "https://github.example.com/acme/shop/actions/runs/77"
    assert got.json["text"] == "✗ plan failed: test (main, 1a2b3c4)"


def test_nobody_has_to_be_there(tmp_path: Path) -> None:
    """No server at all: three tries, a warning, and the run ends as it would have."""
    with Receiver() as receiver:
        url = receiver.url()
    run = execute(tmp_path, failing(url))
    assert run.code == 1
    assert (run.notes[0]["status"], run.notes[0]["tries"]) == ("failed", 3)
    assert "connection refused" in run.err
    assert os.listdir(tmp_path / "planrun-out")


@pytest.mark.parametrize(
    ("head", "step", "words", "code"),
    [
        ("limits: {deadline: 300ms}", 'run: "exec sleep 100"', (), 124),
        ('policy: {rules: [{deny: {step: "test"}}]}', 'run: "true"', (), 3),
        ("", 'run: "exit 1", on_failure: continue', ("--strict",), 1),
    ],
    ids=["deadline", "denied", "strict"],
)
def test_each_end_that_is_no_success_is_a_failure(
    tmp_path: Path, head: str, step: str, words: tuple[str, ...], code: int
) -> None:
    """A passed deadline, a denied step and a failure that --strict does not tolerate are notified, with why."""
    with Receiver() as receiver:
        plan = (
            f"version: 1\n{head}\nnotify: [{{webhook: {receiver.url()}}}]\nsteps:\n  - {{id: test, {step}}}\n"
        )
        run = execute(tmp_path, plan, None, *words)
    assert run.code == code
    [got] = receiver.got
    DOCUMENT.validate(got.json)
    assert (got.json["event"], got.json["run"]["exit_code"]) == ("failed", code)
    assert got.json["failed_steps"] or got.json["run"]["reason"]


def test_a_plan_that_is_to_be_approved_waits(tmp_path: Path) -> None:
    """With `ask_for: plan` nothing starts; the gate of the whole plan is notified, and rejecting it is a failure."""
    with Receiver() as receiver:
        plan = f"""\
version: 1
notify: [{{webhook: {receiver.url()}, on: [waiting, failed]}}]
policy: {{ask_for: plan}}
steps:
  - {{id: test, run: "true"}}
"""
        run = execute(tmp_path, plan)
        again = command(tmp_path, ["resume", "last"])
    assert (run.code, again.code) == (5, 5)
    [got] = receiver.got
    DOCUMENT.validate(got.json)
    assert got.json["text"] == "⏸ plan waits for an answer: the plan"
    assert got.json["waiting"][0]["commands"][0] == f"planrun approve {run.ledger['run_id']}"


def test_a_failed_run_that_waits_says_both(tmp_path: Path) -> None:
    """A failure is not hidden by an open gate: the exit code is 1, and both are notified, once."""
    with Receiver() as receiver:
        plan = f"""\
version: 1
notify: [{{webhook: {receiver.url()}, on: [waiting, failed]}}]
policy: {{rules: [{{require: {{step: ship}}}}]}}
steps:
  - {{id: test, run: "exit 1"}}
  - {{id: ship, run: "true"}}
"""
        run = execute(tmp_path, plan)
    assert run.code == 1
    assert sorted(receiver.events()) == ["failed", "waiting"]


def test_a_replay_notifies_nobody(tmp_path: Path) -> None:
    """A replay decides everything again and sends nothing."""
    with Receiver() as receiver:
        execute(tmp_path, failing(receiver.url()))
        assert command(tmp_path, ["replay", "last"]).code == 0
    assert receiver.events() == ["failed"]
