"""What was learned from errors: normalised messages, weights, limits, and the file of several runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.agents import learned
from planrun.agents.learned import FILE, ErrorStore, clear, entry_id, moved, normalised
from planrun.clock import later
from tests.agents.moments import START

if TYPE_CHECKING:
    from pathlib import Path

MONTH = 31 * 86400.0


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("cat: src/app.py: No such file or directory", "cat: <path>: No such file or directory"),
        ("cat: ../lib/x/y.c: No such file or directory", "cat: <path>: No such file or directory"),
        ("open /home/me/.cache/x: denied", "open <path>: denied"),
        ("main.c:12:5: error: x", "<path>:<n>:<n>: error: x"),
        ("timed out after 120.5 seconds", "timed out after <n> seconds"),
        ("exit code -9", "exit code <n>"),
        ("at 0x7ffee4c0: fault", "at <hex>: fault"),
        ("commit 3f2a9bc1d0 is gone", "commit <hex> is gone"),
        ("GET https://example.com/a?b=1 failed with 503", "GET <url> failed with <n>"),
        ("2026-01-31T09:30:00.125Z lost", "<time> lost"),
        ("id 123e4567-e89b-12d3-a456-426614174000 unknown", "id <id> unknown"),
        ("C:\\Users\\me\\x.txt is locked", "<path> is locked"),
        ("\x1b[31mKeyError: 'name'\x1b[0m", "KeyError: 'name'"),
        ("Traceback:\n  File x\nKeyError: 'name'\n\n", "KeyError: 'name'"),
        ("deadbeef without a digit stays; facade too", "deadbeef without a digit stays; facade too"),
        ("x" * 400, "x" * 300),
        ("", ""),
        (" \n\t\n", ""),
    ],
)
def test_what_differs_from_time_to_time_becomes_a_placeholder(message: str, pattern: str) -> None:
    """So the same error is found again in another file, at another time."""
    assert normalised(message) == pattern


@given(st.text(alphabet=st.sampled_from("ab1.:/\\-_<>~' 0xf\n"), max_size=80) | st.text(max_size=80))
def test_what_is_normalised_stays_so(message: str) -> None:
    """Of any text, in one line of bounded length."""
    pattern = normalised(message)
    assert normalised(pattern) == pattern
    assert "\n" not in pattern
    assert len(pattern) <= 300


def test_a_weight_begins_at_a_half_and_moves_by_three_tenths() -> None:
    """0.5, 0.65, 0.755 by successes; 0.35, 0.245 by failures."""
    assert [moved(0.5, ok=True), moved(0.65, ok=True)] == [0.65, 0.755]
    assert [moved(0.5, ok=False), moved(0.35, ok=False)] == [0.35, 0.245]


@given(st.lists(st.booleans(), max_size=80))
def test_a_weight_stays_between_0_and_1(results: list[bool]) -> None:
    """A success never lowers it, a failure never raises it."""
    weight = 0.5
    for ok in results:
        after = moved(weight, ok=ok)
        assert 0 <= after <= 1
        assert after >= weight if ok else after <= weight
        weight = after


def test_a_solution_is_found_for_the_same_error_in_another_file() -> None:
    """And for one with mostly the same words in the same category."""
    store = ErrorStore()
    store.learn("cat: a/b.txt: No such file or directory", "file_not_found", "glob first", START, ok=True)
    for message in ("cat: x/y/z.txt: No such file or directory", "ls: q/z: No such file or directory"):
        [entry] = store.offered(message, "file_not_found")
        assert (entry.solution, entry.weight, entry.count) == ("glob first", 0.65, 1)
    assert store.offered("ls: q/z: No such file or directory", "timeout") == ()
    assert store.offered("something else entirely", "file_not_found") == ()
    assert store.offered("", "file_not_found") == ()


def test_the_best_three_solutions_are_offered() -> None:
    """In the order of their weights; one that failed more than it helped is not offered."""
    store = ErrorStore()
    for number in range(5):
        for _ in range(number):
            store.learn("KeyError: 'a'", "logic_error", f"fix {number}", START, ok=True)
    store.learn("KeyError: 'a'", "logic_error", "bad", START, ok=False)
    assert [entry.solution for entry in store.offered("KeyError: 'a'")] == ["fix 4", "fix 3", "fix 2"]
    assert len(store) == 5


def test_success_raises_and_failure_lowers() -> None:
    """By exact steps, and the counts say of how many results a weight is."""
    store = ErrorStore()
    weights = []
    for ok in (True, True, False, True):
        store.learn("Timeout after 3 seconds", "timeout", "one test", START, ok=ok)
        weights += [entry.weight for entry in store.entries.values()]
    assert weights == [0.65, 0.755, 0.5285, 0.66995]
    assert [(entry.count, entry.successes) for entry in store.entries.values()] == [(4, 3)]


def test_nothing_is_learned_without_a_text() -> None:
    """Neither from an empty message nor from an empty solution."""
    store = ErrorStore()
    assert store.learn(" \n", "unknown", "x", START, ok=True) is None
    assert store.learn("x", "unknown", " ", START, ok=True) is None
    assert len(store) == 0


def test_the_worst_entry_gives_way_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lowest weight, and among those the least recently used. The limit is 5000."""
    assert learned.MAX_ERRORS == 5000
    monkeypatch.setattr(learned, "MAX_ERRORS", 3)
    store = ErrorStore()
    for name, ok in (("a", True), ("b", False), ("c", False), ("d", True)):
        store.learn(f"error {name * 3}", "unknown", "x", START, ok=ok)
    assert [entry.pattern for entry in store.entries.values()] == ["error aaa", "error ccc", "error ddd"]


