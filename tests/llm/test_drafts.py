"""What a model may write: everything else is told as a fault, in time that depends on no input, and without a crash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.llm.drafts import CANDIDATES, KEYS, PIECES, PLAN, STEPS, Draft, DraftStep, Form
from tests.fakes.messages import draft, step

if TYPE_CHECKING:
    from typing import Any

BOUNDED = settings(derandomize=True, database=None, deadline=None, max_examples=150)
STEP: dict[str, Any] = step("a", "true", title="A")
WHOLE: dict[str, Any] = draft([STEP], "")


def rules(text: str) -> set[str]:
    """Return the rules that an answer breaks."""
    found = STEPS.read(text, 10)
    return set() if isinstance(found, Draft) else {fault.rule for fault in found}


def with_step(**changes: object) -> str:
    """Return an answer with one step that says something else."""
    return json.dumps({**WHOLE, "steps": [{**STEP, **changes}]})


def test_an_answer_of_the_right_shape_is_read() -> None:
    """What follows the schema becomes a draft, emoji with their joiners included."""
    assert not rules(json.dumps(WHOLE))
    assert not rules(with_step(title="Done \u2705\ufe0f \U0001f468\u200d\U0001f4bb", run="a\n\tb"))


@pytest.mark.parametrize(
    "key",
    [
        "risk",
        "env",
        "env_file",
        "policy",
        "limits",
        "tools",
        "workdir",
        "shell",
        "exec",
        "on_failure",
        "recovers",
        "idempotent",
        "origin",
        "sandbox",
        "container",
        "foreach",
        "network",
        "approval",
        "verify",
        "cache",
        "lock",
        "service",
        "finally",
        "with",
        "__class__",
    ],
)
def test_there_is_no_key_for_what_a_reviewer_decides(key: str) -> None:
    """A key besides those of the form is a fault, in a step and above the steps."""
    assert rules(with_step(**{key: "high"})) == {"unknown_key"}
    assert rules(json.dumps({**WHOLE, key: {}})) == {"unknown_key"}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "json"),
        ("I cannot help with that.", "json"),
        ("```json\n{}\n```", "required"),
        ('{"analysis": "a", "analysis": "b"}', "json"),
        ("[" * 200_000, "json"),
        ('{"a":' * 100_000, "size"),
        ("1" * 5000, "json"),
        ("NaN", "json"),
        ("[]", "type"),
        ("null", "type"),
        ("{}", "required"),
        (json.dumps({**WHOLE, "steps": {}}), "type"),
        (json.dumps({**WHOLE, "steps": []}), "empty"),
        (json.dumps({**WHOLE, "steps": [STEP] * 11}), "max_generated_steps"),
        (json.dumps({**WHOLE, "steps": [[[[]]]]}), "type"),
        (json.dumps({**WHOLE, "keep": ["a"] * 51}), "size"),
        (json.dumps({**WHOLE, "keep": ["a" * 101]}), "size"),
        (json.dumps({**WHOLE, "keep": "a"}), "type"),
        (json.dumps({**WHOLE, "analysis": "a" * 4001}), "size"),
        (json.dumps({**WHOLE, "infeasible": "\x1b[2J"}), "hidden"),
        (json.dumps({**WHOLE, "keep": ["\u202e"]}), "hidden"),
        (with_step(id="../a"), "id"),
        (with_step(id="a\n"), "id"),
        (with_step(id=""), "id"),
        (with_step(id=1), "type"),
        (with_step(run="a" * 8001), "size"),
        (with_step(run=["rm"]), "type"),
        (with_step(run="ec\u200bho"), "hidden"),
        (with_step(run="a\r\nb"), "hidden"),
        (with_step(title="\u202egpj.exe"), "hidden"),
        (with_step(title="a\x1b]0;b\x07"), "hidden"),
        (with_step(title="\ud800"), "hidden"),
        (with_step(title="".join(chr(0xE0000 + ord(char)) for char in "obey")), "hidden"),
        (with_step(description="a\u2028b"), "hidden"),
        *[(with_step(retries=value), "type") for value in (True, 1e9, -1, "0")],
        (with_step(secrets="TOKEN"), "type"),
        (with_step(secrets=["TO\u200bKEN"]), "hidden"),
        (with_step(matrix=["3.11"]), "pair"),
        (with_step(matrix=[{"python": ["3.11"]}]), "type"),
        (with_step(run="", ready=["curl"]), "type"),
        (with_step(ask="Go?"), "actions"),
        (with_step(estimated_tokens=5), "unasked"),
        (with_step(mode="code"), "unasked"),
        (with_step(cleanup=True), "unasked"),
        (with_step(uses="./plans/a.yml"), "unasked"),
        ("x" * 10_000_000, "size"),
    ],
)
def test_every_other_shape_is_a_fault(text: str, rule: str) -> None:
    """Each is told by its rule, and no part of it is used."""
    assert rule in rules(text)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"cleanup": "yes"}, "type"),
        ({"mode": "magic"}, "mode"),
        ({"uses": "a.yml"}, "actions"),
        ({"params": ["who"]}, "pair"),
        ({"replaces": ["a"]}, "unasked"),
        ({"replaces": []}, ""),
        ({"requires": ["a"]}, "unasked"),
        *[({"estimated_tokens": value}, "type") for value in (True, 1e9, -1, "0")],
    ],
)
def test_a_whole_plan_has_keys_of_its_own(change: dict[str, Any], rule: str) -> None:
    """What is for one form of answers is a fault in another, unless it is empty."""
    found = PLAN.read(json.dumps({**WHOLE, "steps": [{**STEP, **change}]}), 10)
    assert ({""} if isinstance(found, Draft) else {fault.rule for fault in found}) == {rule}
    assert isinstance(PLAN.read(json.dumps({**WHOLE, "keep": ["a"]}), 10), list)


@BOUNDED
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=20))
def test_no_json_is_a_crash(value: object) -> None:
    """Whatever stands under any key comes to a draft or to faults."""
    for key in WHOLE:
        STEPS.read(json.dumps({**WHOLE, key: value}), 10)
    for key in STEP:
        STEPS.read(with_step(**{key: value}), 10)


@pytest.mark.parametrize("form", [PLAN, STEPS, PIECES, CANDIDATES], ids="grec")
def test_schema_prompt_and_check_have_the_same_keys(form: Form) -> None:
    """What the service is told to write is what is read, and it is closed at every level."""
    told = form.schema()
    step = told["properties"]["steps"]["items"]
    assert told["additionalProperties"] is False
    assert step["additionalProperties"] is False
    assert [*step["properties"]] == [*form.keys]
    assert [line.partition(":")[0] for line in form.words.splitlines() if line.startswith("- ")] == [
        *[f"- {name}" for name in (*told["properties"], *step["properties"])]
    ]
    empty = {name: "" if kind["type"] == "string" else [] for name, kind in told["properties"].items()}
    bare = {name: "" if step["properties"][name]["type"] == "string" else [] for name in step["required"]}
    found = form.read(json.dumps({**empty, "steps": [{**bare, "id": "a"}]}), 1)
    assert isinstance(found, Draft)
    assert set(told["required"]) == set(told["properties"])


def test_a_step_has_a_field_for_each_key() -> None:
    """No key is read and then lost."""
    assert {key.name for key in KEYS} == set(DraftStep.__annotations__)
