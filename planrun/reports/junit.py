"""The run as a JUnit file, in the dialect of its reader, streamed.

The writer is our own and not the object model of `junit_xml`: importing that (with `xml.dom`) costs 15 ms,
more than a whole start of planrun has, and its tree for 10,000 cases takes 100 MB. It also writes `disabled`,
which the Jenkins xUnit plugin refuses, drops a failure without output, and raises on a lone surrogate. The
tests build the same suite with `junit_xml` and compare.

Dialects: `default` for readers without a schema (GitHub reporters, GitLab, the Jenkins junit step), the
others valid against junit-10.xsd of the Jenkins xUnit plugin, the Surefire 3.0.2 schema and the Ant schema.
"""

from __future__ import annotations

import os

from planrun.reports import facts
from planrun.reports.ci import from_checkout
from planrun.reports.document import load, parts_of
from planrun.reports.elements import (
    DIALECTS,
    ORDER,
    TYPES,
    element,
    escape,
    failed_attempts,
    flaky_attempts,
    forgiven,
    message,
    quoted,
    verdict,
)
from planrun.reports.escape import TAIL_BYTES, excerpt, line, tail
from planrun.reports.policies import in_force

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState
    from planrun.reports.elements import Dialect, Suite

TOTAL_BYTES = 8 * 1024 * 1024  # of logs in a file: GitLab reads 30 MB, libxml2 10 MB a text
TRACE_BYTES = 4 * 1024  # of the log of an attempt that was repeated
_EPOCH = "1970-01-01T00:00:00"  # a run without a start has to have a timestamp all the same


def write_junit(
    state: RunState, rundir: str, out: BinaryIO, dialect: str = "default", *, head: str = ""
) -> None:
    """Write the run to a binary file; `head` is the hash of the ledger's last line.

    Raises KeyError for an unknown dialect, OSError when `out` cannot be written.
    """
    _Writer(state, rundir, out, DIALECTS[dialect]).write(head)


