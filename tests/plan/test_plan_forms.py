"""Scalars are what their place wants: text everywhere it is wanted, and few things where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from planrun.plan.schema.forms import as_bool, as_duration, as_int, as_number, as_text, to_data
from planrun.plan.schema.shape import read
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import SCALAR, Node


def plain(text: str) -> Node:
    """Return an unquoted scalar."""
    return Node(SCALAR, text, 1, 1, True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("30s", 30),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("0s", 0),
        ("1m30s500ms", 90.5),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """A duration is a sum of amounts with units."""
    assert as_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "30", "s", "1d", "30 s", "-5s", "5S", "1:30", "5m ", "1e3s", ".5s", "5s5", "\u0665s"]
)
def test_what_is_no_duration(text: str) -> None:
    """Everything else is refused, above all a number without a unit."""
    with pytest.raises(ValueError, match="duration"):
        as_duration(text)


@pytest.mark.parametrize("text", ["0", "7", "-3", "+3", "123456789012345678"])
def test_whole_numbers(text: str) -> None:
    """Decimal digits with a sign are a whole number."""
    assert as_int(plain(text)) == int(text)
    assert as_number(plain(text)) == int(text)


@pytest.mark.parametrize(
    "text", ["0755", "0x1F", "0o17", "1_000", "1:30", "1e3", "1.0", "yes", "", "~", "\u0661", "9" * 5000]
)
def test_what_is_no_whole_number(text: str) -> None:
    """Octal, hexadecimal, sexagesimal and the like are not, nor is a number in quotes."""
    with pytest.raises(ValueError, match="not an integer"):
        as_int(plain(text))
    with pytest.raises(ValueError, match="not an integer"):
        as_int(Node(SCALAR, "7", 1, 1))


@pytest.mark.parametrize(
    ("text", "number"), [("1.5", 1.5), (".5", 0.5), ("2.", 2.0), ("1e3", 1000.0), ("-1.5e-2", -0.015)]
)
def test_numbers(text: str, number: float) -> None:
    """Decimal fractions and exponents are numbers."""
    assert as_number(plain(text)) == number


@pytest.mark.parametrize("text", [".inf", ".nan", "nan", "inf", "1e999", "0755", "1_0.5"])
def test_what_is_no_number(text: str) -> None:
    """Infinity and what readers disagree about are not."""
    with pytest.raises(ValueError, match="number"):
        as_number(plain(text))


def test_booleans() -> None:
    """True and false are booleans, in the three spellings of YAML 1.2; yes and no never are."""
    assert [as_bool(plain(text)) for text in ("true", "True", "TRUE", "false", "False", "FALSE")] == [
        True
    ] * 3 + [False] * 3
    for node in (plain("yes"), plain("on"), plain("1"), plain("tRUE"), Node(SCALAR, "true", 1, 1)):
        with pytest.raises(ValueError, match="not a boolean"):
            as_bool(node)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{a: [1, 2.5, true, null, x]}", {"a": [1, 2.5, True, None, "x"]}),
        ("{a: ['1', \"true\", '']}", {"a": ["1", "true", ""]}),
        ("{a: ~, b: , c: {}}", {"a": None, "b": None, "c": {}}),
        ("{a: [yes, 1:30, 2024-01-31]}", {"a": ["yes", "1:30", "2024-01-31"]}),
    ],
)
def test_plain_data(text: str, data: Any) -> None:
    """Where any value is allowed, YAML 1.2 decides its type."""
    root, _ = parse(text.encode(), "plan.yml")
    assert root is not None
    assert to_data(root) == data


def test_text_is_wanted() -> None:
    """Where the type says text, a value that looks like a number is the text that was written."""
    root, _ = parse(b"a: [3.10, true]\nb: 3.10", "plan.yml")
    assert root is not None
    assert to_data(root.value["a"], "string") == ["3.10", "true"]
    assert as_text(root.value["b"]) == "3.10"


@pytest.mark.parametrize(
    "value", ["no", "on", "0755", "1:30", "3.10", "2024-01-31", "1e3", "0x1F", "true", ".inf", "=", "'~'"]
)
def test_text_places_take_every_scalar(value: str) -> None:
    """Titles, scripts, arguments and variables keep their text, whatever YAML 1.1 would read."""
    text = (
        f"version: 1\nname: {value}\nenv: {{A: {value}}}\nsteps:\n"
        f"  - title: {value}\n    exec: [{value}]\n    tags: [{value}]\n    owner: {value}\n"
    )
    root, problems = read(text.encode(), "plan.yml")
    assert problems == []
    assert root is not None
    step = root.value["steps"].value[0]
    assert {root.value["name"].value, step.value["title"].value, step.value["exec"].value[0].value} == {
        value.strip("'")
    }


@pytest.mark.parametrize("value", ["no", "on", "0755", "1:30", "3.10", "2024-01-31"])
@pytest.mark.parametrize("key", ["retries", "parallel", "timeout", "estimated_tokens", "idempotent"])
def test_other_places_take_none_of_them(key: str, value: str) -> None:
    """Where a number, a boolean or a duration is wanted, such a value is an error with a hint."""
    text = f"version: 1\nsteps:\n  - run: make\n    {key}: {value}\n"
    _, problems = read(text.encode(), "plan.yml")
    assert [(each.line, each.col) for each in problems] == [(4, 7 + len(key))]
    assert problems[0].code in {"E109", "E110", "E111"}
