"""Policy, risk, decisions and gates in `ledger.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planrun.model import events as ev
from planrun.model.plan import Plan
from planrun.model.state import RunState
from tests.reports.runs import Story, asking, step, waiting_run
from tests.reports.test_ledgerjson import ledger

if TYPE_CHECKING:
    from pathlib import Path


def test_the_policy_in_force_is_shown(tmp_path: Path) -> None:
    """Levels and their source, how many rules there are, and each ceiling with the hash of its file."""
    value = ledger(waiting_run(tmp_path).rest())["policy"]
    ceiling = value.pop("ceilings")[0]
    assert value == {
        "source": "plan",
        "auto_approve": "medium",
        "llm_auto_approve": "low",
        "ask_for": "steps",
        "rules": 2,
        "option": "",
    }
    assert (ceiling["file"], ceiling["sha256"], ceiling["auto_approve"]) == (
        "ci/policy.yml",
        "ab12" * 16,
        "high",
    )


def test_auto_approve_of_the_command_line_takes_the_place_of_the_plans(tmp_path: Path) -> None:
    """The level in force is text, and its source is the option."""
    policy: dict[str, Any] = {"plan": None, "option": "low", "ceilings": []}
    value = ledger(Story(tmp_path, step("a"), options={"policy": policy}).run("a").end())["policy"]
    assert (value["source"], value["auto_approve"], value["option"]) == ("default", "low", "low")


def test_risks_are_added_up(tmp_path: Path) -> None:
    """The highest class, and which steps destroy, change files, reach out, or are not understood."""
    value = ledger(waiting_run(tmp_path).rest())
    assert value["risk"] == {
        "overall": "high",
        "destructive": ["clean", "wipe"],
        "modifies": ["clean", "wipe", "after"],
        "external": ["publish", "notes"],
        "unknown": ["wipe"],
    }


def test_what_was_decided_of_each_step(tmp_path: Path) -> None:
    """Who approved it, who requires approval, who denies it; nothing of a step without a decision."""
    steps = {found["id"]: found for found in ledger(waiting_run(tmp_path).rest())["steps"]}
    decisions = {name: found["decision"] for name, found in steps.items()}
    assert decisions == {
        "test": {"answer": "allow", "rule": "default:auto_approve"},
        "clean": None,
        "publish": {"answer": "ask", "rule": "plan:auto_approve"},
        "notes": {"answer": "allow", "rule": "approval:rel-7"},
        "wipe": {"answer": "deny", "rule": "ceiling:rules.1"},
        "really": {"answer": "ask", "rule": ""},
        "where": {"answer": "ask", "rule": ""},
        "after": None,
    }
    assert (steps["publish"]["risk"], steps["publish"]["effects"]) == ("high", ["publishes"])
    assert steps["publish"]["risk_reason"] == "`git push`: publishes"


def test_what_ran_has_its_own_class(tmp_path: Path) -> None:
    """The values that an attempt ran with may make it worse than its text story."""
    story = Story(tmp_path, step("a", risk="low", open_risk=True))
    story.add(ev.AttemptStarted(at=story.at, step="a", n=1, risk="high", rule="plan:rules.1"))
    value = ledger(story.state)
    assert value["steps"][0]["risk"] == "high"
    assert (value["risk"]["overall"], value["risk"]["unknown"]) == ("high", ["a"])


def test_open_gates_of_a_run_that_waits(tmp_path: Path) -> None:
    """Status and exit code show that it waits, and each gate shows for what."""
    value = ledger(waiting_run(tmp_path).rest())
    assert (value["status"], value["exit_code"], value["verdict"]) == ("paused", 5, None)
    gates = {gate["step"]: gate for gate in value["gates"]}
    assert {name: (gate["kind"], gate["status"]) for name, gate in gates.items()} == {
        "publish": ("approval", "open"),
        "notes": ("approval", "answered"),
        "really": ("ask", "open"),
        "where": ("decide", "open"),
    }
    where = gates["where"]
    assert where["options"] == [
        {"label": "Staging", "value": "staging", "description": "nobody sees it"},
        {"label": "prod", "value": "prod", "description": ""},
    ]
    assert (where["default"], where["until"]) == ("staging", "2026-01-31T10:00:00.000Z")
    notes = gates["notes"]
    assert (notes["answer"], notes["via"], notes["by"], notes["approval"]) == (
        "approved",
        "approval",
        "Ann",
        "rel-7",
    )
    assert value["approvals"] == [
        {"id": "rel-7", "by": "Ann", "at": notes["answered_at"], "steps": ["notes"]}
    ]


def test_a_plan_that_awaits_its_approval() -> None:
    """Nothing has started; exit code 5; the gate has no step."""
    plan = Plan(name="p", file="p.yml", digest="0" * 64, steps=(step("a"),))
    state = RunState(plan)
    state.apply(ev.PlanMoved(at="2026-01-31T09:00:00.000Z", status="awaiting_approval"))
    assert state.exit_status is None
    at = "2026-01-31T09:00:00.000Z"
    state.apply(ev.GateOpened(at=at, step="", kind="approval", rule="plan:auto_approve", reason="a: high"))
    value = ledger(state)
    assert (value["status"], value["exit_code"]) == ("awaiting_approval", 5)
    assert (value["gates"][0]["step"], value["gates"][0]["status"]) == (None, "open")
    state.apply(ev.GateAnswered(at=at, step="", answer="approved", via="command", by="Ann"))
    state.apply(ev.PlanMoved(at=at, status="approved"))
    assert ledger(state)["gates"][0]["status"] == "answered"


def test_an_unanswered_gate_is_closed_with_the_run(tmp_path: Path) -> None:
    """Gates of a cancelled run are closed; an answer that came first has no opening."""
    story = Story(tmp_path, step("a"), asking("b"))
    story.ask("a", rule="plan:rules.1").answer("b", True, "option")
    story.ending("cancel", signal=15).move("a", "cancelled", "cancelled").move("b", "cancelled", "cancelled")
    gates = ledger(story.end(143))["gates"]
    assert [(gate["status"], gate["opened_at"] is None) for gate in gates] == [
        ("closed", False),
        ("answered", True),
    ]
    assert (gates[1]["kind"], gates[1]["answer"], gates[1]["answered_at"]) == ("ask", True, story.at)


def test_a_rejected_step_is_denied_by_the_answer(tmp_path: Path) -> None:
    """A reviewer denied it, not a rule."""
    story = Story(tmp_path, step("a"))
    story.ask("a", rule="plan:auto_approve").answer("a", "rejected", by="Ann")
    story.move("a", "failed", "denied", "rejected by Ann")
    assert ledger(story.end(3))["steps"][0]["decision"] == {"answer": "deny", "rule": "answer"}
