"""docs/records.md tells what runs really write."""

from __future__ import annotations

import json
import re

from planrun.model.events import EVENTS
from planrun.reports import document, escape, grouped, junit, markdown
from planrun.reports.elements import DIALECTS
from planrun.reports.html import steps
from planrun.runs.listing import VERIFIED
from tests.docs.pages import ROOT, keys_of, text_of

PAGE = "records.md"


def rows(mark: str) -> list[list[str]]:
    """Return the rows of the table behind a mark, without its head."""
    (table,) = re.findall(rf"^<!-- {re.escape(mark)} -->\n((?:\|.*\n)+)", text_of(PAGE), re.MULTILINE)
    return [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in table.splitlines()[2:]]


def test_every_event_is_described_with_its_fields() -> None:
    """The table of events has each event of the ledger, and each field of it outside of brackets."""
    found = {keys_of(row[0])[0]: set(keys_of(re.sub(r"\([^)]*\)", "", row[2]))) for row in rows("events")}
    assert set(found) == set(EVENTS)
    for name, kind in EVENTS.items():
        assert found[name] == set(kind.__annotations__) - {"at"}, name


def test_every_answer_of_verify_is_described() -> None:
    """The conditions that verify reports, with their exit codes, are those of the table."""
    text = text_of(PAGE).split("## What verify reports")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)
    assert {name: int(code) for name, code in listed} == VERIFIED


def test_sizes_are_those_of_the_code() -> None:
    """Each size in the table is the constant that is held, in its order."""
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    sizes = [int(row[1].split()[0]) * units[row[1].split()[1]] for row in rows("sizes")]
    assert sizes == [
        escape.CASE_BYTES,
        escape.TAIL_BYTES,
        junit.TRACE_BYTES,
        junit.TOTAL_BYTES,
        document.LOG_BYTES,
        steps.PASSED_BYTES,
        steps.LOG_BYTES,
        steps.ALL_LOGS,
        grouped.HEAD + grouped.TAIL,
        markdown.SUMMARY_BYTES,
    ]


def test_dialects_are_those_of_the_code() -> None:
    """The table of JUnit dialects says of each what the writer does."""
    told = {
        keys_of(row[0])[0]: (
            keys_of(row[2])[0] == "testsuites",
            row[3] == "yes",
            row[4] == "yes",
            row[5] == "yes",
        )
        for row in rows("dialects")
    }
    assert told == {
        name: (found.wrapped, found.reruns, found.case_out, found.places) for name, found in DIALECTS.items()
    }


def test_every_key_of_ledger_json_is_described() -> None:
    """The tables of ledger.json have each key of its schema."""
    schema = json.loads((ROOT / "schemas" / "ledger.schema.json").read_text("utf-8"))
    parts = {
        "run": schema,
        "step": schema["definitions"]["step"],
        "gate": schema["definitions"]["gate"],
        "attempt": schema["definitions"]["attempt"],
        "llm": schema["definitions"]["llm"],
        "version": schema["definitions"]["version"],
        "call": schema["definitions"]["call"],
    }
    for name, part in parts.items():
        keys = [key for row in rows(f"ledger: {name}") for key in keys_of(row[0])]
        assert sorted(keys) == sorted(part["properties"]), name
