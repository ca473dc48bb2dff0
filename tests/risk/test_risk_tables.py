"""The tables of programs: each is found by its index, and each rule can be read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from planrun.risk import programs
from planrun.risk.levels import EFFECTS, LEVELS
from planrun.risk.programs import dangerous
from planrun.risk.table import KINDS, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.risk.table import Rules

OWN = {"command", "module"}


def every_rule(rules: Rules) -> Iterator[Rule]:
    """Yield each form of a program and of its subcommands."""
    for rule in rules if isinstance(rules, tuple) else (rules,):
        yield rule
        for inner in (rule.sub or {}).values():
            yield from every_rule(inner)


@pytest.mark.parametrize("family", sorted(programs.FAMILIES))
def test_a_family_holds_the_programs_that_the_index_promises(family: str) -> None:
    """The index and the tables name the same programs, and none of them twice."""
    table = import_module(f"planrun.risk.programs.{family}").PROGRAMS
    named = programs.FAMILIES[family].split()
    assert sorted(table) == sorted(set(named))
    assert len(named) == len(set(named))


def test_no_program_is_in_two_tables() -> None:
    """A program belongs to one family, and none is both known and refused in every use."""
    names = [name for family in programs.FAMILIES.values() for name in family.split()]
    assert len(names) == len(set(names))
    assert not set(names) & set(dangerous.REASONS)


@pytest.mark.parametrize("family", sorted(programs.FAMILIES))
def test_every_rule_can_be_read(family: str) -> None:
    """Levels, effects, kinds and styles are words that exist, and `needs` names options of the rule."""
    for name, rules in import_module(f"planrun.risk.programs.{family}").PROGRAMS.items():
        for rule in every_rule(rules):
            assert rule.level in LEVELS, name
            assert (rule.level == "high") <= (rule.sub is not None), name
            assert set(rule.effects) <= set(EFFECTS), name
            assert rule.style in {"gnu", "posix", "single", "raw", "tar"}, name
            assert set(rule.needs) <= set(rule.known_options), name
            for option, (arity, kind, level, effect) in rule.known_options.items():
                assert option.startswith("-"), (name, option)
                assert (kind == "") == (arity == ""), (name, option)
                named = [kind] if kind.startswith("{") else kind.split(",")
                assert kind.startswith("{") or set(named) <= {"", *KINDS}, (name, option)
                assert level in {"", "low", "medium"}, (name, option)
                assert effect in {"", *EFFECTS}, (name, option)
            for kind, _, level in rule.kinds:
                assert kind in OWN | set(KINDS), (name, kind)
                assert level in {"", "low", "medium"}, name
