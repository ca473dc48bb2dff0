"""A conversation with a model: one question, its answer checked, and at most two repairs.

`generate`, `expand` and `replan` share it. It yields events as they happen, and None while an answer is
awaited, so that a command may sleep and a run continue.
"""

from __future__ import annotations

import json
import time

from planrun.llm import drafts
from planrun.llm.budget import Budget, Held, OverrunError, estimate
from planrun.llm.drafts import Fault, as_data
from planrun.llm.entries import key_of
from planrun.llm.fitting import MAX_CONTEXT_TOKENS, fitted, whole
from planrun.model import events as ev
from planrun.model.call import Request
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.call import Answer
    from planrun.model.events import Event

_NAMES = "look at the model's name (--llm-model or llm.model) and the address of the service (--llm-base-url)"
_NETWORK = (
    "look at the network, at proxies and at the address of the service (--llm-base-url, ANTHROPIC_BASE_URL)"
)
_KEY = "look at ANTHROPIC_API_KEY, and whether it is one for this service (--llm-base-url)"
_TIME = "planning_timeout says how long all calls of a planning may take"
_QUOTA = "the account has used up what it may use: look at its limits and credit"
_LATE = ("late", "limited", "overloaded")


def advised(answer: Answer) -> str:
    """Return the message of a failed call, with advice if available."""
    message = answer.message or answer.ending
    advice = _advice(answer)
    return f"{message}; {advice}" if advice else message


def _advice(answer: Answer) -> str:
    rule = answer.rule.partition(",")[0]
    if answer.ending == "unauthorized":
        return _KEY
    if rule in ("type:not_found_error", "status:404"):
        return _NAMES
    if rule.startswith("connection:"):
        return _NETWORK
    if rule.startswith("text:"):
        return _QUOTA
    return _TIME if answer.ending in _LATE else ""


if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, Literal

    from planrun.llm.drafts import Draft, Form
    from planrun.llm.fitting import Fitted, Piece
    from planrun.model.call import Answer, Purpose
    from planrun.model.planning import Llm
    from planrun.ports import Clock, Model

    Check = Callable[[Draft], "Accepted | Refused | list[Fault]"]
    Exchange = Generator["ev.Event | None", None, "Result"]

MAX_REPAIRS = 2
MAX_TURNS = 1 + MAX_REPAIRS + 1  # the question, its repairs, and one answer that was cut off
_REPAIR = "Your answer cannot be used. Mend exactly what these findings say, and answer in full once more:\n"


class Accepted(Record):
    """A draft that passed the check; `value` is the result made from it."""

    value: Any


class Refused(Record):
    """A draft that a policy forbids. `repairable`: a repair is asked for, as nothing has run yet."""

    refusals: tuple[dict[str, str], ...]  # step, rule, reason
    repairable: bool = False


class Question(Record):
    """A question: the stable system prompt, the pieces of the prompt, and the check of an answer, and its form."""

    purpose: Purpose
    system: tuple[str, ...]
    pieces: Sequence[Piece]
    check: Check
    form: Form = drafts.STEPS

    @property
    def prompt(self) -> str:
        """The whole of it, of which nothing is cut."""
        return whole(self.pieces)


class Result(Record):
    """How a conversation ended, in the words of PlanningEnded, or `accepted` with a value."""

    outcome: Literal["accepted", "denied", "invalid", "infeasible", "failed", "budget", "stopped"]
    value: Any = None
    message: str = ""
    rounds: int = 0
    faults: tuple[Fault, ...] = ()
    refusals: tuple[dict[str, str], ...] = ()


def fit(question: Question, llm: Llm, later: Sequence[dict[str, Any]] = ()) -> Fitted:
    """Return a question cut so that it fits into the context of `llm`, with the messages that come after it."""
    others = Request(
        purpose=question.purpose,
        model=llm.model,
        system=question.system,
        messages=tuple(later),
        max_tokens=0,
        schema=question.form.schema(),
    )
    return fitted(question.pieces, (llm.max_context_tokens or MAX_CONTEXT_TOKENS) - estimate(others))


