"""The shared memory: types, versions, time limits, who gives way, and a journal that gives the same memory back."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.agents.memory import BUFFER, Author, MemoryRefused, SharedMemory
from planrun.agents.memorytool import MEMORY_TOOL, OPERATIONS, MemoryTool
from planrun.errors import InternalError
from planrun.model.collaboration import ENTRY_TYPES, Entries, Memory
from tests.agents.moments import START, Moments

A, B = Author(step="fix", agent="fix"), Author(step="fix", agent="fix.a2", trust="tool")


class Kept(SharedMemory):
    """A memory with its clock and its journal."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Moments()
        self.journal: list[dict[str, Any]] = []
        super().__init__(Memory(**settings), self.clock.stamp, self.journal.append)

    def keys(self) -> list[str]:
        """Return the keys, the least recently used first."""
        return list(self._entries.by_key)


def test_there_are_five_types_of_entries() -> None:
    """Each of them is written and read back with who wrote it; another type is refused."""
    memory = Kept()
    for kind in ENTRY_TYPES:
        memory.write(f"a {kind}", kind, {"value": [1, None, "x"]}, B)
    assert ENTRY_TYPES == ("fact", "insight", "filestate", "decision", "contextsnapshot")
    assert [entry.type for entry in memory.read_all()] == sorted(ENTRY_TYPES)
    entry = memory.read("a fact")
    assert entry is not None
    assert (entry.value, entry.version, entry.at) == ({"value": [1, None, "x"]}, 1, START)
    assert (entry.step, entry.agent, entry.trust, entry.expires_at) == ("fix", "fix.a2", "tool", "")
    with pytest.raises(MemoryRefused, match='unknown type "opinion"; expected one of fact, insight'):
        memory.write("x", "opinion", 1, A)


def test_each_write_of_a_key_raises_its_version() -> None:
    """The version counts the writes, and begins again after a removal."""
    memory = Kept()
    assert [memory.write("db", "decision", name, A).version for name in ("redis", "sqlite", "redis")] == [
        1,
        2,
        3,
    ]
    assert memory.delete("db", A)
    assert not memory.delete("db", A)
    assert memory.read("db") is None
    assert memory.write("db", "decision", "redis", A).version == 1


def test_an_entry_with_a_time_limit_expires_at_its_moment() -> None:
    """Just before the limit it is there, at the limit it is a miss, and the removal is in the journal."""
    memory = Kept()
    entry = memory.write_with_ttl("port", "fact", 8080, A, ttl=60)
    assert entry.expires_at == "2026-01-31T09:31:00.000Z"
    memory.clock.pass_by(59.999)
    assert memory.read("port") is not None
    memory.clock.pass_by(0.001)
    assert memory.read_all() == []
    assert memory.read("port") is None
    assert memory.journal[-1] == {"op": "expire", "key": "port", "at": "2026-01-31T09:31:00.000Z"}


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 400 * 86400])
def test_a_time_limit_is_positive_and_finite(ttl: float) -> None:
    """Anything else is refused, and nothing is written."""
    memory = Kept()
    with pytest.raises(MemoryRefused, match="ttl must be"):
        memory.write_with_ttl("x", "fact", 1, A, ttl=ttl)
    assert memory.journal == []


def test_a_write_without_a_time_limit_takes_an_earlier_one_away() -> None:
    """The last write decides how long an entry is kept."""
    memory = Kept()
    memory.write_with_ttl("x", "fact", 1, A, ttl=1)
    memory.write("x", "fact", 2, A)
    memory.clock.pass_by(100)
    entry = memory.read("x")
    assert entry is not None
    assert (entry.value, entry.version) == (2, 2)


def test_expired_entries_are_cleaned_up() -> None:
    """By themselves at the next write, and when the caller asks for it."""
    memory = Kept()
    for number in range(3):
        memory.write_with_ttl(f"k{number}", "fact", number, A, ttl=10 + number)
    memory.clock.pass_by(11)
    assert len(memory) == 3
    memory.write("other", "fact", 1, A)
    assert memory.keys() == ["k2", "other"]
    memory.clock.pass_by(1)
    assert memory.expire() == 1
    assert memory.keys() == ["other"]


