"""The line of a step's output that best says why it failed. Loaded by reports of runs with a failed step."""

from __future__ import annotations

import re
from functools import lru_cache

from planrun.reports import facts
from planrun.reports.escape import line, span, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.model.progress import AttemptState, StepState

CHARS = 200  # of a line
_LINES = 100  # from the end of the output: what stands before is about something else
_BYTES = 8 * 1024
_LONGEST = 1000  # characters of a line that is looked at
_EXCEPTION = (
    r"(?:[\w$]+[.:]{1,2})*(?:[A-Z]\w*)?(?:Error|Exception|Interrupt|Timeout|Failure)(?: \[\w+\])?:? ?"
)
# What programs print that names the cause, the best first. With several such lines the first counts where one error
# causes others (compilers, lists of failed tests), the last where it is the end of a trace.
_FIRST, _LAST = 0, -1
_KINDS: tuple[tuple[str, str, int], ...] = (
    (" - ", r"(?:FAILED|ERROR) \S+ - \S", _FIRST),  # the summary of pytest
    ("E  ", r"E {2,}\S", _FIRST),  # pytest
    ("_test.go:", r"\s+\S+_test\.go:\d+: \S", _FIRST),
    # gcc, clang, mypy, tsc --pretty
    ("error", r"(?:/|\w:)?[^\s:(]+(?::\d+){1,2}:? (?:- )?(?:fatal )?error\b:?", _FIRST),
    ("): error ", r"[^\s(]+\(\d+,\d+\): error ", _FIRST),  # tsc, msbuild
    ("error[E", r"error\[E\d+\]: ", _FIRST),  # rustc
    (".go:", r"(?:\./)?\S+\.go:\d+:\d+: ", _FIRST),
    (": ", r"[^\s:]+:\d+:\d+: [A-Z]+\d+ ", _FIRST),  # ruff, flake8
    ("\n --> ", r"[A-Z]{1,5}\d{3,4} (?:\[\*\] )?\S+ (?=.*\S)(?!.*[|])", _FIRST),  # ruff in full
    ("undefined reference to ", r".*undefined reference to ", _FIRST),
    ("panic", r"(?:thread '[^']*' (?:\(\d+\) )?panicked at |panic: )", _FIRST),
    ("  error: '", r"(?:  error: ')", _FIRST),  # TAP of node
    ("", _EXCEPTION + r"\S", _LAST),
    ("not found", r"(?:\w+: )?(?:line \d+: |\d+: )?\S+: (?:command )?not found$", _LAST),  # shells
    (
        "npm ",
        r"(?:npm (?:ERR!|error)) (?!code\b|errno\b|A complete|To see|Run |Lifecycle|path |syscall |workspace|\s)",
        _FIRST,
    ),
    ("", r"(?:--- FAIL: |FAIL: |not ok \d|Assertion)", _FIRST),
)
# The same of what only looks like a cause; stderr is asked first.
_WEAK: tuple[tuple[str, str, int], ...] = (
    ("", r"(?:fatal|FATAL|Fatal)\b", _LAST),
    ("", r"(?:error|Error|ERROR|E)\b ?(?:\([^)]*\))?:", _FIRST),
    ("", r"(?:ERROR|FAILED|FAIL)\b(?! \()", _FIRST),
    (": ", r"(?:curl|wget|rm|cp|mv|ls|cat|tar|ssh|scp|sh|bash|/bin/\S+|\w+): \S", _LAST),
    ("", r".*\b(?:error|failed|failure|fatal|denied|not found|cannot|refused|unable to)\b", _LAST),
)
# Lines that follow a cause and add nothing to it.
_NOISE = re.compile(
    r"(?i:\s*$|warn(?:ing)?\b|npm (?:warn|notice)|note:|help:|hint:|info\b|debug\b|\+ |> |(?:--> )|\.\.\. )"
    r"|fatal: Could not read from remote|Error: Process completed with exit code|exit status \d+$"
    r"|error: (?:could not compile|test failed, to rerun|process didn't exit|script \")"
    r"|(?:g?make|ninja)(?:\[\d+\])?: |collect2: |Traceback |Node\.js v\d|[\W_]+$"
    r"|={3,}|-{3,}[^ ]|-{4,}|\d+ (?:passed|failed)|See '"
    r"|Found \d|For more information|\[\*\] \d+ fixable|.*\b(?:0 (?:errors?|failed|failures)|no errors)\b"
)
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? +|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]? +"
)
_FRAME = re.compile(r"[│╷╵] ?")  # of terraform
_COMMAND = re.compile(r": ?:error(?: [^:]*)?::(?=\S)")  # to GitHub, which is broken here
_MARKS = re.compile(r"(?:E {2,}|  error: |\s+)")

