"""Values against JSON Schema fragments: text to type, and checks with bounded time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.model.jsontext import dumps
from planrun.values import check_value, fits, matches, pattern_problem, read_value, schema_problem, type_of


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({}, " as it is\n", " as it is\n"),
        ({"type": "string"}, "0755", "0755"),
        ({"type": "integer"}, "-12", -12),
        ({"type": "integer"}, "007", 7),
        ({"type": "number"}, "2", 2),
        ({"type": "number"}, "1.5e3", 1500.0),
        ({"type": "boolean"}, "true", True),
        ({"type": "array"}, '["a", {"b": 1.5}]', ["a", {"b": 1.5}]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
    ],
)
def test_text_becomes_the_declared_type(schema: dict[str, Any], text: str, value: object) -> None:
    """Each type has one spelling rule; JSON is asked only for lists and mappings."""
    found = read_value(schema, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        ({"type": "integer"}, "1.0", 'is "1.0", not an integer'),
        ({"type": "integer"}, "1_000", 'is "1_000", not an integer'),
        ({"type": "integer"}, "٣", 'is "٣", not an integer'),
        ({"type": "integer"}, "9" * 1001, "not an integer"),
        ({"type": "number"}, "nan", 'is "nan", not a number'),
        ({"type": "number"}, "1e999", 'is "1e999", not a number'),
        ({"type": "boolean"}, "yes", 'is "yes", not a boolean'),
        ({"type": "array"}, "[1", "is not JSON: "),
        ({"type": "array"}, "[NaN]", "NaN is not a JSON number"),
        ({"type": "array"}, "[1e999]", "not a number"),
        ({"type": "array"}, "[" * 100 + "]" * 100, "is nested deeper than 64"),
        ({"type": "array"}, "[" * 100_000, "is not JSON: "),
        ({"type": "array"}, "{}", "is {}, not a list"),
        ({"type": "object"}, "[]", "is [], not a mapping"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'is "c", not one of "a", "b"'),
        ({"type": "integer", "minimum": 3}, "2", "is 2, less than 3"),
        ({"type": "number", "maximum": 3}, "3.5", "is 3.5, more than 3"),
        ({"type": "string", "pattern": "^a$"}, "a\n", r'is "a\n", which does not match the pattern ^a$'),
        ({"type": "string", "minLength": 3}, "ab", "does not fit: 'ab' is too short"),
        (
            {"type": "array", "items": {"type": "integer"}},
            '[1, "x"]',
            "does not fit at [1]: 'x' is not of type",
        ),
    ],
)
def test_a_wrong_text_is_refused_with_a_reason(schema: dict[str, Any], text: str, message: str) -> None:
    """The message is a clause that follows the name of the parameter or output."""
    with pytest.raises(ValueError, match=r".") as caught:
        read_value(schema, text)
    assert message in str(caught.value)


def test_true_is_no_integer_and_one_is_not_true() -> None:
    """JSON keeps numbers and booleans apart; Python alone would not."""
    assert check_value({"type": "integer"}, True) == "is true, not an integer"
    assert check_value({"enum": [1]}, True) == "is true, not one of 1"
    assert check_value({"enum": [1]}, 1.0) is None


def test_our_own_required_word_does_not_reach_json_schema() -> None:
    """`required: true` on a parameter is no JSON Schema; next to other keys it still works."""
    schema = {"type": "string", "required": True, "maxLength": 2}
    assert schema_problem(schema) is None
    assert check_value(schema, "ab") is None


def test_a_pattern_that_explodes_is_given_up() -> None:
    """Exponential patterns end after their time, from the text of the plan or of a parameter."""
    problem = check_value({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!")
    assert problem == "could not be matched with the pattern ^(a+)+$ within 1 s"


def test_a_long_value_never_meets_a_pattern() -> None:
    """Even harmless patterns can take quadratic time."""
    assert (
        check_value({"pattern": "a"}, "a" * 5000) == "is longer than 4096 characters, too long for a pattern"
    )


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^\d+\.\d+$", "1.2", True),
        (r"^\d+\.\d+$", "1.2\n", False),
        (r"^\d$", "٣", False),
        (r"^[$]$", "$", True),
        (r"^[]$]$", "$", True),
        (r"^\$$", "$", True),
        (r"b", "abc", True),
    ],
)
def test_patterns_follow_json_schema(pattern: str, text: str, found: bool) -> None:  # noqa: FBT001
    """Found anywhere unless anchored; `$` is the very end; digits are ASCII."""
    assert matches(pattern, text) is found


def test_bad_patterns_and_schemas_are_named() -> None:
    """A value that could not work later is a problem at load time."""
    assert "not a regular expression" in str(pattern_problem("(a"))
    assert "longer than 1000" in str(pattern_problem("a" * 2000))
    assert "outside itself" in str(schema_problem({"items": {"$ref": "https://example.com/x.json"}}))
    assert "not a JSON Schema" in str(schema_problem({"minLength": "three"}))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_every_json_value_has_one_type_and_reads_back(value: Any) -> None:
    """The type that a value gets reads its text back to the same value."""
    kind = type_of(value)
    if kind in ("array", "object"):
        assert read_value({"type": kind}, dumps(value)) == value
    assert kind == "null" or fits(kind, value)


def test_plain_fragments_import_nothing() -> None:
    """Typed outputs of a plain plan cost no library."""
    code = (
        "import sys; from planrun.values import read_value;"
        "read_value({'type': 'integer', 'minimum': 1}, '3');"
        "sys.exit(any(name in sys.modules for name in ('re', 'json', 'jsonschema', 'typing')))"
    )
    assert subprocess.run([sys.executable, "-S", "-c", code], check=False).returncode == 0


def test_a_pattern_causes_no_warning() -> None:
    """A pattern that Python finds doubtful is a pattern: a bracket in a set prints nothing on stderr."""
    assert pattern_problem("^[[a]$") is None
    assert matches("^[[a]$", "[")
    assert schema_problem({"type": "array", "items": {"pattern": "^[[b]$"}}) is None
    assert check_value({"type": "array", "items": {"pattern": "^[[b]$"}}, ["["]) is None
