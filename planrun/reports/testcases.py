"""The test cases that steps report themselves, as suites of the run's JUnit file beside its own.

Nothing is copied from the files that steps wrote: what was kept of them is written anew, element by element. Loaded
for runs in which a step reported any. Counts are those of the cases in the file; of a run with more than fit, the
suite says how many were left out, and passed cases are left out first.
"""

from __future__ import annotations

import json
import os

from planrun.opening import open_record
from planrun.reports import facts
from planrun.reports.ci import from_checkout
from planrun.reports.elements import ORDER, Suite, element, escape, forgiven, quoted
from planrun.reports.escape import line, plain
from planrun.reports.extras import of_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.document import Part
    from planrun.reports.elements import Dialect

PASSED_BYTES = (
    8 << 20
)  # of cases that passed; with the logs and what failed less than the 30 MB that GitLab reads
ALL_BYTES = 12 << 20  # of all cases
ANNOTATED = 5  # failed cases of a step; GitHub shows ten errors of a job's step
TEXT_CHARS = 8 * 1024  # of one failure
_PLURAL = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_TYPES = {"failure": "TestFailed", "error": "TestError", "skipped": "Skipped"}
_AGAIN = frozenset(("flakyFailure", "flakyError", "rerunFailure", "rerunError"))


def suites(state: RunState, rundir: str, dialect: Dialect) -> list[Suite]:
    """Return the suites that the steps of a run reported, those of the last attempt of each step."""
    writing = _Writing(dialect)
    all_suites: list[Suite] = []
    for step in state.steps.values():
        summary = reported(step)
        if summary and step.step.section != "rollback":
            all_suites += writing.suites(state, step, rundir, str(summary.get("file", "")))
    return all_suites


def reported(step: StepState) -> dict[str, Any]:
    """Return what the last attempt of a step, or the earlier result that was used again, says of its test cases.

    Empty where it reported none.
    """
    last = facts.last(step)
    ended = step.restored if step.reason == "cached" else last.ended if last else None
    found = ended.reports.get("junit") if ended else None
    return found or {}


class _Writing:
    """Cases being turned into elements, and how many bytes are left for them."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.passed = PASSED_BYTES
        self.left = ALL_BYTES

    def suites(self, state: RunState, step: StepState, rundir: str, file: str) -> list[Suite]:
        """Return the suites of a step."""
        above = f"{line(state.plan.name).strip() or 'plan'} / {facts.name(step)}"
        at = facts.started_at(step)[:19]
        tolerated = forgiven(state, step)
        # Where one test runs several times only its class distinguishes the runs: readers compare class and name.
        prefix = f"{facts.name(step)} / " if step.step.group or not self.dialect.wrapped else ""
        found: list[Suite] = []
        try:
            for head, cases in kept(rundir, file):
                name = f"{above} / {head['suite']}" if head["suite"] else above
                found.append(
                    self._suite(
                        Suite(name=name, at=at, time=float(head["time"]), numbers={}, flakes=0, cases=()),
                        cases,
                        prefix,
                        tolerated=tolerated,
                    )
                )
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
            problem = f"the test cases that it reported are not in the run's folder any more: {file}"
            nothing = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
            found.append(
                Suite(name=above, at=at, time=0.0, numbers=nothing, flakes=0, cases=(), problem=problem)
            )
        return found

    def _suite(self, suite: Suite, cases: Iterator[dict[str, Any]], prefix: str, *, tolerated: bool) -> Suite:
        numbers = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        flakes, left_out = 0, 0
        rows: list[str] = []
        for case in cases:
            kind = _verdict(case, tolerated=tolerated)
            xml = self._case(case, prefix, kind, suite.at)
            if not self._fits(len(xml.encode()), kind):
                left_out += 1
                continue
            rows.append(xml)
            numbers["tests"] += 1
            if kind:
                numbers[_PLURAL[kind]] += 1
            elif any(each[0].startswith("flaky") for each in case.get("again", ())):
                flakes += 1
        return suite.but(numbers=numbers, flakes=flakes, cases=tuple(rows), left_out=left_out)

    def _fits(self, size: int, kind: str) -> bool:
        is_bad = kind in ("failure", "error")
        if size > (self.left if is_bad else min(self.left, self.passed)):
            return False
        self.left -= size
        if not is_bad:
            self.passed -= size
        return True

    def _case(self, case: dict[str, Any], prefix: str, kind: str, at: str) -> str:
        name = line(str(case["name"])).strip() or "case"
        group = prefix + (line(str(case["class"])).strip() or "case")
        head = f'<testcase classname={quoted(group)} name={quoted(name)} time="{float(case["time"]):.3f}"'
        if self.dialect.case_time and at:
            head += f' timestamp="{at}"'
        if self.dialect.places and case.get("file"):
            head += f" file={quoted(from_checkout(str(case['file']), os.environ))}"
            head += f' line="{int(case["line"])}"' if "line" in case else ""
        results = self._results(case, kind)
        return f"{head}>\n{results}</testcase>\n" if results else head + "/>\n"

    def _results(self, case: dict[str, Any], kind: str) -> str:
        """The elements in a case; in the order that Surefire's schema wants them."""
        found: dict[str, str] = {}
        if kind:
            own, type_, message, text = case["result"]
            tolerated = kind != own
            shown = line(str(message)) or line(str(text).strip().partition("\n")[0]) or own
            typed = line(str(type_)) or _TYPES[own]
            attributes = f" type={quoted('Tolerated' if tolerated else typed)}"
            if kind == "skipped" and not self.dialect.skip_type:
                attributes = ""
            attributes += f" message={quoted(f'tolerated: {shown}' if tolerated else shown)}"
            found[kind] = element(kind, attributes, _text(text, shown))
        if self.dialect.reruns:
            for tag, type_, message, text in case.get("again", ()):
                if tag in _AGAIN and tag.startswith("rerun") is (kind in ("failure", "error")):
                    found[tag] = found.get(tag, "") + _repeated(tag, str(type_), str(message), str(text))
        if self.dialect.case_out and case.get("out"):
            found["system-out"] = element("system-out", "", _text(case["out"], ""))
        return "".join([found[tag] for tag in ORDER if tag in found])


