"""Templates: types are kept, inserted values are data, scripts take only what a shell cannot misread."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.parse import parse_script, parse_template
from planrun.expressions.render import render, render_script, render_text

BOUNDED = settings(derandomize=True, database=None, deadline=None, max_examples=150)
SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@:+=,-")


def scope(**params: Any) -> dict[str, Any]:
    """Return a scope with parameters."""
    return {"params": params}


@pytest.mark.parametrize("value", ["a", 1, 1.5, True, None, ["a", 1], {"k": [1]}])
def test_one_interpolation_alone_keeps_its_type(value: object) -> None:
    """`${{ x }}` and nothing else is the value itself."""
    found = render(parse_template("${{ params.v }}"), scope(v=value))
    assert found is value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"),
        (1, "1"),
        (1.5, "1.5"),
        (True, "true"),
        (["a", 1, None], '["a",1,null]'),
        ({"k": [False]}, '{"k":[false]}'),
    ],
)
def test_values_inside_text_are_written_as_json(value: object, text: str) -> None:
    """Numbers and booleans read as in JSON, lists and objects are compact JSON."""
    assert render(parse_template("<${{ params.v }}>"), scope(v=value)) == f"<{text}>"
    assert render_text(parse_template("${{ params.v }}"), scope(v=value)) == text


def test_plain_text_is_untouched() -> None:
    """A text that was no template passes through every door."""
    assert render("a ${x}", {}) == render_text("a ${x}", {}) == render_script("a ${x}", {}) == "a ${x}"


def test_null_has_no_text() -> None:
    """Null is never written into a text, unless a default says what to write."""
    with pytest.raises(EvaluationError, match=r"^\$\{\{ params.v \}\}: null cannot be converted to a string"):
        render_text(parse_template("${{ params.v }}"), scope(v=None))
    assert render_text(parse_template("${{ params.v | default('-') }}"), scope(v=None)) == "-"


def test_errors_name_the_expression() -> None:
    """An error says which interpolation it is about and stays of its kind."""
    with pytest.raises(AbsentError, match=r"^\$\{\{ params\.a ~ params\.b \}\}: params\.b has no value$"):
        render_text(parse_template("x ${{ params.a ~\n   params.b }}"), scope(a="1"))


def test_inserted_values_are_data() -> None:
    """A value that looks like an interpolation is not looked at again."""
    nasty = "${{ params.b }} $${{ {% x %} }}"
    assert render_text(parse_template("${{ params.a }}${{ params.b }}"), scope(a=nasty, b="B")) == nasty + "B"


def test_rendered_size_is_bounded() -> None:
    """Many large values cannot fill the memory."""
    template = parse_template("${{ params.v }}" * 40)
    with pytest.raises(EvaluationError, match="more than"):
        render_text(template, scope(v="x" * (1 << 20)))


@BOUNDED
@given(st.text())
def test_script_takes_safe_values_only(value: str) -> None:
    """A value goes into a script as it is when every character is harmless, and else the step fails closed."""
    template = parse_script("echo ${{ params.v }}")
    if set(value) <= SAFE:
        assert render_script(template, scope(v=value)) == f"echo {value}"
    else:
        with pytest.raises(EvaluationError, match=r"params\.v.*`\| sh`.*`env:`"):
            render_script(template, scope(v=value))


@pytest.mark.parametrize(
    "value",
    [
        "a b",
        "a\n",
        "$(id)",
        "`id`",
        "a;b",
        "a&b",
        "~",
        "*",
        "a'b",
        'a"b',
        "\\",
        "#",
        "é",
        "\u0661",
        "a\u00a0b",
        "%",
    ],
)
def test_script_refuses(value: str) -> None:
    """What means something to a shell, and what only looks like a letter or digit, is refused."""
    with pytest.raises(EvaluationError):
        render_script(parse_script("echo ${{ params.v }}"), scope(v=value))
    assert render_text(parse_template("${{ params.v }}"), scope(v=value)) == value


@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), (-1.5, "-1.5"), (1e300, "1e+300"), (True, "true"), ("", "")]
)
def test_script_takes_numbers_and_booleans(value: object, text: str) -> None:
    """Numbers and booleans are harmless."""
    assert render_script(parse_script("${{ params.v }}"), scope(v=value)) == text


def test_script_refuses_structures_without_sh() -> None:
    """A list or object is JSON, which a shell would read as code."""
    for value in ([], ["a"], {"a": 1}):
        with pytest.raises(EvaluationError):
            render_script(parse_script("echo ${{ params.v }}"), scope(v=value))


@BOUNDED
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=8))
def test_sh_gives_the_value_to_a_real_shell(values: list[str]) -> None:
    """Whatever a value contains, `| sh` makes it one argument; a list makes one an item."""
    template = parse_script("printf '%s\\n' ${{ params.one | sh }} ${{ params.all | sh }} end")
    script = render_script(template, scope(one="".join(values), all=values))
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    wanted = "".join(f"{value}\n" for value in ("".join(values), *values, "end"))
    assert done.stdout == wanted.encode()


def test_sh_quotes_every_kind_of_value() -> None:
    """Objects are quoted JSON, an empty list is no word, a NUL and null are refused."""
    template = parse_script("${{ params.v | sh }}")
    assert render_script(template, scope(v={"a": ["b c"]})) == '\'{"a":["b c"]}\''
    assert render_script(template, scope(v=[])) == ""
    assert render_script(template, scope(v=[1, True, ["x"]])) == "'1' 'true' '[\"x\"]'"
    for value in ("a\0b", None, [None]):
        with pytest.raises(EvaluationError):
            render_script(template, scope(v=value))
