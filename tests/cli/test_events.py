"""The event stream: one JSON object for each thing that happens, for programs that watch a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import planrun as api
from planrun.model import events as ev
from planrun.model.state import RunState
from planrun.plan.load import load_bytes
from planrun.reports.stream import EventStream
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

AT = "2026-01-31T09:30:00.000Z"
PLAN = """\
version: 1
name: demo
goal: Ship it.
secrets: [TOKEN]
steps:
  - {id: first, title: Look around, secrets: [TOKEN], run: echo hidden}
  - {id: list, depends_on: [first], tool: file.read, args: {path: plan.yml}}
  - id: twice
    depends_on: [list]
    retries: {max: 1, backoff: {initial: 10ms}}
    run: test -e there || { touch there; exit 1; }
  - {id: many, depends_on: [twice], matrix: {n: [1, 2]}, run: exit 0}
  - {id: bad, depends_on: [many], run: exit 3}
  - {id: behind, depends_on: [bad], run: exit 0}
"""


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the events of one type."""
    return [event for event in events if event["type"] == kind]


@pytest.fixture
def events(planrun: Command, tmp_path: Path) -> list[dict[str, Any]]:
    """The stream of a run with a title, a tool, a retry, instances and a failure."""
    (tmp_path / "plan.yml").write_text(PLAN, encoding="utf-8")
    done = planrun("execute", "plan.yml", "--events", "events.jsonl", env={"TOKEN": "sekret-of-mine"})
    assert done.returncode == 1, done.stderr
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.shows("V-62")
def test_the_first_event_has_goal_and_steps(events: list[dict[str, Any]]) -> None:
    """With ids, titles and statuses."""
    first = events[0]
    assert (first["type"], first["plan_id"], first["goal"]) == ("run_started", "demo", "Ship it.")
    assert first["steps"][0] == {"id": "first", "title": "Look around", "status": "pending"}
    assert [step["id"] for step in first["steps"]][-2:] == ["bad", "behind"]


@pytest.mark.shows("V-63", "D-40")
def test_a_step_event_has_old_and_new_status_and_why(events: list[dict[str, Any]]) -> None:
    """A retry goes through `waiting`, a failure has its message, and each event has the action of the step."""
    moves = [
        (e["old_status"], e["new_status"], e["attempt"])
        for e in of(events, "step_status")
        if e["step"] == "twice"
    ]
    assert moves == [
        ("pending", "running", 1),
        ("running", "waiting", 1),
        ("waiting", "running", 2),
        ("running", "completed", 2),
    ]
    failed = next(e for e in of(events, "step_status") if e["step"] == "bad" and e["new_status"] == "failed")
    assert (failed["reason"], failed["notes"]) == ("exit", ["exit code 3"])
    blocked = next(e for e in of(events, "step_status") if e["step"] == "behind")
    assert (blocked["old_status"], blocked["new_status"], blocked["reason"]) == (
        "pending",
        "blocked",
        "upstream",
    )
    assert {e["activity"] for e in of(events, "step_status") if e["step"] == "list"} == {"reading"}


@pytest.mark.shows("N-22")
def test_a_tool_call_and_its_result_share_an_id(events: list[dict[str, Any]]) -> None:
    """The result has the arguments and whether it worked."""
    (call,), (result,) = of(events, "tool_call"), of(events, "tool_result")
    assert call["call_id"] == result["call_id"] == "list/1"
    assert (call["tool"], result["args"], result["ok"]) == ("file.read", {"path": "plan.yml"}, True)


@pytest.mark.shows("GP-60", "N-41", "N-46")
def test_progress_is_in_the_stream(events: list[dict[str, Any]]) -> None:
    """From 0 to 1 and never back, with the current step and the metrics."""
    found = of(events, "progress")
    shares = [each["progress"] for each in found]
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert {each["total_steps"] for each in found} == {7}
    named = next(each for each in found if each["current_step_id"] == "first")
    assert named["current_title"] == "Look around"
    assert found[-1]["metrics"].keys() == {
        "completed_steps", "total_steps", "percentage", "current_step", "eta", "average_step_duration", "elapsed_time",
    }  # fmt: skip
    assert (found[-1]["status"], events[-2]["type"]) == ("failed", "run_ended")


