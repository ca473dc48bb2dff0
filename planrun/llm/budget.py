"""What models may use up: reserved before a call, settled after it, told at 80, 95 and 100 per cent."""

from __future__ import annotations

from planrun.model import events as ev
from planrun.model.call import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.model.call import Answer, Request

LEVELS = (80, 95, 100)  # per cent
_BYTES_A_TOKEN = 4  # the service counts anew; an estimate is needed before anything is sent


class OverrunError(Exception):
    """A budget does not allow the next call; `crossed` says which."""

    def __init__(self, message: str, crossed: ev.BudgetCrossed) -> None:
        super().__init__(message)
        self.crossed = crossed


class Budget:
    """The limits of one run or planning: tokens, usd, turns; `used` is what was used up before."""

    def __init__(self, scope: str, limits: Mapping[str, float], used: Mapping[str, float]) -> None:
        self.scope = scope
        self.limits = dict(limits)
        self.used = {name: used.get(name, 0.0) for name in limits}
        self._told = {name: self._level(name) for name in limits}

    def reserve(self, request: Request, at: str) -> dict[str, float]:
        """Return what a call takes at most; raises OverrunError when that is more than there is."""
        wanted: dict[str, float] = {"tokens": float(estimate(request) + request.max_tokens), "turns": 1.0}
        for name, limit in self.limits.items():
            used = self.used[name] + wanted.get(name, 0.0)
            if used > limit:
                crossed = ev.BudgetCrossed(
                    at=at, scope=self.scope, resource=name, level=100, used=self.used[name], limit=limit
                )
                told = f"{self.used[name]:g} of {limit:g} {name} are used, and a call may take {wanted.get(name, 0):g}"
                raise OverrunError(told, crossed)
        for name in self.used:
            self.used[name] += wanted.get(name, 0.0)
        return {name: value for name, value in wanted.items() if name != "turns"}

    def settle(self, reserved: Mapping[str, float], answer: Answer, at: str) -> list[ev.BudgetCrossed]:
        """Give back what a call did not use; returns which levels were crossed by it."""
        if "tokens" in self.used:
            self.used["tokens"] += answer.usage.total - reserved.get("tokens", 0.0)
        crossed = []
        for name, limit in self.limits.items():
            level = self._level(name)
            if level > self._told[name]:
                self._told[name] = level
                crossed.append(
                    ev.BudgetCrossed(
                        at=at, scope=self.scope, resource=name, level=level, used=self.used[name], limit=limit
                    )
                )
        return crossed

    def _level(self, name: str) -> int:
        used, limit = self.used[name], self.limits[name]
        return max((level for level in LEVELS if used * 100 >= level * limit), default=0)


def estimate(request: Request) -> int:
    """Return about how many tokens a request has: its bytes divided by four."""
    texts = [*request.system, *[str(message["content"]) for message in request.messages]]
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_A_TOKEN + 1


def as_fields(usage: Usage) -> dict[str, float]:
    """Return usage as the ledger has it: what is none is left out."""
    return {name: value for name, value in vars(usage).items() if value}