def _repeated(tag: str, type_: str, message: str, text: str) -> str:
    attributes = f"message={quoted(message)} type={quoted(line(type_) or 'TestFailed')}"
    return f"<{tag} {attributes}><stackTrace>{escape(_text(text, message))}</stackTrace></{tag}>\n"


def _text(text: object, message: str) -> str:
    """Return the text of a result, clean; GitLab shows the message only where there is none."""
    raw = str(text)
    found = plain(raw[:TEXT_CHARS] + ("…" if len(raw) > TEXT_CHARS else "")) or message
    # GitLab would attach any file of the job that a text names in this way.
    return found.replace("[[ATTACHMENT|", "[ [ATTACHMENT|")


def _verdict(case: dict[str, Any], *, tolerated: bool) -> str:
    """The element of a case, "" when it passed; a tolerated failure is skipped."""
    kind = case["result"][0] if "result" in case else ""
    if kind and kind not in _PLURAL:
        raise ValueError(kind)
    return "skipped" if kind and tolerated else str(kind)


def kept(rundir: str, file: str) -> Iterator[tuple[dict[str, Any], Iterator[dict[str, Any]]]]:
    """Yield each suite with its cases, which are to be read before the next; raises OSError, ValueError."""
    if not file.startswith("logs/") or ".." in file.split("/"):
        raise FileNotFoundError(file)
    with open(open_record(os.path.join(rundir, file)), encoding="ascii") as rows:
        for row in rows:
            head = json.loads(row)
            yield head, (json.loads(next(rows, "")) for _ in range(int(head["cases"])))


def places(step: StepState) -> Iterator[tuple[str, int, str, str]]:
    """Yield file, line, title and message of the first failed cases of a step that have a place, for annotations."""
    found = [each for each in reported(step).get("failed", ()) if each.get("file") and each.get("line")]
    for each in found[:ANNOTATED]:
        file = line(from_checkout(str(each["file"]), os.environ))
        yield file, int(each["line"]), line(str(each["name"]), 200), line(str(each["message"])) or "failed"


def sentence(summary: dict[str, Any]) -> str:
    """Return `120 passed, 2 failed (tests/test_a.py::test_x, …)`, clean."""
    bad = summary.get("failures", 0) + summary.get("errors", 0)
    skipped = summary.get("skipped", 0)
    parts = [f"{summary.get('tests', 0) - bad - skipped} passed"]
    if bad:
        names = [str(each.get("name", "")) for each in summary.get("failed", ())]
        more = ", …" if bad > 5 else ""
        parts.append(f"{bad} failed ({line(', '.join(names[:5]), 500)}{more})")
    if skipped:
        parts.append(f"{skipped} skipped")
    return ", ".join(parts)


def _step_rows(step: StepState) -> Iterator[str]:
    if summary := reported(step):
        yield f"tests: {sentence(summary)}"


TEST_CASES: Part = {
    "places": places,
    "step_rows": _step_rows,
    "suites": suites,
    # As `planrun.actions.reported` notes it.
    **of_notes(
        "Test reports that could not be read as they are",
        "has a test report that could not be read as it is",
        "test report ",
        "it did not write its JUnit report",
    ),
}
