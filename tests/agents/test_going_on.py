"""An agent goes on after any end: the same conversation and copy, whatever ended it; what it changed is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import BUG, EDIT, FIXED, agent, ended, finish, git, ledger, repository, turns
from tests.fakes.messages import FakeMessages, Tokens, broken, refuse, say, status, use

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked

CALM = ("model: model-a", "model: model-a, retries: 0")
ENDS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "overload": (status(529, retry_after=0), {}, "model"),
    "cut": (broken("drop"), {}, "model"),
    "no answer": (broken("html"), {}, "model"),
    "refusal": (refuse(), {}, "model"),
    "failure": (finish("it cannot be done", status="failure"), {}, "reported"),
    "silence": (say("That is all."), {}, "incomplete"),
    "turns": (use(("list_dir", {})), {"max_turns": 3}, "turns"),
    "budget": (use(("list_dir", {}), usage=Tokens(input=2500, output=20)), {"max_tokens": 12_000}, "budget"),
    "verify": (finish("done"), {}, "verify"),
}
"""What a model does from its second turn on, keys of the agent, and the reason of the failure."""


@pytest.mark.parametrize("end", ENDS)
def test_an_agent_goes_on_after_it_failed(planrun: Command, end: str) -> None:
    """Its edit is made once, in the first attempt; the patch of the resumed attempt has it."""
    reply, keys, reason = ENDS[end]
    folder = repository(planrun.folder)
    check = {"verify": "test -f more.txt"} if reason == "verify" else {}
    text = agent(apply="auto", step=check, **keys).replace(*CALM)
    (folder / "plan.yml").write_text(text)
    asked: list[int] = []
    more = use(("write", {"path": "more.txt", "content": "more\n"}))

    def first(request: Asked) -> Any:
        return turns(use(EDIT), reply)(request)

    def second(request: Asked) -> Any:
        asked.append(len(request.body["messages"]))
        return finish("fixed") if len(asked) > 1 else more

    with FakeMessages(first) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 1, done.stderr
    assert ended(folder)["reason"] == reason
    if reason != "verify":
        assert "what it changed so far is kept, not verified" in ended(folder)["error"]["message"]
        (kept,) = folder.glob(".planrun/runs/*/patches/fix/1.partial.patch")
        assert "+    return a + b" in kept.read_text()
    assert (folder / "calc.py").read_text() == BUG
    with FakeMessages(second) as api:
        done = planrun("resume", "last", env=api.env)
    assert done.returncode == 0, done.stderr
    assert asked[0] > 1, "the conversation goes on"
    assert (folder / "calc.py").read_text() == FIXED
    assert (folder / "more.txt").read_text() == "more\n"
    assert [found["continues"] for found in ledger(folder)["agents"]] == [None, "fix.1"]
    assert planrun("verify", "last").returncode == 0


def test_a_partial_patch_can_be_applied_by_hand(planrun: Command) -> None:
    """The file that the failure names is a patch for git."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(max_turns=1))
    with FakeMessages(turns(use(EDIT))) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 1
    git(folder, "apply", ended(folder)["error"]["message"].rpartition(": ")[2])
    assert (folder / "calc.py").read_text() == FIXED


@pytest.mark.parametrize("fault", ["drop", "reset", "overload"])
def test_two_faults_of_the_service_in_a_row_do_not_end_an_agent(planrun: Command, fault: str) -> None:
    """The same question is asked again after two streams that broke off, which have used up what was reserved."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(apply="auto"))
    left = [3]

    def model(asked: Asked) -> Any:
        if len(asked.body["messages"]) > 1 and left[0]:
            left[0] -= 1
            return status(529, retry_after=0) if fault == "overload" else broken(fault)
        return turns(use(EDIT), finish("fixed"))(asked)

    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    assert (folder / "calc.py").read_text() == FIXED


def test_an_agent_is_told_what_is_left_and_when_to_end(planrun: Command) -> None:
    """Behind each result stands what is left; before the last turn it is told to end."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(type="explore", max_turns=3, max_tokens=300_000))
    told: list[str] = []

    def model(asked: Asked) -> Any:
        told.append(asked.user)
        return turns(use(("list_dir", {})), use(("list_dir", {})), finish())(asked)

    with FakeMessages(model) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 0
    assert "You may take 3 turns and use 300,000 tokens" in told[0]
    assert "[2 turns and 29" in told[1]
    assert "last turn" not in told[1]
    assert "This is your last turn: call `finish` now" in told[2]


def test_tokens_from_the_cache_do_not_count(planrun: Command) -> None:
    """Twelve turns with a file of 30,000 tokens in the conversation fit a budget of 120,000."""
    folder = repository(planrun.folder)
    (folder / "big.txt").write_text("x = 12345\n" * 9000)
    read = use(("read", {"path": "big.txt", "limit": 2000}))
    model = turns(read, read, *[use(("list_dir", {}))] * 10, finish())
    (folder / "plan.yml").write_text(agent(type="explore", max_tokens=120_000))
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    usage = ledger(folder)["agents"][0]["usage"]
    assert usage["cache_read_tokens"] > 120_000
