"""A Messages API of our own, on loopback: it validates requests as the real one does, answers by script, and notes.

In a test: `with FakeMessages([draft([{"id": "fix", "run": "make"}])]) as api:`, then `api.url`, `api.key`, `api.env`,
`api.journal`. As a process: `python -m tests.fakes.messages SCRIPT`. README.md says what a script may say.
"""

from tests.fakes.messages.counting import Tokens
from tests.fakes.messages.journal import Entry, Journal, Verdict
from tests.fakes.messages.replies import (
    Fault,
    Reply,
    answer,
    broken,
    candidates,
    draft,
    events,
    refuse,
    say,
    status,
    step,
    think,
    use,
)
from tests.fakes.messages.script import Asked, Rule, Script
from tests.fakes.messages.server import IDENTITY, KEY, FakeMessages

__all__ = [
    "IDENTITY",
    "KEY",
    "Asked",
    "Entry",
    "FakeMessages",
    "Fault",
    "Journal",
    "Reply",
    "Rule",
    "Script",
    "Tokens",
    "Verdict",
    "answer",
    "broken",
    "candidates",
    "draft",
    "events",
    "refuse",
    "say",
    "status",
    "step",
    "think",
    "use",
]