def test_the_least_recently_used_entry_gives_way() -> None:
    """A read counts as a use, a list does not, and an update evicts nothing."""
    memory = Kept(max_entries=3)
    for key in "abc":
        memory.write(key, "fact", key, A)
    memory.read("a")
    memory.read_all()
    memory.read_by_type("fact")
    memory.write("b", "fact", "again", A)
    assert memory.keys() == ["c", "a", "b"]
    memory.write("d", "fact", "d", A)
    assert memory.keys() == ["a", "b", "d"]
    assert [change["key"] for change in memory.journal if change["op"] == "evict"] == ["c"]


def test_an_expired_entry_gives_way_before_a_live_one() -> None:
    """No live entry is evicted while there is one whose time is over."""
    memory = Kept(max_entries=2)
    memory.write("old", "fact", 1, A)
    memory.write_with_ttl("short", "fact", 1, A, ttl=1)
    memory.clock.pass_by(1)
    memory.write("new", "fact", 1, A)
    assert memory.keys() == ["old", "new"]


def test_the_default_limits_are_500_entries_of_64_kib() -> None:
    """The 501st entry evicts the first; a value of one byte more than 64 KiB is refused."""
    memory = Kept()
    for number in range(501):
        memory.write(f"k{number}", "fact", number, A)
    assert len(memory) == 500
    assert memory.read("k0") is None
    memory.write("large", "fact", "x" * 65534, A)
    with pytest.raises(
        MemoryRefused, match="the value is too large: 65,537 bytes; at most 65,536 are allowed"
    ):
        memory.write("larger", "fact", "x" * 65535, A)


