"""What models may use up: reserved before a call, settled after it, reported at 80, 95 and 100 per cent.

Accounts are nested: a run has one, each planning or step a part of it. Tokens, turns (calls) and US dollars are added
up, seconds are measured. A call is made only when every account that pays for it has enough left for the most it can
take, beside all calls that are in flight; so calls in parallel never spend more together than was reserved for them.
"""

from __future__ import annotations

import json
from threading import Lock

from planrun.errors import InternalError
from planrun.model import events as ev
from planrun.model.planning import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planrun.llm.prices import PriceTable
    from planrun.model.call import Answer, Request

LEVELS = (80, 95, 100)  # per cent
UNITS = {"tokens": "tokens", "usd": "USD", "turns": "turns", "time": "seconds"}
_BYTES_A_TOKEN = (
    2  # of English and of code a token has three or more; the service says afterwards how many they were
)
_FRAME = 200  # tokens that a service may add to any request, such as what it makes of a schema
_SLACK = 1e-9  # of sums of dollars, which are in steps of a billionth


class OverrunError(Exception):
    """A budget has not enough left for the next call.

    `crossed` is the event that says so, None when it was recorded before. `waits`: there may be enough once calls in
    flight have ended.
    """

    def __init__(self, message: str, crossed: ev.BudgetCrossed | None, *, waits: bool = False) -> None:
        super().__init__(message)
        self.crossed = crossed
        self.waits = waits


class Held:
    """What is reserved for one call, until it is settled."""

    __slots__ = ("amounts", "is_open", "longest", "paid")

    def __init__(self, amounts: Mapping[str, float]) -> None:
        self.amounts = dict(amounts)
        self.longest = 0  # tokens of an answer
        self.paid = 1  # how many attempts may cost something
        self.is_open = True

    @property
    def recorded(self) -> dict[str, float]:
        """What the ledger says of it."""
        return {name: value for name, value in self.amounts.items() if name != "turns"}


class Account:
    """Limits and what is used of them; what is spent from a part is spent from the whole, too.

    `reported`: levels that are on record, by resource and limit; a changed limit is reported again. All
    accounts that belong together share one lock, and may be used by many threads.
    """

    def __init__(
        self,
        scope: str,
        limits: Mapping[str, float],
        used: Mapping[str, float] | None = None,
        whole: Account | None = None,
        step: str = "",
    ) -> None:
        self.scope = scope
        self.step = step  # whose it is, where it is that of a step
        self.limits = dict(limits)
        self.reported: dict[tuple[str, float], set[int]] = {}
        self._used = dict(used or {})
        self._held: dict[str, float] = {}
        self._whole = whole
        self._lock: Lock = whole._lock if whole else Lock()

    def used(self, name: str) -> float:
        """How much of a resource is used up by what has ended."""
        return self._used.get(name, 0.0)

    def held(self, name: str) -> float:
        """How much of a resource is reserved for calls under way."""
        return self._held.get(name, 0.0)

    def left(self, name: str) -> float | None:
        """How much of a resource may still be reserved, in all accounts that pay for it; None: without limit."""
        found = [
            account.limits[name] - account.used(name) - account.held(name)
            for account in self._chain()
            if name in account.limits
        ]
        return min(found) if found else None

    def use(self, used: Mapping[str, float]) -> None:
        """Count what was used before in this account alone: the whole knows it already."""
        with self._lock:
            self._used = {name: self.used(name) + value for name, value in used.items()}

    def reserve(
        self, wanted: Mapping[str, float], at: str, better: Mapping[str, float] | None = None
    ) -> Held:
        """Hold what a call takes at most, in every account that pays for it; raises OverrunError.

        `better`: what is held instead where the budget has enough left for that.
        """
        with self._lock:
            if better is not None and all(account._has_room(better) for account in self._chain()):
                wanted = better
            for account in self._chain():
                account._refuse(wanted, at)
            for account in self._chain():
                for name, value in wanted.items():
                    account._held[name] = account.held(name) + value
        return Held(wanted)

    def settle(self, held: Held, spent: Mapping[str, float], at: str) -> list[ev.BudgetCrossed]:
        """Give back what was held and count what was spent instead; returns which levels that crosses."""
        with self._lock:
            if not held.is_open:
                raise InternalError("a reservation was settled twice")
            held.is_open = False
            for account in self._chain():
                for name, value in held.amounts.items():
                    account._held[name] = account.held(name) - value
                for name, value in spent.items():
                    account._used[name] = account.used(name) + value
            return [event for account in self._chain() for event in account._crossed(at)]

    def measure(self, name: str, value: float, at: str) -> list[ev.BudgetCrossed]:
        """Say how much is used of what is measured and not added up; returns which levels that crosses."""
        with self._lock:
            self._used[name] = max(value, self.used(name))
            return self._crossed(at)

    def due(self, at: str) -> list[ev.BudgetCrossed]:
        """Return what is crossed and on no record, as when planrun was killed before it was written."""
        with self._lock:
            return [event for account in self._chain() for event in account._crossed(at)]

    def _chain(self) -> Iterator[Account]:
        account: Account | None = self
        while account is not None:
            yield account
            account = account._whole

    def _has_room(self, wanted: Mapping[str, float]) -> bool:
        return all(
            self.used(name) + self.held(name) + wanted.get(name, 0.0) <= limit + _SLACK
            for name, limit in self.limits.items()
            if wanted.get(name)
        )

    def _refuse(self, wanted: Mapping[str, float], at: str) -> None:
        for name, limit in self.limits.items():
            value, used = wanted.get(name, 0.0), self.used(name)
            if not value or used + self.held(name) + value <= limit + _SLACK:
                continue
            message = f"{_shown(used)} of {_shown(limit)} {UNITS[name]} are used, and a call may take {_shown(value)}"
            if used + value <= limit + _SLACK:
                raise OverrunError(f"{message} beside those under way", None, waits=True)
            events = [self._crossing(name, level, at) for level in self._untold(name, (100,))]
            raise OverrunError(message, events[0] if events else None)

    def _crossed(self, at: str) -> list[ev.BudgetCrossed]:
        found = []
        for name, limit in self.limits.items():
            used = self.used(name)
            reached = [level for level in LEVELS if (used + _SLACK) * 100 >= level * limit]
            found += [self._crossing(name, level, at) for level in self._untold(name, reached)]
        return found

    def _untold(self, name: str, levels: Iterable[int]) -> list[int]:
        """Return the levels that were not reported yet, and mark them as reported."""
        reported = self.reported.setdefault((name, self.limits[name]), set())
        found = [level for level in levels if level not in reported]
        reported.update(found)
        return found

    def _crossing(self, name: str, level: int, at: str) -> ev.BudgetCrossed:
        used = round(self.used(name), 9)
        return ev.BudgetCrossed(
            at=at,
            scope=self.scope,
            resource=name,
            level=level,
            used=used,
            limit=self.limits[name],
            **({"step": self.step} if self.step else {}),
        )


