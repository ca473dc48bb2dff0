"""References and static types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.expressions.check import check_condition, infer, references
from planrun.expressions.parse import parse, parse_script, parse_template
from planrun.expressions.tree import ExpressionError

if TYPE_CHECKING:
    from planrun.expressions.tree import Path, Type

KNOWN: dict[Path, Type] = {
    ("params", "s"): "string",
    ("params", "i"): "integer",
    ("params", "n"): "number",
    ("params", "b"): "boolean",
    ("params", "l"): "array",
    ("params", "o"): "object",
    ("params", "x"): "any",
    ("steps", "3", "status"): "string",
}


def types(path: Path) -> Type:
    """Return the type of a known path."""
    if path not in KNOWN:
        raise ExpressionError(f"unknown {path[-1]}")
    return KNOWN[path]


def test_references_in_the_order_of_the_text() -> None:
    """Every path that is read is found once, with its place and whether `default` guards it."""
    text = "a ${{ (steps.a.outputs.x ~ env.B) | default(params.c) }} ${{ step_3_failed }} ${{ params.l[item.k] }}"
    found = references(parse_template(text))
    assert [(ref.path, ref.guarded) for ref in found] == [
        (("steps", "a", "outputs", "x"), True),
        (("env", "B"), True),
        (("params", "c"), False),
        (("steps", "3", "status"), False),
        (("params", "l"), False),
        (("item", "k"), False),
    ]
    assert [text[ref.offset :][: ref.length] for ref in found] == [
        "steps.a.outputs.x", "env.B", "params.c", "step_3_failed", "params.l", "item.k",
    ]  # fmt: skip
    assert references("plain") == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("params.s", "string"),
        ("params.i + 1", "integer"),
        ("params.i + params.n", "number"),
        ("params.x * 2", "any"),
        ("-params.n", "number"),
        ("params.s ~ 1 ~ true", "string"),
        ("params.i == 1.5", "boolean"),
        ("params.s == none", "boolean"),
        ("params.s < 'b'", "boolean"),
        ("params.s in ['a', 'b']", "boolean"),
        ("'a' in params.s and 'k' in params.o and params.i in params.l", "boolean"),
        ("not step_3_failed", "boolean"),
        ("'a' if params.b else 'b'", "string"),
        ("'a' if params.b else 1", "any"),
        ("params.i | default(2.5)", "number"),
        ("params.s | default('')", "string"),
        ("len(params.l)", "integer"),
        ("params.l | join(',')", "string"),
        ("fromjson(params.s).a[0]", "any"),
        ("params.l | tojson | contains('a')", "boolean"),
        ("params.l[params.i]", "any"),
        ("params.o[params.s]", "any"),
        ("hash_files('a', params.s)", "string"),
        ("[params.s, 1]", "array"),
        ("none", "null"),
    ],
)
def test_types_that_fit(text: str, wanted: str) -> None:
    """The type of every form is known without a value."""
    assert infer(parse(text), types) == wanted


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("'3' == 3", "cannot compare a string with an integer", "'3' == 3"),
        ("params.b == 'true'", "cannot compare", "params.b == 'true'"),
        ("params.i == true", "cannot compare", "params.i == true"),
        ("params.s < 1", "two numbers or two strings", "params.s < 1"),
        ("params.b < true", "requires", "params.b"),
        ("params.s and params.b", "`and` requires a boolean", "params.s"),
        ("params.b or (not params.i)", "`not` requires a boolean", "params.i"),
        ("1 if params.s else 2", "`if` requires", "params.s"),
        ("params.s + 'x'", "requires an integer or a number", "params.s"),
        ("params.s ~ params.l", "requires a string", "params.l"),
        ("params.i in ['1', '2']", "cannot be in a list", "params.i"),
        ("contains(params.s, 1)", "contains requires a string", "1"),
        ("contains(params.i, 1)", "contains requires", "params.i"),
        ("len(params.b)", "len requires", "params.b"),
        ("startswith(params.l, 'a')", "startswith requires", "params.l"),
        ("params.s | join(',')", "join requires an array", "params.s"),
        ("tojson(params.s)[0]", "a string has no fields", "tojson(params.s)"),
        ("params.l['a' ~ 'b']", "an index requires an integer", "'a' ~ 'b'"),
        ("hash_files('a', 1)", "hash_files requires", "1"),
        ("params.b and params.unknown == 1", "unknown unknown", "params.unknown"),
    ],
)
def test_types_that_do_not_fit(text: str, message: str, marked: str) -> None:
    """No type is ever turned into another, and the error marks the part that is wrong."""
    with pytest.raises(ExpressionError) as caught:
        infer(parse(text), types)
    assert message in caught.value.message
    assert text[caught.value.offset :][: caught.value.length] == marked


def test_condition_is_boolean() -> None:
    """A condition is boolean, or of a type that only a run can tell."""
    check_condition(parse("params.b"), types)
    check_condition(parse("params.x"), types)
    with pytest.raises(ExpressionError, match="got a string"):
        check_condition(parse("params.s"), types)


def test_templates_have_types() -> None:
    """One interpolation alone keeps its type, everything else is text."""
    assert infer("plain", types) == "string"
    assert infer(parse_template("${{ params.l }}"), types) == "array"
    assert infer(parse_template("${{ params.l }}\n"), types) == "string"
    assert infer(parse_script("${{ params.l | sh }}"), types) == "string"
    for template in (parse_template("a ${{ none }}"), parse_script("${{ none | sh }}")):
        with pytest.raises(ExpressionError, match="null cannot be converted to a string"):
            infer(template, types)


def test_types_are_asked_once() -> None:
    """The work grows with the text and not with a power of it."""
    asked: list[Path] = []

    def count(path: Path) -> Type:
        asked.append(path)
        return "string"

    text = "params.s"
    for _ in range(6):
        text = f"tojson('a' in [tojson({text} < 'a')])"
    infer(parse(text), count)
    assert len(asked) == 1
