"""Differences of two plans are complete: every key, no false difference, renamed steps matched."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planrun.diff import plans
from planrun.diff import plans as plain
from planrun.diff.differences import renamed
from planrun.diff.phrases import once_for_many, one_by_one
from planrun.diff.plans import compare
from planrun.diff.text import Texts
from planrun.errors import InvalidPlan
from planrun.plan.load import load_bytes
from planrun.plan.tables import OBJECTS
from tests.app.differing import (
    ACTIONS,
    BASE,
    DEFAULTS,
    OF_PLAN,
    OF_STEP,
    difference,
    plan_of,
    with_key,
    with_step,
)
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.model.plan import Plan


def live(name: str, *apart: str) -> set[str]:
    """Return the keys of an object of the plan language that this version knows, but for some."""
    return set(OBJECTS[name]) - set(apart)


def keys_of(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    """Return the first keys of all changes between two plans whose steps keep their ids."""
    compared = difference(old, new)
    own = {change.path[0] for step in compared.steps for change in step.changes}
    return own | {change.path[0] for change in (*compared.plan, *compared.policy)}


def test_there_is_a_pair_for_every_key() -> None:
    """The tables of these tests have each key of a step, of `defaults` and of a plan that can be used, no key less."""
    # `args` stand beside a tool alone: see tests/tools/test_steps_of_tools.py.
    # `matrix`, `foreach` and `uses` become steps of their own: see below.
    # `criteria` and `verify_timeout` stand beside `verify` alone: see below.
    apart: tuple[str, ...] = (
        "id",
        "args",
        "uses",
        "with",
        "matrix",
        "foreach",
        "ready",
        "criteria",
        "verify_timeout",
    )
    assert live("Step", *apart) <= set(OF_STEP) | set(ACTIONS)
    # `errors` decides what `retries: {on: auto}` repeats: see below.
    # `decision_timeout` is one of gates, which are no processes.
    assert live("Defaults", "errors", "decision_timeout") <= set(DEFAULTS)
    # A file with `template` is no plan that could be compared.
    # Changes of `containers` and `agents` are reported for the steps that share them,
    # those of a base plan for what it contributes: `extends-plan`.
    of_plan = (
        "$schema",
        "version",
        "steps",
        "finally",
        "defaults",
        "template",
        "extends",
        "containers",
        "agents",
    )
    assert live("Plan", *of_plan) <= set(OF_PLAN)


@pytest.mark.parametrize("key", sorted(live("Step") & set(OF_STEP)))
def test_every_key_of_a_step_is_reported(key: str) -> None:
    """A change of one key of one step is reported under its own name, and nothing else is."""
    old, new = ({"run": "echo subject", key: value} for value in OF_STEP[key])
    assert keys_of(with_step(**old), with_step(**new)) - {"depends_on"} == {key} - {"depends_on"}
    changes = difference(with_step(**old), with_step(**new))
    assert [step.step.id for step in changes.steps] == ["subject"]
    assert changes.steps[0].kind == "changed"


@pytest.mark.parametrize("key", sorted(live("Step") & set(ACTIONS)))
def test_every_action_is_reported(key: str) -> None:
    """A change of an action is reported under its name; so is a change to another kind of action."""
    old, new = ACTIONS[key]
    assert keys_of(with_step(**{key: old}), with_step(**{key: new})) == {key}
    assert (
        keys_of(with_step(run="something else"), with_step(**{key: new})) == {"run", key}
        if key != "run"
        else {"run"}
    )


@pytest.mark.parametrize("key", sorted(live("Plan") & set(OF_PLAN)))
def test_every_key_of_a_plan_is_reported(key: str) -> None:
    """A change of one top-level key is reported under its name, also of `secrets` that no step lists."""
    old, new = (with_key(key, value, BASE) for value in OF_PLAN[key])
    # A decision at the top is a step of its own.
    assert keys_of(old, new) == ({"decide"} if key == "decisions" else {key})


def test_a_change_of_an_agent_is_reported_for_the_steps_that_use_it() -> None:
    """An agent that no step uses changes nothing."""
    own = {"description": "Reviews.", "tools": ["read"], "prompt": "Review."}
    for type_, reported in (("reviewer", {"agent"}), ("explore", set())):
        step = with_step(agent={"type": type_, "prompt": "Look."})
        old, new = (
            {**step, "agents": {"reviewer": {**own, "tools": tools}}} for tools in (["read"], ["grep"])
        )
        assert keys_of(old, new) == reported


def test_a_time_limit_of_verification_is_reported_and_criteria_are_prose() -> None:
    """What stands beside `verify` alone: its time limit is a change of the step; criteria are words for people."""
    step = {"run": "echo subject", "verify": "ls"}
    old, new = with_step(**step, verify_timeout="1m"), with_step(**step, verify_timeout="2m")
    assert keys_of(old, new) == {"verify_timeout"}
    old, new = with_step(**step, criteria=["A"]), with_step(**step, criteria=["B"])
    assert keys_of(old, new) == {"criteria"}


def test_handling_of_unknown_errors_is_reported_as_retries() -> None:
    """`errors: {unknown: retry}` changes what `retries: {on: auto}` of the same defaults repeats."""
    auto = {"retries": {"on": "auto"}}
    old, new = ({**BASE, "defaults": {**auto, "errors": {"unknown": word}}} for word in ("fail", "retry"))
    assert keys_of(old, new) == {"retries"}


def test_disabling_rollback_is_reported_for_steps_with_a_rollback() -> None:
    """`defaults.rollback: false` is a change of each step that is not undone any more, and of no other."""
    sides = [with_step(run="ls", rollback={"run": "ls -l"}) for _ in range(2)]
    old, new = ({**side, "defaults": {"rollback": on}} for side, on in zip(sides, (True, False), strict=True))
    changes = difference(old, new)
    assert {(step.step.id, change.path[0]) for step in changes.steps for change in step.changes} == {
        ("subject", "rollback")
    }


@pytest.mark.parametrize("key", sorted(set(DEFAULTS) - {"rollback"}))
def test_a_default_is_reported_once_with_its_steps(key: str) -> None:
    """A change of `defaults` is one change for all steps, and the steps are named beside it."""
    old, new = ({**BASE, "defaults": with_key(key, value, {})} for value in DEFAULTS[key])
    changes = difference(old, new)
    if key == "inherit_env":
        assert [change.key for change in changes.plan] == ["defaults.inherit_env"]
        return
    assert {change.path[0] for step in changes.steps for change in step.changes} == {key}
    ((change, steps),) = once_for_many(changes)
    assert (change.path[0], steps) == (key, ["first", "other", "subject", "tidy"])
    assert one_by_one(changes, [(change, steps)]) == []


def plans_of_the_repository() -> list[Path]:
    """Return every plan of the cases and of the repository itself."""
    return sorted([*(ROOT / "plans").glob("*.yml"), *(ROOT / "tests" / "cases").glob("*/plan*.yml")])


def valid_plans() -> list[Plan]:
    """Return those of them that are valid."""
    readable = []
    for path in plans_of_the_repository():
        try:
            readable.append(load_bytes(path.read_bytes(), path.name, cache=False))
        except InvalidPlan:
            continue
    return readable


def test_a_plan_is_no_different_from_itself() -> None:
    """No plan of this repository differs from itself, nor from itself written in another way."""
    plans = valid_plans()
    assert len(plans) > 80
    for plan in plans:
        again = load_bytes(reformatted(plan.source), plan.file, cache=False)
        assert not compare(plan, plan, renamed(plan, plan)), plan.name
        assert not compare(plan, again, renamed(plan, again)), plan.name
        assert plan.digest == again.digest


def reformatted(source: bytes) -> bytes:
    """Return the text of a plan with a comment before each line that begins a list or mapping of the top level."""
    lines = source.decode().split("\n")
    return "\n".join([f"# about it\n{line}" if line[:1].isalpha() else line for line in lines]).encode()


def test_two_plans_differ_exactly_when_their_digests_do() -> None:
    """Over all pairs of plans that follow each other: a difference is found where the digest moved, and only there."""
    repository_plans = valid_plans()
    for old, new in zip(repository_plans, [*repository_plans[1:], repository_plans[0]], strict=True):
        assert bool(compare(old, new, renamed(old, new))) == (old.digest != new.digest)
        assert bool(compare(old, new)) == (old.digest != new.digest)


_PAIRS = [("step", key) for key in sorted(live("Step") & set(OF_STEP))]
_PAIRS += [("plan", key) for key in sorted(live("Plan") & set(OF_PLAN) - {"decisions", "secrets"})]


# Keys whose values in these tables contradict each other in one step: such a plan is an error.
_APART = (
    *(
        {"service", key}
        for key in ("cache", "produces", "outputs", "expect", "verify", "idle_timeout", "parallel")
    ),
    {"cache", "idempotent"},
    {"cache", "writes"},
    {"depends_on", "recovers"},
    {"depends_on", "replaces"},
    {"recovers", "replaces"},
    {"reversible", "rollback"},
    *(
        {"service", key}
        for key in ("cache", "expect", "idle_timeout", "outputs", "parallel", "produces", "verify")
    ),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(_PAIRS), unique=True, min_size=1, max_size=6), st.randoms(use_true_random=False)
)
def test_mutations_of_several_keys_are_all_found(
    chosen: list[tuple[str, str]], chance: random.Random
) -> None:
    """All keys that change at once are reported, in both directions."""
    assume(not any(apart <= {key for where, key in chosen if where == "step"} for apart in _APART))
    sides: list[dict[str, Any]] = [{**BASE}, {**BASE}]
    subjects: list[dict[str, Any]] = [{"run": "echo subject"}, {"run": "echo subject"}]
    for where, key in chosen:
        values = list((OF_STEP if where == "step" else OF_PLAN)[key])
        chance.shuffle(values)
        for number, value in enumerate(values):
            if where == "step":
                subjects[number] = with_key(key, value, subjects[number])
            else:
                sides[number] = with_key(key, value, sides[number])
    old, new = (
        {**side, "steps": with_step(**own)["steps"]} for side, own in zip(sides, subjects, strict=True)
    )
    assert plan_of(old).digest != plan_of(new).digest
    assert {key for _where, key in chosen} <= keys_of(old, new)


def test_instances_are_reported_as_steps() -> None:
    """Another value is another step; changes of all instances are reported for the group; lists as is."""
    old = with_step(run="echo ${{ matrix.n }}", matrix={"n": [1, 2]})
    new = with_step(run="echo ${{ matrix.n }}", matrix={"n": [1, 2, 3], "fail_fast": True})
    changed = difference(old, new).steps
    assert [(step.kind, step.step.id) for step in changed] == [
        ("changed", "subject"),
        ("added", "subject[n=3]"),
    ]
    assert [change.key for change in changed[0].changes] == ["group.fail_fast", "group.instances"]
    lists = [with_step(run="echo ${{ item }}", foreach="${{ " + name + " }}") for name in ("[1]", "[2]")]
    (step,) = difference(*lists).steps
    assert [(change.key, change.old, change.new) for change in step.changes] == [
        ("group.items", "[1]", "[2]")
    ]


def test_a_key_without_a_description_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the description of a key, the canonical form still shows that it changed."""
    monkeypatch.setitem(plain._FORMS, "seconds", lambda _value: "some time")
    (step,) = difference(with_step(run="a", timeout="1m"), with_step(run="a", timeout="2m")).steps
    (change,) = step.changes
    assert (change.key, change.note) == ("timeout", "spelled differently, which changes the digest")