def circular() -> list[Any]:
    """Return a list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}, circular(), b"bytes"])
def test_only_json_values_are_kept(value: Any) -> None:
    """What a ledger could not give back is refused."""
    with pytest.raises(MemoryRefused, match="the value cannot be kept"):
        Kept().write("x", "fact", value, A)


@pytest.mark.parametrize("key", ["", "a\nb", "\x1b[31m", "x" * 201])
def test_a_key_is_short_and_printable(key: str) -> None:
    """A key stands in reports and prompts."""
    with pytest.raises(MemoryRefused, match="a key has 1 to 200 printable characters"):
        Kept().write(key, "fact", 1, A)


def test_a_value_is_a_copy() -> None:
    """What the writer changes afterwards changes nothing in the memory."""
    memory, value = Kept(), {"files": ["a"]}
    memory.write("x", "filestate", value, A)
    value["files"].append("b")
    entry = memory.read("x")
    assert entry is not None
    assert entry.value == {"files": ["a"]}


def test_subscribers_get_the_changes_of_others() -> None:
    """In their order, of the types that were asked for, and reads are no changes."""
    memory = Kept(max_entries=2)
    everything, decisions = memory.subscribe("fix"), memory.subscribe("watcher", ("decision",))
    memory.write("a", "fact", 1, A)
    memory.write("b", "decision", 2, B)
    memory.read("a")
    memory.write("c", "fact", 3, B)
    memory.delete("c", B)
    assert [(each["op"], each["key"]) for each in everything.take()] == [
        ("write", "b"),
        ("evict", "b"),
        ("write", "c"),
        ("delete", "c"),
    ]
    assert [(each["op"], each["key"]) for each in decisions.take()] == [("write", "b"), ("evict", "b")]
    assert everything.take() == []
    memory.unsubscribe(decisions)
    memory.write("d", "decision", 1, B)
    assert decisions.take() == []


def test_a_full_subscription_drops_and_counts() -> None:
    """What a subscriber does not take in time is not held without limit, and it is told."""
    memory = Kept()
    subscription = memory.subscribe("slow")
    for number in range(BUFFER + 7):
        memory.write("k", "fact", number, A)
    assert (len(subscription.take()), subscription.dropped) == (BUFFER, 7)


def test_a_change_that_is_unknown_is_a_bug() -> None:
    """The fold takes no change that it does not know."""
    with pytest.raises(InternalError, match="unknown change of the memory: swap"):
        Entries().apply({"op": "swap", "key": "x"})


Call = tuple[str, int, int]
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["write", "ttl", "read", "delete", "pass", "all"]),
        st.integers(0, 7),
        st.integers(1, 5),
    ),
    max_size=60,
)


def done(memory: Kept, call: Call) -> None:
    """Do one thing."""
    name, key, number = call
    if name == "write":
        memory.write(f"k{key}", "fact", number, A)
    elif name == "ttl":
        memory.write_with_ttl(f"k{key}", "insight", number, B, ttl=number)
    elif name == "read":
        memory.read(f"k{key}")
    elif name == "delete":
        memory.delete(f"k{key}", A)
    elif name == "pass":
        memory.clock.pass_by(number)
    else:
        memory.read_all()


@given(CALLS)
def test_a_journal_gives_the_same_memory_back(calls: list[Call]) -> None:
    """Entries, versions and the order in which they give way are those of the original, and so is what follows."""
    memory = Kept(max_entries=4)
    for call in calls:
        done(memory, call)
    again = Kept(max_entries=4)
    again.clock.now = memory.clock.now
    again.restore(memory.journal)
    assert again.journal == []
    assert (again.keys(), again.read_all()) == (memory.keys(), memory.read_all())
    before = len(memory.journal)
    for each in (memory, again):
        for key in range(8, 11):
            done(each, ("write", key, 1))
    assert memory.journal[before:] == again.journal
    assert memory.keys() == again.keys()


@given(CALLS)
def test_it_behaves_as_an_ordered_dictionary_with_a_limit(calls: list[Call]) -> None:
    """The model: a dictionary in the order of uses, from which expired and then the oldest entries go."""
    memory = Kept(max_entries=4)
    model: OrderedDict[str, tuple[int, str]] = OrderedDict()  # value and limit by key
    for name, key, number in calls:
        done(memory, (name, key, number))
        now, text = memory.clock.now, f"k{key}"
        if name in ("write", "ttl", "read", "delete"):
            for old in [each for each, (_, limit) in model.items() if limit and now >= limit]:
                del model[old]
        if name in ("write", "ttl"):
            if text not in model and len(model) == 4:
                model.popitem(last=False)
            entry = memory.read(text)
            assert entry is not None
            model[text] = (number, entry.expires_at)
            model.move_to_end(text)
        elif name == "read" and text in model:
            model.move_to_end(text)
        elif name == "delete":
            model.pop(text, None)
        assert len(memory) <= 4
        live = {each: value for each, (value, limit) in model.items() if not limit or now < limit}
        assert {entry.key: entry.value for entry in memory.read_all()} == live
        assert memory.keys() == list(model)


def test_the_tool_does_each_operation() -> None:
    """What a model can do with the memory, and what it gets back as JSON."""
    memory = Kept()
    mine, theirs = MemoryTool(memory, A), MemoryTool(memory, B)
    assert theirs.call({"op": "subscribe"}) == {"changes": [], "dropped": 0}
    assert mine.call({"op": "write", "key": "a", "type": "fact", "value": 1}) == {"key": "a", "version": 1}
    limited = mine.call({"op": "write_with_ttl", "key": "b", "type": "insight", "value": None, "ttl": 5})
    assert limited == {"key": "b", "version": 1, "expires_at": "2026-01-31T09:30:05.000Z"}
    found = theirs.call({"op": "read", "key": "a"})["entry"]
    assert (found["value"], found["agent"], found["trust"], found["expires_at"]) == (1, "fix", "model", None)
    assert theirs.call({"op": "read", "key": "nothing"}) == {"entry": None}
    by_type = theirs.call({"op": "read_by_type", "type": "insight"})["entries"]
    assert [entry["key"] for entry in by_type] == ["b"]
    assert [entry["key"] for entry in theirs.call({"op": "read_all"})["entries"]] == ["a", "b"]
    assert mine.call({"op": "delete", "key": "a"}) == {"deleted": True}
    changes = theirs.call({"op": "subscribe"})["changes"]
    assert [change["op"] for change in changes] == ["write", "write", "delete"]
    theirs.close()
    assert set(OPERATIONS) == set(MEMORY_TOOL["input_schema"]["properties"]["op"]["enum"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "op must be one of write, "),
        ({"op": "close"}, "op must be one of write, "),
        ({"op": "write", "type": "fact", "value": 1}, "key is missing, or no text"),
        ({"op": "write", "key": "a", "type": "fact"}, "value is missing"),
        (
            {"op": "write_with_ttl", "key": "a", "type": "fact", "value": 1, "ttl": True},
            "ttl must be a number",
        ),
        ({"op": "read_by_type", "type": "x"}, 'unknown type "x"'),
    ],
)
def test_wrong_arguments_are_refused_with_a_message_for_the_model(args: dict[str, Any], message: str) -> None:
    """A model can call the tool again, rightly."""
    with pytest.raises(MemoryRefused, match=message):
        MemoryTool(Kept(), A).call(args)
