"""The writer of plan text: whatever a model wrote is read back as it was, and nothing of it becomes anything else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from planrun.llm.drafts import DraftStep
from planrun.llm.plantext import comment, plan_text, step_text
from planrun.plan.load import load_bytes
from planrun.plan.yaml.document import MAPPING, SEQUENCE, Node, parse

NOTHING = DraftStep(id="a")
# What YAML makes something of, together with what it does not.
SHARP = st.text(
    st.sampled_from("a\n\t\r #:-'\"\\{}[]|>&*!%@`,?~=\0\x85\u2028\u200b\u202e\ufeffé😀y1.$"), max_size=40
)
TEXTS = st.one_of(st.text(max_size=60), SHARP)
WORDS = st.lists(TEXTS, max_size=4).map(tuple)
VALUES = st.recursive(
    st.one_of(
        TEXTS, st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def plain(node: Node) -> Any:
    """Return a tree as data, every scalar as its text."""
    if node.kind == MAPPING:
        return {key: plain(value) for key, value in node.value.items()}
    return [plain(each) for each in node.value] if node.kind == SEQUENCE else node.value


def spelt(value: Any) -> Any:
    """Return plain data as a tree of texts: what a reader finds of it."""
    if isinstance(value, dict):
        return {key: spelt(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [spelt(each) for each in value]
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def readable(text: str) -> bool:
    """Whether a plan can hold a text at all: no process can be given NUL, and half a character is none."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def told(step: DraftStep) -> dict[str, Any]:
    """Return the keys that a step's text must have, as texts."""
    keys: dict[str, Any] = {"id": step.id}
    for name in ("title", "description", "condition", "run"):
        keys |= {name: getattr(step, name)} if getattr(step, name) else {}
    for name in ("depends_on", "replaces"):
        keys |= {name: list(getattr(step, name))} if getattr(step, name) else {}
    keys |= {"outputs": dict.fromkeys(step.outputs, "string")} if step.outputs else {}
    keys |= {"estimated_tokens": str(step.estimated_tokens)} if step.estimated_tokens else {}
    return keys


STEPS = st.builds(
    DraftStep,
    id=TEXTS,
    title=TEXTS,
    description=TEXTS,
    run=TEXTS,
    condition=TEXTS,
    review=TEXTS,
    depends_on=WORDS,
    replaces=WORDS,
    outputs=WORDS,
    estimated_tokens=st.integers(0, 10**9),
)


@given(STEPS, st.integers(0, 8), WORDS)
def test_every_text_is_read_as_it_was_written(step: DraftStep, indent: int, notes: tuple[str, ...]) -> None:
    """Any draft becomes one entry of a list, with its own keys and values and no others."""
    text = f"steps:\n{step_text(step, indent, {}, notes)}"
    root, problems = parse(text.encode("utf-8", "surrogatepass"), "plan.yml")
    texts = [step.id, step.title, step.description, step.run, step.condition]
    texts += [*step.depends_on, *step.replaces, *step.outputs]
    if not all(map(readable, texts)):
        assert problems, "what no plan can hold is found by the reader"
        return
    assert problems == []
    assert root is not None
    assert plain(root) == {"steps": [told(step)]}


@given(STEPS)
def test_readers_of_yaml_1_1_find_the_same_texts(step: DraftStep) -> None:
    """PyYAML's own loader, which takes `no` for false and dates for dates, reads every text as text."""
    words = step.but(id="s", depends_on=(), replaces=(), outputs=())
    if not all(map(readable, [words.title, words.description, words.run, words.condition])):
        return
    found = yaml.safe_load(step_text(words, 2, {}))[0]
    for name in ("title", "description", "run", "condition"):
        assert found.get(name, "") == getattr(words, name)


