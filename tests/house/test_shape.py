"""The shape of the source: small files, small functions, a word of explanation everywhere."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "planrun").rglob("*.py"))
LONGEST_USUAL_FUNCTION = 30
"""Lines, for nine functions out of ten."""
MOST_PARAMETERS = 5

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function of a file, nested ones and methods included."""
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, FUNCTION)]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines from `def` to the last statement, decorators left out."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_a_module_says_what_it_is() -> None:
    """Each module opens with a docstring."""
    texts = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in SOURCES}
    assert [name for name, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


def test_nine_functions_in_ten_are_short() -> None:
    """At least 90 % of all functions have at most 30 lines."""
    found = {
        f"{path.relative_to(ROOT)}:{f.lineno} {f.name}": length(f)
        for path in SOURCES
        for f in functions(path)
    }
    long = {name: lines for name, lines in found.items() if lines > LONGEST_USUAL_FUNCTION}
    share = len(long) / max(len(found), 1)
    assert share <= 0.1, f"{share:.0%} of {len(found)} functions are longer: {long}"


def test_a_function_takes_few_parameters() -> None:
    """No function has more than five positional parameters besides self and cls."""
    crowded = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in SOURCES
        for function in functions(path)
        if len([a for a in function.args.posonlyargs + function.args.args if a.arg not in {"self", "cls"}])
        > MOST_PARAMETERS
    ]
    assert crowded == []


def test_names_say_what_a_thing_is() -> None:
    """No class and no module is called by a word that fits everything."""
    vague = ("Manager", "Helper", "Util", "Utils", "Base", "Handler")
    classes = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith(vague)
    ]
    modules = [path.name for path in SOURCES if path.stem.lower() in {word.lower() for word in vague}]
    assert classes + modules == []
