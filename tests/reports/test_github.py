"""What a run leaves on GitHub: step summary and outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planrun.errors import RecordsLost
from planrun.reports.github import outputs, write_outputs, write_summary
from planrun.reports.markdown import SUMMARY_BYTES
from tests.reports.runs import DIGEST, RUN, Story, mixed_run, step


def read_outputs(text: str) -> dict[str, str]:
    """Read an output file as the runner does."""
    found: dict[str, str] = {}
    rows = iter(text.split("\n"))
    for row in rows:
        name, equals, value = row.partition("=")
        if "<<" in name:
            name, _, word = row.partition("<<")
            body = []
            for inner in rows:
                if inner == word:
                    break
                body.append(inner)
            value = "\n".join(body)
        elif not equals:
            assert not row
            continue
        found[name] = value
    return found


def test_outputs(tmp_path: Path) -> None:
    """The outputs of the action, after the existing content of the file."""
    path = tmp_path / "outputs"
    path.write_text("earlier=1\n")
    reports = {"junit": "out/junit.xml", "json": "out/ledger.json", "markdown": "out/report.md"}
    write_outputs(outputs(mixed_run(tmp_path), reports), str(path))
    assert read_outputs(path.read_text()) == {
        "earlier": "1",
        "run-id": RUN,
        "result": "failed",
        "failed-steps": '["lint","fetch","integration"]',
        "junit-path": "out/junit.xml",
        "ledger-path": "out/ledger.json",
        "report-path": "out/report.md",
        "digest": DIGEST,
        "outputs": "{}",
    }


def test_values_of_several_lines_stay_values(tmp_path: Path) -> None:
    """A value cannot add an output of its own: a fresh word encloses it."""
    path = tmp_path / "outputs"
    values = {"a": "one\nb=two\nEOF", "c": "x\rd=1", "e": "lone \udc80"}
    write_outputs(values, str(path))
    assert read_outputs(path.read_bytes().decode()) == {"a": values["a"], "c": values["c"], "e": "lone ?"}


def test_failed_steps_is_a_list_for_from_json(tmp_path: Path) -> None:
    """Ids with commas survive."""
    story = Story(tmp_path, step("t[a=1,b=2]"))
    story.run("t[a=1,b=2]", "failed")
    assert json.loads(outputs(story.end(1), {})["failed-steps"]) == ["t[a=1,b=2]"]


def test_the_summary_is_appended_within_its_budget(tmp_path: Path) -> None:
    """Together with what other tools wrote before it stays below GitHub's limit."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"# before\n" + b"x" * (SUMMARY_BYTES - 2000) + b"\n")
    write_summary(mixed_run(tmp_path), str(tmp_path), str(path), head="ab" * 32)
    text = path.read_text("utf-8")
    assert f"- **Ledger head:** `{'ab' * 32}`\n" in text
    assert len(text.encode()) <= SUMMARY_BYTES
    assert text.startswith("# before\n")
    assert "\n**failed (exit code 1), " in text


def test_a_full_summary_is_left_alone(tmp_path: Path) -> None:
    """Without any space left nothing is written."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * SUMMARY_BYTES)
    write_summary(mixed_run(tmp_path), str(tmp_path), str(path))
    assert path.stat().st_size == SUMMARY_BYTES


def test_files_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    """Exit 74 with the name."""
    with pytest.raises(RecordsLost, match=r"step summary .*gone/summary"):
        write_summary(mixed_run(tmp_path), str(tmp_path), str(tmp_path / "gone" / "summary"))
    with pytest.raises(RecordsLost, match=r"step outputs .*gone/outputs"):
        write_outputs({}, str(tmp_path / "gone" / "outputs"))


def test_the_summary_draws_when_each_step_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where GitHub shows the page it has a chart of the attempts, beside the graph; elsewhere it has none."""
    path = tmp_path / "summary.md"
    write_summary(mixed_run(tmp_path), str(tmp_path), str(path))
    assert "gantt" not in path.read_text("utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    write_summary(mixed_run(tmp_path), str(tmp_path), str(path))
    assert "```mermaid\ngantt\n" in path.read_text("utf-8")