@pytest.mark.shows("N-46")
def test_the_figures_count_steps_and_not_attempts(planrun: Command, tmp_path: Path) -> None:
    """Percentage, mean duration, elapsed and remaining time: a step that is retried is one step."""
    plan = """\
version: 1
steps:
  - {id: a, run: sleep 0.4}
  - {id: b, depends_on: [a], retries: {max: 1, backoff: {initial: 0s}}, run: test -e x || ( touch x; exit 1 )}
  - {id: c, depends_on: [b], run: sleep 0.2}
  - {id: d, depends_on: [c], run: exit 0}
"""
    (tmp_path / "plan.yml").write_text(plan, encoding="utf-8")
    assert planrun("execute", "plan.yml", "--events", "out").returncode == 0
    rows = [json.loads(row) for row in (tmp_path / "out").read_text("utf-8").splitlines()]
    metrics = [each["metrics"] for each in rows if each["type"] == "progress"]
    for each in metrics:
        done, mean = each["completed_steps"], each["average_step_duration"]
        assert (each["total_steps"], each["percentage"]) == (4, pytest.approx(25 * done))
        assert (mean is None) is (each["eta"] is None) is (done == 0)
        assert mean is None or each["eta"] <= mean * (4 - done) + 0.01
    for key in ("completed_steps", "elapsed_time"):
        values = [each[key] for each in metrics]
        assert values == sorted(values)
    first, last = next(each for each in metrics if each["completed_steps"] == 1), metrics[-1]
    assert first["eta"] >= 0.4
    assert (last["completed_steps"], last["current_step"], last["eta"]) == (4, "", 0.0)
    assert 0.15 <= last["average_step_duration"] <= last["elapsed_time"] / 4 + 0.01


@pytest.mark.parametrize("target", ["no/such/folder/file", "98"])
def test_a_stream_that_cannot_be_opened_is_refused_before_anything_runs(
    planrun: Command, tmp_path: Path, target: str
) -> None:
    """Exit code 2, with the reason."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: touch ran}]\n", encoding="utf-8")
    done = planrun("execute", "plan.yml", "--events", target)
    assert done.returncode == 2
    assert f"cannot write events to {target}: " in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_descriptor_may_have_its_prefix(tmp_path: Path) -> None:
    """`fd:N` is the open descriptor N; a reader that is gone changes nothing."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: exit 0}\n", encoding="utf-8")
    for read_all in (True, False):
        ours, theirs = os.pipe()
        if not read_all:
            os.close(ours)
        words = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--events", f"fd:{theirs}"]
        done = subprocess.run(
            words, cwd=tmp_path, pass_fds=[theirs], capture_output=True, timeout=LIMIT, check=False
        )
        os.close(theirs)
        assert done.returncode == 0, done.stderr
        if read_all:
            with open(ours, encoding="utf-8") as lines:
                assert json.loads(lines.readlines()[-2])["type"] == "run_ended"


def test_python_programs_are_called_with_the_same_events(tmp_path: Path) -> None:
    """And what their function raises ends the calls, not the run."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: touch ran}]\n", encoding="utf-8")
    plan = api.load(str(tmp_path / "plan.yml"))
    seen: list[dict[str, Any]] = []
    state = api.execute(plan, workspace=str(tmp_path), on_event=seen.append)
    assert state.verdict() == "completed"
    assert [each["new_status"] for each in of(seen, "step_status")] == ["running", "completed"]
    calls: list[str] = []

    def fails(event: dict[str, Any]) -> None:
        calls.append(event["type"])
        if event["type"] == "step_status":
            raise RuntimeError("no")

    assert api.execute(plan, workspace=str(tmp_path), on_event=fails).verdict() == "completed"
    assert calls.count("step_status") == 1


def test_the_stream_goes_on_after_a_gate(planrun: Command, tmp_path: Path) -> None:
    """The events of a gate have a `kind` of their own, and what follows them is in the stream, too."""
    plan = """\
version: 1
steps:
  - {id: sure, ask: {question: Go on?}}
  - {id: next, run: "true", depends_on: [sure]}
"""
    (tmp_path / "plan.yml").write_text(plan)
    words = ("execute", "plan.yml", "--quiet", "--events", "events.jsonl", "--decide", "sure=yes")
    assert planrun(*words).returncode == 0
    found = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in of(found, "gate_opened")] == ["ask"]
    assert [event["step"] for event in of(found, "step_status") if event["new_status"] == "completed"] == [
        "sure",
        "next",
    ]
    assert len(of(found, "run_ended")) == 1


def test_what_agents_note_is_in_the_stream(tmp_path: Path) -> None:
    """With the step and the agent, and nothing ends the stream."""
    plan = load_bytes(
        b'version: 1\nsteps: [{id: fix, run: "true"}]\n', str(tmp_path / "plan.yml"), cache=False
    )
    state, sent = RunState(plan), list[dict[str, Any]]()
    stream = EventStream(sent.append, state)
    change = {"op": "read", "key": "db", "at": AT}
    event = ev.AgentNoted(at=AT, step="fix", agent="fix.a1", kind="memory", change=change)
    state.apply(event)
    stream.on_event(event, state)
    [noted] = of(sent, "agent_noted")
    assert (noted["step"], noted["agent"], noted["kind"], noted["change"]) == (
        "fix",
        "fix.a1",
        "memory",
        change,
    )
    assert sent[-1]["type"] == "progress"
