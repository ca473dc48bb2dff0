"""docs/lint.md is the catalogue of advice, with an example of each rule that a few lines can show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from planrun.lint.codes import ADVICE
from planrun.lint.lint import RULES, advise
from planrun.plan.printing import render_text
from tests.docs.pages import FENCE, text_of

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "lint.md"
BY_RECORDS = {"L412", "L416"}  # which go by durations, and are shown by tests/app/test_linting.py
EXAMPLES, INSTEAD = (
    re.findall(rf"<!-- {mark}: (L\d{{3}}) -->\n```yaml\n(.*?)^```$", text_of(PAGE), re.MULTILINE | re.DOTALL)
    for mark in ("advice", "instead")
)


def test_every_rule_has_its_section_and_its_example() -> None:
    """Each code of advice has a section, one rule speaks of it, and an example is under its own heading."""
    assert sorted(re.findall(r"^### (L\d{3})$", text_of(PAGE), re.MULTILINE)) == sorted(ADVICE)
    assert {code for code, _text in EXAMPLES} == set(ADVICE) - BY_RECORDS
    assert [code for code, _text in INSTEAD] == [code for code, _text in EXAMPLES]
    assert sorted((rule.__doc__ or "")[:4] for rule in RULES) == sorted(ADVICE)
    for section in re.split(r"^### ", text_of(PAGE), flags=re.MULTILINE)[1:]:
        assert set(re.findall(r"<!-- (?:advice|instead): (\w+) -->", section)) <= {section[:4]}


@pytest.mark.parametrize(("code", "text"), EXAMPLES, ids=[code for code, _text in EXAMPLES])
def test_an_example_shows_its_advice(
    code: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan under a code is valid, and is told that and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(text)
    found = advise("plan.yml")
    assert found.is_plan
    assert [each.code for each in found.problems] == [code], render_text(found.problems, found.sources)


@pytest.mark.parametrize(("code", "text"), INSTEAD, ids=[code for code, _text in INSTEAD])
def test_what_to_write_instead_has_no_findings(
    code: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second plan under a code is valid and gets no advice at all."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(text)
    found = advise("plan.yml")
    assert found.is_plan, code
    assert found.problems == (), f"{code}: {render_text(found.problems, found.sources)}"


def test_a_plan_can_leave_advice_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan on the page that ignores a code is told nothing, and without that line the code."""
    monkeypatch.chdir(tmp_path)
    (text,) = [
        each for language, each in FENCE.findall(text_of(PAGE)) if "x-lint" in each and language == "yaml"
    ]
    (tmp_path / "plan.yml").write_text(text)
    assert advise("plan.yml").problems == ()
    (tmp_path / "plan.yml").write_text(text.replace("x-lint: {ignore: [L403]}\n", ""))
    assert [each.code for each in advise("plan.yml").problems] == ["L403"]


def test_the_page_shows_advice_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finding at the head of the page is what `lint` prints for the plan under its code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(dict(EXAMPLES)["L404"])
    found = advise("plan.yml")
    assert render_text(found.problems, found.sources).rstrip("\n") in text_of(PAGE)
