"""What a call used up, counted while it goes on: what the service told, and an upper bound of what it did not."""

from __future__ import annotations

from planrun.llm.budget import estimate
from planrun.model.call import Request, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 10**12  # tokens that are believed
_BYTES_A_TOKEN = 2  # of an answer: fewer than any text or program has, so that the count is never too low


class Tally:
    """The tokens of one call over all its attempts. An attempt counts from `sent` on, until then nothing was used."""

    def __init__(self, request: Request) -> None:
        self.attempts = 0
        self._paid = 0  # attempts before this one that may have cost something
        self._request = request
        self._before = Usage()
        self._is_estimate = False
        self._forget()

    def begin(self) -> None:
        """One more attempt; what the one before used up stays counted."""
        usage, is_estimate = self.spent()
        self._paid += self._sent
        self._before, self._is_estimate = usage, is_estimate
        self._forget()
        self.attempts += 1

    def _forget(self) -> None:
        self._sent = False
        self._told: dict[str, int] = {}
        self._is_final = False
        self._bytes = 0
        self._is_unread = False

    def sent(self) -> None:
        """The request is on its way."""
        self._sent = True

    @property
    def may_cost_more(self) -> bool:
        """Whether what is reserved for the call pays for one more attempt."""
        return self._paid + self._sent < self._request.paid

    def declined(self) -> None:
        """The service answered with an error: such an attempt costs nothing."""
        self._sent = False

    def told(self, usage: Any, *, final: bool) -> None:
        """Take what the service says, which is always of the attempt so far; `final`: it counts the whole answer."""
        names = {
            "input_tokens": "input_tokens",
            "output_tokens": "output_tokens",
            "cache_read_tokens": "cache_read_input_tokens",
            "cache_write_tokens": "cache_creation_input_tokens",
        }
        found = {ours: _count(getattr(usage, theirs, None)) for ours, theirs in names.items()}
        self._told.update({name: count for name, count in found.items() if count is not None})
        self._is_final = self._is_final or (final and found["output_tokens"] is not None)

    def heard(self, text: str) -> None:
        """Count a piece of the answer."""
        self._bytes += len(text.encode("utf-8", "replace"))

    def unread(self) -> None:
        """Part of what the model wrote cannot be read or is not shown, and of how much only the final count tells."""
        self._is_unread = True

    def spent(self) -> tuple[Usage, bool]:
        """Return what the call used up so far, and whether part of that is an upper bound."""
        if not self._sent:
            return self._before, self._is_estimate
        told = dict(self._told)
        if "input_tokens" not in told:
            told["input_tokens"] = estimate(self._request)
        if not self._is_final:
            most = self._request.max_tokens
            heard = most if self._is_unread else min(most, -(-self._bytes // _BYTES_A_TOKEN))
            told["output_tokens"] = max(told.get("output_tokens", 0), heard)
        known = self._is_final and "input_tokens" in self._told
        return self._before + Usage(**told), self._is_estimate or not known


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return value if is_count else None