def steps(*rows: dict[str, Any]) -> dict[str, Any]:
    """Return a plan of these steps."""
    return {"version": 1, "name": "steps", "steps": list(rows)}


def test_a_step_under_another_id_is_renamed_and_so_are_its_edges() -> None:
    """Same action and edges under another id is a rename; who waits for it by its new id has not changed."""
    old = steps(
        {"id": "a", "run": "1"},
        {"id": "b", "run": "2", "depends_on": ["a"]},
        {"id": "c", "run": "3", "depends_on": ["b"]},
    )
    new = steps(
        {"id": "x", "run": "1"},
        {"id": "y", "run": "2", "depends_on": ["x"]},
        {"id": "c", "run": "3", "depends_on": ["y"]},
    )
    changes = difference(old, new)
    assert [(step.kind, step.old and step.old.id, step.step.id) for step in changes.steps] == [
        ("renamed", "a", "x"),
        ("renamed", "b", "y"),
    ]
    other = difference(old, steps(*new["steps"][:2], {"id": "c", "run": "3", "depends_on": ["x"]}))
    assert [change.key for change in other.steps[-1].changes] == ["depends_on.x", "depends_on.y"]


def test_steps_that_are_known_by_their_number_are_known_by_what_they_do() -> None:
    """A step put in front of steps without ids is one new step, and the numbers of the others are no change."""
    old = steps({"run": "a"}, {"run": "b", "depends_on": [1]}, {"run": "c", "depends_on": [2]})
    new = steps({"run": "x"}, {"run": "a"}, {"run": "b", "depends_on": [2]}, {"run": "c", "depends_on": [3]})
    changes = difference(old, new)
    assert [(step.kind, step.step.id) for step in changes.steps] == [
        ("added", "1"),
        ("renamed", "2"),
        ("renamed", "3"),
        ("renamed", "4"),
    ]
    assert not any(step.changes for step in changes.steps[1:])


