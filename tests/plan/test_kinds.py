"""The registry of action kinds: both halves of each kind exist, and no other module distinguishes kinds by class."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from planrun import actions
from planrun.plan.kinds import GUARDS, KINDS, PROCESSES, QUESTIONS, kind_of
from planrun.plan.tables import ACTIONS

ROOT = Path(__file__).parents[2] / "planrun"
NO_KINDS = {"uses"}  # a form of the group that a step becomes


def test_each_action_of_the_plan_language_has_a_kind() -> None:
    """The keys of the schema that state an action are the kinds."""
    assert set(KINDS) == set(ACTIONS) - NO_KINDS


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_a_record_and_a_module_for_run_time(name: str) -> None:
    """The record bears the name of its kind, and the module has the functions that such a kind needs."""
    record, module = kind_of(name), actions.kind_of(name)
    assert record.kind == name
    needed = ("recipe", "command") if record.starts_process else ("prepare", "fingerprint")
    assert all(callable(getattr(module, function, None)) for function in needed)


def test_the_lists_of_kinds_follow_the_attributes_of_their_records() -> None:
    """`PROCESSES`, `GUARDS` and `QUESTIONS` name the kinds whose records say so; they load no record."""
    for names, attribute in ((PROCESSES, "starts_process"), (GUARDS, "guards"), (QUESTIONS, "asks")):
        assert set(names) == {name for name in KINDS if getattr(kind_of(name), attribute)}


def _classes_asked_for(tree: ast.AST) -> set[str]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1)
    asked = [
        call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "isinstance"
    ]
    return {name.id for node in asked for name in ast.walk(node) if isinstance(name, ast.Name)}


def test_no_module_asks_for_the_class_of_an_action() -> None:
    """What differs between kinds is an attribute or a method of their records."""
    records = {record.__name__ for name in KINDS for record in kind_of(name).__mro__[:-2]}
    records |= {"Shell", "Group", "Abstract", "Action"}
    found = {
        str(path.relative_to(ROOT)): classes
        for path in ROOT.rglob("*.py")
        if (classes := records & _classes_asked_for(ast.parse(path.read_bytes())))
    }
    assert found == {}
