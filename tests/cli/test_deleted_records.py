"""What people and programs see when a step deletes the files that planrun writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.cli.conftest import Said

    Say = Callable[..., Said]


def plan(folder: Path, script: str) -> str:
    """Write a plan whose step `bad` runs a script and whose step `after` prints something; returns its path."""
    path = folder / "plan.yml"
    steps = [{"id": "bad", "run": script}, {"id": "after", "run": "echo after", "depends_on": ["bad"]}]
    path.write_text(json.dumps({"version": 1, "steps": steps}))
    return str(path)


def test_json_is_printed_of_a_run_whose_records_were_lost(say: Say, tmp_path: Path) -> None:
    """`--json` prints the run's end even where no record of it is left, and the exit code is 74 in both places."""
    said = say("execute", plan(tmp_path, "rm -rf .planrun"), "--json")
    value = json.loads(said.out)
    assert (said.code, value["exit_code"], value["verdict"]) == (74, 74, "failed")
    assert [step["id"] for step in value["steps"]] == ["bad", "after"]


def test_json_is_printed_where_no_report_can_be_written(say: Say, tmp_path: Path) -> None:
    """When a step replaced the report folder, the files are lost, the printed report is not; no file is claimed."""
    said = say("execute", plan(tmp_path, "rm -r planrun-out; touch planrun-out"), "--json")
    assert said.code == 74
    assert json.loads(said.out)["verdict"] == "completed"
    assert "no report could be written; ledger head" in said.err
    assert "reports in" not in said.err


def test_a_log_that_cannot_be_opened_is_no_fault_of_the_program(say: Say, tmp_path: Path) -> None:
    """Where the folder of the logs was moved away, the run ends with 74 and the log's name."""
    said = say("execute", plan(tmp_path, "mv .planrun/runs/* .planrun/moved"))
    assert said.code == 74
    assert "cannot write" in said.err or "cannot be written" in said.err  # the log, or the copy of the plan
    assert "loader" not in said.err
    assert "after (failed" not in said.err


def test_a_folder_that_is_gone_is_named(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standing in a folder that was removed is an error of use, for every verb that works there."""
    file = plan(tmp_path, "true")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words in (("execute", file), ("resume", "last"), ("retry", "last", "bad"), ("cancel", "last")):
        said = say(*words)
        assert (said.code, "internal" in said.err) == (2, False), said.err
        assert "folder" in said.err
