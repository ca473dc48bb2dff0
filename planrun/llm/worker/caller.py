"""Makes the calls: repeats attempts, and learns what the service does not know."""

from __future__ import annotations

import random
import time

from planrun.llm.worker.outcomes import outcome_of, was_sent
from planrun.llm.worker.stream import Form, attempt, client_of
from planrun.model.call import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.llm.worker.call import Call
    from planrun.llm.worker.outcomes import Feature, Outcome

LONGEST = 60.0  # seconds between two attempts, unless the service asks for more (V-68)
JITTER = 0.1
OVERLOAD = 2.5  # an overloaded service is left alone so many times longer
_MOST = 1 << 16  # characters of any text besides the answer; planrun masks it first and shortens it then
_LEFT_OUT: dict[Feature, str] = {
    "schema": "the schema is asked for in the text",
    "effort": "effort is left out",
    "thinking": "thinking is left out",
}


class Caller:
    """Makes the calls of this process; what it learns of the service holds for all of them."""

    def __init__(self, opening: dict[str, Any]) -> None:
        service, credentials = opening["service"], opening["credentials"]
        self._backoff: float = service["backoff"]
        self._client = client_of(service["base_url"], credentials)
        self._form = Form()
        self._left_out: list[Feature] = []

    def answer(self, call: Call) -> Answer:
        """Make attempts until one of them is the last."""
        repeats: dict[str, int] = {}
        while True:
            outcome = self._attempt(call)
            if outcome.unknown and self._leave_out(outcome.unknown):
                call.note = outcome.message[:_MOST]
                call.repeat(f"{_LEFT_OUT[outcome.unknown]}: {call.note}", 0.0)
                continue
            if outcome.ending == "answered":
                return self._answer(call, outcome, outcome.message)
            repeats[outcome.rule] = repeats.get(outcome.rule, 0) + 1
            last_word = self._last_word(call, outcome, repeats[outcome.rule] - 1, sum(repeats.values()) - 1)
            if last_word is not None:
                return self._answer(call, outcome, last_word)
            call.note = outcome.message[:_MOST]

    def _attempt(self, call: Call) -> Outcome:
        tally = call.tally
        tally.begin()
        try:
            outcome = attempt(self._client, self._form, call)
        except Exception as error:  # noqa: BLE001 - whatever the library raises has to end in words
            outcome = outcome_of(error)
            if not was_sent(error):
                tally.declined()
        call.progress(now=True)
        return outcome

    def _leave_out(self, feature: Feature) -> bool:
        """Ask without something from now on; False when it is left out already."""
        if feature in self._left_out:
            return False
        self._left_out.append(feature)
        self._form = self._form.but(**{feature: False})
        return True

    def _last_word(self, call: Call, outcome: Outcome, same: int, all_in_all: int) -> str | None:
        """Return what to say when no more attempt is made; wait, and return None, when there is one."""
        tries = f" ({all_in_all + 1} tries)" if all_in_all else ""
        if outcome.repeat == 0:
            return outcome.message + tries
        if not call.tally.may_cost_more:
            return f"{outcome.message}{tries}; nothing is reserved for one more that costs something"
        if all_in_all >= call.request.retries or (outcome.repeat is not None and same >= outcome.repeat):
            return outcome.message + tries
        pause = pause_before(outcome, all_in_all, self._backoff)
        if pause >= call.left:
            asks = (
                f"it asks to wait {outcome.after:g} s"
                if outcome.after
                else f"the next try is due in {pause:.1f} s"
            )
            return f"{outcome.message}{tries}; {asks}, and {max(0.0, call.left):.1f} s are left"
        call.repeat(outcome.message[:_MOST], pause)
        time.sleep(pause)
        return None

    def _answer(self, call: Call, outcome: Outcome, message: str) -> Answer:
        wanted = {"schema": call.request.schema is not None, "effort": call.request.effort, "thinking": True}
        lacking = [each for each in self._left_out if wanted[each]]
        notes = [f"the service does not know what was asked of it, so {_LEFT_OUT[each]}" for each in lacking]
        rule = ", ".join([outcome.rule, *[f"without:{each}" for each in lacking]])
        found = Answer(
            ending=outcome.ending,
            text=outcome.text,
            model=outcome.model[:_MOST],
            request_id=outcome.request_id[:_MOST],
            stop_reason=outcome.stop_reason[:_MOST],
            message="; ".join([*([message[:_MOST]] if message else []), *notes]),
            rule=rule[:_MOST],
        )
        return found.but(content=outcome.content) if outcome.content else found


def pause_before(outcome: Outcome, repeat: int, base: float) -> float:
    """Return the seconds before an attempt: what the service asks for, or `base`, and twice as long each time.

    `repeat` counts from 0. A tenth more or less, at random, keeps many clients from coming back at once.
    """
    if outcome.after is not None:
        return outcome.after * (1 + JITTER * random.random())  # noqa: S311 - spreads, and protects nothing
    factor = OVERLOAD if outcome.ending == "overloaded" else 1.0
    pause: float = min(LONGEST, base * factor * 2.0 ** min(repeat, 30))
    return pause * (1 + JITTER * (2 * random.random() - 1))  # noqa: S311
