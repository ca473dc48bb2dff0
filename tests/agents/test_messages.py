"""Messages between agents: ids, replies, the time limit, who waits for whom, and the limits of agents."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.agents.messages import ASK_TOOL, LONGEST, TYPES, MessageRefused, Post, Reply, Roster
from planrun.model.collaboration import Delegation, Messenger
from tests.agents.moments import Moments


class Office(Post):
    """A post with its clock and its journal."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Moments()
        self.journal: list[dict[str, Any]] = []
        super().__init__(Messenger(**settings), self.clock.stamp, self.journal.append)

    def ask(self, sender: str, to: str = "") -> str:
        """Send a request for help, and give it to an agent."""
        number = self.send("help_request", sender, "explore", "Where is it?")
        if to:
            self.assign(number, to)
        return number


def test_a_message_gets_an_id_and_its_reply() -> None:
    """Ids count from m1 in the order of sending; before the reply there is none."""
    post = Office()
    first = post.send("help_request", "a", "explore", "Where is the parser?", {"file": "x.py"})
    second = post.send("delegate", "b", "general", "Write the tests.")
    assert (first, second) == ("m1", "m2")
    assert post.receive(first) is None
    post.assign(first, "c")
    assert post.reply(first, "In src/parser.py.")
    assert post.receive(first) == Reply(id="m1", status="answered", content="In src/parser.py.")
    assert post.receive(second) is None
    row = post.rows()[0]
    assert (row["type"], row["from"], row["to_role"], row["to"]) == ("help_request", "a", "explore", "c")
    assert (row["content"], row["metadata"], row["status"]) == (
        "Where is the parser?",
        {"file": "x.py"},
        "answered",
    )


def test_there_are_two_types_of_messages() -> None:
    """The tool of a model names the same."""
    assert TYPES == ("help_request", "delegate")
    assert ASK_TOOL["input_schema"]["properties"]["type"]["enum"] == list(TYPES)
    with pytest.raises(
        MessageRefused, match='unknown type of message "shout"; expected one of help_request, delegate'
    ):
        Office().send("shout", "a", "explore", "x")


@pytest.mark.parametrize(
    ("content", "why"),
    [(" \n", "the message is empty"), ("x" * (LONGEST + 1), "too long: 32,001 characters")],
)
def test_a_message_has_a_content_of_bounded_size(content: str, why: str) -> None:
    """A refused message is not in the journal."""
    post = Office()
    with pytest.raises(MessageRefused, match=why):
        post.send("delegate", "a", "explore", content)
    assert post.journal == []


def test_a_reply_that_is_too_long_is_cut_and_says_so() -> None:
    """The asking agent sees that something is missing."""
    post = Office()
    number = post.ask("a", "b")
    post.reply(number, "y" * (LONGEST + 5))
    reply = post.receive(number)
    assert reply is not None
    assert reply.content.endswith("y\n[5 characters left out]")


def test_a_reply_has_three_minutes() -> None:
    """Just before it may come, at the limit the message is over, and a later reply is dropped."""
    post = Office()
    early, late = post.ask("a", "c"), post.ask("b", "d")
    assert [row["until"] for row in post.rows()] == ["2026-01-31T09:33:00.000Z"] * 2
    post.clock.pass_by(179.999)
    assert post.reply(early, "yes")
    assert post.expire() == []
    post.clock.pass_by(0.001)
    assert post.receive(late) == Reply(id=late, status="timeout", content="no reply within 180 seconds")
    assert not post.reply(late, "yes")
    assert post.receive(late) == Reply(id=late, status="timeout", content="no reply within 180 seconds")


def test_a_late_reply_is_dropped_though_nobody_asked_for_it_yet() -> None:
    """The limit counts, and not when somebody looks."""
    post = Office()
    number = post.ask("a", "b")
    post.clock.pass_by(180)
    assert not post.reply(number, "yes")
    assert [change["op"] for change in post.journal] == ["send", "assign", "end"]


def test_messages_that_are_over_are_ended_together() -> None:
    """For a loop that waits for several of them."""
    post = Office(timeout=5.0)
    first = post.ask("a")
    post.clock.pass_by(3)
    second = post.ask("b")
    post.clock.pass_by(2)
    assert post.expire() == [first]
    assert post.receive(second) is None


