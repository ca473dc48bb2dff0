"""Budgets: what is reserved, what is settled, what is told, and that calls in parallel never spend more together."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.errors import InternalError
from planrun.llm.budget import LEVELS, Account, Budget, OverrunError, estimate
from planrun.llm.prices import open_prices
from planrun.model import events as ev
from planrun.model.call import Answer, Request, Usage

if TYPE_CHECKING:
    from planrun.llm.budget import Held

AT = "2026-01-31T09:30:00.000Z"
MODEL = "claude-opus-5-5"  # 4 USD in, 20 USD out, 5 USD kept


def request(text: str = "x" * 2000, longest: int = 1000) -> Request:
    """Return a request of 1,200 tokens and an answer of at most `longest`."""
    return Request(
        purpose="replan",
        model=MODEL,
        system=(text,),
        messages=(),
        max_tokens=longest,
        paid=1,
    )


def answered(**usage: float) -> ev.ModelAnswered:
    """Return the end of a call."""
    return ev.ModelAnswered(at=AT, call=1, ending="answered", usage=usage)


def levels(events: list[ev.BudgetCrossed], scope: str = "plan") -> list[int]:
    """Return the levels that are told of a scope."""
    return [event.level for event in events if event.scope == scope]


def test_what_a_call_can_take_is_held_before_it_is_made() -> None:
    """Half of the bytes and a frame, and the longest answer; in dollars all of the prompt as if it were kept."""
    budget = Budget("plan", {"tokens": 10_000, "usd": 1, "turns": 3}, {}, prices=open_prices())
    held = budget.reserve(request(), AT)
    assert estimate(request()) == 1200
    assert held.recorded == {
        "tokens": 2200,
        "usd": pytest.approx(0.026),
    }  # 1200 at 5, 1000 at 20 for a million
    assert [budget.account.held(name) for name in ("tokens", "usd", "turns")] == [2200, 0.026, 1]


def test_what_a_call_did_not_take_is_given_back() -> None:
    """Real usage counts once the service has told it."""
    budget = Budget("plan", {"tokens": 10_000}, {}, prices=open_prices())
    held = budget.reserve(request(), AT)
    fields = budget.usage(
        request(), Answer(ending="answered", usage=Usage(input_tokens=500, output_tokens=100))
    )
    assert fields == {"input_tokens": 500, "output_tokens": 100, "usd": pytest.approx(0.004)}
    assert budget.settle(held, answered(**fields)) == []
    assert (budget.account.used("tokens"), budget.account.held("tokens")) == (600, 0)
    with pytest.raises(InternalError, match="twice"):
        budget.settle(held, answered(**fields))


def test_a_call_that_does_not_fit_is_not_made() -> None:
    """The error says what is used, what is left out of it, and carries the event, once."""
    budget = Budget("plan", {"tokens": 3000}, {"tokens": 1000})
    with pytest.raises(OverrunError, match="1000 of 3000 tokens are used, and a call may take 2200") as over:
        budget.reserve(request(), AT)
    assert over.value.crossed == ev.BudgetCrossed(
        at=AT, scope="plan", resource="tokens", level=100, used=1000, limit=3000
    )
    with pytest.raises(OverrunError) as again:
        budget.reserve(request(), AT)
    assert again.value.crossed is None
    assert budget.account.held("tokens") == 0


def test_a_call_waits_for_what_others_may_give_back() -> None:
    """Only what is settled is gone for good; what is held by calls under way may come back."""
    budget = Budget("plan", {"tokens": 4000}, {})
    first = budget.reserve(request(), AT)
    with pytest.raises(OverrunError) as over:
        budget.reserve(request(), AT)
    assert over.value.waits
    assert over.value.crossed is None
    budget.settle(first, answered(input_tokens=100))
    assert budget.reserve(request(), AT).is_open


def test_what_the_service_did_not_tell_counts_as_reserved() -> None:
    """A call without known usage counts for all that was held for it."""
    budget = Budget("plan", {"tokens": 10_000, "turns": 5}, {})
    held = budget.reserve(request(), AT)
    budget.settle(held, ev.ModelAnswered(at=AT, call=1, ending="unavailable", usage={}, is_estimate=True))
    assert (budget.account.used("tokens"), budget.account.used("turns")) == (2200, 1)


def test_80_95_and_100_per_cent_are_told_once_each() -> None:
    """Whatever is jumped over is told, too; nothing is told twice."""
    budget = Budget("plan", {"tokens": 10_000}, {})
    told = []
    for spent in (7900, 100, 100, 1300, 0, 700):
        held = budget.reserve(request("", 1), AT)
        told.append(levels(budget.settle(held, answered(input_tokens=spent))))
    assert told == [[], [80], [], [], [], [95, 100]]


def test_levels_on_record_are_not_told_again() -> None:
    """A budget that goes on knows what was told of the same limit, and tells what planrun had no time to record."""
    before = [ev.BudgetCrossed(at=AT, scope="plan", resource="tokens", level=80, used=810, limit=1000)]
    budget = Budget("plan", {"tokens": 1000}, {"tokens": 960}, before)
    assert levels(budget.account.due(AT)) == [95]
    assert levels(budget.account.due(AT)) == []
    larger = Budget("plan", {"tokens": 1100}, {"tokens": 960}, before)
    assert levels(larger.account.due(AT)) == [80]  # of another limit nobody was told


def test_a_second_attempt_that_costs_is_paid_for_where_there_is_room() -> None:
    """Twice as much is held; near a limit only one attempt may cost something."""
    budget = Budget("plan", {"tokens": 6000, "turns": 9}, {})
    first = budget.reserve(request().but(paid=2), AT)
    assert (first.paid, first.amounts) == (2, {"tokens": 4400, "turns": 1})
    budget.settle(first, answered(input_tokens=3000))
    second = budget.reserve(request().but(paid=2), AT)
    assert (second.paid, second.amounts["tokens"]) == (1, 2200)
    assert Budget("plan", {}, {}).reserve(request().but(paid=2, retries=0), AT).paid == 1


def test_a_part_pays_from_the_whole() -> None:
    """A call needs room in its step, its planning and its run; each tells of its own levels."""
    run = Budget("plan", {"tokens": 5000}, {})
    step = run.part("step", {"tokens": 3000}, "fix")
    held = step.reserve(request(), AT)
    crossed = step.settle(held, answered(input_tokens=2500, output_tokens=400))
    assert [(event.scope, event.step, event.level) for event in crossed] == [
        ("step", "fix", 80),
        ("step", "fix", 95),
    ]
    with pytest.raises(OverrunError, match="2900 of 3000 tokens") as over:
        step.reserve(request(), AT)
    assert over.value.crossed
    assert over.value.crossed.scope == "step"
    other = run.part("step", {"tokens": 3000}, "test")
    with pytest.raises(OverrunError, match="2900 of 5000 tokens"):
        other.reserve(request(), AT)
    assert other.reserve(request("", 500), AT).is_open


def test_a_long_answer_is_told_of_its_call() -> None:
    """An answer that comes near the longest one allowed crosses the budget of the call."""
    budget = Budget("plan", {}, {})
    held = budget.reserve(request(), AT)
    assert levels(budget.settle(held, answered(input_tokens=100, output_tokens=960)), "call") == [80, 95]


def test_dollars_are_not_reserved_for_a_model_without_a_price() -> None:
    """Nothing is guessed: tokens are counted, dollars are not, and where they are limited nothing is asked."""
    odd = request().but(model="somebody-elses")
    budget = Budget("plan", {"tokens": 10_000}, {}, prices=open_prices())
    assert budget.reserve(odd, AT).recorded == {"tokens": 2200}
    with pytest.raises(OverrunError, match='what "somebody-elses" costs is not known'):
        Budget("plan", {"usd": 5}, {}, prices=open_prices()).reserve(odd, AT)


@given(
    limit=st.integers(100, 5000),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 900), st.floats(0, 1)), max_size=60),
)
def test_what_is_spent_and_held_never_exceeds_the_limit(
    limit: int, steps: list[tuple[int, int, float]]
) -> None:
    """Any order of reservations and ends, in three parts of one account: as long as calls keep to what is held."""
    run = Account("plan", {"tokens": limit})
    parts = [Account("step", {"tokens": limit // 2}, whole=run, step=str(name)) for name in range(3)]
    open_calls: list[tuple[Account, Held]] = []
    crossed: list[ev.BudgetCrossed] = []
    for part, wanted, share in steps:
        if share < 0.5 and open_calls:
            account, held = open_calls.pop(part % len(open_calls))
            crossed += account.settle(held, {"tokens": held.amounts["tokens"] * share * 2}, AT)
        else:
            try:
                open_calls.append((parts[part], parts[part].reserve({"tokens": wanted}, AT)))
            except OverrunError as over:
                crossed += [over.crossed] if over.crossed else []
        assert run.used("tokens") + run.held("tokens") <= limit + 1e-6
        assert run.held("tokens") == sum(held.amounts["tokens"] for _, held in open_calls)
        assert all(part.used("tokens") + part.held("tokens") <= limit // 2 + 1e-6 for part in parts)
    named = [(event.scope, event.step, event.level) for event in crossed]
    assert len(named) == len(set(named))
    of_run = {event.level for event in crossed if event.scope == "plan"}
    reached = {level for level in LEVELS if (run.used("tokens") + 1e-9) * 100 >= level * limit}
    assert reached <= of_run


def test_threads_spend_no_more_than_there_is() -> None:
    """Sixteen threads at one account: together they take what fits and not one call more."""
    budget = Budget("plan", {"tokens": 100_000}, {})
    start = Barrier(16)
    crossed: list[ev.BudgetCrossed] = []
    made: list[int] = []

    def work() -> None:
        start.wait()
        part = budget.part("step", {})
        while True:
            try:
                held = part.reserve(request("", 800), AT)  # 1,000 tokens
            except OverrunError as over:
                crossed.extend([over.crossed] if over.crossed else [])
                if not over.waits:
                    return
                continue
            made.append(1)
            crossed.extend(part.settle(held, answered(input_tokens=200, output_tokens=500)))

    threads = [Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 142  # 700 each: the last that fits begins at 98,700
    assert (budget.account.used("tokens"), budget.account.held("tokens")) == (99_400, 0)
    assert sorted(levels(crossed)) == [80, 95, 100]


def test_time_is_measured() -> None:
    """Seconds are not added up, and go on counting in a part alone."""
    run = Budget("plan", {"time": 100}, {})
    part = run.part("planning", {"time": 10})
    told: list[Any] = [
        levels(part.account.measure("time", seconds, AT), "planning") for seconds in (7, 8.5, 8, 12)
    ]
    assert told == [[], [80], [], [95, 100]]
    assert run.account.used("time") == 0


def test_an_answer_is_not_made_cheap_by_the_name_of_another_model() -> None:
    """The service says which model answered; the dearer of that one and of the one that was asked counts."""
    budget = Budget("plan", {}, {}, prices=open_prices())
    usage = Usage(input_tokens=1_000_000)
    costs = {
        name: budget.usage(request(), Answer(ending="answered", model=name, usage=usage))["usd"]
        for name in (MODEL, "claude-haiku-5-5", "unknown")
    }
    assert len(set(costs.values())) == 1, costs
