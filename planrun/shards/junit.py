"""Merge the JUnit files of shards: every test case once, that of the shard in which it ran."""

from __future__ import annotations

import errno
from xml.etree import ElementTree as ET

from planrun.errors import InvalidInput
from planrun.opening import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from xml.etree.ElementTree import Element

FILE = "junit.xml"
_MAX_BYTES = 64 << 20


def merge_junit(files: Iterable[str]) -> bytes:
    """Return one file with the suites of all; of a case that several have, the one that ran, and of those the failed.

    Raises InvalidInput for a file that is no JUnit file.
    """
    suites: dict[str, dict[tuple[str, str], Element]] = {}
    heads: dict[str, Element] = {}
    for file in files:
        for suite in _suites(file):
            name = suite.get("name", "")
            heads.setdefault(name, suite)
            cases = suites.setdefault(name, {})
            for case in suite.iter("testcase"):
                key = case.get("classname", ""), case.get("name", "")
                if key not in cases or _weight(case) > _weight(cases[key]):
                    cases[key] = case
    root = ET.Element("testsuites")
    for name, cases in suites.items():
        root.append(_suite(heads[name], list(cases.values())))
    _count(root, root.iter("testcase"))
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suites(file: str) -> list[Element]:
    try:
        data = read_record(file, _MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InvalidInput(f"{file} is too large for a JUnit file") from None
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from None
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:  # planrun writes none, and they can expand without bounds
        raise InvalidInput(f"{file} is no JUnit file of planrun: it declares entities")
    try:
        root = ET.fromstring(data)  # noqa: S314 - without entities, which were refused
    except ET.ParseError as error:
        raise InvalidInput(f"{file} is no JUnit file: {error}") from None
    return [root] if root.tag == "testsuite" else [each for each in root if each.tag == "testsuite"]


def _weight(case: Element) -> int:
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return 2
    return 0 if "skipped" in tags else 1


def _suite(head: Element, cases: list[Element]) -> Element:
    suite = ET.Element("testsuite", dict(head.attrib))
    _count(suite, cases)
    suite.text = "\n"
    for case in cases:
        case.tail = "\n"
        suite.append(case)
    suite.tail = "\n"
    return suite


def _count(element: Element, cases: Iterable[Element]) -> None:
    found = list(cases)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum([case.find(tag) is not None for case in found])))
    element.set("tests", str(len(found)))
    element.set("time", f"{sum([_time(case) for case in found]):.3f}")


def _time(case: Element) -> float:
    try:
        return float(case.get("time", "0"))
    except ValueError:
        return 0.0
