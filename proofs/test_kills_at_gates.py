"""Killed before any write, a run keeps what gates it: no step starts without its approval, and no answer is lost."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from proofs.crashing import Kill, Scene, may_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and strace"),
    pytest.mark.skipif(not may_trace(), reason="strace is missing, or may not trace here"),
]

GATED = """\
version: 1
policy: {auto_approve: low, ask_for: plan}
steps:
  - {id: low, run: "echo low 1 >> ../effects"}
  - {id: high, depends_on: [low], risk: high, run: "echo high 1 >> ../effects"}
"""
ANSWERED = """\
version: 1
policy: {auto_approve: high}
steps:
  - {id: sure, ask: {question: "Go?"}}
  - {id: go, depends_on: [sure], run: "echo go 1 >> ../effects"}
  - {id: mode, decide: {question: "Which?", options: [{label: "on"}, {label: "off"}]}}
  - {id: broken, depends_on: [mode], on_failure: ask, run: "exit 1"}
  - {id: after, depends_on: [broken], run: "echo ${{ steps.mode.outputs.answer }} 1 >> ../effects"}
"""
ANSWERS = ("--decide", "sure=no", "--decide", "mode=on", "--decide", "broken=continue")


def killed(tmp_path: Path, plan: str, *words: str, resumes: tuple[str, ...] = ()) -> Iterator[Scene]:
    """Yield a scene for each write of a run that it was killed before and then resumed after; none is left out."""
    shared = tmp_path / "shared"
    shared.mkdir()
    Scene(tmp_path / "first", shared, plan).planrun(
        "execute", "plan.yml", "--jobs", "1", *words
    )  # fills caches
    for n in range(1, 200):
        scene = Scene(tmp_path / str(n), shared, plan)
        code = scene.planrun("execute", "plan.yml", "--jobs", "1", *words, kill=Kill("write", n))
        if code >= 0:
            assert n > 8, "nothing was killed"
            return
        if scene.account().events:
            scene.planrun("resume", "last", "--jobs", "1", *resumes)
            yield scene
        scene.clean()


@pytest.mark.shows("V-20", "GP-67")
def test_a_plan_that_needs_an_approval_starts_nothing_after_a_kill(tmp_path: Path) -> None:
    """Neither the run nor its resume starts the step whose risk needs no approval of its own."""
    count = 0
    for scene in killed(tmp_path, GATED):
        count += 1
        assert scene.done() == [], scene.said
        ledger = json.loads(scene.report("ledger.json"))
        assert (ledger["status"], ledger["exit_code"]) == ("awaiting_approval", 5), scene.said
        assert scene.planrun("approve", "last", "--resume") == 0, scene.said
        assert scene.done() == [("low", 1), ("high", 1)], scene.said
    assert count >= 3


@pytest.mark.shows("V-45", "N-52")
def test_no_answer_is_lost_by_a_kill(tmp_path: Path) -> None:
    """A no stays a no, also where the resume says yes; a decision and the answer about a failure hold as well."""
    count = 0
    for scene in killed(tmp_path, ANSWERED, *ANSWERS):
        count += 1
        ledger = json.loads(scene.report("ledger.json"))
        ends = {step["id"]: (step["status"], step["reason"]) for step in ledger["steps"]}
        assert ends["sure"] == ("failed", "denied"), scene.said
        assert ends["after"] == ("completed", "ran"), scene.said
        assert ledger["exit_code"] == 3, scene.said
        assert ("go", 1) not in scene.done(), scene.said
        assert ("on", 1) in scene.done(), scene.said
    assert count >= 10


def test_a_recorded_no_cannot_become_a_yes(tmp_path: Path) -> None:
    """Once the no is on record as the answer of its question, `--decide sure=yes` of a resume changes nothing."""
    denied = 0
    for scene in killed(tmp_path, ANSWERED, *ANSWERS, resumes=("--decide", "sure=yes")):
        lines = scene.ledger().read_text("utf-8").splitlines()
        events = [json.loads(line) for line in lines]
        resumed = next(n for n, event in enumerate(events) if event["type"] == "run_resumed")
        answered = [
            each for each in events[:resumed] if each["type"] == "gate_answered" and each["step"] == "sure"
        ]
        if answered:
            denied += 1
            assert ("go", 1) not in scene.done(), scene.said
    assert denied >= 2
