"""Thoughts of a model in an answer with calls: kept, and sent back unchanged with the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.agents.worlds import agent, finish, repository, turns
from tests.fakes.messages import FakeMessages, Reply, status, use

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
    assert content[0]["thinking"] == THOUGHT["thinking"]
    assert [part["type"] for part in content[:2]] == ["thinking", "redacted_thinking"]
    assert [part["type"] for part in content[2:]] == ["text", "tool_use"]


def thinking_of(messages: list[dict[str, Any]]) -> int:
    """Return how many thoughts there are in messages."""
    said = [each["content"] for each in messages if each["role"] == "assistant"]
    return sum(part["type"] == "thinking" for content in said for part in content)


def test_the_fake_service_takes_a_thought_back_only_behind_the_same(planrun: Command) -> None:
    """A changed file of the project before a resume changes nothing of the conversation that goes on."""
    folder = repository(planrun.folder)
    (folder / "PLANRUN.md").write_text("Use tabs.\n")
    (folder / "plan.yml").write_text(agent(max_turns=1, type="explore"))
    seen: list[int] = []

    def model(asked: Asked) -> Any:
        seen.append(thinking_of(asked.body["messages"]))
        return use(("list_dir", {})) if len(seen) == 1 else finish()

    with FakeMessages(model) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 1
        (folder / "PLANRUN.md").write_text("Use blanks.\n")
        done = planrun("resume", "last", env=api.env)
    assert done.returncode == 0, done.stderr
    assert seen == [0, 1]


def test_refused_thoughts_are_left_out(planrun: Command) -> None:
    """A service that takes no thought back gets the conversation without them, and the agent goes on."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(type="explore"))
    seen: list[int] = []
    why = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to another conversation."

    def model(asked: Asked) -> Any:
        seen.append(thinking_of(asked.body["messages"]))
        return (
            status(400, message=why)
            if seen[-1] == 2
            else turns(*[use(("list_dir", {}))] * 3, finish())(asked)
        )

    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    assert seen == [0, 1, 2, 0, 1]
