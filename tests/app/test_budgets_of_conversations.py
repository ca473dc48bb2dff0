"""What a conversation may spend, and what it does when there is no more: a scripted model, a clock that we move."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

import pytest

from planrun.errors import InvalidInput
from planrun.llm.budget import Budget
from planrun.llm.drafts import STEPS, Fault
from planrun.llm.fitting import Piece
from planrun.model import events as ev
from planrun.model.call import Answer, Repeat, Request, Usage
from planrun.model.plan import Limits
from planrun.model.planning import Llm
from planrun.planner.conversation import Accepted, Conversation, Question, Result
from planrun.planner.models import spending, spending_on_record
from planrun.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.llm.drafts import Draft

MODEL = "claude-opus-5-5"
DRAFT = dumps(
    {
        "analysis": "",
        "infeasible": "",
        "keep": [],
        "steps": [
            {
                **{name: "" for name, key in STEPS.keys.items() if key.needed},
                **{key: [] for key in ("depends_on", "replaces", "outputs")},
                "id": "a",
                "run": "true",
                "estimated_tokens": 0,
            }
        ],
    }
)


class Clock:
    """A clock that only the model moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def stamp(self) -> str:
        return "2026-01-31T09:30:00.000Z"

    def monotonic(self) -> float:
        return self.now


class Scripted:
    """A model that gives prepared answers, each after the seconds that it names as its duration."""

    def __init__(self, clock: Clock, *answers: Answer) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.asked: list[Request] = []

    def ask(self, request: Request) -> None:
        self.asked.append(request)

    def repeats(self) -> list[Repeat]:
        """Return none."""
        return []

    def wait(self, timeout: float | None) -> Answer | None:
        del timeout
        answer = self.answers.pop(0)
        self.clock.now += answer.duration
        return answer

    def stop(self) -> None:
        """Do nothing: it has answered already."""

    def close(self) -> None:
        """Do nothing."""


