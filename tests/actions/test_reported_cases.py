"""Test cases that steps report themselves, from real test runs to the run's reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import junitparser
import pytest
from lxml import etree

import planrun
from planrun.actions.reported import MAX_DEPTH, BadReport, called, read, seconds
from planrun.reports.elements import DIALECTS

SCHEMAS = Path(__file__).parent.parent / "data" / "junit"
STRICT = {
    "jenkins-xunit": "jenkins-xunit-junit-10.xsd",
    "surefire": "surefire-test-report.xsd",
    "ant": "windyroad-JUnit.xsd",
}
SUITE = """
import pytest

@pytest.mark.parametrize("value", ["a", "<b>&\\"'", "\\x00\\x1b[31m", "\\u00e9\\U0001f600", "::error::x", "]]>"])
def test_odd(value):
    assert value == "a"

@pytest.mark.skip(reason="later")
def test_left_out(): pass

@pytest.fixture
def broken(): raise RuntimeError("no fixture")

def test_error(broken): pass

class TestInner:
    def test_within(self): assert 1 == 2
"""
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:randomly"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(folder: Path, steps: str, head: str = "", **options: Any) -> dict[str, dict[str, Any]]:
    """Execute steps in a folder and return the steps of ledger.json."""
    (folder / "plan.yml").write_text(f"version: 1\nname: trial\n{head}steps:\n{steps}", encoding="utf-8")
    planrun.execute(planrun.load(str(folder / "plan.yml")), **options)
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return {step["id"]: step for step in ledger["steps"]}


def report(form: str, dialect: str = "default") -> bytes:
    """Return a report of the last run, made again from its folder."""
    words = ["report", "last", "--format", form]
    words += ["--junit-dialect", dialect] if form == "junit" else []
    done = subprocess.run([sys.executable, "-m", "planrun", *words], capture_output=True, check=True)
    return done.stdout


def summary(step: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of the last attempt of a step."""
    found: dict[str, Any] = step["attempts"][-1]["reports"]["junit"]
    return found


def test_a_real_suite_in_every_dialect(tmp_path: Path) -> None:
    """What pytest wrote becomes a suite for each instance, valid for each reader; totals are those of the cases."""
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    found = run(
        tmp_path,
        f"  - id: test\n    matrix: {{part: [odd, rest]}}\n    run: {PYTEST} --junitxml=${{{{ step.dir }}}}/j.xml\n"
        '    reports: {junit: "${{ step.dir }}/*.xml"}\n',
    )
    counts = summary(found["test[part=odd]"])
    assert (counts["tests"], counts["failures"], counts["errors"], counts["skipped"]) == (9, 6, 1, 1)
    assert {"test_it.py::TestInner::test_within", "test_it.py::test_error"} <= {
        each["name"] for each in counts["failed"]
    }
    assert all(each["file"] == "test_it.py" and each["line"] for each in counts["failed"])
    for dialect in DIALECTS:
        data = report("junit", dialect)
        root = ET.fromstring(data)
        cases = list(root.iter("testcase"))
        assert len(cases) == 2 + 2 * 9
        assert len({(case.attrib["classname"], case.attrib["name"]) for case in cases}) == len(cases)
        assert len(list(root.iter("failure"))) == 2 + 2 * 6
        assert len(list(root.iter("error"))) == 2
        if DIALECTS[dialect].totals or not DIALECTS[dialect].wrapped:
            totals = [int(root.attrib[name]) for name in ("tests", "failures", "errors")]
            assert totals == [len(cases), 2 + 2 * 6, 2]
        for suite in root.iter("testsuite"):
            assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        if dialect in STRICT:
            etree.XMLSchema(etree.parse(SCHEMAS / STRICT[dialect])).assertValid(etree.fromstring(data))
        junitparser.JUnitXml.fromstring(data)
    names = [suite.attrib["name"] for suite in ET.fromstring(report("junit")).iter("testsuite")]
    assert names == ["trial", "trial / test[part=odd] / pytest", "trial / test[part=rest] / pytest"]
    assert report("junit") == (tmp_path / "planrun-out" / "junit.xml").read_bytes()
    assert b"tests: 1 passed, 7 failed (" in (tmp_path / "planrun-out" / "report.md").read_bytes()


def test_tolerated_failures_fail_nothing(tmp_path: Path) -> None:
    """The failed cases of a step whose failure the run forgives are left out in the eyes of readers."""
    xml = '<testsuite name="s"><testcase name="a" classname="c"><failure message="m">t</failure></testcase></testsuite>'
    (tmp_path / "source").write_text(xml)
    run(
        tmp_path,
        "  - {id: a, run: cp source j.xml; exit 1, reports: {junit: j.xml}, on_failure: continue}\n",
    )
    root = ET.fromstring((tmp_path / "planrun-out" / "junit.xml").read_bytes())
    assert (root.attrib["failures"], root.attrib["skipped"]) == ("0", "2")
    assert not list(root.iter("failure"))


def test_the_last_attempt_counts(tmp_path: Path) -> None:
    """Each attempt keeps its own; a file of an earlier attempt is none of a later one."""
    bad = '<testsuite name="s"><testcase name="a"><error/></testcase></testsuite>'
    again = '<flakyFailure type="t" message="m">x</flakyFailure>'
    good = f'<testsuite name="s"><testcase name="a">{again}</testcase></testsuite>'
    (tmp_path / "1.xml").write_text(bad)
    (tmp_path / "2.xml").write_text(good)
    found = run(
        tmp_path,
        "  - id: a\n    retries: {max: 1, backoff: {initial: 1ms}}\n    reports: {junit: j.xml}\n"
        '    run: cp "$PLANRUN_ATTEMPT.xml" j.xml; test "$PLANRUN_ATTEMPT" = 2 && echo done\n',
    )
    first, second = (attempt["reports"]["junit"] for attempt in found["a"]["attempts"])
    assert (first["errors"], second["errors"]) == (1, 0)
    runs = next((tmp_path / ".planrun" / "runs").iterdir())
    assert [(runs / each["file"]).exists() for each in (first, second)] == [True, True]
    assert (runs / second["file"]).stat().st_mode & 0o777 == 0o600
    root = ET.fromstring((tmp_path / "planrun-out" / "junit.xml").read_bytes())
    assert (root.attrib["errors"], len(list(root.iter("flakyFailure")))) == ("0", 2)


def test_secrets_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No report and no record has the value of a secret that a test printed."""
    secret = "s3cr3t-<0123456789>"
    monkeypatch.setenv("API_TOKEN", secret)
    (tmp_path / "make.py").write_text(
        "import os\nfrom xml.sax.saxutils import quoteattr as q, escape\nt = os.environ['API_TOKEN']\n"
        "open('j.xml', 'w').write(f'<testsuite name={q(t)}><testcase name={q(t)} classname={q(t)} file={q(t)}>"
        "<failure type={q(t)} message={q(t)}>{escape(t)}</failure><system-out>{escape(t)}</system-out>"
        "</testcase></testsuite>')\n"
    )
    found = run(
        tmp_path,
        f"  - {{id: a, run: {sys.executable} make.py; exit 1, reports: {{junit: j.xml}}, secrets: [API_TOKEN]}}\n",
        "secrets: [API_TOKEN]\n",
    )
    assert summary(found["a"])["failures"] == 1
    for folder in (".planrun", "planrun-out"):
        for path in (tmp_path / folder).rglob("*"):
            if path.is_file():
                assert b"0123456789" not in path.read_bytes(), path


def test_a_large_report(tmp_path: Path) -> None:
    """Ten thousand cases are merged whole; dropped cases are reported, and the file stays valid."""
    rows = "".join([f'<testcase classname="m" name="t{n}" time="0.01"/>' for n in range(10_000)])
    (tmp_path / "source").write_text(f'<testsuites><testsuite name="s">{rows}</testsuite></testsuites>')
    found = run(tmp_path, "  - {id: a, run: cp source j.xml, reports: {junit: j.xml}}\n")
    assert summary(found["a"])["tests"] == 10_000
    root = ET.fromstring(report("junit"))
    assert int(root.attrib["tests"]) == len(list(root.iter("testcase"))) == 10_001
    os.unlink(next((tmp_path / ".planrun" / "runs").iterdir()) / summary(found["a"])["file"])
    left = ET.fromstring(report("junit"))
    assert left.attrib["tests"] == "1"
    assert any(each.attrib["name"] == "planrun.problem" for each in left.iter("property"))


def test_more_than_fits_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are kept when passed cases no longer fit, and the suite reports the number of missing cases."""
    monkeypatch.setattr("planrun.reports.testcases.PASSED_BYTES", 2000)
    rows = "".join([f'<testcase classname="m" name="t{n}"/>' for n in range(100)])
    bad = '<testcase classname="m" name="bad"><failure message="x"/></testcase>'
    (tmp_path / "source").write_text(f'<testsuite name="s">{rows}{bad}</testsuite>')
    run(tmp_path, "  - {id: a, run: cp source j.xml, reports: {junit: j.xml}}\n")
    root = ET.fromstring((tmp_path / "planrun-out" / "junit.xml").read_bytes())
    suite = root.findall("testsuite")[1]
    left = next(each for each in suite.iter("property") if each.attrib["name"] == "planrun.cases_left_out")
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase")) == 101 - int(left.attrib["value"])
    assert suite.attrib["failures"] == "1"


def test_failed_cases_are_annotated_on_github(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """At their file and line, a few of each step, as commands that nothing in their names can change."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI", "true")
    rows = "".join(
        [
            f'<testcase classname="c" name="a&#10;::error::{n}" file="t.py" line="{n + 1}">'
            '<failure message="x&#10;y"/></testcase>'
            for n in range(9)
        ]
    )
    (tmp_path / "source").write_text(f'<testsuite name="s">{rows}</testsuite>')
    run(tmp_path, "  - {id: a, run: cp source j.xml; exit 1, reports: {junit: j.xml}}\n")
    shown = capfd.readouterr()
    lines = [row for row in (shown.out + shown.err).splitlines() if row.startswith("::error file=t.py,line=")]
    assert len(lines) == 5
    assert not any(row.startswith("::error::") for row in (shown.out + shown.err).splitlines())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"junk", "no JUnit file: it has no <testsuite>"),
        (b"\x1b<html/>", "no JUnit file: its root is <html>"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]>\x1b<testsuite/>', "has a document type, which is not read"),
        (b"<testsuite>" * 100 + b"&", f"has more than {MAX_DEPTH} elements in each other"),
        (b"<html/>", "no JUnit file: its root is <html>"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuite/>', "has a document type, which is not read"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite name="&b;"/>', "has a document type, which is not read"),
        (b"<testsuite>" * 100, f"has more than {MAX_DEPTH} elements in each other"),
    ],
)
def test_a_file_that_is_no_report_is_refused(data: bytes, message: str) -> None:
    """Nothing is looked up, and nothing is expanded."""
    with pytest.raises(BadReport) as caught:
        read(data)
    assert str(caught.value) == message


GOOD = '<testsuite name="s">\n<testcase name="a"/>\n<testcase name="b"><failure message="m'
REST = '">t</failure></testcase>\n</testsuite>'
BOTH = ["a", "b failure"]
REPLACED = "is replaced by U+FFFD"
NOT_CLEAN: dict[str, tuple[bytes, list[str], list[str]]] = {
    # What is in the file, its cases as they are read, and what is said about it.
    "clean": (f"{GOOD}{REST}".encode(), BOTH, []),
    "escape": (
        f"{GOOD}\x1b[31m{REST}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+001B) {REPLACED}"],
    ),
    "nul": (
        f"{GOOD}\0{REST}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+0000) {REPLACED}"],
    ),
    "twice": (
        f"{GOOD}\x01{REST}\x01".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+0001) {REPLACED} (2 times in the file)"],
    ),
    "reference": (
        f"{GOOD}&#27;{REST}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+001B) {REPLACED}"],
    ),
    "hexadecimal": (
        f"{GOOD}&#x0;{REST}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+0000) {REPLACED}"],
    ),
    "huge reference": (
        f"{GOOD}&#x110000;{REST}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+110000) {REPLACED}"],
    ),
    "cdata": (
        f"{GOOD}{REST[:2]}<![CDATA[a & <b> \x08]]>{REST[2:]}".encode(),
        BOTH,
        [f"3: a character that XML does not allow (U+0008) {REPLACED}"],
    ),
    "latin-1": (
        f"{GOOD}é{REST}".encode("latin-1"),
        BOTH,
        ["3: bytes that are not UTF-8 are replaced by U+FFFD"],
    ),
    "declared latin-1": (
        f'<?xml version="1.0" encoding="latin-1"?>{GOOD}é{REST}'.encode("latin-1"),
        BOTH,
        [],
    ),
    "utf-8 declared as ascii": (f'<?xml version="1.0" encoding="us-ascii"?>{GOOD}é{REST}'.encode(), BOTH, []),
    "utf-8 declared as utf-16": (f'<?xml version="1.0" encoding="utf-16"?>{GOOD}é{REST}'.encode(), BOTH, []),
    "unknown encoding": (f'<?xml version="1.0" encoding="klingon"?>{GOOD}{REST}'.encode(), BOTH, []),
    "shift_jis": (
        f'<?xml version="1.0" encoding="shift_jis"?>{GOOD}日{REST}'.encode("shift_jis"),
        BOTH,
        [],
    ),
    "bom": (f"\ufeff{GOOD}{REST}".encode(), BOTH, []),
    "utf-16": (f"{GOOD}{REST}".encode("utf-16"), BOTH, []),
    "utf-16 without a mark": (f"{GOOD}{REST}".encode("utf-16-le"), BOTH, []),
    "ampersand": (
        f"{GOOD} a && b{REST}".encode(),
        BOTH,
        ["3: a bare & is read as text (2 times in the file)"],
    ),
    "entity": (f"{GOOD}&nbsp;{REST}".encode(), BOTH, ["3: a bare & is read as text"]),
    "less than": (f"{GOOD} a<b{REST}".encode(), BOTH, ["3: a bare < is read as text"]),
    "text in front": (f"warning: x\n{GOOD}{REST}".encode(), BOTH, []),
    "declaration on line 2": (f'\n<?xml version="1.0"?>\n{GOOD}{REST}'.encode(), BOTH, []),
    "text behind": (f"{GOOD}{REST}\ndone".encode(), BOTH, []),
    "two roots": (f"{GOOD}{REST}\n{GOOD}{REST}".encode(), BOTH * 2, []),
    "cut off in a failure": (f"{GOOD}{REST}"[:-35].encode(), BOTH, ["3: the file ends within <failure>"]),
    "cut off in a case": (
        b'<testsuite name="s"><testcase name="a"/><testcase name="b">',
        ["a"],
        ["1: the file ends within <testcase>; the result of b is not known"],
    ),
    "crossed tags": (
        b'<testsuite name="s"><testcase name="a"/>\n<testcase name="b"></testsuite>',
        ["a"],
        ["2: not well-formed (mismatched tag); what follows is not read; the result of b is not known"],
    ),
    "empty": (b"", [], ["1: the file is empty"]),
    "bom alone": (b"\xef\xbb\xbf\r\n", [], ["1: the file is empty"]),
}


@pytest.mark.parametrize("name", NOT_CLEAN)
def test_what_can_be_read_of_a_report_that_is_not_clean(name: str) -> None:
    """Its cases are all there, and what was replaced is said with its line."""
    data, cases, said = NOT_CLEAN[name]
    suites, replaced = read(data)
    found = [
        " ".join([case["name"], *case.get("result", ())[:1]]) for suite in suites for case in suite["cases"]
    ]
    assert (found, replaced) == (cases, said)


def test_a_report_that_is_not_clean_fails_no_step(tmp_path: Path) -> None:
    """Console, page and text report name its file and line; the run's own file is well-formed."""
    rows = ["version: 1", "name: trial", "steps:"]
    for n, (data, _, _) in enumerate(NOT_CLEAN.values()):
        (tmp_path / f"source{n}").write_bytes(data)
        rows.append(f"  - {{id: s{n}, run: cp source{n} j{n}.xml, reports: {{junit: j{n}.xml}}}}")
    (tmp_path / "plan.yml").write_text("\n".join(rows) + "\n")
    command = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "planrun-out" / "report.md").read_text("utf-8")
    text = report("text").decode()
    total = 0
    for n, (_, cases, said) in enumerate(NOT_CLEAN.values()):
        total += len(cases)
        for each in said:
            note = f"warning: s{n}: test report j{n}.xml:{each}"
            assert note in done.stdout + done.stderr
            assert note.removeprefix("warning: ") in text
        assert (f"test report j{n}.xml" in page) is bool(said)
    root = ET.fromstring((tmp_path / "planrun-out" / "junit.xml").read_bytes())
    assert len(list(root.iter("testcase"))) == total + len(NOT_CLEAN)

    script = "cp source1 a.xml; echo '<html/>' > b.xml; exit 3"
    failing = f"  - {{id: a, run: {script}, reports: {{junit: [a.xml, b.xml, c.xml]}}}}\n"
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps:\n{failing}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for note in (
        "test report a.xml:3: a character that XML",
        "test report b.xml: no JUnit file: its root is <html>",
        "it did not write its JUnit report: no file matches 'c.xml'",
    ):
        assert f"warning: a: {note}" in done.stdout + done.stderr


def test_suites_in_suites_and_odd_values() -> None:
    """Suites keep their way as a name; times are read as runners write them; one verdict a case."""
    found, _ = read(
        b'<testsuites><testsuite name="a"><testsuite name="b" time="1,234.5"><testcase name="t" time="nan">'
        b'<skipped/><failure message="m"/></testcase></testsuite><testcase/></testsuite></testsuites>'
    )
    assert [(suite["name"], suite["time"]) for suite in found] == [("a", 0.0), ("a / b", 1234.5)]
    assert found[1]["cases"][0]["result"][0] == "failure"
    assert called(found[0]["cases"][0]) == "case"
    assert [seconds(text) for text in ("-1", "inf", "x", "", "2")] == [0.0, 0.0, 0.0, 0.0, 2.0]
