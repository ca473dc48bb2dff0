"""Notifications by HTTP as their receivers see them: what is sent, what is tried again, and what never ends a run."""

from __future__ import annotations

import hmac
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.conftest import LIMIT
from tests.notify.receiver import Answer, Receiver

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
LEDGER = jsonschema.Draft7Validator(json.loads((ROOT / "schemas" / "ledger.schema.json").read_bytes()))
DOCUMENT = jsonschema.Draft7Validator(
    json.loads((ROOT / "schemas" / "notification.schema.json").read_bytes())
)


class Ended:
    """A run that ended: exit code, console, and what `ledger.json` has of its notifications."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.err = done.stderr
        self.out = done.stdout
        self.ledger: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_bytes())
        self.notes: list[dict[str, Any]] = self.ledger["notifications"]


def execute(folder: Path, plan: str, env: Mapping[str, str] | None = None, *words: str) -> Ended:
    """Execute a plan in a folder with the installed command."""
    (folder / "plan.yml").write_text(plan, "utf-8")
    return command(folder, ["execute", "plan.yml", *words], env)


def command(folder: Path, words: list[str], env: Mapping[str, str] | None = None) -> Ended:
    """Run planrun in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    ended = Ended(folder, done)
    LEDGER.validate(ended.ledger)
    return ended


def failing(url: str, *more: str) -> str:
    """Return a plan that fails and notifies a webhook; `more`: lines about the target."""
    lines = "".join(f"    {line}\n" for line in more)
    return f"""\
version: 1
secrets: [HOOK_TOKEN, HOOK_KEY]
notify:
  - webhook: {url}
{lines}steps:
  - {{id: build, run: "true"}}
  - {{id: test, title: Tests, run: "echo one; echo 'the last line'; exit 3", depends_on: [build]}}
"""


def test_a_failure_is_posted_once(tmp_path: Path) -> None:
    """One POST with the run, its plan and each failed step with its last line; recorded in ledger.json."""
    with Receiver() as receiver:
        run = execute(tmp_path, failing(receiver.url()))
    [got] = receiver.got
    DOCUMENT.validate(got.json)
    assert run.code == 1
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    assert got.json["event"] == "failed"
    assert got.json["run"]["id"] == run.ledger["run_id"]
    assert got.json["run"]["exit_code"] == 1
    [step] = got.json["failed_steps"]
    assert (step["id"], step["title"], step["exit_code"], step["last_line"]) == (
        "test",
        "Tests",
        3,
        "the last line",
    )
    assert (step["file"], step["line"]) == ("plan.yml", 7)
    [note] = run.notes
    assert (note["event"], note["status"], note["tries"], note["code"]) == ("failed", "sent", 1, 200)
    assert note["to"] == f"webhook 127.0.0.1:{receiver.port}"
    assert "warning" not in run.err


def test_a_run_that_completes_notifies_nobody_of_a_failure(tmp_path: Path) -> None:
    """Without `on`, a target hears of failures and recoveries alone."""
    with Receiver() as receiver:
        run = execute(tmp_path, failing(receiver.url()).replace("exit 3", "exit 0"))
    assert (run.code, receiver.got, run.notes) == (0, [], [])


@pytest.mark.parametrize(
    ("answers", "tries", "status"),
    [
        ([Answer(500), Answer(200)], 2, "sent"),
        ([Answer(reset=True), Answer(200)], 2, "sent"),
        ([Answer(429, {"Retry-After": "0"}), Answer(503, {"Retry-After": "0"}), Answer(200)], 3, "sent"),
        ([Answer(500, {"Retry-After": "0"})], 3, "failed"),
        ([Answer(404)], 1, "failed"),
        ([Answer(429, {"Retry-After": "3600"})], 1, "failed"),
    ],
    ids=["500-then-200", "reset-then-200", "429-503-200", "500-for-ever", "404", "429-too-long"],
)
def test_what_may_pass_is_tried_again(tmp_path: Path, answers: list[Answer], tries: int, status: str) -> None:
    """Lost connections, 5xx and 429 are tried three times in all, as soon as the server asks; 4xx is not."""
    with Receiver(*answers) as receiver:
        run = execute(tmp_path, failing(receiver.url()))
    assert (run.code, len(receiver.got)) == (1, tries)
    [note] = run.notes
    assert (note["status"], note["tries"]) == (status, tries)
    assert len({got.headers["x-planrun-delivery"] for got in receiver.got}) == 1
    assert ("was not notified" in run.err) is (status == "failed")


