"""Findings written out: for people with source line and caret, as JSON, as SARIF 2.1.0, and for GitHub's runner.

Nothing of a plan reaches a terminal as it is: what cannot be printed is shown escaped, in every form. Nor does it
reach the agent of a CI system, which obeys some of what stands in a log.
"""

from __future__ import annotations

import json

from planrun import __version__
from planrun.model import commands
from planrun.model.hidden import escaped
from planrun.model.jsontext import well_formed
from planrun.model.widths import width_of
from planrun.plan.problems import CODES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from planrun.plan.problems import Problem

MAX_PRINTED = 20
# Keys at the top of plans, ours and those of others, and of policies.
_TELLING = ("version", "steps", "jobs", "tasks", "policy", "auto_approve", "llm_auto_approve", "rules")
_BELOW = "the keys of {} are listed below"
WIDTH = 100  # characters of a source line that are shown


def render_text(problems: Sequence[Problem], sources: Mapping[str, bytes]) -> str:
    """Write at most 20 findings with excerpts from `sources` (bytes by file name), and how many more there are."""
    printed = problems[:MAX_PRINTED]
    wanted: dict[str, set[int]] = {}
    for problem in printed:
        wanted.setdefault(problem.file, set()).update(
            (problem.line, *(line for line, _, _ in problem.related))
        )
    rows = {file: _rows(sources.get(file, b""), lines) for file, lines in wanted.items()}
    parts: list[str] = []
    for problem in printed:
        place = f"{escaped(problem.file)}:{problem.line}:{problem.col}"
        text = problem.but(hint=_BELOW.format(problem.place)).text if problem.is_listed else problem.text
        parts.append(f"{place}: {problem.severity}[{problem.code}]: {escaped(text)}")
        if problem.code != "E006":  # is about the whole file
            parts += _excerpt(rows[problem.file], problem.line, problem.col, problem.end_col)
        for line, col, note in problem.related:
            parts.append(f"{escaped(problem.file)}:{line}:{col}: note: {escaped(note)}")
            parts += _excerpt(rows[problem.file], line, col, 0)
    if len(problems) > MAX_PRINTED:
        parts.append(f"and {len(problems) - MAX_PRINTED} more")
    parts += _key_lists(printed)
    return commands.broken("\n".join(parts)) + "\n" if parts else ""


def closing_hint(problems: Sequence[Problem]) -> str:
    """Return the line that names the command which explains the first error, or "" without errors."""
    first = next((problem.code for problem in problems if problem.severity == "error"), "")
    return f"for details: planrun explain {first}\n" if first else ""


def _key_lists(problems: Sequence[Problem]) -> list[str]:
    """Return the valid keys of each place that a finding refers to, once, in lines of limited width."""
    places = {problem.place: problem.keys for problem in problems if problem.is_listed}
    rows: list[str] = []
    for place, keys in places.items():
        row = f"the keys of {place}:"
        for number, key in enumerate(keys, 1):
            word = f" {key}," if number < len(keys) else f" {key}"
            if len(row) + len(word) > WIDTH:
                rows.append(row)
                row = " "
            row += word
        rows.append(row)
    return rows


def _rows(data: bytes, wanted: set[int]) -> dict[int, str]:
    """Return the wanted lines of a source, or none when it does not look like a plan: other files are not printed."""
    source = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not _looks_like_a_plan(source):
        return {}
    rows, start = {}, 0
    for number in range(1, max(wanted) + 1):  # not split: a bomb may have millions of lines
        end = source.find("\n", start)
        if number in wanted:
            rows[number] = source[start : end if end >= 0 else len(source)]
        if end < 0:
            break
        start = end + 1
    return rows


def _looks_like_a_plan(source: str) -> bool:
    """Distinguish a plan or policy with mistakes from a file given by mistake, such as one of passwords."""
    if "\0" in source:
        return False
    padded = f"\n{source}"
    return any(
        f"\n{quote}{key}{quote}:" in padded or f'"{key}":' in padded
        for key in _TELLING
        for quote in ("", '"', "'")
    )


