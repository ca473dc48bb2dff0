"""The problems of plan files as a JUnit file: `planrun validate --format junit`.

Here `junit_xml` builds the tree, since validating is no hot path (running is: see `planrun.reports.junit`).
What it writes that readers refuse or mistake is put right afterwards.
"""

from __future__ import annotations

import io
import os
import time
from xml.etree import ElementTree as ET

from planrun.reports.ci import from_checkout
from planrun.reports.escape import line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol
    from xml.etree.ElementTree import Element

    import junit_xml

    class Finding(Protocol):
        """A problem of a plan file, with its 1-based place."""

        @property
        def code(self) -> str:
            """`E104`."""

        @property
        def text(self) -> str:
            """Message and hint, raw."""

        @property
        def file(self) -> str:
            """The file, as the user named it."""

        @property
        def line(self) -> int:
            """Its line."""

        @property
        def col(self) -> int:
            """Its column."""


SUITE = "planrun.validate"
_TYPE = "InvalidPlan"


def problems_junit(files: Sequence[str], problems: Iterable[Finding]) -> bytes:
    """Return a JUnit file: a failed case for each problem, a passed one for each file that has none.

    A case is named after its place and code, so that it is the same case in the next run.
    """
    import junit_xml  # with xml.dom 15 ms: only for this format

    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    all_problems = list(problems)
    names: set[str] = set()
    cases = [_failed(problem, names) for problem in all_problems]
    bad = {problem.file for problem in all_problems}
    good = [line(file) for file in files if file not in bad]
    cases += [junit_xml.TestCase(file or "plan", SUITE, file=_located(file)) for file in good]
    suite = junit_xml.TestSuite(SUITE, cases, hostname="localhost", id="0", package=SUITE, timestamp=stamp)
    return _serialised(suite.build_xml_doc(encoding="utf-8"), stamp)


def _failed(problem: Finding, names: set[str]) -> junit_xml.TestCase:
    """One problem; readers take cases of the same name for one, so a second one is numbered."""
    import junit_xml

    place = f"{line(problem.file)}:{problem.line}:{problem.col}"
    name = base = f"{place} {line(problem.code)}"
    number = 1
    while name in names:
        number += 1
        name = f"{base} ({number})"
    names.add(name)
    message = line(problem.text) or problem.code
    case = junit_xml.TestCase(name, SUITE, file=_located(problem.file), line=problem.line)
    text = f"{place}: error[{problem.code}]: {plain(problem.text)}\n"
    case.add_failure_info(message=message, output=text, failure_type=_TYPE)
    return case


def _located(file: str) -> str:
    return line(from_checkout(file, os.environ))


def _serialised(suite: Element, stamp: str) -> bytes:
    """Put right what the library writes, and return the file."""
    suite.attrib.pop("disabled", None)  # the Jenkins xUnit plugin drops a file with it
    suite.set("time", "0.000")
    for case in suite.iter("testcase"):
        case.set("time", "0.000")  # left out when it is nothing, which Surefire's readers refuse
        case.set("timestamp", stamp)
    root = ET.Element("testsuites", name=SUITE)
    for name in ("tests", "failures", "errors", "skipped", "time"):
        root.set(name, suite.get(name, "0"))
    root.append(suite)
    out = io.BytesIO()
    ET.ElementTree(root).write(out, encoding="utf-8", xml_declaration=True)
    return out.getvalue() + b"\n"
