"""Random expressions: Jinja2 itself agrees where both have a value, and nothing but our own errors ever escapes."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from planrun.errors import EvaluationError
from planrun.expressions.check import infer, references
from planrun.expressions.evaluate import evaluate
from planrun.expressions.parse import parse, parse_script, parse_template
from planrun.expressions.render import render, render_script, render_text
from planrun.expressions.tree import ExpressionError, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.expressions.tree import Path, Type

BOUNDED = settings(derandomize=True, database=None, deadline=None, max_examples=300)
SCOPE: dict[str, Any] = {
    "params": {
        "i": 3,
        "j": -7,
        "s": "prod",
        "t": "",
        "b": True,
        "c": False,
        "l": [1, 2, 3],
        "w": ["a", "prod"],
    },
    "steps": {"3": {"status": "failed", "outputs": {"sha": "abc"}, "exit_code": 1, "attempts": 2}},
    "env": {"HOME": "/root"},
    "run": {"id": "r1", "ci": True, "ref": "main", "sha": "f00", "event": "push"},
}

ORACLE = Environment(autoescape=False)
ORACLE.globals.update(len=len, contains=lambda whole, part: part in whole)
ORACLE.globals.update(default=ORACLE.filters["default"])
ORACLE.globals.update(startswith=str.startswith, endswith=str.endswith)
ORACLE.filters.update(
    len=len, contains=lambda whole, part: part in whole, startswith=str.startswith, endswith=str.endswith
)

ATOMS: dict[str, list[str]] = {
    "integer": ["0", "1", "-2", "params.i", "params['j']", "steps.3.attempts", "params.l[1]", "params.l[-1]"],
    "string": [
        "''",
        "'a'",
        '"it\'s"',
        "'é\\n'",
        "params.s",
        "params.t",
        "steps['3'].outputs.sha",
        "env.HOME",
    ],
    "boolean": ["true", "False", "params.b", "params.c", "run.ci"],
    "integers": ["[]", "[1]", "[1, 2, 3]", "params.l", "[params.i, -2]"],
    "strings": ["[]", "['a', '']", "params.w", "[params.s]"],
}
SHAPES: dict[str, list[tuple[str, ...]]] = {
    # The text of a form, then the types of what stands for each {}.
    "integer": [
        ("{} + {}", "integer", "integer"),
        ("{} - {}", "integer", "integer"),
        ("{} * {}", "integer", "integer"),
        ("len({})", "string"),
        ("{} | len", "integers"),
        ("{} if {} else {}", "integer", "boolean", "integer"),
        ("default({}, {})", "integer", "integer"),
    ],
    "string": [
        ("{} ~ {}", "string", "string"),
        ("{} ~ {} ~ {}", "string", "integer", "string"),
        ("{} | join({})", "strings", "string"),
        ("{} if {} else {}", "string", "boolean", "string"),
        ("params.absent | default({})", "string"),
        ("{} | default({})", "string", "string"),
    ],
    "boolean": [
        ("{} == {}", "integer", "integer"),
        ("{} != {}", "string", "string"),
        ("{} == {}", "boolean", "boolean"),
        ("{} < {}", "integer", "integer"),
        ("{} >= {}", "string", "string"),
        ("{} in {}", "integer", "integers"),
        ("{} not in {}", "string", "strings"),
        ("{} in {}", "string", "string"),
        ("{} == {}", "integers", "integers"),
        ("{} and {}", "boolean", "boolean"),
        ("{} or {} or {}", "boolean", "boolean", "boolean"),
        ("not {}", "boolean"),
        ("contains({}, {})", "string", "string"),
        ("{} | startswith({})", "string", "string"),
        ("endswith({}, {})", "string", "string"),
    ],
}


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int, wrap: str) -> str:
    """Draw the text of an expression of a type; `wrap` is put around every part, sometimes or always."""
    if depth == 0 or kind not in SHAPES or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(ATOMS[kind]))
    form, *kinds = draw(st.sampled_from(SHAPES[kind]))
    parts = [draw(expressions(part, depth - 1, wrap)) for part in kinds]
    if wrap == "always":
        return form.format(*(f"({part})" for part in parts))
    return form.format(*(f"({part})" if draw(st.booleans()) else part for part in parts))


KINDS = st.sampled_from(["integer", "string", "boolean"])


def types(path: Path) -> Type:
    """Return the type of what is in the scope, and any for what is not."""
    value: Any = SCOPE
    for part in path:
        try:
            value = value[part]
        except (LookupError, TypeError):
            return "any"
    return type_of(value)


def oracle(text: str) -> Any:
    """Return what Jinja2 says."""
    scope = {
        **SCOPE,
        "steps": {3: SCOPE["steps"]["3"], **SCOPE["steps"]},
    }  # to Jinja2, steps.3 is not steps['3']
    return ORACLE.compile_expression(text, undefined_to_none=False)(**scope)


@BOUNDED
@given(KINDS.flatmap(lambda kind: st.tuples(st.just(kind), expressions(kind, 4, "always"))))
def test_typed_expressions_have_jinja2_s_value(drawn: tuple[str, str]) -> None:
    """A well-typed expression never fails, has the type that was inferred, and the value that Jinja2 finds."""
    kind, text = drawn
    tree = parse(text)
    assert infer(tree, types) in (kind, "any")  # any: the absent one has no type
    found = evaluate(tree, SCOPE)
    assert type_of(found) == kind
    assert found == oracle(text)


def joins_booleans(tree: tuple[Any, ...]) -> bool:
    """Return whether `~` may meet a boolean: Jinja2 writes True where a plan has true."""
    if tree and tree[0] == "concat" and any(infer(part, types) in ("boolean", "any") for part in tree[3]):
        return True
    return any(joins_booleans(part) for part in tree if isinstance(part, tuple))


@BOUNDED
@given(KINDS.flatmap(lambda kind: expressions(kind, 4, "sometimes")))
def test_precedence_is_jinja2_s(text: str) -> None:
    """Without brackets the text is read as Jinja2 reads it: where there is a value, it is the same."""
    assume(fault(lambda: (infer(parse(text), types), evaluate(parse(text), SCOPE))) is None)
    assume(not joins_booleans(parse(text)))
    found = evaluate(parse(text), SCOPE)
    wanted = oracle(text)
    assert (found, type(found)) == (wanted, type(wanted))


FRAGMENTS = st.sampled_from(
    [
        *"()[]{}.,:|~+-*/%<>=!&?$'\"\\ \n\t_0",
        *(
            "params",
            "steps",
            "env",
            "run",
            "item",
            "matrix",
            "step",
            ".i",
            ".l",
            "[0]",
            "['s']",
            "step_3_failed",
        ),
        *(
            " and ",
            " or ",
            " not ",
            " in ",
            " is ",
            " if ",
            " else ",
            "true",
            "none",
            "1",
            "2.5",
            "'a'",
            '"b"',
        ),
        *("len(", "default(", "join(", "fromjson(", "tojson(", "hash_files(", "contains(", "always()", " | "),
        *(
            "| sh",
            "| default('x')",
            "| tojson",
            "| len",
            "__class__",
            ".__mro__",
            "**",
            "//",
            "==",
            "!=",
            "<=",
        ),
        *(
            "{%",
            "%}",
            "{{",
            "}}",
            "${{",
            "$${{",
            "{#",
            "#}",
            "lipsum",
            "cycler",
            "self",
            "range(9)",
            "é",
            "\0",
        ),
        *("0x", "1e9", "999999999999999999999", "1_0", "\\u0041", "\\x", "\ud800", "\u202e", "²", "\r\n"),
    ]
)
TEXTS = st.one_of(st.lists(FRAGMENTS, max_size=25).map("".join), st.text(max_size=60))


def fault(act: Callable[[], object]) -> ExpressionError | EvaluationError | None:
    """Return the error of our own that an act ends in, or None; any other error fails the test."""
    try:
        act()
    except (ExpressionError, EvaluationError) as error:
        return error
    return None


def survives(read: Callable[[str], Any], run: Callable[[Any], Any], text: str) -> None:
    """Assert that a text is refused, or read and run to a value or an EvaluationError, and never more."""
    error = fault(lambda: read(text))
    if error:
        assert isinstance(error, ExpressionError)
        assert 0 <= error.offset <= len(text)
        assert error.length >= 1
        return
    tree = read(text)
    assert marshal.loads(marshal.dumps(tree)) == tree
    for reference in references(tree):
        assert 0 <= reference.offset < reference.offset + reference.length <= len(text)
    error = fault(lambda: infer(tree, types))
    if isinstance(error, ExpressionError):
        assert 0 <= error.offset < error.offset + error.length <= len(text)
    assert not isinstance(fault(lambda: run(tree)), ExpressionError)


@BOUNDED
@given(TEXTS)
def test_any_text_as_expression(text: str) -> None:
    """Any text is an expression with a value or an error with a place."""
    survives(parse, lambda tree: evaluate(tree, SCOPE), text)


@BOUNDED
@given(st.one_of(TEXTS, TEXTS.map("a ${{ {} }} b".replace("{}", "%s").__mod__)))
def test_any_text_as_template(text: str) -> None:
    """Any text is a template that renders or fails with an error of its own."""
    survives(parse_template, lambda tree: (render(tree, SCOPE), render_text(tree, SCOPE)), text)
    survives(parse_script, lambda tree: render_script(tree, SCOPE), text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@BOUNDED
@given(KINDS.flatmap(lambda kind: expressions(kind, 3, "sometimes")), JSON, JSON, JSON)
def test_any_values_in_any_expression(text: str, first: Any, second: Any, third: Any) -> None:
    """Whatever the values are, there is a value or an EvaluationError."""
    scope = {"params": {"i": first, "s": second, "b": third, "l": second, "w": first}, "run": {"ci": third}}
    assume(fault(lambda: parse(text)) is None)
    tree = parse(text)
    assert not isinstance(fault(lambda: evaluate(tree, scope)), ExpressionError)


@BOUNDED
@given(JSON)
def test_json_goes_there_and_back(value: Any) -> None:
    """What tojson writes, fromjson reads, as far as numbers have 64 bits."""
    scope = {"params": {"v": value}}
    tree = parse("fromjson(tojson(params.v))")
    error = fault(lambda: evaluate(tree, scope))
    if error:
        assert "64 bits" in str(error)
    else:
        assert evaluate(tree, scope) == value