def _excerpt(rows: dict[int, str], line: int, col: int, end_col: int) -> list[str]:
    """Return a source line and a line with carets under the columns from `col` to `end_col`."""
    row = rows.get(line, "")
    if not row.strip():
        return []
    start = min(col - 1, len(row))
    end = min(max(end_col - 1, start + 1), max(len(row), start + 1))
    left = max(0, min(start - WIDTH // 3, len(row) - WIDTH))
    right = left + WIDTH
    before = ("..." if left else "") + escaped(row[left:start])
    marked = escaped(row[start : min(end, right)])
    after = escaped(row[min(end, right) : right]) + ("..." if right < len(row) else "")
    number = str(line)
    pad = " " * (width_of(before))
    return [
        f"  {number} | {before}{marked}{after}",
        f"  {' ' * len(number)} | {pad}{'^' * max(1, width_of(marked))}",
    ]


def render_json(problems: Sequence[Problem]) -> str:
    """Write all findings as one object; keys are only ever added."""
    findings = [
        {
            "code": problem.code,
            "severity": problem.severity,
            "message": problem.message,
            "hint": problem.hint,
            "file": well_formed(problem.file),
            "line": problem.line,
            "column": problem.col,
            "end_column": problem.end_col or None,
            "related": [
                {"line": line, "column": col, "message": note} for line, col, note in problem.related
            ],
            **({"valid_keys": list(problem.keys)} if problem.keys else {}),
        }
        for problem in problems
    ]
    valid = not any(problem.severity == "error" for problem in problems)
    return _json({"valid": valid, "problems": findings})


def render_sarif(problems: Sequence[Problem], titles: Mapping[str, str] = CODES) -> str:
    """Write all findings as a SARIF 2.1.0 log, as code scanning services read it; `titles` explain the codes."""
    used = sorted({problem.code for problem in problems})
    rules = [{"id": code, "shortDescription": {"text": titles.get(code, code)}} for code in used]
    driver = {"name": "planrun", "semanticVersion": __version__, "rules": rules}
    results = [_sarif_result(problem, used.index(problem.code)) for problem in problems]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return _json(log)


def _json(document: dict[str, Any]) -> str:
    """Write a document so that no agent finds a command in a text of it; `#` stands in nothing else."""
    return json.dumps(document, indent=2).replace("##", "#\\u0023") + "\n"


def _sarif_result(problem: Problem, rule: int) -> dict[str, Any]:
    region = {"startLine": problem.line, "startColumn": problem.col}
    if problem.end_col > problem.col:
        region["endColumn"] = problem.end_col
    result: dict[str, Any] = {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": "note" if problem.severity == "advice" else problem.severity,
        "message": {"text": escaped(problem.text)},
        "locations": [_sarif_location(problem.file, region)],
    }
    if problem.related:
        result["relatedLocations"] = [
            {
                "message": {"text": escaped(note)},
                **_sarif_location(problem.file, {"startLine": line, "startColumn": col}),
            }
            for line, col, note in problem.related
        ]
    return result


def _sarif_location(file: str, region: dict[str, int]) -> dict[str, Any]:
    from urllib.parse import quote

    try:
        name = file.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a name that no file can have
        name = file.encode("utf-8", "replace")
    uri = quote(name)
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def render_github(problems: Sequence[Problem]) -> str:
    """Write at most 20 findings as workflow commands, which the runner turns into annotations at the plan's lines."""
    return "".join(f"{_command(problem)}\n" for problem in problems[:MAX_PRINTED])


def _command(problem: Problem) -> str:
    properties = {"file": problem.file, "line": str(problem.line), "col": str(problem.col)}
    if problem.end_col > problem.col:
        properties["endColumn"] = str(problem.end_col - 1)
    properties["title"] = f"planrun {problem.code}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    level = "notice" if problem.severity == "advice" else problem.severity
    return f"::{level} {written}::{_data(problem.text)}"


def _data(value: str) -> str:
    """Escape as the runner unescapes: what is left of control characters after that is shown."""
    return escaped(value.replace("\r\n", "\n")).replace("%", "%25")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
