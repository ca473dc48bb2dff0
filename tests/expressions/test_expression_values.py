"""What expressions evaluate to, and what has no value."""

from __future__ import annotations

from typing import Any

import pytest

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.expressions.parse import parse
from planrun.expressions.tree import MAX_SIZE


class Lazy(dict[str, Any]):
    """A mapping that finds out its values when they are asked for."""

    def __missing__(self, key: str) -> Any:
        if key != "late":
            raise KeyError(key)
        return {"status": "failed", "outputs": {"sha": "abc"}, "exit_code": None, "attempts": 2}


SCOPE: dict[str, Any] = {
    "params": {
        "s": "prod",
        "i": 3,
        "n": 1.5,
        "b": True,
        "l": ["a", "b"],
        "o": {"k": 1, "my-key": [{"deep": "x"}]},
        "t": ("p", "q"),
        "none": None,
        "big": "x" * (MAX_SIZE // 2 + 1),
        "huge": 10**400,
    },
    "steps": Lazy({"3": {"status": "failed", "outputs": {}, "exit_code": 1, "attempts": 1}}),
    "run": {"ci": False},
}


def value(text: str) -> Any:
    """Return the value of an expression."""
    return evaluate(parse(text), SCOPE)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("params.s == 'prod' and not run.ci", True),
        ("run.ci or params.i >= 3", True),
        ("params.i == 3.0", True),
        ("params.i != 3", False),
        ("params.none == none", True),
        ("params.s != none", True),
        ("params.o['my-key'][0].deep", "x"),
        ("params.l[-1]", "b"),
        ("params.t[params.i - 2]", "q"),
        ("'b' in params.l and 'k' in params.o and 'ro' in params.s", True),
        ("1 not in [true, 2]", True),
        ("[1, [2]] == [1.0, [2]]", True),
        ("[1] == [true]", False),
        ("params.o == params.o", True),
        ("params.l == params.t", False),
        ("params.i * 2 - 1 + -params.i", 2),
        ("params.n + 1", 2.5),
        ("'v' ~ params.i ~ '-' ~ params.n ~ true", "v3-1.5true"),
        ("'yes' if params.b else params.absent", "yes"),
        ("params.absent | default('d')", "d"),
        ("params.none | default('d')", "d"),
        ("default(params.o.x.y.z, 1)", 1),
        ("params.l[7] | default('d')", "d"),
        ("(params.absent ~ 'x') | default(params.also | default('d'))", "d"),
        ("false | default(true)", False),
        ("steps.late.outputs.sha", "abc"),
        ("steps.late.exit_code | default(0)", 0),
        ("steps.gone.outputs.sha | default('')", ""),
        ("len(params.s) + len(params.l) + len(params.o)", 8),
        ("contains(params.l, 'a') and contains('abc', 'b') and contains(params.o, 'k')", True),
        ("params.s | startswith('pr') and endswith(params.s, 'od')", True),
        ("[1, 'a', true, 1.5] | join(', ')", "1, a, true, 1.5"),
        ("params.l | join", "ab"),
        ("params.o | tojson", '{"k":1,"my-key":[{"deep":"x"}]}'),
        ("fromjson('{\"a\": [1, 2.5, null]}').a", [1, 2.5, None]),
        ("9223372036854775806 + 1", 9223372036854775807),
    ],
)
def test_values(text: str, wanted: object) -> None:
    """Each form has the value, and the type, that the language promises."""
    found = value(text)
    assert found == wanted
    assert type(found) is type(wanted)


