"""More than 500 kinds of bad plan file: each problem is reported with its place and a fix."""

from __future__ import annotations

import pytest

from planrun.plan import load
from planrun.plan.printing import render_github, render_json, render_sarif, render_text
from planrun.plan.problems import CODES, Problem
from planrun.plan.schema import shape
from planrun.plan.schema.dialects import FOREIGN
from planrun.plan.tables import OBJECTS
from tests.plan.corpus import BadPlan, bad_plans

BAD = bad_plans()


def assert_found(bad: BadPlan, problems: list[Problem]) -> None:
    """The findings are the expected ones, no more and no fewer, in file order, each with the expected words."""
    said = "\n".join(f"{each.line}:{each.col} {each.code} {each.text}" for each in problems)
    places = [(each.code, each.line, each.col) for each in problems]
    assert sorted(places) == sorted(each[:3] for each in bad.expected), said
    assert [place[1:] for place in places] == sorted(place[1:] for place in places)
    for code, line, col, part in bad.expected:
        texts = [each.text for each in problems if (each.code, each.line, each.col) == (code, line, col)]
        assert any(part in text for text in texts), f"{part!r} is not in {texts}"


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_plan_gives_its_findings(bad: BadPlan) -> None:
    """Exactly its findings, at line and column, from the check of its shape or from that of its meaning.

    Whatever stands in the file, no form of them holds a character that a terminal obeys; and a finding about an
    unknown key names another key, what to write instead, or all keys of the place.
    """
    _root, of_shape = shape.read(bad.data, bad.path.name)
    problems = list(load.check_bytes(bad.data, bad.path.name).problems)
    if bad.semantic:
        assert of_shape == []
        assert_found(bad, problems)
    else:
        assert_found(bad, of_shape)
        assert {each[:3] for each in bad.expected} <= {(each.code, each.line, each.col) for each in problems}
    forms = [
        render_text(problems, {bad.path.name: bad.data}),
        render_json(problems),
        render_sarif(problems),
        render_github(problems),
    ]
    for form in forms:
        assert form.replace("\n", "").isprintable()
    assert [each for each in problems if each.code == "E104" and not each.hint] == []


def test_words_of_other_tools_lead_to_keys_that_exist() -> None:
    """A suggestion for a word is a key that is valid somewhere, or a sentence."""
    places = {"Defaults": {**OBJECTS["Step"], **OBJECTS["Defaults"]}}
    for place, words in FOREIGN.items():
        assert {meant for meant in words.values() if " " not in meant} <= {*places.get(place, OBJECTS[place])}
        assert not {word for word in words if word != word.lower() or "-" in word or "_" in word}


def test_there_are_at_least_300_kinds() -> None:
    """The collection is as large as promised, and every code about shape has a file that shows it."""
    assert len(BAD) >= 300
    shown = {each.code for bad in BAD for each in bad.expected}
    elsewhere = {
        "E001",
        "E002",
        "E003",
        "E004",
        "E005",
        "E006",
        "E021",
        "E017",
        "E199",
    }  # proofs/hostile.py
    assert {code for code in CODES if code < "E2"} - shown - elsewhere == set()


def test_every_bad_file_is_read_once() -> None:
    """Each file of the collection names its problem."""
    assert [bad.name for bad in BAD if not bad.expected] == []
