"""The budget of one agent: a part of that of the run, reserved before each call and settled after it."""

from __future__ import annotations

from planrun.llm.budget import OverrunError, estimate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.llm.budget import Budget, Held
    from planrun.model import events as ev
    from planrun.model.call import Request
    from planrun.model.planning import Call

LEAST_ANSWER = 512  # tokens that an answer may need at least


class Purse:
    """What one agent may use.

    `before`: calls in earlier processes, those of agents that it asked included; `crossed`: what these reported;
    `turns`: its own. Tokens and dollars of agents that it asks are a part of its own, and turns are not.
    """

    def __init__(
        self,
        agent: dict[str, Any],
        budget: Budget,
        before: Sequence[Call] = (),
        turns: int = 0,
        crossed: Sequence[ev.BudgetCrossed] = (),
    ) -> None:
        limits = {"tokens": float(agent["max_tokens"]), "turns": float(agent["max_turns"])}
        if agent.get("max_usd") is not None:
            limits["usd"] = agent["max_usd"]
        used = {name: sum(call.used(name) for call in before) for name in ("tokens", "usd")}
        own = limits.pop("turns")
        self.whole = budget.part("step", limits, agent["step"])
        self.whole.account.use(used)
        self.budget = self.whole.part("step", {"turns": own}, agent["step"])
        self.budget.account.use({"turns": float(turns)})
        self.limits = {"tokens": limits["tokens"], "turns": own, **limits}
        for event in crossed:
            account = (self.budget if event.resource == "turns" else self.whole).account
            account.reported.setdefault((event.resource, event.limit), set()).add(event.level)

    def used(self, name: str) -> float:
        """Return how much is used of a resource."""
        return (self.budget if name == "turns" else self.whole).account.used(name)

    def left(self) -> dict[str, float]:
        """Return the tokens, and the dollars where they are limited, that may still be used."""
        account = self.whole.account
        found = {name: account.left(name) for name in ("tokens", "usd")}
        return {name: max(0.0, value) for name, value in found.items() if value is not None}

    def percent(self) -> int:
        """Return how much is used of what is used most, in per cent."""
        return min(
            100, max(int(100 * self.used(name) / limit) for name, limit in self.limits.items() if limit)
        )

    def fitting(self, request: Request, tokens: int) -> tuple[Request, int]:
        """Return a request whose answer fits the budget, and the tokens of the question.

        `tokens`: of the question, as far as the service has counted them; 0: all are estimated. Raises OverrunError.
        """
        asked = tokens or estimate(request)
        left = self.budget.account.left("tokens")
        room = request.max_tokens if left is None else min(request.max_tokens, int(left) - asked)
        if room < LEAST_ANSWER and left is not None:
            room = LEAST_ANSWER  # the account says what is missing
        return request.but(max_tokens=room), asked

    def reserve(self, request: Request, at: str, tokens: int) -> Held:
        """Hold what a call takes at most; raises OverrunError."""
        return self.budget.reserve(request, at, tokens)


__all__ = ["OverrunError", "Purse"]
