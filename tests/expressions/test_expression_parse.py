"""What is an expression and what is not: trees, hints, places, limits."""

from __future__ import annotations

import marshal
import subprocess
import sys

import pytest

from planrun.expressions.parse import parse, parse_script, parse_template
from planrun.expressions.tree import MAX_DEPTH, MAX_PLACES, MAX_TEXT, ExpressionError, spelled

STATUS_OF_3 = ("path", 0, 13, ("steps", "3", "status"))


def problem(text: str) -> ExpressionError:
    """Return the error that a text makes."""
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    return caught.value


def test_path_keeps_its_parts_and_its_place() -> None:
    """A path is one node with all its parts, spelled with dots or brackets."""
    tree = parse("  steps['my-id'].outputs.sha")
    assert tree == ("path", 2, 26, ("steps", "my-id", "outputs", "sha"))
    assert spelled(tree[3]) == "steps['my-id'].outputs.sha"


@pytest.mark.parametrize("text", ["steps.3.status", "steps[3].status", "steps['3'].status"])
def test_integer_ids_are_texts(text: str) -> None:
    """A step whose id is a number is found under its text, however it is written."""
    assert parse(text)[3] == ("steps", "3", "status")


@pytest.mark.parametrize(
    ("text", "step", "status"),
    [
        ("step_3_failed", "3", "failed"),
        ("step_3_succeeded", "3", "completed"),
        ("step_unit_tests_failed", "unit_tests", "failed"),
        ("step_a_failed_succeeded", "a_failed", "completed"),
    ],
)
def test_seed_forms_ask_for_the_status(text: str, step: str, status: str) -> None:
    """`step_<id>_failed` and `step_<id>_succeeded` compare the status of that step."""
    kind, _, length, operator, path, wanted = parse(text)
    assert (kind, length, operator, path[3], wanted[3]) == (
        "compare",
        len(text),
        "==",
        ("steps", step, "status"),
        status,
    )


def test_seed_form_is_an_expression_like_others() -> None:
    """The two forms combine with everything else, and an unknown form is an error."""
    assert parse("step_3_failed and not run.ci")[3][0][4] == STATUS_OF_3
    assert "step_<id>_failed or step_<id>_succeeded" in problem("step_3_finished").message
    assert "has no fields" in problem("step_3_failed.x").message


def test_chains_of_one_word_are_one_node() -> None:
    """A long list of alternatives is not deep."""
    tree = parse(" or ".join(["run.ci"] * 200))
    assert (tree[0], len(tree[3])) == ("or", 200)


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("run.ci && run.ci", "unknown operator `&&`; use `and`", (7, 2)),
        ("run.ci || run.ci", "unknown operator `||`; use `or`", (7, 2)),
        ("!run.ci", "unknown operator `!`; use `not`", (0, 1)),
        ("params.a = 1", "unknown operator `=`; use `==`", (9, 1)),
        ("params.a === 1", "unknown operator `===`; use `==`", (9, 3)),
        ("run.ci ? 1 : 2", "`a if test else b`", (7, 1)),
        ("params.a =~ 'x'", "regular expressions are not supported", (9, 2)),
        ("run.ci AND run.ci", "write `and`", (7, 3)),
        ("always()", "`depends_on: {id: done}`", (0, 8)),
        ("success()", "depends_on: [id]", (0, 9)),
        ("failure()", "{id: failed}", (0, 9)),
        ("hashFiles('a')", "use hash_files", (0, 14)),
        ("params.a | lenght", "did you mean `len`?", (0, 17)),
        ("parms.a", "did you mean `params`?", (0, 5)),
        ("secrets.TOKEN", "`secrets` of the step", (0, 7)),
        ("github.sha", "run.sha", (0, 6)),
        ("params.a == null", "`none`", (12, 4)),
        ("len", "is a function", (0, 3)),
        ("steps.my-id.status", "['my-id']", (0, 18)),
        ("steps[params.a].status", "must be a literal", (0, 15)),
        ("not ${{ run.ci }}", "around the whole expression", (4, 3)),
        ("1 < 2 < 3", "cannot be chained", (0, 9)),
        ("params.a is defined", "`is` is not supported", (0, 11)),
        ("params.a / 2", "division is not supported", (0, 12)),
        ("params.a % 2", "`%` is not supported", (0, 12)),
        ("'a' ** 9", "`**` is not supported", (0, 8)),
        ("(1, 2)", "[ ]", (2, 1)),
        ("{'a': 1}", "object", (0, 1)),
        ("'a' 'b'", "two strings", (4, 1)),
        ("params.a[1:2]", "one index", (9, 1)),
        ("params.a[1.5]", "an integer", (0, 13)),
        ("params.a.strip()", "only functions", (0, 16)),
        ("len(params.a, 2)", "takes 1 argument", (0, 16)),
        ("len(**params.a)", "by position", (0, 15)),
        ("len(*params.a)", "by position", (0, 14)),
        ("'a' if run.ci", "needs an `else`", (0, 3)),
        ("params.a | sh", "`| sh` must be last", (0, 13)),
        ("params.", "unexpected end", (7, 1)),
        ("params..a", "unexpected `.`", (7, 1)),
        ("(run.ci", "unclosed `(`", (0, 1)),
        ("run.ci)", "unmatched `)`", (6, 1)),
        ("'abc", "unclosed string: expected '", (0, 1)),
        ("'a\\q'", "unknown escape sequence", (2, 2)),
        ("'\\ud800'", "invalid Unicode escape", (1, 6)),
        ("9223372036854775808", "64 bits", (0, 19)),
        ("1e999", "too large", (0, 5)),
        ("run\0ci", "U+0000", (3, 1)),
        ("'a\rb'", "U+000D", (2, 1)),
        ("params.a \u202e", "U+202E", (9, 1)),
        ("", "empty", (0, 1)),
        ("{% raw %}", "template statements", (0, 2)),
        ("not not not not run.ci", "in a row", (12, 1)),
    ],
)
def test_what_is_refused_says_what_to_write(text: str, message: str, at: tuple[int, int]) -> None:
    """Every refusal names what is wrong, where, and what to write instead."""
    error = problem(text)
    assert message in error.message
    assert (error.offset, error.length) == at


