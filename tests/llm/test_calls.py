"""A model is asked through its own process and a real HTTP server: what is sent, what comes back, what it costs."""

from __future__ import annotations

from typing import Any

from planrun.app.planning.models import open_model
from planrun.app.settings import Settings
from planrun.model.call import Request
from tests.fakes.messages import FakeMessages, draft, step

ENVIRON = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "fake-key-0123456789abcdef"}


def request(**fields: Any) -> Request:
    """Return a question, with some fields changed."""
    asked: dict[str, Any] = {
        "purpose": "generate",
        "model": "model-a",
        "system": ("You write plans.", "Never more than ten steps."),
        "messages": ({"role": "user", "content": "Build it."},),
        "max_tokens": 800,
        **fields,
    }
    return Request(**asked)


def test_a_question_is_answered() -> None:
    """The text of the answer comes back whole, with its usage, and one process answers several questions."""
    with FakeMessages([draft([step("a", "make")]), "second"]) as api:
        model = open_model(Settings(llm_model="model-a", llm_base_url=api.url), None, ENVIRON)
        try:
            for text in ('"id": "a"', "second"):
                model.ask(request())
                answer = model.wait(None)
                assert answer is not None
                assert answer.ending == "answered"
                assert text in answer.text
                assert not answer.is_estimate
        finally:
            model.close()
        assert api.journal.verdicts() == []