class _Writer:
    """One file being written: the dialect, and how many bytes are left for logs."""

    def __init__(self, state: RunState, rundir: str, out: BinaryIO, dialect: Dialect) -> None:
        self.state = state
        self.rundir = rundir
        self.out = out
        self.dialect = dialect
        self.parts = parts_of(state)
        self.left = TOTAL_BYTES
        # A group that failed before it had members is a case: nothing else would show why the run failed.
        self.cases = [
            step
            for step in facts.listed(state)
            if step.step.section != "rollback" and (step.step.kind != "group" or step.status == "failed")
        ]
        self.classname = quoted(line(state.plan.name).strip() or "plan")
        self.file = quoted(from_checkout(state.plan.file, os.environ))

    def write(self, head: str) -> None:
        """Write the file from its first byte to its last."""
        numbers, flakes = self._numbers()
        suites = [
            suite
            for part in self.parts
            if "suites" in part
            for suite in part["suites"](self.state, self.rundir, self.dialect)
        ]
        total = {
            name: sum([suite.numbers[name] for suite in suites], count) for name, count in numbers.items()
        }
        if not self.dialect.wrapped:
            numbers, flakes = total, sum([suite.flakes for suite in suites], flakes)
        start = self.state.started.at[:19] if self.state.started else _EPOCH
        wall = f' time="{facts.elapsed(self.state):.3f}"'
        rows = ["<?xml version='1.0' encoding='utf-8'?>\n"]
        if self.dialect.wrapped:
            rows.append(f"<testsuites{self._totals(total, wall, start)}>\n")
        rows.append(f"<testsuite name={self.classname}{_attributes(numbers)}{wall}")
        rows.append(f' timestamp="{start}"{self._identity(flakes)}>\n{self._properties(head)}')
        self.out.write("".join(rows).encode())
        for step in self.cases:
            self.out.write(self._case(step).encode())
        self.out.write(self._case_of_outputs().encode())
        if not self.dialect.wrapped:
            self.out.writelines([case.encode() for suite in suites for case in suite.cases])
        ending = "<system-out></system-out>\n<system-err></system-err>\n" if self.dialect.suite_out else ""
        self.out.write((ending + "</testsuite>\n").encode())
        if self.dialect.wrapped:
            for number, suite in enumerate(suites, 1):
                self._add(suite, number, ending)
            self.out.write(b"</testsuites>\n")

    def _add(self, suite: Suite, number: int, ending: str) -> None:
        """Write a suite that a step reported, beside the run's own."""
        name = quoted(suite.name)
        host = quoted((self.state.started.host if self.state.started else "") or "localhost")
        head = f'<testsuite name={name}{_attributes(suite.numbers)} time="{suite.time:.3f}"'
        head += f' timestamp="{suite.at or _EPOCH}" hostname={host} id="{number}" package={self.classname}>\n'
        values = {"planrun.cases_left_out": suite.left_out, "planrun.problem": suite.problem}
        rows = [
            f'<property name="{key}" value={quoted(str(value))}/>\n' for key, value in values.items() if value
        ]
        self.out.write(f"{head}<properties>\n{''.join(rows)}</properties>\n".encode())
        self.out.writelines([case.encode() for case in suite.cases])
        self.out.write(f"{ending}</testsuite>\n".encode())

    def _numbers(self) -> tuple[dict[str, int], int]:
        """Count the cases by the element that each will have, and the flaky ones."""
        numbers = {"tests": len(self.cases), "failures": 0, "errors": 0, "skipped": 0}
        plural = {"failure": "failures", "error": "errors", "skipped": "skipped"}
        flakes = 0
        if self._outputs_error:
            numbers["tests"] += 1
            numbers["failures"] += 1
        for step in self.cases:
            tag = self._verdict(step)[0]
            if tag:
                numbers[plural[tag]] += 1
            elif len(step.attempts) > 1 and step.flaky:
                flakes += 1
        return numbers, flakes

    def _totals(self, numbers: dict[str, int], wall: str, start: str) -> str:
        if not self.dialect.totals:
            return ""
        if self.dialect.totals == "all":
            return f' name={self.classname}{_attributes(numbers)}{wall} timestamp="{start}"'
        some = {name: count for name, count in numbers.items() if name != "skipped"}
        return f" name={self.classname}{_attributes(some)}{wall}"

    def _identity(self, flakes: int) -> str:
        if not self.dialect.host:
            return f' flakes="{flakes}"'
        host = self.state.started.host if self.state.started else ""
        return f' hostname={quoted(host or "localhost")} id="0" package={self.classname}'

    def _properties(self, head: str) -> str:
        state = self.state
        spent = sum(facts.duration(step) for step in state.steps.values())
        values = {
            "planrun.run_id": state.started.run if state.started else "",
            "planrun.plan_digest": state.plan.digest,
            "planrun.policy": in_force(state),
            "planrun.head": head,
            "planrun.status": state.status,
            "planrun.verdict": state.settled or "",
            "planrun.step_seconds": f"{spent:.3f}",  # the suite's time is wall clock: steps overlap
        }
        for part in self.parts:
            if "properties" in part:
                values |= part["properties"](state)
        rows = [
            f'<property name="{name}" value={quoted(value)}/>\n' for name, value in values.items() if value
        ]
        return f"<properties>\n{''.join(rows)}</properties>\n"

    def _file(self, step: StepState) -> str:
        """The file that a step stands in, as an attribute."""
        if not step.step.file:
            return self.file
        return quoted(from_checkout(self.state.plan.file_of(step.step), os.environ))

    def _case(self, step: StepState) -> str:
        head = f'<testcase classname={self.classname} name={quoted(facts.name(step))} time="{facts.duration(step):.3f}"'
        if self.dialect.case_time and (at := facts.started_at(step)):
            head += f' timestamp="{at[:19]}"'
        if self.dialect.places:
            head += f' file={self._file(step)} line="{step.step.line}"'
        results = self._results(step)
        return f"{head}>\n{results}</testcase>\n" if results else head + "/>\n"

    @property
    def _outputs_error(self) -> str:
        """Why outputs of the plan could not be evaluated."""
        return line(self.state.ended.message) if self.state.ended else ""

    def _case_of_outputs(self) -> str:
        """A case for outputs of the plan that could not be evaluated: no step failed, and the run did."""
        reason = self._outputs_error
        if not reason:
            return ""
        tag, kind = TYPES["outputs"]
        place = f" file={self.file}" if self.dialect.places else ""
        failed = element(tag, f' type="{kind}" message={quoted(reason)}', reason + "\n")
        return f'<testcase classname={self.classname} name="plan outputs" time="0.000"{place}>\n{failed}</testcase>\n'

    def _results(self, step: StepState) -> str:
        last = facts.last(step)
        quoted_log = False  # the log stands in an element that says why the step did not pass
        if step.status != "completed":
            elements = self._judgement(step)
            quoted_log = elements[0][0] != "skipped" or self._verdict(step)[1] == "Tolerated"
        elif self.dialect.reruns and len(step.attempts) > 1:
            elements = [self._repeated("flaky", attempt) for attempt in flaky_attempts(step)]
        elif last and last.ended and not last.ended.log_bytes:
            return ""  # most steps
        else:
            elements = []
        if self.dialect.case_out and last and not quoted_log:
            out = self._log(last, failed=False, head=True)
            if out:
                elements.append(("system-out", element("system-out", "", out)))
        elements.sort(key=lambda result: ORDER.index(result[0]))
        return "".join([xml for _, xml in elements])

    def _judgement(self, step: StepState) -> list[tuple[str, str]]:
        tag, kind = self._verdict(step)
        reason = self._message(step)
        if tag == "skipped":
            text_of_skip = self._tolerated(step) if kind == "Tolerated" else reason + "\n"
            typed = f' type="{kind}"' if self.dialect.skip_type else ""
            reason = f"tolerated: {reason}" if kind == "Tolerated" else reason
            return [(tag, element(tag, f"{typed} message={quoted(reason)}", text_of_skip))]
        failed = failed_attempts(step)
        first = failed[0] if failed else facts.last(step)
        text = message(self.state, step) + "\n" + (self._evidence(first) if first else "")
        elements = [(tag, element(tag, f' type="{kind}" message={quoted(reason)}', text))]
        if self.dialect.reruns:
            elements += [
                self._repeated("rerun", attempt, is_last=attempt is failed[-1]) for attempt in failed[1:]
            ]
        return elements

    def _message(self, step: StepState) -> str:
        """Return why a step did not pass; of several failed attempts, why the first did."""
        if step.status != "failed":
            return message(self.state, step)
        failed = failed_attempts(step)
        found: str = (
            load("errorlines").attempt_failure(self.rundir, failed[0])
            if len(failed) > 1
            else load("errorlines").failure(self.rundir, step)
        )
        return found

    def _tolerated(self, step: StepState) -> str:
        """All that a failure would say; later attempts as text, since some readers count reruns as failures."""
        failed = failed_attempts(step)
        text = f"{message(self.state, step)}\ntolerated: the run does not fail because of it\n"
        if failed:
            text += self._evidence(failed[0])
        return text + "".join([f"\n{self._trace(attempt)}" for attempt in failed[1:]])

    def _verdict(self, step: StepState) -> tuple[str, str]:
        return ("skipped", "Tolerated") if forgiven(self.state, step) else verdict(step)

    def _trace(self, attempt: AttemptState, limit: int = TRACE_BYTES) -> str:
        return f"{facts.attempt_sentence(attempt.ended)}\n{self._evidence(attempt, limit)}"

    def _evidence(self, attempt: AttemptState, limit: int = 0) -> str:
        return _findings(attempt) + self._log(attempt, limit, failed=True, head=not limit)

    def _repeated(self, prefix: str, attempt: AttemptState, *, is_last: bool = False) -> tuple[str, str]:
        """A flakyFailure, flakyError, rerunFailure or rerunError with the end of the attempt's log.

        Of the last attempt it has as much as every case: the case has no other output.
        """
        trace = escape(self._trace(attempt, 0 if is_last else TRACE_BYTES))
        reason = load("errorlines").attempt_failure(self.rundir, attempt)
        family, kind = TYPES.get(attempt.ended.reason if attempt.ended else "lost", ("error", "StepError"))
        tag = prefix + family.capitalize()
        attributes = f'message={quoted(reason)} type="{kind}"'
        return tag, f"<{tag} {attributes}><stackTrace>{trace}</stackTrace></{tag}>\n"

    def _log(self, attempt: AttemptState, limit: int = 0, *, failed: bool, head: bool = False) -> str:
        """The end of a log, or of both its ends (`head`), in the bytes that are left; failures own half of it.

        `limit`: how many bytes of it at most; 0: as many as every report shows.
        """
        log = attempt.started.log
        if not log or (attempt.ended is not None and not attempt.ended.log_bytes):
            return ""
        omitted = f"log left out, this file holds enough of them: {log}\n"
        reserved = 0 if failed else TOTAL_BYTES // 2
        if self.left <= reserved:
            return omitted
        text = excerpt(self.rundir, log) if head else tail(self.rundir, log, limit or TAIL_BYTES)
        # GitLab would attach any file of the job that a step names in this way.
        text = text.replace("[[ATTACHMENT|", "[ [ATTACHMENT|")
        left = self.left - len(escape(text).encode())
        # The first log that does not fit ends the space: a search for smaller ones would read all of them.
        self.left = max(left, reserved)
        return text if left >= reserved else omitted


def _attributes(numbers: dict[str, int]) -> str:
    return "".join([f' {name}="{count}"' for name, count in numbers.items()])


def _findings(attempt: AttemptState) -> str:
    """Lines between the reason and the log: the error's class and rule, checks that do not hold, notes."""
    ended = attempt.ended
    if ended is None:
        return ""
    rows = []
    if ended.error and facts.classified(ended.error):
        rule = ended.error.get("rule", "")
        rows.append(f"error class {ended.error['class']}" + (f", by rule {rule}" if rule else ""))
    rows += [
        f"check failed: {check.get('name', '')}: {check.get('message', '')}"
        for check in ended.checks
        if not check.get("ok")
    ]
    rows += [f"note: {note}" for note in ended.notes]
    return "".join([line(row) + "\n" for row in rows])
