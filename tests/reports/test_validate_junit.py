"""Problems of plan files as JUnit cases."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest

from planrun.plan.problems import Problem
from planrun.reports.validate_junit import problems_junit


def test_one_case_for_each_problem_and_each_good_file() -> None:
    """Bad files give a failed case per problem with its place, good ones a passed case."""
    problems = [
        Problem(code="E104", message='unknown key "retires"', file="a.yml", line=12, col=5, hint="so?"),
        Problem(code="E104", message="twice at one place", file="a.yml", line=12, col=5),
        Problem(code="E114", message="odd \x1b[31m\ud800 <text>\x00", file="b.yml", line=2, col=1),
    ]
    data = problems_junit(["a.yml", "b.yml", "c.yml"], problems)
    suite = next(ET.fromstring(data).iter("testsuite"))
    assert "disabled" not in suite.attrib
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4",
        "failures": "3",
        "errors": "0",
        "skipped": "0",
        "time": "0.000",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    assert [case.attrib["name"] for case in suite.iter("testcase")] == [
        "a.yml:12:5 E104",
        "a.yml:12:5 E104 (2)",
        "b.yml:2:1 E114",
        "c.yml",
    ]
    first = next(suite.iter("failure"))
    assert first.attrib == {"type": "InvalidPlan", "message": 'unknown key "retires"; so?'}
    assert first.text == 'a.yml:12:5: error[E104]: unknown key "retires"; so?\n'
    parsed = junitparser.JUnitXml.fromstring(data)
    assert isinstance(parsed, junitparser.JUnitXml)
    assert (parsed.tests, parsed.failures) == (4, 3)


def test_places_count_from_the_root_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named by their path in the repository, where they are valid and where they are not."""
    (tmp_path / "app").mkdir()
    monkeypatch.chdir(tmp_path / "app")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    problem = Problem(code="E104", message="no", file="./bad.yml", line=1, col=2)
    root = ET.fromstring(problems_junit(["./bad.yml", "good.yml"], [problem]))
    assert [case.attrib["file"] for case in root.iter("testcase")] == ["app/bad.yml", "app/good.yml"]
