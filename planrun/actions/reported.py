"""JUnit reports of steps: collected when an attempt has ended, parsed, counted and stored in the run's folder.

Loaded only for steps with reports. The stored file has one suite or case per line, as masked JSON;
`planrun.reports.testcases` reads it.

JUnit files are untrusted input. Document types, and so entities, are refused; size, depth and length of texts are
limited. Unknown content is ignored, since every test runner writes a different dialect.
"""

from __future__ import annotations

import json
import os
import re
from xml.parsers import expat

from planrun.actions.files import matching, patterns_of, rendered
from planrun.errors import EvaluationError
from planrun.folders import make_private
from planrun.model.globs import escaped
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.actions.files import Patterns
    from planrun.model.job import Job, Outcome
    from planrun.model.plan import Step
    from planrun.ports import Masks

MAX_BYTES = 30 << 20  # of one file: GitLab reads as much
ALL_BYTES = 60 << 20  # of all files of an attempt
MAX_FILES = 1000  # of an attempt
MAX_NAMED = 10  # failed cases in the record of an attempt; GitHub shows ten annotations of a step
MESSAGE_CHARS = 300
BEGINNING = "test report "  # of notes that the console shows
ENDING = ".junit"  # of the stored reports of an attempt, beside its log
_APART = "\n" * 8  # more line breaks than the search for secrets spans
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Wanted(Record):
    """One pattern of a step: its text, its base folder, and the files there before the step ran."""

    text: str
    root: str
    patterns: Patterns
    before: Mapping[str, tuple[int, ...]]


