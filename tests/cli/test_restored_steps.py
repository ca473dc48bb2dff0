"""Steps that take an earlier result: no service starts for them, and the test cases in their reports are merged."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

SERVICES = """\
version: 1
steps:
  - {id: db, service: true, run: "echo db >> ran; exec sleep 60"}
  - {id: web, service: true, depends_on: [db], run: "echo web >> ran; exec sleep 60"}
  - {id: build, run: sleep 0.1}
  - {id: seed, depends_on: [db], cache: true, inputs: [one], produces: [a], run: echo seed >> ran; cat one > a}
  - id: test
    depends_on: [web, build, seed]
    cache: true
    inputs: [two]
    produces: [b]
    run: echo test >> ran; cat two > b
  - {id: more, depends_on: [test], cache: true, inputs: [three], produces: [c], run: echo more >> ran; cat three > c}
  - {id: after, depends_on: {db: done}, run: echo after >> ran}
"""
REPORTS = """\
version: 1
steps:
  - id: test
    run: |
      echo test >> ran
      echo '<testsuite name="s"><testcase name="a"/><testcase name="b"/></testsuite>' > j.xml
    cache: {key: x}
    produces: [j.xml]
    reports: {junit: "*.xml"}
"""


def execute(folder: Path, plan: str) -> list[str]:
    """Run a plan with the cache in a folder of its own, and return the steps and services that ran."""
    (folder / "plan.yml").write_text(plan, encoding="utf-8")
    (folder / "ran").write_text("", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=folder,
        env={**os.environ, "PLANRUN_CACHE_DIR": str(folder / "cache")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return (folder / "ran").read_text(encoding="utf-8").split()


def test_a_service_starts_only_when_a_step_that_needs_it_runs(tmp_path: Path) -> None:
    """Directly or through others; a step that waits for its end runs in both cases."""
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    assert sorted(execute(tmp_path, SERVICES)) == ["after", "db", "more", "seed", "test", "web"]
    assert execute(tmp_path, SERVICES) == ["after"]
    (tmp_path / "three").write_text("2", encoding="utf-8")
    # Their order is that of how long they took before.
    assert sorted(execute(tmp_path, SERVICES)) == ["after", "db", "more", "web"]
    (tmp_path / "two").write_text("2", encoding="utf-8")
    assert sorted(execute(tmp_path, SERVICES)) == ["after", "db", "more", "test", "web"]


def test_test_cases_of_a_restored_report_are_merged(tmp_path: Path) -> None:
    """The report file comes back with the result, and its test cases with it."""

    def cases() -> list[str | None]:
        root = ET.parse(tmp_path / "planrun-out" / "junit.xml").getroot()
        return [case.get("name") for case in root.iter("testcase")]

    assert execute(tmp_path, REPORTS) == ["test"]
    assert cases() == ["test", "a", "b"]
    (tmp_path / "j.xml").unlink()
    assert execute(tmp_path, REPORTS) == []
    assert cases() == ["test", "a", "b"]
    assert "2 passed" in (tmp_path / "planrun-out" / "report.md").read_text(encoding="utf-8")
