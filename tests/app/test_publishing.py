"""Runs in one place for a team: records, ledgers and logs are sent masked, read elsewhere, and never needed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from planrun.cli import main

PLAN = """\
version: 1
name: app
defaults: {shell: sh}
secrets: [API_TOKEN]
steps:
  - {id: greet, run: "echo hello $API_TOKEN", secrets: [API_TOKEN]}
  - {id: test, depends_on: [greet], run: "echo broken; exit 3"}
"""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    """A place with a run that failed, seen from another folder."""
    monkeypatch.setenv("API_TOKEN", "correct-horse-battery")
    monkeypatch.setenv("PLANRUN_MACHINE", "ci-7")
    for name in ("ada", "bob"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "ada")
    Path("plan.yml").write_text(PLAN)
    address = f"local://{tmp_path}/team"
    assert main(["run", "plan.yml", "--publish", address]) == 1
    assert "warning" not in capfd.readouterr().err
    monkeypatch.chdir(tmp_path / "bob")
    return address


def test_a_team_reads_it(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Another user lists the run with its machine, and reads status, logs and reports; nothing has the secret."""
    assert main(["runs", "--from", url, "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)["runs"]
    assert (row["status"], row["failed"], row["machine"]) == ("failed", ["test"], "ci-7")
    assert main(["runs", "--from", url]) == 0
    assert " ci-7 " in capfd.readouterr().out
    assert main(["logs", row["run"], "--from", url]) == 0
    assert capfd.readouterr().out == "greet | hello ***\ntest  | broken\n"
    assert main(["status", "--from", url, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["run"] == row["run"]
    assert main(["report", "last", "--from", url, "--format", "junit", "-o", "junit.xml"]) == 0
    assert "broken" in Path("junit.xml").read_text()
    assert os.listdir() == ["junit.xml"]
    for path in (tmp_path / "team").rglob("*"):
        assert path.is_dir() or b"correct-horse" not in path.read_bytes()


def test_runs_that_are_not_there(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """An unknown run, an empty place and a record that is none are reported."""
    assert main(["status", "2099", "--from", url]) == 2
    assert 'no run "2099" in local://' in capfd.readouterr().err
    assert main(["runs", "--from", f"{url}-none"]) == 0
    assert capfd.readouterr().out == "no runs are published there\n"
    records = Path(url.removeprefix("local://")) / "records"
    (records / "20991231-000000-000000.json").write_text("[]")
    assert main(["runs", "--from", url, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["runs"][0]["status"] == "unreadable"
    assert main(["report", "2099", "--from", url]) == 2
    assert "has only the record" in capfd.readouterr().err


def test_a_place_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The run ends as it would, a warning names the verb that sends it later, and that verb does."""
    monkeypatch.chdir(tmp_path)
    Path("plan.yml").write_text("version: 1\nsteps: [{id: a, run: echo hello}]\n")
    assert main(["run", "--publish", "ftp://ada:hunter2@127.0.0.1:9/x"]) == 0
    err = capfd.readouterr().err
    assert "warning: not published: ftp://ada:***@127.0.0.1:9/x: ConnectionRefusedError" in err
    assert "planrun publish 2" in err
    assert main(["publish", "last", "--to", "ftp://127.0.0.1:9/x"]) == 1
    assert main(["publish", "last", "--to", str(tmp_path / "team")]) == 0
    assert main(["runs", "--from", str(tmp_path / "team"), "--json"]) == 0
    assert '"completed"' in capfd.readouterr().out


def test_a_place_cannot_write_outside(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What is read from a place is checked: a link in a shared folder is not followed, a broken ledger is reported."""
    team = Path(url.removeprefix("local://"))
    (ledger,) = team.glob("runs/*/ledger.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b"failed", b"passed"))
    (tmp_path / "hidden").write_text("hidden")
    (ledger.parent / "logs" / "link").symlink_to(tmp_path / "hidden")
    assert main(["report", "last", "--from", str(team)]) == 0
    assert "the ledger is altered at line" in capfd.readouterr().err