def test_an_edge_to_a_new_step_under_an_old_number_is_a_change() -> None:
    """A step that still says `depends_on: [1]`, where 1 is another step now, waits for something else."""
    old = steps({"run": "a"}, {"id": "z", "run": "b", "depends_on": [1]})
    new = steps({"run": "x"}, {"run": "a"}, {"id": "z", "run": "b", "depends_on": [1]})
    assert [change.key for change in difference(old, new).steps[-1].changes] == [
        "depends_on.1",
        "depends_on.2",
    ]


def test_steps_that_moved_are_as_few_as_can_be() -> None:
    """The order of the file counts; of five steps of which one moved, one is reported, with its position."""
    rows_ = [{"id": name, "run": name} for name in "abcde"]
    (step,) = difference(steps(*rows_), steps(*rows_[1:4], rows_[0], rows_[4])).steps
    assert (step.step.id, step.after, step.kind) == ("a", "d", "changed")


def test_a_step_that_moves_to_finally_is_reported() -> None:
    """The section is a change like any other."""
    old = steps({"id": "a", "run": "a"}, {"id": "b", "run": "b"})
    new = {**steps({"id": "a", "run": "a"}), "finally": [{"id": "b", "run": "b"}]}
    (step,) = difference(old, new).steps
    assert [(change.key, change.old, change.new) for change in step.changes] == [
        ("section", "steps", "finally")
    ]


