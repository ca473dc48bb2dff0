"""Nobody spends more than was reserved: random schedules of calls side by side, killed and resumed at any moment.

Each schedule has limits of tokens, dollars and turns, workers in a run or in steps of it, and a service that bills
what it likes within what a call may take. Whatever happens is written to a ledger as planrun does; a kill forgets
everything else, and what goes on reads the ledger. Every other schedule is a real `Conversation`, cut off at any of its
events; some of the others run in real threads. The service keeps its own book, which the ledger is held against.
"""

from __future__ import annotations

import argparse
import random
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from planrun.llm.budget import LEVELS, Account, Budget, Held, OverrunError
from planrun.llm.fitting import Piece
from planrun.llm.prices import open_prices
from planrun.model import events as ev
from planrun.model.call import Answer, Repeat, Request, Usage
from planrun.model.plan import Plan
from planrun.model.planning import Llm, amount
from planrun.model.state import RunState
from planrun.planner.conversation import Accepted, Conversation, Question

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCHEDULES = 1000
MODEL = "claude-opus-5-5"
AT = "2026-01-31T09:30:00.000Z"
RESOURCES = ("tokens", "usd", "turns")
SLACK = 1e-6
_PRICES = open_prices()


@dataclass
class Service:
    """Who bills: at least nothing, at most what a call may take; `book` is what it billed."""

    chance: random.Random
    book: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0.0))
    attempts: int = 0

    def bill(self, request: Request, prompt: int) -> Answer:
        """Answer a call: wholly told, told as an upper bound, or not told at all."""
        paid = self.chance.randint(1, request.paid)
        self.attempts += paid
        share = self.chance.choice((0.0, 0.1, 0.5, 0.9, 1.0, 1.0))
        usage = Usage(
            input_tokens=int(prompt * paid * self.chance.random()),
            output_tokens=int(request.max_tokens * paid * share),
        )
        self.book["tokens"] += usage.total
        self.book["usd"] += _PRICES.cost(request.model, usage) or 0.0
        self.book["turns"] += 1
        how = self.chance.random()
        if how < 0.7:
            return Answer(ending="answered", text="no JSON", usage=usage, model=MODEL)
        if how < 0.85:
            most = usage.but(output_tokens=request.max_tokens * paid)
            return Answer(ending="unavailable", usage=most, is_estimate=True, message="broken")
        return Answer(ending="unavailable", is_estimate=True, message="gone")


@dataclass
class Book:
    """The ledger of a run, and what it comes to when somebody reads it."""

    limits: dict[str, float]
    events: list[ev.Event] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)

    def write(self, event: ev.Event) -> None:
        """Append an event."""
        with self.lock:
            self.events.append(event)

    def state(self) -> RunState:
        """Read it as a resume does."""
        plan = Plan(name="proof", file="plan.yml", digest="0" * 64, steps=())
        state = RunState(plan)
        for event in self.events:
            state.apply(event)
        return state

    def budget(self) -> Budget:
        """Return the budget of a run that goes on, and tell what planrun had no time to tell."""
        planning = self.state().planning
        used = {name: planning.used(name) for name in RESOURCES} if planning else {}
        budget = Budget("plan", self.limits, used, planning.crossed if planning else (), _PRICES)
        for event in budget.account.due(AT):
            self.write(event)
        return budget


class Worker:
    """Makes calls until none fits, as planrun does: reserve, write, send, write, settle, write."""

    def __init__(self, book: Book, service: Service, budget: Budget, number: int) -> None:
        self.book = book
        self.service = service
        self.budget = budget
        self.number = number
        self.calls = 0

    def work(self) -> Iterator[None]:
        """Do one thing after the other; after each yield somebody else may be at work, or nobody any more."""
        chance = self.service.chance
        while True:
            request = request_of(chance)
            try:
                held = self.budget.reserve(request, AT)
            except OverrunError as over:
                yield
                if over.crossed:
                    self.book.write(over.crossed)
                if over.waits:
                    continue
                return
            yield
            self.calls += 1
            call = self.number * 100_000 + len(self.book.events) * 10 + self.calls
            self.book.write(
                ev.ModelAsked(
                    at=AT, call=call, purpose="replan", model=MODEL, request="", reserved=held.recorded
                )
            )
            yield
            answer = self.service.bill(request.but(paid=held.paid), prompt_of(request))
            yield
            answered = ev.ModelAnswered(
                at=AT,
                call=call,
                ending=answer.ending,
                usage=self.budget.usage(request, answer),
                is_estimate=answer.is_estimate,
            )
            self.book.write(answered)
            yield
            for event in self.budget.settle(held, answered):
                if event.scope != "call":
                    self.book.write(event)
                yield


def request_of(chance: random.Random) -> Request:
    """Return a request of any size."""
    text = "x" * chance.randint(10, 6000)
    return Request(
        purpose="replan",
        model=MODEL,
        system=(text,),
        messages=(),
        max_tokens=chance.choice((100, 1000, 4000)),
    )


def prompt_of(request: Request) -> int:
    """Return how many tokens the service counts at most: never more than half of the bytes."""
    return len(request.system[0]) // 2


