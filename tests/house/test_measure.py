"""The figures of measure.py stay at or below their ceilings. Lower a ceiling with each change that lowers a figure."""

from __future__ import annotations

import ast

import pytest

from tests.house.measure import FIGURES, ROOT, Module, circles, imported_twice, modules, tiny_helpers

CEILINGS = {
    "lines": 137_800,
    "files": 719,
    "functions over 60 lines": 4,
    "tiny helpers used once": 558,
    "imports in functions": 416,
    "names imported twice": 48,
    "second blocks of types": 15,
    "circles of modules": 5,
}
"""The goals are 110,000 lines, 480 files, 300 helpers, 250 imports, and none of the others."""


@pytest.fixture(scope="module")
def found() -> list[Module]:
    """All modules of planrun/."""
    return modules()


@pytest.mark.parametrize("name", CEILINGS)
def test_no_figure_rises(found: list[Module], name: str) -> None:
    """`python tests/house/measure.py --list NAME` prints the places."""
    assert sum(1 for _ in FIGURES[name](found)) <= CEILINGS[name]


def test_every_figure_has_a_ceiling() -> None:
    """A figure without a ceiling is held by nothing."""
    assert CEILINGS.keys() == FIGURES.keys()


def module(name: str, text: str) -> Module:
    """Return a module of a planrun/ that has only what a test writes."""
    made = Module(ROOT / "planrun" / "errors.py")
    made.path, made.name, made.text = f"planrun/{name}.py", f"planrun.{name}", text
    made.tree = ast.parse(text)
    made.functions = [node for node in ast.walk(made.tree) if isinstance(node, ast.FunctionDef)]
    return made


def test_type_only_imports_make_a_circle() -> None:
    """Two modules that need each other are a circle, also where one of the imports is for types."""
    first = module("first", "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from planrun.second import B\n")
    second = module("second", "def use():\n    from planrun.first import A\n    return A\n")
    assert list(circles([first, second])) == ["planrun.first planrun.second"]
    assert list(circles([first])) == []


def test_a_tiny_helper_is_private_short_and_used_once() -> None:
    """Neither a public function, nor one that two places call, nor a long one counts."""
    helpers = "def _tiny():\n    return 1\n\n\ndef _twice():\n    return 2\n\n\n"
    text = f"{helpers}def use():\n    return _tiny() + _twice() + _twice()\n"
    assert list(tiny_helpers([module("one", text)])) == ["planrun/one.py:1 _tiny"]


def test_a_name_of_a_type_counts_too() -> None:
    """A name that is imported for types and when code runs is imported twice."""
    text = "from os import path\n\nif TYPE_CHECKING:\n    from os import path\n"
    assert list(imported_twice([module("one", text)])) == ["planrun/one.py path"]
