"""Advice to the user when a model gave no answer."""

from __future__ import annotations

import pytest

from planrun.model.call import Answer
from planrun.planner.conversation import advised


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Answer(ending="unauthorized", rule="type:authentication_error", message="no"), "ANTHROPIC_API_KEY"),
        (Answer(ending="rejected", rule="type:not_found_error", message="no"), "--llm-model"),
        (Answer(ending="rejected", rule="status:404, without:schema", message="no"), "--llm-base-url"),
        (Answer(ending="unavailable", rule="connection:ConnectError", message="no"), "proxies"),
        (Answer(ending="limited", rule="text:quota", message="no"), "its limits and credit"),
        (Answer(ending="unpaid", rule="text:credit", message="no"), "its limits and credit"),
        (Answer(ending="late", rule="late", message="no"), "planning_timeout"),
    ],
)
def test_a_fault_the_user_can_fix_has_advice(answer: Answer, named: str) -> None:
    """Credentials, the model's name, the address, the network and time are named after what happened."""
    assert advised(answer).startswith("no; ")
    assert named in advised(answer)


def test_a_refusal_has_no_advice() -> None:
    """A refusal is the model's decision: no advice is added."""
    assert advised(Answer(ending="refused", message="the model declined to answer")) == (
        "the model declined to answer"
    )
    assert advised(Answer(ending="malformed")) == "malformed"
