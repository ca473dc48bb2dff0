"""`planrun report --format html` and `planrun run --html`: the page of real runs, as a user asks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import html

from planrun.reports.write import render
from proofs import calm
from tests.app.replans import REPAIRED, Shop, newest
from tests.conftest import LIMIT
from tests.reports.test_html import rows, section, shown
from tests.users import NOBODY, admitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said

PLAN = """\
version: 1
name: shop
steps:
  - {id: build, run: "echo built"}
  - {id: test, depends_on: build, run: "test -e good && echo fine || { echo 'Error: no good'; exit 3; }"}
  - {id: pack, depends_on: test, run: "echo packed"}
"""


def report(folder: Path) -> html.HtmlElement:
    """Return the page that a run left."""
    return html.document_fromstring((folder / "planrun-out" / "report.html").read_text("utf-8"))


def events(folder: Path, kind: str) -> list[dict[str, object]]:
    """Return the events of one type in the ledger of the newest run."""
    run = max((folder / ".planrun" / "runs").iterdir())
    found = [json.loads(row) for row in (run / "ledger.jsonl").read_text().splitlines()]
    return [event for event in found if event["type"] == kind]


def test_a_run_writes_the_page_when_it_is_asked(say: Callable[..., Said], tmp_path: Path) -> None:
    """`--html` puts report.html beside the others and is recorded; without it no run writes a page."""
    (tmp_path / "plan.yml").write_text(PLAN)
    assert say("run", "plan.yml").code == 1
    assert not (tmp_path / "planrun-out" / "report.html").exists()
    said = say("run", "plan.yml", "--html")
    assert said.code == 1
    assert "reports in planrun-out: junit.xml, report.md, ledger.json, report.html" in said.err
    assert events(tmp_path, "run_started")[0]["options"]["html"] is True  # type: ignore[index]
    page = report(tmp_path)
    assert shown(section(page, "1 failed step").find(".//h3")) == "✗ test failed: exit 3"
    assert "Error: no good" in shown(section(page, "1 failed step"))
    assert list(calm.in_html((tmp_path / "planrun-out" / "report.html").read_bytes(), 3, 1)) == []


def test_a_resumed_run_writes_it_again(say: Callable[..., Said], tmp_path: Path) -> None:
    """What a run was started with holds when it continues, and `report` writes the same page at any time."""
    (tmp_path / "plan.yml").write_text(PLAN)
    say("run", "plan.yml", "--html")
    (tmp_path / "good").touch()
    assert say("resume", "last").code == 0
    page = report(tmp_path)
    assert shown(page.find(".//header")).startswith("shop ✓ completed")
    assert say("report", "--format", "html", "-o", "again.html").code == 0
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "planrun-out" / "report.html").read_bytes()
    assert say("report", "--format", "html").out == (tmp_path / "again.html").read_text("utf-8")


def test_the_last_good_run_is_compared(say: Callable[..., Said], tmp_path: Path) -> None:
    """A failure is new after a good run, and lasts after another failure; the good run stays the one compared with."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "good").touch()
    say("run", "plan.yml")
    good = max(os.listdir(tmp_path / ".planrun" / "runs"))
    (tmp_path / "good").unlink()
    for words in ("new failure: it completed the last time it ran", "failed in the 1 run before, too"):
        say("run", "plan.yml", "--html")
        page = report(tmp_path)
        assert [row[:2] for row in rows(page, "Compared with the last good run")] == [["test", words]]
        assert f"Differences from run {good}" in shown(section(page, "Compared with the last good run"))


def test_a_cancelled_run_is_no_good_run(say: Callable[..., Said], tmp_path: Path) -> None:
    """A run that did not complete is not compared with, although no step failed in it."""
    (tmp_path / "plan.yml").write_text(
        PLAN.replace("echo packed", "test -e good && echo packed || { kill -TERM $PPID; sleep 5; }").replace(
            "test -e good && echo fine", "echo fine"
        )
    )
    (tmp_path / "good").touch()
    say("run", "plan.yml")
    good = max(os.listdir(tmp_path / ".planrun" / "runs"))
    (tmp_path / "good").unlink()
    words = [sys.executable, "-m", "planrun", "run", "plan.yml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, timeout=LIMIT)
    assert done.returncode == 143
    (tmp_path / "good").touch()
    say("run", "plan.yml", "--html")
    assert good in shown(section(report(tmp_path), "Compared with the last good run"))


def test_values_of_secrets_are_masked(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has what ledger and logs have: masks in place of values, in every encoding."""
    monkeypatch.setenv("TOKEN", "kJ8xQ2mZp7Lw")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsecrets: [TOKEN]\nsteps:\n"
        "  - {id: a, secrets: [TOKEN], run: 'echo $TOKEN; echo -n $TOKEN | base64; echo Error: $TOKEN; exit 1'}\n"
    )
    assert say("run", "plan.yml", "--html").code == 1
    data = (tmp_path / "planrun-out" / "report.html").read_bytes()
    assert b"Error: " in data
    assert b"kJ8xQ2mZp7Lw" not in data
    assert b"a0o4eFEybVpwN0x3" not in data


def test_a_page_that_cannot_be_written_is_named(say: Callable[..., Said], tmp_path: Path) -> None:
    """The other reports are there, and the exit code says that one is not."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: 'true'}]\n")
    (tmp_path / "planrun-out" / "report.html").mkdir(parents=True)
    said = say("run", "plan.yml", "--html")
    assert said.code == 74
    assert "cannot write " in said.err
    assert "report.html" in said.err
    assert (tmp_path / "planrun-out" / "junit.xml").exists()


def test_versions_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a replan the replaced steps stand beside those that took their place, with the model's tokens."""
    shop = Shop(tmp_path, monkeypatch)
    shop.run(REPAIRED)
    rundir, state = newest(shop.folder)
    page = html.document_fromstring(render(state, rundir, "html").decode())
    (first, second) = rows(page, "Plan versions 1 and 2")
    assert first[0].startswith("3: Generate depends on: 2 echo 3 >> ran")
    assert first[1] == "7: Generate by hand depends on: 2 echo 7 >> ran"
    assert second == ["4: Check depends on: 3 echo 4 >> ran", "8: Check by hand depends on: 7 echo 8 >> ran"]
    assert "4 steps are the same in both." in shown(section(page, "Plan versions 1 and 2"))
    told = shown(section(page, "Plan versions"))
    assert "v2: replanned by model-a, digest " in told
    assert "Nobody may write there." in told
    assert rows(page, "Language model")[0][:5] == ["1", "replan", "model-a", "answered", "1000"]
    assert ["allow", "default:llm_auto_approve", "3", "5, 7, 8"] in rows(page, "Policy decisions")


def test_an_ordinary_user_may_write_it(tmp_path: Path) -> None:
    """Nothing about the page needs more than a run itself."""
    if os.getuid() or not admitted(NOBODY):
        pytest.skip("needs root, and a Python that other users may read")
    folder = tmp_path / "open"
    folder.mkdir()
    for each in (folder, *list(folder.parents)[:3]):
        os.chmod(each, 0o755)
    os.chown(folder, NOBODY, NOBODY)
    (folder / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: 'id -u'}]\n")
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "run", "plan.yml", "--html"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert "65534" in shown(report(folder).find(".//details"))