def answer(total: int = 1000, **fields: Any) -> Answer:
    """Return an answer of so many tokens, a tenth of them written."""
    usage = Usage(input_tokens=total - total // 10, output_tokens=total // 10)
    return Answer(**{"ending": "answered", "text": "no JSON", "usage": usage, **fields})


def talk(
    budget: Budget, answers: list[Answer], llm: Llm | None = None, check: Callable[[Draft], Any] | None = None
) -> tuple[Result, list[ev.Event], Scripted]:
    """Hold a conversation to its end; returns its result, its events and the model."""
    clock = Clock()
    model = Scripted(clock, *answers)
    budget.until = None if budget.until is None else clock.now + budget.until
    known = llm or Llm(model=MODEL, plan_max_tokens=500)
    question = Question(
        purpose="replan",
        system=("s",),
        pieces=(Piece(text="p"),),
        check=check or (lambda draft: Accepted(value=draft)),
    )
    going = Conversation(model, known, budget, clock).ask(question)
    events: list[ev.Event] = []
    while True:
        try:
            event = next(going)
        except StopIteration as end:
            return end.value, events, model
        if event is not None:
            events.append(event)


def crossed(events: list[ev.Event], scope: str = "plan") -> list[tuple[str, int]]:
    """Return the reported levels of a scope."""
    return [
        (event.resource, event.level)
        for event in events
        if isinstance(event, ev.BudgetCrossed) and event.scope == scope
    ]


def test_the_call_that_does_not_fit_is_not_made() -> None:
    """Two answers are wrong; the budget has too little left for a third: no call, the event, the outcome."""
    result, events, model = talk(Budget("plan", {"tokens": 7000}, {}), [answer(2500), answer(3200)])
    assert (result.outcome, result.rounds) == ("budget", 2)
    assert result.message.startswith("5700 of 7000 tokens are used, and a call may take ")
    assert len(model.asked) == 2
    assert crossed(events) == [("tokens", 80), ("tokens", 100)]
    assert isinstance(events[-1], ev.BudgetCrossed)


def test_turns_are_calls() -> None:
    """The limit of turns ends a conversation that would go on."""
    result, events, model = talk(Budget("plan", {"turns": 3}, {"turns": 1}), [answer(), answer()])
    assert result.outcome == "budget"
    assert result.message == "3 of 3 turns are used, and a call may take 1"
    assert len(model.asked) == 2
    assert crossed(events) == [("turns", 80), ("turns", 95), ("turns", 100)]


def test_a_call_costs_what_the_table_says() -> None:
    """Dollars are reserved with the request and stand beside the usage."""
    budget = spending(Limits(max_usd=1.0), Settings()).budget()
    _, events, _ = talk(budget, [answer(1000, text=DRAFT)])
    asked, answered = (each for each in events if isinstance(each, ev.ModelAsked | ev.ModelAnswered))
    assert isinstance(asked, ev.ModelAsked)
    assert isinstance(answered, ev.ModelAnswered)
    assert answered.usage == {"input_tokens": 900, "output_tokens": 100, "usd": pytest.approx(0.0056)}
    assert asked.reserved["usd"] > 0.0056
    assert budget.account.used("usd") == pytest.approx(0.0056)


def test_a_planning_has_a_time_of_its_own() -> None:
    """80 per cent are reported; a call gets at most the seconds that are left, and none is made afterwards."""
    llm = Llm(model=MODEL, planning_timeout=60.0, timeout=120.0)
    result, events, model = talk(Budget("plan", {}, {}), [answer(duration=50.0), answer(duration=20.0)], llm)
    assert (result.outcome, result.message) == ("failed", "planning took longer than 60 s")
    assert [request.seconds for request in model.asked] == [60.0, 10.0]
    assert crossed(events, "planning") == [("time", 80), ("time", 95), ("time", 100)]


def test_the_deadline_of_the_run_bounds_a_call() -> None:
    """A call may not last longer than the run."""
    budget = Budget("plan", {}, {})
    budget.until = 5.0
    result, _, model = talk(budget, [answer(duration=5.0)])
    assert [request.seconds for request in model.asked] == [5.0]
    assert (result.outcome, result.message) == ("failed", "the deadline of the run leaves no time to ask")


def test_an_answer_that_is_cut_off_costs_turns_too() -> None:
    """The one repetition with twice the length is a call as any other: at most four in a planning."""
    cut = answer(
        ending="truncated", stop_reason="max_tokens", usage=Usage(input_tokens=10, output_tokens=500)
    )
    result, events, model = talk(
        Budget("plan", {}, {}),
        [cut, answer(), answer(), answer(text=DRAFT)],
        check=lambda _draft: [Fault(path="steps[0]", rule="x", message="odd")],
    )
    assert result.outcome == "invalid"
    assert [request.max_tokens for request in model.asked] == [500, 1000, 1000, 1000]
    assert crossed(events, "planning") == [("turns", 80), ("turns", 95), ("turns", 100)]
    assert crossed(events, "call") == [("tokens", 80), ("tokens", 95), ("tokens", 100)]


def test_a_killed_call_is_reported_on_resume() -> None:
    """A level that was reached and not recorded is the first event of the next conversation."""
    _, events, _ = talk(Budget("plan", {"tokens": 100_000}, {"tokens": 82_000}), [answer(text=DRAFT)])
    assert crossed(events[:1]) == [("tokens", 80)]


def test_an_option_holds_in_place_of_the_plan() -> None:
    """Who starts a run decides; what was given when it was started holds until it is given anew."""
    limits = Limits(max_tokens=1000, max_turns=5)
    first = spending(limits, Settings(max_tokens=3000))
    assert (first.limits, first.notes) == ({"tokens": 3000, "turns": 5}, ())
    assert spending(limits, Settings(), first.recorded()).limits == first.limits
    assert spending(limits, Settings(max_tokens=500), first.recorded()).limits["tokens"] == 500
    assert spending(Limits(), Settings()).limits == {}
    again = spending_on_record({"budget": first.recorded()})
    assert (again.limits, again.prices) == (first.limits, first.prices)


def test_under_a_policy_or_a_lock_an_option_can_only_lower() -> None:
    """What was reviewed holds, and that is said; what the plan does not limit may be limited."""
    limits = spending(Limits(max_tokens=1000), Settings(max_tokens=3000, max_usd=1.0), is_bound=True)
    assert limits.limits == {"tokens": 1000, "usd": 1}
    expected = "--max-tokens 3000 is more than the 1000 tokens of the plan, which hold: "
    assert limits.notes == (expected + "under --policy and --locked only the plan can be given more",)
    assert spending(Limits(max_tokens=1000), Settings(max_tokens=300), is_bound=True).limits == {
        "tokens": 300
    }


def test_dollars_need_a_price() -> None:
    """A limit in dollars for a model without a price is an error before anything is asked."""
    limits = spending(Limits(max_usd=1.0), Settings())
    limits.refuse_unpriced(MODEL)
    with pytest.raises(InvalidInput, match="--llm-prices FILE or PLANRUN_LLM_PRICES"):
        limits.refuse_unpriced("house-model")
    spending(Limits(max_tokens=1), Settings()).refuse_unpriced("house-model")