class Budget:
    """An account in the terms of requests and answers; `used` and `reported` are what the ledger says of earlier calls.

    `prices` is what tokens cost; without it dollars are neither reserved nor counted.
    """

    def __init__(
        self,
        scope: str,
        limits: Mapping[str, float],
        used: Mapping[str, float],
        reported: Iterable[ev.BudgetCrossed] = (),
        prices: PriceTable | None = None,
    ) -> None:
        self.account = Account(scope, limits, used)
        for event in reported:
            if event.scope == scope:
                self.account.reported.setdefault((event.resource, event.limit), set()).add(event.level)
        self.prices = prices
        self.until: float | None = None  # when the run is to be over, on the clock that never jumps

    def part(self, scope: str, limits: Mapping[str, float], step: str = "") -> Budget:
        """Return a budget of its own within this one."""
        found = Budget(scope, {}, {}, prices=self.prices)
        found.account = Account(scope, limits, whole=self.account, step=step)
        found.until = self.until
        return found

    def reserve(self, request: Request, at: str, tokens: int = 0) -> Held:
        """Hold what a call takes at most; raises OverrunError when the budget has too little left.

        It holds two attempts if the budget has enough left: one may break off after it has cost something. `tokens`:
        of the request, where the service has counted most of it before; 0: they are estimated.
        """
        tokens = tokens or estimate(request)
        wanted: dict[str, float] = {"tokens": float(tokens + request.max_tokens), "turns": 1.0}
        price = self.prices.most(request.model, tokens, request.max_tokens) if self.prices else None
        if price is not None:
            wanted["usd"] = price
        elif any("usd" in account.limits for account in self.account._chain()):
            raise OverrunError(f'what "{request.model}" costs is not known, and USD are limited', None)
        paid = request.paid if request.retries else 1
        better = {name: value * (1 if name == "turns" else paid) for name, value in wanted.items()}
        held = self.account.reserve(wanted, at, better)
        held.longest = request.max_tokens
        held.paid = paid if held.amounts["tokens"] > wanted["tokens"] else 1
        return held

    def usage(self, request: Request, answer: Answer) -> dict[str, float]:
        """Return what a call used as the ledger has it, with its price where that is known."""
        fields = as_fields(answer)
        if fields and self.prices:
            # The dearer of both: a service must not make it cheap by another name.
            costs = [self.prices.cost(model, answer.usage) for model in (answer.model, request.model)]
            if known := [cost for cost in costs if cost is not None]:
                return {**fields, "usd": max(known)}
        return fields

    def settle(self, held: Held, answered: ev.ModelAnswered) -> list[ev.BudgetCrossed]:
        """Give back what a call did not use; returns which levels were crossed by it, its own included."""
        spent = {"turns": 1.0}
        for name in ("tokens", "usd"):
            spent[name] = amount(answered, held.recorded, name)
        crossed = self.account.settle(held, spent, answered.at)
        written = answered.usage.get("output_tokens", 0)
        if held.longest and written:
            of_call = Account("call", {"tokens": held.longest}, {"tokens": written})
            crossed += of_call.due(answered.at)
        return crossed


def estimate(request: Request) -> int:
    """Return how many tokens a request has at most, in all likelihood: half of its bytes, its schema included."""
    parts: list[object] = [*request.system, *request.messages]
    if request.schema is not None:
        parts.append(request.schema)
    parts += request.tools
    texts = [part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in parts]
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_A_TOKEN + _FRAME


def as_fields(answer: Answer) -> dict[str, float]:
    """Return the tokens of an answer as the ledger has them: what is none is left out."""
    return {name: value for name, value in vars(answer.usage).items() if value}


def _shown(value: float) -> str:
    """Return an amount without an exponent: 1234567, 0.0125."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