class Conversation:
    """Calls `model` under the limits of `llm`; `call` is the number of the last call of the run."""

    def __init__(self, model: Model, llm: Llm, budget: Budget, clock: Clock, call: int = 0) -> None:
        self._model = model
        self._llm = llm
        self._budget = budget
        self._clock = clock
        self._call = call
        self._began = 0.0
        self._stopped = False
        self._cut: tuple[dict[str, Any], ...] = ()  # of the question, to fit into the context

    def stop(self) -> None:
        """End the conversation with its current state."""
        self._stopped = True
        self._model.stop()

    def ask(self, question: Question) -> Exchange:
        """Yield the events until the result is known, and return the result."""
        self._began = self._clock.monotonic()
        yield from self._budget.account.due(self._clock.stamp())
        purse = self._budget.part("planning", {"turns": MAX_TURNS, "time": self._llm.planning_timeout})
        messages: list[dict[str, Any]] = [{"role": "user", "content": question.prompt}]
        self._cut = ()
        longest, rounds, grown = self._llm.plan_max_tokens, 0, False
        while True:
            answer = yield from self._one_call(question, messages, longest, purse)
            if isinstance(answer, Result):
                return answer.but(rounds=rounds)
            if answer.ending == "truncated" and answer.stop_reason == "max_tokens" and not grown:
                longest, grown = longest * 2, True  # a truncated answer is never read
                continue
            if answer.ending != "answered":
                outcome: Any = "stopped" if answer.ending == "stopped" else "failed"
                message = answer.message if outcome == "stopped" else advised(answer)
                return Result(outcome=outcome, message=message or answer.ending, rounds=rounds)
            faults = self._judge(question, answer, is_last=rounds == MAX_REPAIRS)
            if isinstance(faults, Result):
                return faults.but(rounds=rounds)
            if rounds == MAX_REPAIRS:
                message = f"the model wrote nothing usable in {rounds + 1} tries: {faults[0].text}"
                return Result(outcome="invalid", message=message, rounds=rounds, faults=tuple(faults))
            rounds += 1
            messages = [
                messages[0],
                {"role": "assistant", "content": answer.text[: drafts.MAX_ANSWER]},
                {
                    "role": "user",
                    "content": _REPAIR + json.dumps(as_data(faults), ensure_ascii=False, indent=1),
                },
            ]

    def _judge(self, question: Question, answer: Answer, *, is_last: bool) -> Result | list[Fault]:
        draft = question.form.read(answer.text, self._llm.max_generated_steps)
        if isinstance(draft, list):
            return draft
        if draft.infeasible:
            return Result(outcome="infeasible", message=draft.infeasible)
        found = question.check(draft)
        if isinstance(found, Accepted):
            return Result(outcome="accepted", value=found.value)
        if isinstance(found, Refused) and found.repairable and not is_last:
            return [
                Fault(path=f"step {each['step']}", rule=each["rule"], message=each["reason"])
                for each in found.refusals
            ]
        if isinstance(found, Refused):
            named = "; ".join(f"{each['step']}: {each['reason']}" for each in found.refusals[:3])
            more = len(found.refusals) - 3
            named += f"; and {more} more" if more > 0 else ""
            return Result(outcome="denied", message=named, refusals=found.refusals)
        return found

    def _one_call(
        self, question: Question, messages: list[dict[str, Any]], longest: int, purse: Budget
    ) -> Generator[ev.Event | None, None, Answer | Result]:
        if problem := self._fit(question, messages):
            return problem
        request = Request(
            purpose=question.purpose,
            model=self._llm.model,
            system=question.system,
            messages=tuple(messages),
            max_tokens=longest,
            schema=question.form.schema(),
            effort=self._llm.effort,
            retries=self._llm.retries,
        )
        if self._llm.extra_body:
            request = request.but(extra_body=dict(self._llm.extra_body))
        held = yield from self._reserve(request, purse)
        if isinstance(held, Result):
            return held
        self._call += 1
        more: dict[str, Any] = {"cut": self._cut} if self._cut else {}
        yield ev.ModelAsked(
            at=self._clock.stamp(),
            call=self._call,
            purpose=request.purpose,
            model=request.model,
            request=key_of(request),
            reserved=held.recorded,
            **more,
        )
        request = request.but(seconds=max(0.001, min(self._llm.timeout, self._left())))
        self._model.ask(request if held.paid == request.paid else request.but(paid=held.paid))
        answer = None if not self._stopped else self._ended()
        while answer is None:
            answer = self._model.wait(0)
            for repeat in self._model.repeats():
                yield ev.ModelRepeated(at=self._clock.stamp(), call=self._call, **vars(repeat))
            if answer is None:
                yield None
        answered = self._answered(answer, purse.usage(request, answer))
        yield answered
        yield from purse.settle(held, answered)
        yield from self._elapsed(purse)
        return answer

    def _fit(self, question: Question, messages: list[dict[str, Any]]) -> Result | None:
        """Cut the question so that all that is sent fits into the context; returns why that is impossible."""
        found = fit(question, self._llm, messages[1:])
        if found.over:
            most = self._llm.max_context_tokens or MAX_CONTEXT_TOKENS
            message = (
                f"the question has {found.over:,} tokens more than `max_context_tokens` allows ({most:,}), "
                "without anything that may be cut"
            )
            return Result(outcome="failed", message=message)
        messages[0] = {"role": "user", "content": found.text}
        self._cut = found.cut
        return None

    def _reserve(self, request: Request, purse: Budget) -> Generator[ev.Event | None, None, Held | Result]:
        """Wait for free budget while other calls may release some; returns why there is none."""
        while True:
            yield from self._elapsed(purse)
            if self._left() <= 0:
                return Result(outcome="failed", message=self._late())
            try:
                return purse.reserve(request, self._clock.stamp())
            except OverrunError as over:
                if not over.waits:
                    if over.crossed:
                        yield over.crossed
                    return Result(outcome="budget", message=str(over))
            yield None

    def _elapsed(self, purse: Budget) -> list[ev.BudgetCrossed]:
        seconds = round(self._clock.monotonic() - self._began, 3)
        return purse.account.measure("time", seconds, self._clock.stamp())

    def _left(self) -> float:
        """Seconds until the end of the planning, or of the whole run."""
        ends = [self._began + self._llm.planning_timeout]
        if self._budget.until is not None:
            ends.append(self._budget.until)
        return min(ends) - self._clock.monotonic()

    def _late(self) -> str:
        if self._clock.monotonic() - self._began >= self._llm.planning_timeout:
            return f"planning took longer than {self._llm.planning_timeout:g} s"
        return "the deadline of the run leaves no time to ask"

    def _ended(self) -> Answer | None:
        self._model.stop()
        return self._model.wait(None)

    def _answered(self, answer: Answer, usage: dict[str, float]) -> ev.ModelAnswered:
        known = ("model", "request_id", "message", "rule", "is_estimate", "replayed")
        given = {name: value for name in known if (value := getattr(answer, name))}  # always in this order
        return ev.ModelAnswered(
            at=self._clock.stamp(),
            call=self._call,
            ending=answer.ending,
            usage=usage,
            duration=round(answer.duration, 3),
            attempts=answer.attempts,
            **given,
        )


_PAUSE = 0.02  # seconds between two polls for an answer that takes seconds


def hold(talk: Conversation, asking: Exchange, on_event: Callable[[Event], None]) -> Result:
    """Run the exchange `asking` of a conversation to its end; calls `on_event` with each event.

    A KeyboardInterrupt ends it and is raised again.
    """
    try:
        while True:
            event = next(asking)
            if event is None:
                time.sleep(_PAUSE)
            else:
                on_event(event)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    except KeyboardInterrupt:
        talk.stop()
        raise