@given(st.dictionaries(TEXTS.filter(readable), VALUES, max_size=4))
@example(
    {"env": {"A": "no"}, "retries": {"max": 2, "on": ["timeout", {"exit": [75]}]}, "empty": {}, "none": []}
)
def test_more_keys_are_read_as_they_were_given(extra: dict[str, Any]) -> None:
    """Plain data of any depth is written so that a reader finds it again, keys and all."""
    extra.pop("id", None)
    text = f"steps:\n{step_text(NOTHING, 2, extra)}"
    root, problems = parse(text.encode("utf-8", "surrogatepass"), "plan.yml")
    if problems:
        assert {problem.code for problem in problems} <= {"E114", "E010"}
        return
    assert root is not None
    assert plain(root) == {"steps": [{"id": "a", **spelt(extra)}]}


@given(TEXTS)
def test_a_comment_is_one_line_that_can_be_seen(text: str) -> None:
    """No text leaves its comment, and none holds what a terminal would obey."""
    line = comment(text)
    assert line.startswith("#")
    assert line.isprintable()
    assert len(line) <= 520


@pytest.mark.parametrize(
    "text",
    [
        "x\nrisk: low",
        "x\n  secrets: [A]",
        "x\n- id: b\n  run: rm -rf /",
        "x\r\npolicy: {auto_approve: high}",
        "x\u2028policy: {auto_approve: high}",
        "x\x85policy: {auto_approve: high}",
        "x # y",
        "*a",
        "&a b",
        "!!python/object x",
        "a: b",
        "--- \n...",
        "'",
        '"',
        "\\",
        "\ttab",
        "  begins with blanks\nend",
        "\n\nbegins with lines",
    ],
)
def test_nothing_opens_a_key_of_its_own(text: str) -> None:
    """A text that looks like YAML stays the value that it is, in every key that holds one."""
    step = NOTHING.but(
        title=text, description=text, run=text, condition=text, review=text, depends_on=(text,)
    )
    root, problems = parse(step_text(step, 0, {}, [text]).encode(), "plan.yml")
    assert root is None  # a list is no plan, and nothing else is there
    assert [problem.code for problem in problems] == ["E101"]
    whole, problems = parse(plan_text([text], {"goal": text}, [step_text(step, 2, {})]).encode(), "plan.yml")
    assert problems == []
    assert whole is not None
    assert plain(whole) == {"goal": text, "steps": [told(step)]}


def test_a_plan_reads_as_a_person_would_write_it() -> None:
    """Plain words stay plain, scripts stand as they are, and what a reviewer should look at stands above."""
    step = NOTHING.but(
        id="build",
        title="Build it",
        run='set -x\necho "a: b" > out\n',
        depends_on=("test", "3", "no"),
        outputs=("sha",),
        review="It writes\nout.",
        estimated_tokens=1000,
        condition="steps.test.status == 'completed'",
    )
    text = plan_text(
        ["one", ""],
        {"version": 1, "name": "x", "policy": {"auto_approve": "medium"}},
        [
            step_text(NOTHING.but(run="pytest -q"), 2, {}),
            step_text(step, 2, {"timeout": "10m"}, ["risk low"]),
        ],
    )
    assert (
        text
        == """\
# one
#
version: 1
name: x
policy: {auto_approve: medium}

steps:
  - id: a
    run: pytest -q

  # risk low
  # review: It writes out.
  - id: build
    title: Build it
    depends_on: [test, 3, "no"]
    condition: steps.test.status == 'completed'
    run: |
      set -x
      echo "a: b" > out
    outputs: {sha: string}
    estimated_tokens: 1000
    timeout: "10m"
"""
    )


def test_a_written_plan_loads() -> None:
    """The text goes through the same door as any plan."""
    steps = [NOTHING.but(run="echo hi"), NOTHING.but(id="2", run="echo $$\n", depends_on=("a",))]
    text = plan_text([], {"version": 1}, [step_text(step, 2, {}) for step in steps])
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    assert [step.id for step in plan.steps] == ["a", "2"]
    assert [edge.on for edge in plan.steps[1].edges] == ["a"]
