"""The default JUnit dialect as its readers without a schema see it, each written here after its own source."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import junitparser
import pytest

from planrun.reports.elements import DIALECTS
from planrun.reports.junit import write_junit
from tests.reports.runs import mixed_run

if TYPE_CHECKING:
    from collections.abc import Iterator

# ActiveSupport turns the text of an element with such a type into something else, or refuses the file.
CAST_TYPES = {
    "array",
    "base64Binary",
    "boolean",
    "date",
    "dateTime",
    "datetime",
    "decimal",
    "double",
    "file",
    "float",
    "integer",
    "string",
    "symbol",
    "yaml",
}


class Seen(NamedTuple):
    """A case as a reader shows it."""

    suite: str
    name: str
    status: str
    text: str
    file: str = ""
    line: int = 0


def mixed_junit(tmp_path: Path, dialect: str = "default") -> bytes:
    """The file of a run with one of everything."""
    out = io.BytesIO()
    write_junit(mixed_run(tmp_path), str(tmp_path), out, dialect)
    return out.getvalue()


def gitlab(data: bytes) -> dict[tuple[str, str], Seen]:
    """Class name and name identify, the first of two wins; text is shown, the message only without text."""
    found: dict[tuple[str, str], Seen] = {}
    for case in ET.fromstring(data).iter("testcase"):
        key = (case.attrib["classname"], case.attrib["name"])
        for tag, status in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
            result = case.find(tag)
            if result is not None:
                assert result.attrib.get("type") not in CAST_TYPES
                text = result.text or result.attrib["message"]
                found.setdefault(key, Seen(key[0], key[1], status, text, case.attrib["file"]))
                break
        else:
            found.setdefault(key, Seen(key[0], key[1], "success", "", case.attrib["file"]))
    return found


def dorny(data: bytes) -> list[Seen]:
    """Suites need names, cases are grouped by class name; error and failure are one; message before text."""
    seen = []
    root = ET.fromstring(data)
    for suite in root.iter("testsuite"):
        assert suite.attrib["name"].strip()
        float(suite.attrib["time"])
        for case in suite.iter("testcase"):
            bad = case.find("failure")
            bad = case.find("error") if bad is None else bad
            status = "failed" if bad is not None else "passed"
            status = "skipped" if case.find("skipped") is not None else status
            text = (bad.attrib.get("message") or bad.text or "") if bad is not None else ""
            float(case.attrib["time"])
            seen.append(Seen(case.attrib["classname"], case.attrib["name"].strip(), status, text))
    return seen


def mikepenz(data: bytes) -> list[Seen]:
    """Annotations stand at the file and line of the case; failed and skipped at once would be skipped."""
    seen = []
    for case in ET.fromstring(data).iter("testcase"):
        failures = [*case.findall("failure"), *case.findall("error")]
        if case.find("skipped") is not None or not failures:
            continue
        text = failures[0].attrib["message"]
        line = int(case.attrib["line"])
        seen.append(Seen("", case.attrib["name"], "failure", text, case.attrib["file"], line))
    return seen


def test_gitlab(tmp_path: Path) -> None:
    """Nothing is lost to duplicates, every case that did not pass has text that starts with the reason."""
    found = gitlab(mixed_junit(tmp_path))
    assert len(found) == 9
    assert {seen.name: seen.status for seen in found.values() if seen.status != "success"} == {
        "lint": "skipped",
        "fetch": "error",
        "integration": "failed",
        "deploy": "skipped",
        "notify": "skipped",
        "docs": "skipped",
    }
    assert found["release", "fetch"].text.startswith("ran longer than 30.0s\n")
    assert all(seen.file == "plans/release.yml" for seen in found.values())


def test_dorny(tmp_path: Path) -> None:
    """Counts and messages arrive."""
    seen = dorny(mixed_junit(tmp_path))
    assert [item.name for item in seen if item.status == "failed"] == ["fetch", "integration"]
    assert len([item for item in seen if item.status == "skipped"]) == 4
    assert {item.text for item in seen if item.status == "failed"} >= {"ran longer than 30.0s"}


def test_mikepenz(tmp_path: Path) -> None:
    """Each failure is annotated at the line of its step in the plan."""
    assert [(item.name, item.file, item.line) for item in mikepenz(mixed_junit(tmp_path))] == [
        ("fetch", "plans/release.yml", 22),
        ("integration", "plans/release.yml", 26),
    ]


def leaves(node: Any) -> Iterator[junitparser.TestCase]:
    """The cases below a suite or a list of suites."""
    for child in node:
        if isinstance(child, junitparser.TestCase):
            yield child
        else:
            yield from leaves(child)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_junitparser(dialect: str, tmp_path: Path) -> None:
    """The library that several reporters read with finds every case and result."""
    parsed = junitparser.JUnitXml.fromstring(mixed_junit(tmp_path, dialect))
    results = {case.name: [type(result).__name__ for result in case.result] for case in leaves(parsed)}
    assert len(results) == 9
    assert results["lint"] == ["Skipped"]
    assert results["integration"][0] == "Failure"
    assert results["fetch"] == ["Error"]
    assert results["deploy"] == ["Skipped"]
    assert results["build"] == []