def test_secrets_are_headers_and_sign_the_body(tmp_path: Path) -> None:
    """A secret header holds the value, the signature is the HMAC of the body, and no record shows either secret."""
    secrets = {"HOOK_TOKEN": "Bearer tok-1234567890", "HOOK_KEY": "key-abcdefgh"}
    with Receiver() as receiver:
        plan = failing(
            receiver.url(),
            "headers: {X-Team: release}",
            "secret_headers: {Authorization: HOOK_TOKEN}",
            "sign: HOOK_KEY",
        )
        run = execute(tmp_path, plan, secrets)
    [got] = receiver.got
    assert run.notes[0]["status"] == "sent"
    assert (got.headers["authorization"], got.headers["x-team"]) == ("Bearer tok-1234567890", "release")
    digest = hmac.new(b"key-abcdefgh", got.body, sha256).hexdigest()
    assert got.headers["x-planrun-signature-256"] == f"sha256={digest}"
    for path in [*tmp_path.rglob("*.json*"), *tmp_path.rglob("*.log")]:
        assert b"1234567890" not in path.read_bytes()


def test_a_secret_that_is_not_set_is_a_warning(tmp_path: Path) -> None:
    """Whoever cannot be notified changes no verdict."""
    with Receiver() as receiver:
        run = execute(tmp_path, failing(receiver.url(), "sign: HOOK_KEY"))
    assert (run.code, receiver.got) == (1, [])
    assert run.notes[0]["message"] == "the secret HOOK_KEY is not set"
    assert "was not notified (failed): the secret HOOK_KEY is not set" in run.err


def test_a_proxy_of_the_environment_is_used(tmp_path: Path) -> None:
    """The request goes to the proxy that the variables name, and not to the host itself."""
    with Receiver() as proxy:
        env = {"http_proxy": proxy.url(""), "no_proxy": ""}
        run = execute(tmp_path, failing("http://ci.example.test/hook"), env)
    assert run.notes[0]["status"] == "sent"
    assert [got.path for got in proxy.got] == ["http://ci.example.test/hook"]


def test_a_slack_refusal_says_why(tmp_path: Path) -> None:
    """The first line of a short plain answer is shown, and no address."""
    with Receiver(Answer(403, text="invalid_token")) as receiver:
        plan = failing("x").replace("webhook: x", "slack: {url_secret: HOOK_KEY}")
        run = execute(tmp_path, plan, {"HOOK_KEY": receiver.url("/services/T/B/secret-part")})
    assert run.notes[0]["message"] == "HTTP 403: invalid_token"
    assert "slack $HOOK_KEY was not notified (failed): HTTP 403: invalid_token" in run.err
    for path in [*tmp_path.rglob("*.json*"), *tmp_path.rglob("*.xml"), *tmp_path.rglob("*.md")]:
        assert b"secret-part" not in path.read_bytes()


def test_a_secret_that_is_no_address_is_refused(tmp_path: Path) -> None:
    """Line ends and other schemes never reach a request."""
    plan = failing("x").replace("webhook: x", "webhook: {url_secret: HOOK_KEY}")
    for value in ("file:///etc/passwd", "https://a.example/ x", "https://a.example/\r\nX: y"):
        run = execute(tmp_path, plan, {"HOOK_KEY": value})
        assert run.notes[0]["message"].startswith("the secret HOOK_KEY: the address")


def test_a_policy_with_a_wrong_target_is_refused(tmp_path: Path) -> None:
    """`validate --policy` finds what a plan's targets are checked for; `true` names nobody."""
    (tmp_path / "policy.yml").write_text("notify:\n  - webhook: https://u:p@h.example/\n", "utf-8")
    (tmp_path / "true.yml").write_text("notify: true\n", "utf-8")
    words = [sys.executable, "-m", "planrun", "validate", "--policy", "policy.yml", "--policy", "true.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert "policy.yml:2:14: error[E300]: the address holds a user or password" in done.stdout
    assert "true.yml:1:9: error[E300]: `notify: true` names no targets" in done.stdout
