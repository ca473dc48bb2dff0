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
    """What one agent may use; `before`: its calls in earlier processes, `crossed`: what these reported."""

    def __init__(
        self,
        agent: dict[str, Any],
        budget: Budget,
        before: Sequence[Call] = (),
        crossed: Sequence[ev.BudgetCrossed] = (),
    ) -> None:
        limits = {"tokens": float(agent["max_tokens"]), "turns": float(agent["max_turns"])}
        if agent.get("max_usd") is not None:
            limits["usd"] = agent["max_usd"]
        self.limits = limits
        used = {name: sum(call.used(name) for call in before) for name in ("tokens", "usd")}
        self.budget = budget.part("step", limits, agent["step"])
        self.budget.account.use({**used, "turns": float(len(before))})
        for event in crossed:
            key = (event.resource, event.limit)
            self.budget.account.reported.setdefault(key, set()).add(event.level)

    def percent(self) -> int:
        """Return how much is used of what is used most, in per cent."""
        account = self.budget.account
        return min(
            100, max(int(100 * account.used(name) / limit) for name, limit in self.limits.items() if limit)
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