class Reported:
    """The reports of a run's steps."""

    def __init__(self, place: RunEnvironment) -> None:
        self._place = place
        self._begun: dict[str, tuple[Wanted, ...]] = {}

    def begin(self, step: Step, scope: dict[str, Any]) -> None:
        """List the files before a step starts, which are not its reports; raises EvaluationError."""
        assert step.reports is not None
        own = scope["step"]["dir"] if step.needs_dir else ""
        self._begun[step.id] = tuple(
            [self._wanted(rendered(text, scope), own) for text in step.reports.junit]
        )

    def begun(self, step: str) -> tuple[Patterns, ...]:
        """Return the patterns of the reports that a running step writes into the workspace."""
        root = self._place.workspace
        return tuple([each.patterns for each in self._begun.get(step, ()) if each.root == root])

    def _wanted(self, text: str, own: str) -> Wanted:
        root, pattern = self._place.workspace, text
        for folder in (own, self._place.workspace):
            if folder and text.startswith(escaped(folder) + "/"):
                root, pattern = folder, text[len(escaped(folder)) + 1 :]
                break
        wanted = patterns_of([pattern])
        shown = f"{{step.dir}}/{pattern}" if own and root == own else pattern
        return Wanted(text=shown, root=root, patterns=wanted, before=self._look(root, wanted))

    def _look(self, root: str, wanted: Patterns) -> dict[str, tuple[int, ...]]:
        """Return the present files, each with the status fields that a write changes; raises EvaluationError."""
        found: dict[str, tuple[int, ...]] = {}
        try:
            for path in matching(root, wanted, self._place.hidden):
                status = os.lstat(os.path.join(root, path))
                found[path] = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        except OSError as error:
            raise EvaluationError(f"its reports cannot be read: {error.filename}: {error.strerror}") from None
        return found

    def ended(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt with its reports; missing and broken ones make it failed(outputs).

        For an attempt that failed already they are notes.
        """
        wanted = self._begun.pop(step.id, ())
        if outcome.status == "cancelled":
            return outcome
        merging = _Merging(self._place, job.cwd)
        for each in wanted:
            try:
                merging.take(each, self._look(each.root, each.patterns))
            except EvaluationError as error:
                merging.problems.append(str(error))
        if merging.suites:
            outcome = outcome.but(reports={"junit": merging.kept(os.path.splitext(job.log)[0] + ENDING)})
        failed = merging.numbers["failures"] + merging.numbers["errors"]
        notes = list(merging.notes)
        if outcome.status == "completed" and merging.problems:
            message = "; ".join(merging.problems[:3])
            outcome = outcome.but(status="failed", reason="outputs", message=message, outputs={})
        elif outcome.status == "completed" and failed:
            notes.append(f"{failed} test case{'s' if failed > 1 else ''} failed; the step completed anyway")
        else:
            notes += merging.problems
        return outcome.but(notes=(*outcome.notes, *notes[:MAX_NAMED])) if notes else outcome

    def restored(self, step: Step, text: str) -> dict[str, Any]:
        """Return the results that an earlier run kept as `text`; raises ValueError for anything else."""
        merging = _Merging(self._place, self._place.workspace)
        suites: list[dict[str, Any]] = []
        for row in map(json.loads, text.splitlines()):
            if not _is_sound(row) or not (suites or "suite" in row):
                raise ValueError("no test cases")
            if "suite" in row:
                suites.append({"name": row["suite"], "time": row["time"], "cases": []})
            else:
                suites[-1]["cases"].append(row)
        merging.add(suites)
        if not merging.suites:
            return {}
        name = f"{step.folder or step.id}/restored{ENDING}"
        return {"junit": merging.kept(os.path.join(self._place.rundir, "logs", name))}


def _is_sound(row: Any) -> bool:
    """Whether a row has the form in which `_Merging.kept` writes suites and cases."""
    if not isinstance(row, dict) or not isinstance(row.get("time"), int | float):
        return False
    if not abs(row["time"]) <= _MOST_SECONDS:
        return False
    if "suite" in row:
        return isinstance(row["suite"], str)
    texts = [row.get("name"), row.get("class"), row.get("file", ""), row.get("out", "")]
    results = [row["result"]] if "result" in row else []
    results += row.get("again", []) if isinstance(row.get("again", []), list) else [None]
    if not all(isinstance(each, list) and len(each) == 4 for each in results):
        return False
    texts += [text for each in results for text in each]
    kinds = {each[0] for each in results[: "result" in row] if isinstance(each[0], str)}
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(row.get("line", 0), int)
        and kinds <= set(_RESULTS)
    )


def _shows(masks: Masks, suite: dict[str, Any]) -> bool:
    """Return whether a suite needs masking: one search of all texts together costs a fraction of one for each."""
    joined = _APART.join(_texts(suite))
    return masks.mask_text(joined) != joined


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in parsed data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


class _Merging:
    """The reports of one attempt, merged into one file: suites, counts, and messages about them."""

    def __init__(self, place: RunEnvironment, cwd: str) -> None:
        self._place = place
        self._cwd = os.path.relpath(cwd, place.workspace)
        self._places: dict[str, str] = {}
        self._left = ALL_BYTES
        self._seen: set[str] = set()
        self.suites: list[dict[str, Any]] = []
        self.numbers = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        self.failed: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.notes: list[str] = []

    def take(self, wanted: Wanted, found: Mapping[str, tuple[int, ...]]) -> None:
        """Add the files of a pattern that were written since the step started."""
        fresh = [path for path, state in found.items() if wanted.before.get(path) != state]
        if not found:
            self.problems.append(f"it did not write its JUnit report: no file matches {wanted.text!r}")
        elif not fresh:
            self.notes.append(f"{wanted.text!r} existed before and was not written; it is not merged")
        if len(fresh) > MAX_FILES:
            self.problems.append(
                f"{len(fresh):,} files match {wanted.text!r}; the first {MAX_FILES:,} are read"
            )
        for path in fresh[:MAX_FILES]:
            whole = os.path.join(wanted.root, path)
            if whole in self._seen:
                continue
            self._seen.add(whole)
            try:
                fd = os.open(whole, _OPEN)
                with open(fd, "rb") as file:
                    data = file.read(MAX_BYTES + 1)
                if len(data) > MAX_BYTES:
                    raise BadReport(f"has more than {MAX_BYTES >> 20} MiB")
                self._left -= len(data)
                if self._left < 0:
                    raise BadReport(
                        f"is too much: the reports of an attempt may have {ALL_BYTES >> 20} MiB together"
                    )
                suites, replaced = read(data)
                self.add(suites)
                self.notes += [f"{BEGINNING}{path}:{each}" for each in replaced]
            except BadReport as error:
                self.problems.append(f"{BEGINNING}{path}: {error}")
            except OSError as error:
                self.problems.append(f"{BEGINNING}{path}: cannot be read: {error.strerror}")

    def add(self, suites: Sequence[dict[str, Any]]) -> None:
        """Add suites, masked."""
        masks = self._place.masks
        for each in suites:
            suite = masks.mask_value(each) if masks and _shows(masks, each) else each
            if suite["cases"]:
                self.suites.append(suite)
            for case in suite["cases"]:
                if "file" in case:
                    file = case["file"]
                    if file not in self._places:
                        path = os.path.normpath(os.path.join(self._place.workspace, self._cwd, file))
                        inside = path.startswith(self._place.workspace + "/")
                        if inside and (os.path.isabs(file) or os.path.exists(path)):
                            self._places[file] = path[len(self._place.workspace) + 1 :]
                        else:
                            self._places[file] = file
                    case["file"] = self._places[file]
                self.numbers["tests"] += 1
                if "result" in case:
                    kind, _, message, text = case["result"]
                    self.numbers[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
                    if kind != "skipped" and len(self.failed) < MAX_NAMED:
                        first = (message or text).strip().partition("\n")[0]
                        where: dict[str, Any] = {
                            name: case[name] for name in ("file", "line") if name in case
                        }
                        self.failed.append({"name": called(case), **where, "message": first[:MESSAGE_CHARS]})

    def kept(self, path: str) -> dict[str, Any]:
        """Write the results to a file of the run, and return their record."""
        spent = round(sum([suite["time"] for suite in self.suites]), 4)
        summary: dict[str, Any] = {**self.numbers, "time": spent, "failed": self.failed, "file": ""}
        try:
            make_private(os.path.dirname(path))
            if os.path.lexists(path):
                os.unlink(path)  # of an interrupted attempt that is repeated
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "w", encoding="ascii") as file:
                for suite in self.suites:
                    head = {"suite": suite["name"], "time": suite["time"], "cases": len(suite["cases"])}
                    file.write(json.dumps(head, separators=(",", ":")) + "\n")
                    file.writelines(
                        [json.dumps(case, separators=(",", ":")) + "\n" for case in suite["cases"]]
                    )
            summary["file"] = os.path.relpath(path, self._place.rundir)
        except OSError as error:
            self.notes.append(f"its test cases cannot be kept: {error.strerror}")
        return summary


MAX_DEPTH = 64  # nested elements; JUnit files have about five
TEXT_CHARS = 32 * 1024  # of one failure
OUT_CHARS = 8 * 1024  # the end of the output of a case that did not pass
NAME_CHARS = 1000
_RESULTS = ("failure", "error", "skipped")
_AGAIN = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")
_PRINTED = ("system-out", "system-err")
_MOST_SECONDS = 1e9
# The last line of a pytest failure, a place in a form that many other runners use.
_PLACE = re.compile(r"^((?:[A-Za-z]:)?[^\s:()\"'<>]+\.\w+):(\d{1,7})(?::|$)", re.MULTILINE)


class BadReport(ValueError):
    """The file is no JUnit file; the message is a clause about it."""


def read(data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the suites of a JUnit file, nested ones after their parents, and what was replaced or left out.

    A suite has `name`, `time` (seconds) and `cases`. A case has `name`, `class`, `time`, and if known
    `file`, `line`, `result` (kind, type, message, text), `again` (a list of the same) and `out`.
    What was replaced or left out are clauses `LINE: what`. Raises BadReport for what is no JUnit file.
    """
    try:
        return _Reading().read(data), []
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, BadReport):
            raise
    from planrun.actions.mended import decoded, mended  # for broken files alone

    text, undecoded = decoded(data)
    if not text.strip("\0 \t\r\n"):
        return [], ["1: the file is empty"]
    text, replaced = mended(text)
    suites, left_out = _Reading().read_mended(text)
    return suites, [*filter(None, [undecoded]), *replaced, *left_out]