def test_what_helped_rarely_and_is_old_is_pruned() -> None:
    """Both have to hold: a weight under 0.3, and 30 days without use."""
    store = ErrorStore()
    for name, results in (("bad", (False, False)), ("good", (True,)), ("weak", (False,))):
        for ok in results:
            store.learn(f"error {name}", "unknown", "x", START, ok=ok)
    assert store.prune(later(START, 29 * 86400)) == 0
    assert store.prune(later(START, MONTH)) == 1
    assert [entry.pattern for entry in store.entries.values()] == ["error good", "error weak"]


def test_two_runs_add_to_the_same_file(tmp_path: Path) -> None:
    """The second one had loaded the file before the first one wrote; nothing is lost, nothing counts twice."""
    folder = str(tmp_path / "kept")
    first, second = ErrorStore(), ErrorStore()
    second.load(folder)
    for store in (first, second):
        store.learn("KeyError: 'a'", "logic_error", "check the keys", START, ok=True)
        store.save(folder, START)
        store.save(folder, START)
    again = ErrorStore()
    again.load(folder)
    [entry] = again.entries.values()
    assert (entry.count, entry.weight) == (2, 0.755)
    assert again.as_data() == second.as_data()


def test_clearing_forgets_everything(tmp_path: Path) -> None:
    """And says how much that was; in an empty folder it writes nothing."""
    folder = str(tmp_path / "kept")
    assert clear(folder) == 0
    assert not (tmp_path / "kept").exists()
    store = ErrorStore()
    store.learn("KeyError: 'a'", "logic_error", "x", START, ok=True)
    store.save(folder, START)
    assert clear(folder) == 1
    assert clear(folder) == 0


def test_a_damaged_entry_is_left_out(tmp_path: Path) -> None:
    """Of a file that somebody edited the good entries are taken."""
    store = ErrorStore()
    store.learn("KeyError: 'a'", "logic_error", "x", START, ok=True)
    [good] = store.as_data()["errors"]
    wrong: list[Any] = [
        {},
        [],
        "x",
        {**good, "weight": 7},
        {**good, "weight": "1"},
        {**good, "count": -1},
        {**good, "last_at": "yesterday"},
        {**good, "solution": "rm -rf ."},  # the id is that of another solution
        {**good, "category": None},
    ]
    (tmp_path / FILE).write_text(json.dumps({"form": "planrun errors 1", "errors": [good, *wrong]}))
    again = ErrorStore()
    again.load(str(tmp_path))
    assert list(again.entries) == [good["id"]] == [entry_id("KeyError: 'a'", "x")]
    assert again.as_data() == store.as_data()
