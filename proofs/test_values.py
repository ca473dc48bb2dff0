"""The short form of the proof that values arrive as they are or not at all, and never as code."""

from __future__ import annotations

import pytest

from proofs import values

TRIED = (
    *dict.fromkeys(values.CAUGHT_BY.values()),
    *(
        "",
        "-n",
        "a\r",
        " a ",
        "a\u2028list=1",
        "\x85b",
        "\udcff; touch canary",
        "'" * 3000,
        "x" * 120_000,
        "*",
        "${IFS}",
    ),
)


@pytest.mark.shows("R11")
def test_values_arrive_or_are_refused() -> None:
    """In every place that takes a value it is the same bytes afterwards, or its step is refused."""
    assert values.prove(TRIED) == []


@pytest.mark.parametrize("fault", values.CAUGHT_BY)
def test_the_proof_can_fail(fault: str) -> None:
    """Each planted fault lets a canary sing, or changes a word on its way."""
    assert values.is_caught(fault)
