"""Answers that are not bare JSON: looked through for it, and never read in two ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planrun.llm.drafts import STEPS, Draft
from tests.fakes.messages import draft, step

ANSWER = json.dumps(draft([step("a", "ls")], "x {y}"), indent=1)


def rule(found: Any) -> str:
    """Return the rule of the only fault."""
    (fault,) = found
    text: str = fault.rule
    return text


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"\n  {ANSWER}\n\n",
        f"```json\n{ANSWER}\n```",
        f"Here it is:\n\n```\n{ANSWER}\n```\nThat is {{all}}.",
        f"~~~ json\n{ANSWER}\n~~~",
        f"The plan: {ANSWER}",
        f"{ANSWER}\nI hope that helps.",
        f"With braces {{ in prose }} first.\n```json\n{ANSWER}\n```",
    ],
)
def test_the_answer_is_found_in_what_surrounds_it(text: str) -> None:
    """In a fenced block, else from the first brace on."""
    found = STEPS.read(text, 10)
    assert isinstance(found, Draft)
    assert [step.run for step in found.steps] == ["ls"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON at all",
        ANSWER[:-1],
        f"Some {{ brace }} first: {ANSWER}",
        "{" * 100_000,
        "[" * 100_000,
        ANSWER.replace('"keep"', '"analysis": "again", "keep"'),
        "```json\n" + ANSWER.replace('"ls"', "NaN") + "\n```",
        "```json\n```",
    ],
)
def test_what_cannot_be_read_for_certain_is_not_read(text: str) -> None:
    """Half an answer, keys that stand twice, numbers that are none, and prose with braces are faults, not guesses."""
    assert rule(STEPS.read(text, 10)) == "json"