def test_seed_forms_test_the_status() -> None:
    """A seed form is true exactly when the step ended that way."""
    assert value("step_3_failed") is True
    assert value("step_3_succeeded") is False
    assert value("step_late_failed and not step_late_succeeded") is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("params.i == '3'", "values are not converted"),
        ("params.b == 1", "cannot compare a boolean with an integer"),
        ("params.s < 3", "two numbers or two strings"),
        ("params.b < true", "two numbers or two strings"),
        ("params.s and params.b", "`and` must be boolean, got a string"),
        ("params.i or params.b", "`or` must be boolean"),
        ("not params.l", "`not` must be boolean"),
        ("1 if params.s else 2", "`if` must be boolean"),
        ("params.s + 'x'", "join strings by `~`"),
        ("params.b + 1", "requires two numbers"),
        ("params.s * 3", "requires two numbers"),
        ("-params.s", "requires a number"),
        ("params.s ~ params.l", "use tojson or join"),
        ("params.s ~ params.none", "null cannot be converted to a string"),
        ("params.s.x", "params.s.x: a string has no fields"),
        ("params.s[0]", "has no fields"),
        ("params.l.x", "index of an array must be an integer"),
        ("params.l[params.b]", "got a boolean"),
        ("params.o[0]", "key of an object must be a string"),
        ("contains(params.i, 1)", "got an integer"),
        ("3 in params.s", "must be a string"),
        ("3 in params.o", "must be a string"),
        ("len(params.i)", "got an integer"),
        ("startswith(params.l, 'a')", "got an array"),
        ("params.s | join(',')", "requires an array"),
        ("params.l | join(1)", "requires a string"),
        ("[params.l] | join", "use tojson or join"),
        ("fromjson(params.i)", "requires a string"),
        ("fromjson('{')", "fromjson:"),
        ("fromjson('NaN')", "NaN is not valid JSON"),
        ("fromjson('1e999')", "too large"),
        ("fromjson('99999999999999999999')", "64 bits"),
        ("fromjson('\"\\\\ud800\"')", "lone surrogate"),
        ("9223372036854775807 + 1", "too large"),
        ("9223372036854775807 * 9223372036854775807", "too large"),
        ("1e308 * 10", "too large"),
        ("params.huge * 1.5", "too large"),
        ("-params.huge", "too large"),
        ("params.big ~ params.big", "characters"),
        ("[params.big, params.big] | join", "characters"),
        ("[params.big, params.big] | tojson", "characters"),
        ("hash_files('x')", "cannot be used here"),
        ("params.s | default(1) == 3", "values are not converted"),
    ],
)
def test_what_has_no_value(text: str, message: str) -> None:
    """A wrong type and a size over the limit are errors that `default` does not hide."""
    for guarded in (text, f"({text}) | default(1)"):
        with pytest.raises(EvaluationError) as caught:
            value(guarded)
        assert message in str(caught.value)
        assert not isinstance(caught.value, AbsentError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("params.absent", "params.absent has no value"),
        ("params.none.x", "params.none.x has no value"),
        ("params.l[2]", "params.l[2] has no value"),
        ("params.__class__", "params.__class__ has no value"),
        ("params.o.keys", "params.o.keys has no value"),
        ("steps.gone.status", "steps.gone.status has no value"),
        ("matrix.x", "matrix.x has no value"),
        ("fromjson('{}').x", "no such key or index: ['x']"),
    ],
)
def test_what_is_absent(text: str, message: str) -> None:
    """A name without a value is an error of its own, and no attribute of Python is a name."""
    with pytest.raises(AbsentError) as caught:
        value(text)
    assert str(caught.value) == message


def test_nested_json_is_bounded() -> None:
    """Deep JSON is an error, whether Python's reader gives up or only we do."""
    for depth in (65, 5000, 200_000):
        scope = {"params": {"j": "[" * depth + "]" * depth}}
        with pytest.raises(EvaluationError, match="nested"):
            evaluate(parse("fromjson(params.j)"), scope)


def test_deep_values_end_in_an_error() -> None:
    """Values that are nested too deep to be walked are an error of the expression."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for text in ("tojson(params.d)", "params.d == params.e", "params.d in [params.e]"):
        with pytest.raises(EvaluationError, match="nested too deep"):
            evaluate(parse(text), {"params": {"d": deep, "e": [deep[0]]}})


def test_foreign_objects_are_no_values() -> None:
    """What is no plain data has no type here, and nothing of it is called."""
    for text in ("tojson(params.x)", "params.x == 1", "params.x ~ ''", "params.x.real", "len(params.x)"):
        with pytest.raises(EvaluationError):
            evaluate(parse(text), {"params": {"x": 1j}})