def test_an_agent_waits_for_one_reply_at_a_time() -> None:
    """It is blocked by its question; afterwards it may ask again."""
    post = Office()
    number = post.ask("a", "b")
    with pytest.raises(MessageRefused, match="a waits for the reply to m1"):
        post.ask("a")
    post.reply(number, "x")
    assert post.ask("a") == "m2"


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_agents_cannot_wait_for_each_other(length: int) -> None:
    """A cycle of any length is refused, named, and ends the message, so the sender goes on."""
    post = Office()
    names = [f"a{number}" for number in range(length)]
    for sender, receiver in pairwise(names):
        post.ask(sender, receiver)
    last = post.ask(names[-1])
    with pytest.raises(MessageRefused, match="the agents would wait for each other: a") as caught:
        post.assign(last, names[0])
    cycle = str(caught.value).partition(": ")[2].split(" -> ")
    assert (cycle[0], cycle[-1], len(cycle)) == (names[-1], names[-1], length + 1)
    reply = post.receive(last)
    assert reply is not None
    assert (reply.ok, reply.status) == (False, "refused")
    assert names[-1] not in post.waiting()


def test_a_chain_without_a_cycle_is_allowed() -> None:
    """Two agents may even wait for the same one."""
    post = Office()
    post.ask("a", "b")
    post.ask("b", "c")
    post.ask("d", "c")
    assert post.waiting() == {"a": "b", "b": "c", "d": "c"}


Edges = list[tuple[int, int]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_whoever_waits_never_waits_in_a_cycle(pairs: Edges) -> None:
    """Whatever is sent to whom: following who waits for whom always ends."""
    post = Office()
    for sender, receiver in pairs:
        try:
            post.assign(post.send("delegate", f"a{sender}", "x", "y"), f"a{receiver}")
        except MessageRefused:
            continue
    waits = post.waiting()
    for name in waits:
        seen, at = set[str](), name
        while at:
            assert at not in seen
            seen.add(at)
            at = waits.get(at, "")


def test_an_agent_that_ends_ends_its_messages() -> None:
    """Nobody waits for an agent that is gone, and nobody works for one."""
    post = Office()
    to_it, from_it, other = post.ask("a", "b"), post.ask("b", "c"), post.ask("d", "e")
    post.agent_ended("b")
    replies = [post.receive(number) for number in (to_it, from_it, other)]
    assert replies == [
        Reply(id=to_it, status="cancelled", content="b ended without a reply"),
        Reply(id=from_it, status="cancelled", content="b ended"),
        None,
    ]


def test_a_message_that_has_ended_is_given_to_nobody() -> None:
    """Nor is one that does not exist."""
    post = Office()
    number = post.ask("a")
    post.refuse(number, "no such type of agent")
    with pytest.raises(MessageRefused, match="the message m1 has ended: refused"):
        post.assign(number, "b")
    with pytest.raises(MessageRefused, match="no message m9"):
        post.receive("m9")


def test_a_ledger_gives_the_same_post_back() -> None:
    """Open messages wait on, with their old limits, and ids go on where they were."""
    post = Office()
    post.reply(post.ask("a", "b"), "x")
    post.ask("c", "d")
    again = Office()
    again.restore(post.journal)
    assert again.rows() == post.rows()
    assert again.journal == []
    assert again.waiting() == {"c": "d"}
    assert again.ask("e") == "m3"


def test_at_most_five_agents_are_at_work() -> None:
    """One that waits for a reply is not at work, so a chain can be deeper."""
    roster = Roster(Delegation())
    for number in range(5):
        roster.start(f"a{number}", "general")
    with pytest.raises(MessageRefused, match="5 agents are at work already"):
        roster.start("a5", "general")
    assert roster.start("a5", "general", waiting=["a0"]).depth == 0
    roster.end("a1")
    roster.end("a1")
    assert roster.at_work() == 5
    assert roster.at_work(["a0", "gone"]) == 4


def test_agents_stand_at_most_five_deep() -> None:
    """The agent of a step has depth 0."""
    roster = Roster(Delegation())
    names = ["a0"]
    roster.start("a0", "general")
    for number in range(1, 6):
        agent = roster.start(f"a{number}", "explore", parent=names[-1], waiting=names)
        assert agent.depth == number
        names.append(agent.id)
    with pytest.raises(MessageRefused, match="depth 5 is reached"):
        roster.start("a6", "bash", parent="a5", waiting=names)
    with pytest.raises(MessageRefused, match="the agent a5 runs already"):
        roster.start("a5", "bash")
