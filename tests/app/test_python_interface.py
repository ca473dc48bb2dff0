"""The three functions for Python programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import planrun
from planrun.errors import InvalidInput, InvalidPlan

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
params: {n: {type: integer, default: 1}, words: {type: array, default: []}}
steps:
  - id: a
    run: echo "n=${{ params.n }}" >> "$PLANRUN_OUTPUT"
    outputs: {n: integer}
  - {id: b, depends_on: a, run: "test ${{ steps.a.outputs.n }} = 7"}
"""


def test_load_execute_and_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is loaded, run with typed parameters, and its ledger gives the same state back."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "plan.yml").write_text(PLAN)
    plan = planrun.load(str(tmp_path / "plan.yml"))
    state = planrun.execute(plan, params={"n": 7, "words": ["x"]}, workspace=str(tmp_path), jobs=2)
    assert state.verdict() == "completed"
    assert state.steps["a"].outputs == {"n": 7}
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    again = planrun.replay(str(run / "ledger.jsonl"))
    assert again.summary() == state.summary() == {**state.summary(), "total": 2, "completed": 2}
    assert (tmp_path / "planrun-out" / "junit.xml").exists()


def test_errors_are_exceptions_with_all_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad plan, a bad parameter and an altered ledger raise; nothing runs."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "bad.yml").write_text("version: 1\nsteps: [{id: a, rum: x}, {id: a, run: y}]\n")
    with pytest.raises(InvalidPlan) as found:
        planrun.load(str(tmp_path / "bad.yml"))
    assert len(found.value.problems) >= 2
    (tmp_path / "plan.yml").write_text(PLAN)
    plan = planrun.load(str(tmp_path / "plan.yml"))
    with pytest.raises(InvalidInput, match='"m"'):
        planrun.execute(plan, params={"m": 1}, workspace=str(tmp_path))
    assert not (tmp_path / ".planrun").exists()
    planrun.execute(plan, params={"n": 7}, workspace=str(tmp_path))
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    ledger = run / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"exit_code":0', b'"exit_code":1', 1))
    with pytest.raises(InvalidInput, match="altered"):
        planrun.replay(str(ledger))


def test_an_altered_copy_of_the_plan_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger names the bytes that ran; a run is never read, reported or resumed with others."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "plan.yml").write_text(PLAN)
    planrun.execute(planrun.load(str(tmp_path / "plan.yml")), workspace=str(tmp_path))
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    copy = run / "plan.yml"
    copy.write_text(copy.read_text().replace("= 7", "= 1"))
    with pytest.raises(InvalidInput, match="copy of its plan was altered"):
        planrun.replay(str(run / "ledger.jsonl"))
