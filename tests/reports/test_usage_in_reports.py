"""The usage of models is in every report: in total, call by call, by step, and beside its limits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from planrun.model import events as ev
from planrun.reports import facts
from planrun.reports.junit import write_junit
from planrun.reports.markdown import write_markdown
from planrun.reports.models import by_step, dollars, event_line, totals_line
from planrun.reports.text import write_text
from tests.reports.runs import RUN, Story, step
from tests.reports.test_ledgerjson import NONE, ledger

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.model.state import RunState

MODEL = "claude-opus-5-5"
BUDGET = {
    "limits": {"tokens": 10_000.0, "usd": 0.5},
    "given": {},
    "prices": {"as_of": "2026-01-31", "source": "our contract", "file": "", "sha256": "0" * 64},
}


def planned(rundir: Path, **last: Any) -> Story:
    """Return a run in which two steps failed and two calls were made for them; `last`: how the second one ended."""
    story = Story(rundir, step("1"), step("2"), step("3", estimated_tokens=500), options={"budget": BUDGET})
    story.run("1", status="failed", reason="exit", exit_code=1)
    story.run("2", status="failed", reason="exit", exit_code=1)
    story.add(ev.PlanningStarted(at=story.at, purpose="replan", steps=("1", "2"), model=MODEL))
    for call, usage in ((1, {"input_tokens": 1001, "output_tokens": 200, "usd": 0.008004}), (2, {})):
        story.add(
            ev.ModelAsked(
                at=story.at,
                call=call,
                purpose="replan",
                model=MODEL,
                request="0" * 64,
                reserved={"tokens": 3000.0, "usd": 0.05},
            )
        )
        fields: dict[str, Any] = {"ending": "answered", "usage": usage} if call == 1 else last
        if fields:
            story.add(ev.ModelAnswered(at=story.at, call=call, duration=2.5, **fields))
    return story


def overrun(rundir: Path) -> RunState:
    """Return a run that is paused because the next call exceeds the budget."""
    story = planned(rundir, ending="answered", usage={"input_tokens": 7000, "output_tokens": 500})
    at = story.at
    for level in (80, 100):
        story.add(
            ev.BudgetCrossed(at=at, scope="plan", resource="tokens", level=level, used=8701.0, limit=10_000.0)
        )
    message = "8701 of 10000 tokens are used, and a call may take 3000"
    story.add(ev.PlanningEnded(at=at, purpose="replan", steps=("1", "2"), outcome="budget", message=message))
    story.add(ev.RunEnding(at=at, why="budget", message=message))
    return story.rest()


def test_what_a_planning_used_belongs_to_the_steps_that_failed(tmp_path: Path) -> None:
    """Each has its part, and the parts add up to the usage of the run; estimates are beside them."""
    value = ledger(planned(tmp_path, ending="answered", usage={"cache_read_tokens": 99}).state)
    first, second, third = (found["usage"] for found in value["steps"])
    assert first == NONE | {
        "input_tokens": 501,
        "output_tokens": 100,
        "cache_read_tokens": 50,
        "usd": pytest.approx(0.004002),
    }
    assert second == NONE | {
        "input_tokens": 500,
        "output_tokens": 100,
        "cache_read_tokens": 49,
        "usd": pytest.approx(0.004002),
    }
    assert third == NONE
    assert value["usage"] == {name: pytest.approx(first[name] + second[name]) for name in NONE}
    assert [found["estimated_tokens"] for found in value["steps"]] == [0, 0, 500]


def test_every_call_is_in_ledger_json(tmp_path: Path) -> None:
    """With reservation, usage and cost; and the limits, the table, and crossed limits."""
    llm = ledger(overrun(tmp_path))["llm"]
    assert llm["models"] == [MODEL]
    assert llm["prices"] == BUDGET["prices"]
    assert llm["budget"] == [
        {"resource": "tokens", "used": 8701, "limit": 10_000},
        {"resource": "usd", "used": 0.008004, "limit": 0.5},
        {"resource": "turns", "used": 2, "limit": None},
    ]
    assert [(each["level"], each["used"]) for each in llm["crossed"]] == [(80, 8701), (100, 8701)]
    assert [(each["outcome"], each["version"]) for each in llm["plannings"]] == [("budget", None)]
    first, second = llm["calls"]
    assert (first["n"], first["steps"], first["reserved_tokens"], first["usd"]) == (
        1,
        ["1", "2"],
        3000,
        0.008004,
    )
    assert (second["input_tokens"], second["usd"], second["confirmed"]) == (7000, None, True)


def test_an_unreported_call_counts_as_reserved(tmp_path: Path) -> None:
    """A killed planrun leaves a call without an end: an upper bound, and said to be one."""
    state = planned(tmp_path).state
    value = ledger(state)
    assert value["usage"] == NONE | {
        "input_tokens": 1001,
        "output_tokens": 200,
        "unconfirmed_tokens": 3000,
        "usd": pytest.approx(0.058004),
    }
    assert value["llm"]["calls"][1]["confirmed"] is False
    assert value["llm"]["calls"][1]["ending"] is None
    assert totals_line(state) == (
        "2 calls, 4.2K of 10.0K tokens, 0.0580 of 0.5000 USD, 1 of the calls counted as at most"
    )


def test_reports_for_people_show_the_usage(tmp_path: Path) -> None:
    """One line in the summary, a table of calls, and the estimate against the usage."""
    state = overrun(tmp_path)
    line = "2 calls, 8.7K of 10.0K tokens, 0.0080 of 0.5000 USD"
    page, text, junit = io.BytesIO(), io.BytesIO(), io.BytesIO()
    write_markdown(state, str(tmp_path), page)
    write_text(state, str(tmp_path), text)
    write_junit(state, str(tmp_path), junit)
    assert f"- **Language model:** {line}\n" in page.getvalue().decode()
    assert (
        "| 1 | replan | `claude-opus-5-5` | answered | 1201 | 3000 | 0.0080 USD | 2.5s |\n"
        in page.getvalue().decode()
    )
    assert "| `1` | 4351 |\n| `2` | 4350 |\n" in page.getvalue().decode()
    assert f"  Language model: {line}\n" in text.getvalue().decode()
    properties = junit.getvalue().decode()
    assert '<property name="planrun.model_calls" value="2"/>' in properties
    assert '<property name="planrun.input_tokens" value="8001"/>' in properties
    assert '<property name="planrun.usd" value="0.008004"/>' in properties


def test_a_run_without_a_model_shows_no_usage(tmp_path: Path) -> None:
    """Reports stay as they are for those who ask no model."""
    story = Story(tmp_path, step("a"))
    story.run("a")
    state = story.end()
    page = io.BytesIO()
    write_markdown(state, str(tmp_path), page)
    assert "language model" not in page.getvalue().decode().lower()
    assert totals_line(state) == "nothing was asked"
    assert ledger(state)["llm"] is None


def test_a_run_that_used_up_its_budget_names_the_command_to_continue(tmp_path: Path) -> None:
    """The option and the limit that has to be larger."""
    state = overrun(tmp_path)
    assert state.exit_status == 5
    assert (
        facts.unended(state)
        == f"to continue: planrun resume {RUN} --max-tokens N (N must allow another call; 10000 did not)"
    )
    assert facts.outcome(state) == "paused"
    ending = ev.RunEnding(at="", why="budget", message="8701 of 10000 tokens are used")
    assert (
        facts.ended_by(state, ending)
        == "pausing: the budget for models is used up: 8701 of 10000 tokens are used"
    )


def test_the_console_shows_the_cost_of_an_answer_and_used_up_limits(tmp_path: Path) -> None:
    """A line for each call, and a warning for each level."""
    state = overrun(tmp_path)
    rows = [
        event_line(event, state)
        for event in planned(tmp_path).events
        if isinstance(event, ev.PlanningStarted)
    ]
    assert rows == [("running", f"asking {MODEL} for a new plan: 1, 2")]
    answered = ev.ModelAnswered(
        at="", call=1, ending="answered", usage={"input_tokens": 1201, "usd": 0.008}, duration=2.5, attempts=3
    )
    assert event_line(answered, state) == (
        "completed",
        f"asked {MODEL} (replan, call 1): 1.2K tokens, 0.0080 USD in 2.5s, 3 attempts",
    )
    lost = answered.but(ending="unavailable", message="no connection", usage={}, is_estimate=True, attempts=1)
    assert event_line(lost, state) == (
        "partial",
        f"asked {MODEL} (replan, call 1): unavailable: no connection; at most 3.0K tokens in 2.5s",
    )
    crossed = ev.BudgetCrossed(at="", scope="plan", resource="usd", level=80, used=0.41, limit=0.5)
    assert event_line(crossed, state) == ("partial", "80% of the US dollars of the run are used: 0.41 of 0.5")
    assert event_line(crossed.but(level=100), state)[1] == (
        "the US dollars of the run leave no room for a call, 0.41 of 0.5 are used; nothing more is asked"
    )
    assert event_line(crossed.but(level=100, used=0.5, scope="planning"), state)[1] == (
        "the US dollars of the planning are used up: 0.5 of 0.5"
    )


def test_nothing_of_a_planning_breaks_a_line(tmp_path: Path) -> None:
    """The text of a service or a model is untrusted."""
    state = overrun(tmp_path)
    for event in (
        ev.ModelAnswered(
            at="", call=1, ending="rejected", usage={}, message="a\n::error::b\x1b[31m", model="m\r\n"
        ),
        ev.PlanningEnded(at="", purpose="replan", steps=("1",), outcome="infeasible", message="no\n\x07way"),
    ):
        row = event_line(event, state)[1]
        assert row.isprintable()
    assert by_step(state).keys() == {"1", "2"}


def test_money_is_shown_with_as_many_digits_as_it_needs() -> None:
    """Cents from a dollar up, hundredths of cents below."""
    assert [dollars(value) for value in (0, 0.00804, 0.5, 1, 12.345)] == [
        "0.00 USD",
        "0.0080 USD",
        "0.5000 USD",
        "1.00 USD",
        "12.35 USD",
    ]
