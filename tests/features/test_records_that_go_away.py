"""A step that removes the records, and a read-only disk: exit 74, one clear line, nothing left running."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from proofs.faults import can_mount

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = """\
version: 1
defaults: {shell: sh}
limits: {max_parallel: 2}
steps:
  - {id: long, run: "echo $$ > long; sleep 3600"}
  - {id: cleans, run: "until test -s long; do sleep 0.05; done; %s"}
  - {id: next, depends_on: [cleans], run: "touch next"}
"""


def test_a_step_that_removes_the_records_ends_the_run(planrun: Command, tmp_path: Path) -> None:
    """As `git clean -fdx` does: what runs is ended, nothing starts, and reports tell what is known all the same."""
    (tmp_path / "plan.yml").write_text(PLAN % "rm -rf .planrun", "utf-8")
    said = planrun("execute", "plan.yml", "--jobs", "2")
    assert said.returncode == 74
    error = said.stderr[said.stderr.rindex("planrun: error:") :]
    assert "/ledger.jsonl: it was removed or replaced during the run" in error
    assert "Traceback" not in said.stderr
    assert not (tmp_path / "next").exists()
    pid = (tmp_path / "long").read_text("ascii").strip()
    assert subprocess.run(["kill", "-0", pid], check=False, capture_output=True).returncode == 1
    report = (tmp_path / "planrun-out" / "report.md").read_text("utf-8")
    assert "it was removed or replaced" in report
    assert "(exit code 74)" in report


def test_what_a_read_only_disk_holds_can_be_read(planrun: Command, tmp_path: Path) -> None:
    """Of a killed run the read-only verbs tell there, too; whatever would write says what is the matter."""
    if not can_mount(tmp_path):
        pytest.skip("no tmpfs can be mounted here")
    home = tmp_path / ".planrun"
    home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", home], check=True)
    try:
        (tmp_path / "plan.yml").write_text(PLAN % "echo dying; kill -9 $PPID; sleep 3600", "utf-8")
        assert planrun("execute", "plan.yml", "--jobs", "2").returncode == -9
        limit = time.monotonic() + 60
        while subprocess.run(
            ["mount", "-o", "remount,ro", home], check=False, capture_output=True
        ).returncode:
            assert time.monotonic() < limit  # it is busy until nobody writes any more
            time.sleep(0.05)
        for verb, code in (("report", 0), ("status", 0), ("runs", 0), ("verify", 10)):
            shown = planrun(verb)
            assert (verb, shown.returncode, shown.stderr) == (verb, code, "")
        for words in (("resume", "last"), ("execute", "plan.yml")):
            refused = planrun(*words)
            assert (refused.returncode, refused.stdout) == (74, "")
            assert (
                refused.stderr
                == f"planrun: error: cannot lock this workspace: {home}/lock: Read-only file system\n"
            )
    finally:
        subprocess.run(["umount", "-l", home], check=True)