def test_lines_of_a_script_are_compared_with_little_around() -> None:
    """A line that changed stands between two lines before and two after; the others are counted."""
    old = "\n".join([f"line {number}" for number in range(20)])
    assert Texts().rows(old, old.replace("line 10", "another")) == [
        ("…", "8 lines the same"),
        (" ", "line 8"),
        (" ", "line 9"),
        ("-", "line 10"),
        ("+", "another"),
        (" ", "line 11"),
        (" ", "line 12"),
        ("…", "7 lines the same"),
    ]


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_the_lines_of_a_diff_make_both_texts(old: list[str], new: list[str]) -> None:
    """Without what is left out: the lines of the old text are those that stay and go, and so for the new one."""
    rows = Texts().rows("\n".join(old), "\n".join(new))
    if any(sign == "…" for sign, _line in rows):
        return
    assert [line for sign, line in rows if sign in " -"] == (old or [""]) or old == new
    assert [line for sign, line in rows if sign in " +"] == (new or [""]) or old == new


def test_large_texts_that_have_nothing_in_common_are_not_compared_for_long() -> None:
    """What is too large to look for common lines is all gone and all new; nothing is lost."""
    old, new = [str(number) for number in range(2000)], [str(-number) for number in range(1, 2000)]
    rows = Texts().rows("\n".join(old), "\n".join(new))
    assert [line for sign, line in rows if sign == "-"] == old
    assert [line for sign, line in rows if sign == "+"] == new