@dataclass
class Findings:
    """What was seen over all schedules, and what is wrong."""

    schedules: int = 0
    kills: int = 0
    calls: int = 0
    crossings: int = 0
    nearest: float = 0.0  # the largest part of a limit that was billed
    wrong: list[str] = field(default_factory=list)

    def judge(self, name: str, book: Book, service: Service, limits: Sequence[dict[str, float]]) -> None:
        """Hold a ledger against the service's own book."""
        planning = book.state().planning
        crossed = [
            event for event in book.events if isinstance(event, ev.BudgetCrossed) and event.scope != "call"
        ]
        self.crossings += len(crossed)
        self.calls += len(planning.calls) if planning else 0
        for resource in RESOURCES:
            limit = max(each[resource] for each in limits)
            billed = service.book[resource]
            self.nearest = max(self.nearest, billed / limit)
            if billed > limit + SLACK:
                self.wrong.append(f"{name}: {billed:g} {resource} billed, {limit:g} allowed")
            counted = planning.used(resource) if planning else 0.0
            if counted < billed - SLACK:
                self.wrong.append(f"{name}: {billed:g} {resource} billed, {counted:g} counted")
        keys = [
            (each.scope, each.step, each.resource, each.level, each.limit)
            for each in crossed
            if not each.step
        ]
        keys = [key for key in keys if key[0] == "plan"]
        if len(keys) != len(set(keys)):
            self.wrong.append(f"{name}: a level is told twice")
        for resource, limit in book.limits.items():
            told = {key[3] for key in keys if key[2] == resource and key[4] == limit}
            used = planning.used(resource) if planning else 0.0
            due = {level for level in LEVELS if (used + 1e-9) * 100 >= level * limit}
            if not due <= told:
                self.wrong.append(f"{name}: {used:g} of {limit:g} {resource} used, told {sorted(told)}")


def limits_of(chance: random.Random) -> dict[str, float]:
    """Return limits of which any may be the narrow one."""
    return {
        "tokens": float(chance.choice((5_000, 20_000, 60_000, 1_000_000))),
        "usd": chance.choice((0.05, 0.3, 2.0, 50.0)),
        "turns": float(chance.choice((3, 10, 40))),
    }


def lives(chance: random.Random, book: Book, seen: Findings, limits: list[dict[str, float]]) -> Iterator[int]:
    """Yield how many events each life of a run has; the last one has no end. Somebody may give it more in between."""
    for _ in range(chance.randint(0, 3)):
        yield chance.randint(1, 60)
        seen.kills += 1
        if chance.random() < 0.3:
            name = chance.choice(RESOURCES)
            book.limits = {**book.limits, name: book.limits[name] * 2}
            limits.append(book.limits)
    yield 1 << 30


def side_by_side(seed: str, seen: Findings, *, threads: bool) -> None:
    """Some workers with one budget, interleaved at random or in real threads."""
    chance = random.Random(seed)
    book, service = Book(limits_of(chance)), Service(random.Random(f"{seed} bill"))
    limits = [book.limits]
    for left in lives(chance, book, seen, limits):
        budget = book.budget()
        parts = [
            budget.part("step", {"tokens": book.limits["tokens"] / 2}, f"s{number}")
            if chance.random() < 0.4
            else budget
            for number in range(chance.randint(1, 6))
        ]
        workers = [Worker(book, service, part, number) for number, part in enumerate(parts)]
        if threads and left > 1000:
            _in_threads(workers)
        else:
            _interleaved(workers, chance, left)
    book.budget()  # the next start tells what this one had no time to tell
    seen.judge(seed, book, service, limits)


def _interleaved(workers: Sequence[Worker], chance: random.Random, left: int) -> None:
    going = [worker.work() for worker in workers]
    while going and left:
        left -= 1
        one = chance.choice(going)
        try:
            next(one)
        except StopIteration:
            going.remove(one)


def _in_threads(workers: Sequence[Worker]) -> None:
    def run(worker: Worker) -> None:
        for _ in worker.work():
            pass

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Clock:
    """A clock that stands still: time has tests of its own."""

    def stamp(self) -> str:
        """Return a moment."""
        return AT

    def monotonic(self) -> float:
        """Return a moment."""
        return 0.0


class Billing:
    """A model whose answers the service bills."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.request: Request | None = None

    def ask(self, request: Request) -> None:
        """Take a question."""
        self.request = request

    def repeats(self) -> list[Repeat]:
        """Return none."""
        return []

    def wait(self, timeout: float | None) -> Answer | None:
        """Return the answer."""
        del timeout
        assert self.request is not None
        request, self.request = self.request, None
        return self.service.bill(request, sum(map(len, request.system)) // 2)

    def stop(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is open."""


def conversations(seed: str, seen: Findings) -> None:
    """Real conversations, one after the other, each cut off at any event."""
    chance = random.Random(seed)
    book, service = Book(limits_of(chance)), Service(random.Random(f"{seed} bill"))
    limits = [book.limits]
    llm = Llm(model=MODEL, plan_max_tokens=chance.choice((100, 1000, 4000)))
    for left in lives(chance, book, seen, limits):
        _talk(book, service, llm, min(left, 400))
    book.budget()
    seen.judge(seed, book, service, limits)