@pytest.mark.parametrize(
    "text",
    [
        "(" * 9000,
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "[" * 4000 + "]" * 4000,
        "len(" * 2000,
        "- " * 4000 + "1",
        "not " * 2000 + "run.ci",
        "1 if run.ci else " * 400 + "1",
        "1" + " + 1" * 2000,
        "params" + ".a" * 4000,
        "params" + "[0]" * 2000,
        "params.a" + " | tojson" * 500,
        "1" + " < 1" * 2000,
        "'" + "a" * MAX_TEXT + "'",
        "9" * 8000,
        "n" * 8000,
        "n" * 8000 + "()",
        "1 " + "n" * 8000,
        "²" * 8000,
        "params.a-" + "n" * 8000,
        "0x" + "f" * 8000,
        "1" + "_1" * 4000,
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    """What is too long, too deep or too large is an error, however it is built."""
    assert len(problem(text).message) < 300


def test_deepest_text_is_read_with_little_stack() -> None:
    """Nesting at the limit needs no more of Python's stack than a fresh interpreter with its default has."""
    code = (
        "from planrun.expressions.parse import parse\n"
        f"print(parse('(not --' * 31 + '1 if run.ci else ' * {MAX_DEPTH - 2} + '1' + ')' * 31))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ExpressionError" in done.stderr
    assert "RecursionError" not in done.stderr


def test_literals() -> None:
    """Texts have a closed set of escapes; numbers keep their type."""
    values = ["'a\\n\\t\\\\\\'\\x41\\u00e9'", '"it\'s"', "1", "-1", "1.5", "0x10", "1_000", "true", "none"]
    assert [parse(text)[3] for text in values] == [
        "a\n\t\\'A\u00e9", "it's", 1, -1, 1.5, 16, 1000, True, None,
    ]  # fmt: skip


def test_text_without_interpolation_stays_text() -> None:
    """No template is made of plain text, and Jinja2 is not even imported for it."""
    code = (
        "import sys; from planrun.expressions.parse import parse_template\n"
        "assert parse_template('a {{ b }} {% c %} $x') == 'a {{ b }} {% c %} $x'\n"
        "assert 'jinja2' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("$${{ a }}", "${{ a }}"),
        ("$$${{ a }}", "$${{ a }}"),
        ("a $${{ b $${{ c", "a ${{ b ${{ c"),
        ("a }} $ {{ b", "a }} $ {{ b"),
    ],
)
def test_literal_braces(text: str, plain: str) -> None:
    """`$${{` is the text `${{`; nothing else is special outside of an interpolation."""
    assert parse_template(text) == plain


def test_template_finds_its_ends() -> None:
    """Braces inside a string do not end an interpolation, and places count in the whole text."""
    assert parse_template("é ${{ '}}' ~ \"}}\" }}${{run.id}}\n") == (
        "template",
        (
            "é ",
            (("concat", 6, 11, (("const", 6, 4, "}}"), ("const", 13, 4, "}}"))), "'}}' ~ \"}}\""),
            (("path", 23, 6, ("run", "id")), "run.id"),
            "\n",
        ),
    )


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("a ${{ run.id", "expected `}}`", 2),
        ("a ${{ run.id }", "expected `}}`", 2),
        ("a ${{ 'x }}", "unclosed string: expected '", 6),
        ("a ${{ }}", "empty", 2),
        ("a ${{ {'b': {}} }}", "object", 6),
        ("a ${{ ${{ run.id }} }}", "around the whole expression", 6),
        ("a ${{ x && y }}", "`and`", 8),
        ("a ${{ " + "x" * 10_000 + " }}", "more than 8192 characters", 2),
        ("${{run.id}}" * (MAX_PLACES + 1), "interpolations", 11 * MAX_PLACES),
    ],
)
def test_bad_templates(text: str, message: str, offset: int) -> None:
    """Errors inside a template are placed in the template's text."""
    with pytest.raises(ExpressionError, match="^.*" + message) as caught:
        parse_template(text)
    assert caught.value.offset == offset


def test_sh_is_for_the_end_of_a_script_s_interpolation() -> None:
    """`| sh` makes a word of a shell, which is no text to go on with."""
    template = parse_script("rm ${{ params.a | sh }}")
    assert template[1][1][0] == ("sh", 7, 13, ("path", 7, 8, ("params", "a")))
    for text in ("${{ (params.a | sh) ~ ';' }}", "${{ params.a | sh | len }}", "${{ params.a | sh('x') }}"):
        with pytest.raises(ExpressionError):
            parse_script(text)
    with pytest.raises(ExpressionError):
        parse_template("${{ params.a | sh }}")


def test_trees_survive_marshal() -> None:
    """Trees and templates are plain data that a cache can keep."""
    tree = parse_script(
        "a ${{ [1, 2.5, none, true] | join(',') ~ -params.n ~ ('x' if step_1_failed else 'y') }}"
    )
    assert marshal.loads(marshal.dumps(tree)) == tree