def test_large_plans_are_compared() -> None:
    """2,000 steps on each side, all of them renamed, each waiting for the one before, are matched one to one."""

    def chain(name: str) -> str:
        first = f"version: 1\nname: chain\nsteps:\n  - {{id: {name}0, run: 'true'}}\n"
        return first + "".join(
            f"  - {{id: {name}{n}, run: 'true', depends_on: [{name}{n - 1}]}}\n" for n in range(1, 2000)
        )

    changes = difference(chain("a"), chain("b"))
    assert {step.kind for step in changes.steps} == {"renamed"}
    assert len(changes.steps) == 2000


@pytest.mark.parametrize("field", ["timeout", "edges", "condition", "env", "secrets", "retries", "action"])
def test_a_field_that_is_left_out_is_noticed_by_these_tests(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comparison without one field of a step fails the tests above: some pair of plans seems equal."""
    monkeypatch.setattr("planrun.diff.plans._NOT_SHOWN", plans._NOT_SHOWN | {field})
    pairs = [*OF_STEP.items(), *((key, pair) for key, pair in ACTIONS.items() if key in live("Step"))]
    missed = []
    for key, pair in pairs:
        action = {} if key in ACTIONS else {"run": "echo subject"}
        old, new = (with_step(**{**action, key: value}) for value in pair)
        if plan_of(old).digest != plan_of(new).digest and key not in keys_of(old, new):
            missed.append(key)
    assert missed


def test_lines_that_are_changed_at_random_are_found_exactly_when_the_digest_moves() -> None:
    """400 edits of single lines, seed 7, in plans of this repository: different where the digest moved, only there."""
    chance = random.Random(7)
    repository_plans = valid_plans()
    tried = moved = 0
    while tried < 400:
        old = chance.choice(repository_plans)
        lines = old.source.decode().split("\n")
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[at], lines[other] = chance.choice(
            [(lines[other], lines[at]), (lines[at].replace("1", "2"), lines[other]), ("", lines[other])]
        )
        try:
            new = load_bytes("\n".join(lines).encode(), old.file, cache=False)
        except InvalidPlan:
            continue
        difference_ = compare(old, new, renamed(old, new))
        assert bool(difference_) == (old.digest != new.digest), "\n".join(lines)
        tried, moved = tried + 1, moved + (old.digest != new.digest)
    assert 50 < moved < 400


def test_a_change_in_a_used_plan_is_reported_for_its_steps() -> None:
    """The step of the other plan that changed is named by its id here, and nothing else is."""
    text = b"version: 1\nsteps: [{id: s, uses: sub.yml}]\n"
    sub = b"version: 1\nsteps: [{id: a, run: echo a}, {id: b, run: echo b}]\n"
    old = load_bytes(text, "plan.yml", cache=False, read=lambda _: sub)
    new = load_bytes(text, "plan.yml", cache=False, read=lambda _: sub.replace(b"echo b", b"echo c"))
    changes = compare(old, new, renamed(old, new))
    assert [(change.kind, change.step.id) for change in changes.steps] == [("changed", "s/b")]


@pytest.mark.parametrize(
    ("fields", "key", "shown"),
    [
        ({"produces": ["b"], "cache": True, "inputs": ["a"]}, "cache", True),
        ({"produces": ["b"], "cache": {"key": "1"}, "inputs": ["a"]}, "cache", {"key": "1"}),
        ({"reports": {"junit": ["a.xml", "b.xml"]}}, "reports", {"junit": ["a.xml", "b.xml"]}),
    ],
)
def test_a_value_is_spelled_as_in_a_plan(fields: dict[str, Any], key: str, shown: object) -> None:
    """A difference has no name of a class of planrun, and `true` where a plan has `true`."""
    changes = difference(with_step(run="ls"), with_step(run="ls", **fields)).steps[0].changes
    assert [change.new for change in changes if change.path[0] == key] == [shown]