_AROUND = (
    "around"  # the element in which the text of a broken file is read, so that it may have several roots
)


class _Reading:
    """The parser of one file: its open elements, and its results."""

    def __init__(self) -> None:
        self.suites: list[dict[str, Any]] = []
        self.open: list[str] = []
        self.within: list[dict[str, Any]] = []  # suites that are open
        self.case: dict[str, Any] | None = None
        self.result: list[str] | None = None  # kind, type, message
        self.text: list[str] = []
        self.chars_left = 0  # characters of text that are still accepted
        self.depth = 0  # of the root
        self.parser = expat.ParserCreate()

    def read(self, data: bytes) -> list[dict[str, Any]]:
        """Return the suites; raises BadReport, and ExpatError, LookupError or ValueError of a broken file."""
        parser = self.parser
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.Parse(data, True)
        return self.suites

    def read_mended(self, text: str) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the suites before the first error of structure, and clauses about this error; raises BadReport."""
        self.parser = expat.ParserCreate("utf-8")
        self.depth = 1
        problems: list[str] = []
        data = f"<{_AROUND}>{text}</{_AROUND}>".encode()
        try:
            self.read(data)
        except expat.ExpatError as error:
            if "<!DOCTYPE" in text:
                self._refuse()
            if self.parser.ErrorByteIndex >= len(data) - len(f"/{_AROUND}>"):
                problems.append(f"{error.lineno}: the file ends within <{self.open[-1][:40]}>")
            else:
                message = expat.ErrorString(error.code)
                problems.append(f"{error.lineno}: not well-formed ({message}); what follows is not read")
            if self.case is not None:
                problems[0] += self._cut_off(self.case)
            while self.within:
                self._close_suite()
        if not self.suites:
            raise BadReport("no JUnit file: it has no <testsuite>")
        return self.suites, problems

    def _cut_off(self, case: dict[str, Any]) -> str:
        """Keep a case that the file ends in if it is known to have failed; returns a clause if it is not."""
        if self.result is not None:
            case["found"].append((*self.result, "".join(self.text).strip("\n")))
        if not case["found"]:
            return f"; the result of {called(case)} is not known"
        self._close_case(case)
        return ""

    def _refuse(self, *_: object) -> None:
        raise BadReport("has a document type, which is not read")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if len(self.open) == self.depth and not self.suites and tag not in ("testsuites", "testsuite"):
            raise BadReport(f"no JUnit file: its root is <{tag[:40]}>")
        if len(self.open) == MAX_DEPTH:
            raise BadReport(f"has more than {MAX_DEPTH} elements in each other")
        self.open.append(tag)
        if tag == "testsuite" and self.case is None:
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
        elif tag == "testcase" and self.case is None and self.within:
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
        elif self.case is not None and tag in (*_RESULTS, *_AGAIN) and self.result is None:
            self.result = [
                tag,
                _short(attributes.get("type", "")),
                attributes.get("message", "")[:TEXT_CHARS],
            ]
            self.text, self.chars_left = [], TEXT_CHARS
        elif self.case is not None and tag in _PRINTED and self.result is None:
            self.text, self.chars_left = [], TEXT_CHARS * 32

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
            self.result, self.text, self.chars_left = None, [], 0
        elif tag in _PRINTED and self.result is None:
            self.case["out"] += "".join(self.text)[-OUT_CHARS:]
            self.text, self.chars_left = [], 0

    def _characters(self, text: str) -> None:
        if self.chars_left > 0:
            self.text.append(text[: self.chars_left])
            self.chars_left -= len(text)

    def _close_suite(self) -> None:
        if self.within:
            suite = self.within.pop()
            suite["time"] = suite["time"] or sum([case["time"] for case in suite["cases"]])

    def _close_case(self, case: dict[str, Any]) -> None:
        found = case.pop("found")
        verdicts = [each for each in found if each[0] in _RESULTS]
        if verdicts:
            # One verdict per case, as all readers expect; a failure outranks a skip.
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
    """Fill in the place of a failed case if the text of its failure ends with one."""
    places = _PLACE.findall(text[-4 * NAME_CHARS :])
    if places:
        case["file"], case["line"] = _short(places[-1][0]), int(places[-1][1])


def seconds(text: str) -> float:
    """Return a time as runners write it, some with commas for thousands; 0.0 if invalid."""
    try:
        found = float(text.replace(",", "")) if text else 0.0
    except ValueError:
        return 0.0
    return round(found, 4) if 0 <= found <= _MOST_SECONDS else 0.0


def _short(text: str) -> str:
    return text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1] + "…"


def called(case: dict[str, Any]) -> str:
    """Return the display name of a case: `tests/test_a.py::test_x` if known, else class and name."""
    name, group, file = case["name"] or "case", case["class"], case.get("file", "")
    module = file.rpartition(".")[0].replace("/", ".")
    if module and (group == module or group.startswith(module + ".")):
        inner = group[len(module) + 1 :].replace(".", "::")
        return "::".join([part for part in (file, inner, name) if part])
    return f"{group}::{name}" if group else str(name)
