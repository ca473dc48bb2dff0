"""Thoughts of a model in an answer with calls: kept, and sent back unchanged with the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.agents.worlds import agent, finish, repository
from tests.fakes.messages import FakeMessages, Reply

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked

THOUGHT = {"type": "thinking", "thinking": "The bug is in calc.py, so I read it.", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
LEAKING = {"type": "thinking", "thinking": "The key is deploy-key-0123456789.", "signature": "b3RoZXI="}


def test_thoughts_are_sent_back_unchanged(planrun: Command) -> None:
    """A thought and a redacted one come back in their places; one that names a secret is left out, and never kept."""
    seen: list[Any] = []

    def model(asked: Asked) -> Any:
        seen.append(asked.body["messages"])
        if len(seen) > 1:
            return finish("done")
        call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "calc.py"}}
        return Reply(
            blocks=(THOUGHT, REDACTED, LEAKING, {"type": "text", "text": "I read."}, call),
            stop_reason="tool_use",
        )

    repository(planrun.folder)
    text = agent(apply="never").replace("steps:", "secrets: [DEPLOY_KEY]\nsteps:")
    (planrun.folder / "plan.yml").write_text(text)
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env={**api.env, "DEPLOY_KEY": "deploy-key-0123456789"})
    assert done.returncode == 0, done.stderr
    content = seen[1][1]["content"]
    assert content[:2] == [THOUGHT, REDACTED]
    assert [part["type"] for part in content[2:]] == ["text", "tool_use"]
