"""JUnit files as other programs write them, read without trust: suites and cases as plain data.

No document types, so no entities; bounded in size, depth and length of texts. Whatever else such a file has is
passed over, since every test runner writes another dialect.
"""

from __future__ import annotations

import re
from xml.parsers import expat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 64  # elements in each other; JUnit files have five or so
TEXT_CHARS = 32 * 1024  # of one failure
OUT_CHARS = 8 * 1024  # of what a case printed that did not pass, its end
NAME_CHARS = 1000
_RESULTS = ("failure", "error", "skipped")
_AGAIN = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")
_PRINTED = ("system-out", "system-err")
_MOST_SECONDS = 1e9
# What a failure of pytest ends with, and the place that many others name in this form.
_PLACE = re.compile(r"^((?:[A-Za-z]:)?[^\s:()\"'<>]+\.\w+):(\d{1,7})(?::|$)", re.MULTILINE)


class BadReport(ValueError):
    """A file that is no JUnit file; the message is a clause about it."""


def read(data: bytes) -> list[dict[str, Any]]:
    """Return the suites of a JUnit file, those inside of others after them; raises BadReport.

    A suite has `name`, `time` (seconds) and `cases`. A case has `name`, `class`, `time`, and where they are known
    `file`, `line`, `result` (kind, type, message, text), `again` (a list of the same) and `out`.
    """
    return _Reading().read(data)


class _Reading:
    """One file being read: the elements that are open, and what was found."""

    def __init__(self) -> None:
        self.suites: list[dict[str, Any]] = []
        self.open: list[str] = []
        self.within: list[dict[str, Any]] = []  # suites that are open
        self.case: dict[str, Any] | None = None
        self.result: list[str] | None = None  # kind, type, message
        self.text: list[str] = []
        self.room = 0  # characters of text that are still taken

    def read(self, data: bytes) -> list[dict[str, Any]]:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise BadReport(f"not well-formed at line {error.lineno}") from None
        except (LookupError, ValueError, UnicodeError) as error:
            if isinstance(error, BadReport):
                raise
            raise BadReport("not in an encoding that is known") from None
        return self.suites

    def _refuse(self, *_: object) -> None:
        raise BadReport("has a document type, which is not read")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self.open and tag not in ("testsuites", "testsuite"):
            raise BadReport(f"no JUnit file: its root is <{tag[:40]}>")
        if len(self.open) == MAX_DEPTH:
            raise BadReport(f"has more than {MAX_DEPTH} elements in each other")
        self.open.append(tag)
        if tag == "testsuite" and self.case is None:
            self._suite(attributes)
        elif tag == "testcase" and self.case is None and self.within:
            self._case(attributes)
        elif self.case is not None and tag in (*_RESULTS, *_AGAIN) and self.result is None:
            self.result = [
                tag,
                _short(attributes.get("type", "")),
                attributes.get("message", "")[:TEXT_CHARS],
            ]
            self.text, self.room = [], TEXT_CHARS
        elif self.case is not None and tag in _PRINTED and self.result is None:
            self.text, self.room = [], TEXT_CHARS * 32

    def _end(self, tag: str) -> None:
        tag = tag.rpartition(":")[2]
        self.open.pop()
        if tag == "testsuite" and self.case is None:
            self._close_suite()
        elif self.case is None:
            return
        elif tag == "testcase" and self.result is None:
            self._close_case(self.case)
            self.case = None
        elif self.result is not None and tag == self.result[0]:
            self.case["found"].append((*self.result, "".join(self.text).strip("\n")))
            self.result, self.text, self.room = None, [], 0
        elif tag in _PRINTED and self.result is None:
            self.case["out"] += "".join(self.text)[-OUT_CHARS:]
            self.text, self.room = [], 0

    def _characters(self, text: str) -> None:
        if self.room > 0:
            self.text.append(text[: self.room])
            self.room -= len(text)

    def _suite(self, attributes: dict[str, str]) -> None:
        own = _short(attributes.get("name", ""))
        above = self.within[-1]["name"] if self.within else ""
        suite: dict[str, Any] = {
            "name": _short(f"{above} / {own}" if above and own else own or above),
            "time": seconds(attributes.get("time", "")),
            "file": _short(attributes.get("file", "")),
            "cases": [],
        }
        self.within.append(suite)
        self.suites.append(suite)

    def _close_suite(self) -> None:
        if self.within:
            suite = self.within.pop()
            suite["time"] = suite["time"] or sum([case["time"] for case in suite["cases"]])

    def _case(self, attributes: dict[str, str]) -> None:
        self.case = {
            "name": _short(attributes.get("name", "")),
            "class": _short(attributes.get("classname", "")),
            "time": seconds(attributes.get("time", "")),
            "found": [],
            "out": "",
        }
        file, line = attributes.get("file") or self.within[-1]["file"], attributes.get("line", "")
        if file:
            self.case["file"] = _short(file)
            if attributes.get("file") and line.isascii() and line.isdigit():
                self.case["line"] = int(line[:7])

    def _close_case(self, case: dict[str, Any]) -> None:
        found = case.pop("found")
        verdicts = [each for each in found if each[0] in _RESULTS]
        if verdicts:
            # One verdict a case, as all readers have it; a failure is worse than what was left out.
            verdicts.sort(key=lambda each: each[0] == "skipped")
            kind, type_, message, text = verdicts[0]
            texts = [text, *[f"{each[0]}: {each[2]}\n{each[3]}" for each in verdicts[1:]]]
            case["result"] = [kind, type_, message, "\n\n".join(texts)[:TEXT_CHARS]]
        if again := [list(each) for each in found if each[0] in _AGAIN]:
            case["again"] = again[:20]
        out = case.pop("out")
        if out and verdicts and verdicts[0][0] != "skipped":
            case["out"] = out[-OUT_CHARS:]
        if "line" not in case and verdicts and verdicts[0][0] != "skipped":
            _take_place(case, verdicts[0][3])
        self.within[-1]["cases"].append(case)


def _take_place(case: dict[str, Any], text: str) -> None:
    """Fill in where a case failed, as far as the text of its failure ends with a place."""
    places = _PLACE.findall(text[-4 * NAME_CHARS :])
    if places:
        case["file"], case["line"] = _short(places[-1][0]), int(places[-1][1])


def seconds(text: str) -> float:
    """Return a time as runners write it, some with commas for thousands; 0.0 for what is none."""
    try:
        found = float(text.replace(",", "")) if text else 0.0
    except ValueError:
        return 0.0
    return round(found, 4) if 0 <= found <= _MOST_SECONDS else 0.0


def _short(text: str) -> str:
    return text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1] + "…"


def called(case: dict[str, Any]) -> str:
    """Return what people call a case: `tests/test_a.py::test_x` where that is known, else class and name."""
    name, group, file = case["name"] or "case", case["class"], case.get("file", "")
    module = file.rpartition(".")[0].replace("/", ".")
    if module and (group == module or group.startswith(module + ".")):
        inner = group[len(module) + 1 :].replace(".", "::")
        return "::".join([part for part in (file, inner, name) if part])
    return f"{group}::{name}" if group else str(name)
