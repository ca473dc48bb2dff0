"""A workload that has no key exchanges the token of its build for one, in the process that calls the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fakes.messages import IDENTITY, FakeMessages
from tests.llm.asking import answer_to, calling, question

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {
    "PATH": "/usr/bin:/bin",
    "ANTHROPIC_FEDERATION_RULE_ID": "rule-1",
    "ANTHROPIC_ORGANIZATION_ID": "organization-1",
}


def test_a_token_is_exchanged_for_a_key(tmp_path: Path) -> None:
    """The token itself, or one from a file, is exchanged once, and the question is answered."""
    (tmp_path / "token").write_text(f"{IDENTITY}\n")
    for given in (
        {"ANTHROPIC_IDENTITY_TOKEN": IDENTITY},
        {"ANTHROPIC_IDENTITY_TOKEN_FILE": str(tmp_path / "token")},
    ):
        with FakeMessages(["one", "two"]) as api, calling(api.url, {**ENVIRON, **given}) as model:
            assert [answer_to(model, question(text)).text for text in ("a", "b")] == ["one", "two"]
            assert [entry.route for entry in api.journal.entries] == ["token", "messages", "messages"]


def test_a_token_that_is_not_taken_is_told_without_it(tmp_path: Path) -> None:
    """A wrong token, or a file that is not there, is `unauthorized` at once, costs nothing and shows no token."""
    for given, rule in (
        ({"ANTHROPIC_IDENTITY_TOKEN": "wrong-token-1234"}, "exchange:401"),
        ({"ANTHROPIC_IDENTITY_TOKEN_FILE": str(tmp_path / "none")}, "error:IdentityTokenFileError"),
    ):
        with FakeMessages([]) as api, calling(api.url, {**ENVIRON, **given}) as model:
            answer = answer_to(model, question(retries=5))
            assert (answer.ending, answer.rule, answer.attempts) == ("unauthorized", rule, 1)
            assert (answer.usage.total, answer.is_estimate) == (0, False)
            assert "wrong-token-1234" not in repr(answer)
            assert "Traceback" not in answer.message
