"""What to look at when a model gave no answer, for the line in which people read that it did not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.call import Answer

_NAMES = "look at the model's name (--llm-model or llm.model) and the address of the service (--llm-base-url)"
_NETWORK = (
    "look at the network, at proxies and at the address of the service (--llm-base-url, ANTHROPIC_BASE_URL)"
)
_KEY = "look at ANTHROPIC_API_KEY, and whether it is one for this service (--llm-base-url)"
_TIME = "planning_timeout says how long all calls of a planning may take"
_LATE = ("late", "limited", "overloaded")


def advised(answer: Answer) -> str:
    """Return the message of an answer that is none, and what somebody can do about it where that is known."""
    told = answer.message or answer.ending
    advice = _advice(answer)
    return f"{told}; {advice}" if advice else told


def _advice(answer: Answer) -> str:
    rule = answer.rule.partition(",")[0]
    if answer.ending == "unauthorized":
        return _KEY
    if rule in ("type:not_found_error", "status:404"):
        return _NAMES
    if rule.startswith("connection:"):
        return _NETWORK
    return _TIME if answer.ending in _LATE else ""
