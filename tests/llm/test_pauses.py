"""How long a call waits between two attempts."""

from __future__ import annotations

import email.utils
import time

import pytest

from planrun.llm.process import BACKOFF
from planrun.llm.worker.caller import JITTER, LONGEST, pause_before
from planrun.llm.worker.outcomes import Outcome, wait_of
from planrun.model.planning import Llm

LIMITED = Outcome(ending="limited", rule="type:rate_limit_error")
OVERLOADED = Outcome(ending="overloaded", rule="type:overloaded_error")


def test_pauses_double_from_two_seconds_to_a_minute() -> None:
    """2, 4, 8, 16, 32, 60, 60 … seconds, each up to a tenth more or less, and five repeats by default."""
    assert Llm().retries == 5
    for repeat, seconds in enumerate([2, 4, 8, 16, 32, 60, 60, 60]):
        found = [pause_before(LIMITED, repeat, BACKOFF) for _ in range(200)]
        assert min(found) >= seconds * (1 - JITTER)
        assert max(found) <= seconds * (1 + JITTER)
        assert len(set(found)) > 100


def test_an_overloaded_service_is_left_alone_longer() -> None:
    """The first pause is 5 seconds in place of 2, and none is longer than a minute."""
    assert pause_before(OVERLOADED, 0, BACKOFF) >= 5 * (1 - JITTER)
    assert pause_before(OVERLOADED, 9, BACKOFF) <= LONGEST * (1 + JITTER)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 90.0])
def test_what_the_service_asks_for_is_never_cut_short(seconds: float) -> None:
    """With retry-after the pause is that, or up to a tenth more so that not all come back at once."""
    found = [pause_before(OVERLOADED.but(after=seconds), 3, BACKOFF) for _ in range(50)]
    assert min(found) >= seconds
    assert max(found) <= seconds * (1 + JITTER)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "7", "retry-after-ms": "soon"}, 7.0),
        ({"retry-after": email.utils.formatdate(0)}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_what_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds count before seconds, a date before now is no time; what makes no sense says nothing."""
    assert wait_of(headers) == seconds


def test_a_date_is_counted_from_now() -> None:
    """A date in an hour is about an hour away."""
    found = wait_of({"retry-after": email.utils.formatdate(time.time() + 3600, usegmt=True)})
    assert found is not None
    assert 3000 < found <= 3601