def _talk(book: Book, service: Service, llm: Llm, left: int) -> None:
    """Hold conversations until nothing may be asked, or until planrun is killed."""
    budget, chance = book.budget(), service.chance
    while left > 0:
        question = Question(
            purpose="replan",
            system=("x" * chance.randint(10, 4000),),
            pieces=(Piece(text="p"),),
            check=lambda draft: Accepted(value=draft),
        )
        planning = book.state().planning
        calls = max((call.asked.call for call in planning.calls), default=0) if planning else 0
        talk = Conversation(Billing(service), llm, budget, Clock(), call=calls).ask(question)
        while True:
            left -= 1
            if not left:
                return
            try:
                event = next(talk)
            except StopIteration as end:
                if end.value.outcome == "budget":
                    return
                break
            if isinstance(event, ev.BudgetCrossed) and event.scope in ("call", "planning"):
                continue
            if event is not None:
                book.write(event)


def schedule(number: int, seed: int, seen: Findings) -> None:
    """Run one schedule of a kind that its number names."""
    name = f"{seed}.{number}"
    seen.schedules += 1
    if number % 2:
        conversations(name, seen)
    else:
        side_by_side(name, seen, threads=number % 8 == 0)


def _reserves_nothing(self: Account, wanted: Any, at: str, better: Any = None) -> Any:
    held = _RESERVE(self, wanted, at, better)
    with self._lock:
        for account in self._chain():
            for name, value in held.amounts.items():
                account._held[name] -= value
    held.amounts = dict.fromkeys(held.amounts, 0.0) | {"tokens": held.amounts["tokens"]}
    return held


def _forgets_the_dead(answered: Any, reserved: Any, resource: str) -> float:
    return 0.0 if answered is None else amount(answered, reserved, resource)


def _believes_what_nobody_told(answered: Any, reserved: Any, resource: str) -> float:
    usage = answered.usage if answered else None
    if usage is None:
        return float(reserved.get(resource, 0))
    return float(
        sum(value for name, value in usage.items() if name != "usd")
        if resource == "tokens"
        else usage.get(resource, 0)
    )


def _forgets_what_was_told(self: Budget, scope: str, *given: Any, **named: Any) -> None:
    self.account = Account(scope, *given[:2])
    self.prices, self.until = named.get("prices", given[3] if len(given) > 3 else None), None


def _tells_what_it_skipped_not(self: Account, name: str, levels: Any) -> list[int]:
    told = self.reported.setdefault((name, self.limits[name]), set())
    found = [level for level in list(levels)[-1:] if level > max(told, default=0)]
    told.update(found)
    return found


def _reserves_one(self: Budget, request: Request, at: str) -> Held:
    held = _RESERVE_FOR(self, request.but(paid=1), at)
    held.paid = 2
    return held


_RESERVE, _RESERVE_FOR = Account.reserve, Budget.reserve
FAULTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "reserves nothing": (("planrun.llm.budget.Account.reserve", _reserves_nothing),),
    "forgets calls of a planrun that was killed": (("planrun.model.planning.amount", _forgets_the_dead),),
    "takes untold usage for none": (
        ("planrun.model.planning.amount", _believes_what_nobody_told),
        ("planrun.llm.budget.amount", _believes_what_nobody_told),
    ),
    "forgets what it told": (("planrun.llm.budget.Budget.__init__", _forgets_what_was_told),),
    "tells the highest level alone": (("planrun.llm.budget.Account._untold", _tells_what_it_skipped_not),),
    "never catches up": (("planrun.llm.budget.Account.due", lambda *_: []),),
    "pays for two attempts and reserves one": (("planrun.llm.budget.Budget.reserve", _reserves_one),),
}
"""What may be planted, as what is put in the place of planrun's own code."""


def proof(schedules: int, seed: int, fault: str = "") -> Findings:
    """Run schedules, with a fault where one is named."""
    seen = Findings()
    with ExitStack() as stack:
        for target, replacement in FAULTS.get(fault, ()):
            stack.enter_context(patch(target, replacement))
        for number in range(schedules):
            schedule(number, seed, seen)
    return seen


def is_caught(fault: str, seed: int, schedules: int = 60) -> bool:
    """Say whether a planted fault is seen."""
    return bool(proof(schedules, seed, fault).wrong)


def main(argv: Sequence[str]) -> int:
    """Print the figures of the long form; exit code 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m proofs budgets", description=__doc__)
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--fault", choices=sorted(FAULTS), default="")
    given = parser.parse_args(argv)
    seen = proof(given.schedules, given.seed, given.fault)
    print(
        f"seed {given.seed}: {seen.schedules} schedules, {seen.calls} calls, {seen.kills} kills and resumes"
    )
    print(f"{seen.crossings} levels told; at most {seen.nearest:.1%} of a limit was billed")
    for problem in seen.wrong[:20]:
        print(f"WRONG {problem}")
    print(f"{len(seen.wrong)} wrong")
    return 1 if seen.wrong else 0