TO_OUTPUT = "write `name=value` to `$PLANRUN_OUTPUT`, and declare `name` under `outputs`"
FOREIGN_FILES = {
    "GITHUB_OUTPUT": TO_OUTPUT,
    "GITHUB_STATE": TO_OUTPUT,
    "GITHUB_ENV": f"{TO_OUTPUT}; later steps read it in their `env`",
    "GITHUB_PATH": "set `PATH` under `env` of the steps that need it",
    "BASH_ENV": "set `env` of the steps that need it",
}
"""Files in which steps of other CI systems hand values on, and what does it here."""
_UNSET = re.compile(r".*?\b([A-Za-z_]\w*): (?:unbound variable|parameter not set)$")
# What shells and env(1) print of a script whose lines end with CR LF.
_WINDOWS = re.compile(
    r"cannot execute: required file not found$|bad interpreter: |\$'[^']*\\r'|use -\[v\]S to pass options in shebang"
)


def hint(cause: str) -> str:
    """Return what helps against the cause of a failure: a variable without a value, Windows line ends; or ""."""
    if _WINDOWS.search(cause):
        return "if the file has Windows line ends, save it with LF, as `sed -i 's/\\r$//' FILE` does"
    found = _UNSET.match(cause)
    if found is None:
        return ""
    if advice := FOREIGN_FILES.get(found[1]):
        return f"planrun does not set `${found[1]}`: {advice}"
    return f"each step has its own environment: set `{found[1]}` under `env` of this step, or `${{{found[1]}:-}}`"


def said(rundir: str, step: StepState) -> str:
    """Return the line by which the program of a failed step named its error; "" where no line is known as one."""
    attempt = facts.last(step)
    if not attempt or not _says_it_itself(attempt) or not attempt.started.log or not attempt.ended:
        return ""
    begin, end = attempt.ended.stderr or (-1, -1)
    found, is_known = _line_in(rundir, attempt.started.log, begin, end, attempt.ended.log_bytes)
    return found if is_known else ""


def failure(rundir: str, step: StepState) -> str:
    """Return why a step failed in one clean line: the line of its output that says it, else what planrun knows."""
    last = facts.last(step)
    return (error_line(rundir, last) if last and _says_it_itself(last) else "") or facts.sentence(step)


def attempt_failure(rundir: str, attempt: AttemptState) -> str:
    """Return why an attempt failed, as `failure`."""
    said = error_line(rundir, attempt) if _says_it_itself(attempt) else ""
    return said or facts.attempt_sentence(attempt.ended)


def _says_it_itself(attempt: AttemptState) -> bool:
    """Whether a program ended by itself: why it was stopped, or what of its result is wrong, planrun knows better."""
    return attempt.ended is not None and attempt.ended.reason == "exit" and not facts.is_killed(attempt.ended)


def error_line(rundir: str, attempt: AttemptState) -> str:
    """Return the line of a failed attempt's output that best says why; "" when it printed nothing."""
    ended = attempt.ended
    if not attempt.started.log or ended is None or not ended.log_bytes:
        return ""
    begin, end = ended.stderr or (-1, -1)
    return _line_in(rundir, attempt.started.log, begin, end, ended.log_bytes)[0]


@lru_cache(maxsize=1000)  # annotations, console, page and JUnit ask for the same lines
def _line_in(rundir: str, log: str, begin: int, end: int, _size: int) -> tuple[str, bool]:
    errors = span(rundir, log, begin, end, _BYTES) if begin >= 0 else ""
    return chosen(tail(rundir, log, _BYTES), errors)


def choose(output: str, errors: str = "") -> str:
    """Return the line of clean text that says best why a program failed; `errors`: the end of its stderr alone."""
    return chosen(output, errors)[0]


def chosen(output: str, errors: str = "") -> tuple[str, bool]:
    """Return the same line, and whether it is known as one that names an error: else it is only the last one."""
    whole, alone = _rows(output), _rows(errors)
    for rows, kinds in ((whole, _KINDS), (alone, _WEAK), (whole, _WEAK)):
        text = "\n".join(rows)
        for needs, pattern, which in kinds:
            if needs in text and (found := _matching(rows, pattern)):
                # A word and a colon may begin any line.
                return _shown(rows, found[which]), kinds is _KINDS or needs != ": "
        told = [] if kinds is _KINDS else [n for n, row in enumerate(rows) if not _NOISE.match(row)]
        if told:
            return _shown(rows, told[-1]), False
    return (_shown(whole, -1) if whole else ""), False


def _rows(text: str) -> list[str]:
    """Return the last lines of a text without the time and the frame in front of them."""
    rows = text.rstrip().split("\n")[-_LINES:] if text.strip() else []
    return [_bare(row[:_LONGEST]) for row in rows]


def _bare(row: str) -> str:
    stamp = _STAMP.match(row)
    row = row[stamp.end() :] if stamp else row
    frame = _FRAME.match(row)
    row = row[frame.end() :] if frame else row
    command = _COMMAND.match(row)
    return f"error: {row[command.end() :]}" if command else row


def _matching(rows: Sequence[str], pattern: str) -> list[int]:
    kind = re.compile(pattern)
    return [number for number, row in enumerate(rows) if kind.match(row) and not _NOISE.match(row)]


def _shown(rows: Sequence[str], number: int) -> str:
    row = rows[number]
    if row.endswith(":") and "panicked at" in row and number + 1 < len(rows):
        row = f"{row} {rows[number + 1]}"  # the message is in the next line
    if mark := _MARKS.match(row):
        row = row[mark.end() :]
    return line(row.strip(), CHARS)
