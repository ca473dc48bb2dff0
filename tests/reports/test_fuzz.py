"""Random bytes in names, titles, outputs, messages and logs through every report."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.token import Token

from planrun.model.plan import Edge, Run, Step
from planrun.model.state import RunState
from planrun.reports.write import render
from tests.reports.runs import Story

DATA = Path(__file__).parent.parent / "data" / "junit"
LEDGER_SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "ledger.schema.json").read_bytes())
STRICT = {
    "jenkins-xunit": etree.XMLSchema(etree.parse(DATA / "jenkins-xunit-junit-10.xsd")),
    "surefire": etree.XMLSchema(etree.parse(DATA / "surefire-test-report.xsd")),
    "ant": etree.XMLSchema(etree.parse(DATA / "windyroad-JUnit.xsd")),
}
HOSTILE = (
    "\x1b[31m",
    "\x1b]0;x\x07",
    "::error::x",
    "\n::set-output name=a::b\n",
    "\r",
    "\x00",
    "\x9b2J",
    "\ud800",
    "\ufffe",
    "\u202e",
    "]]>",
    "<script>alert(1)</script>",
    "<img src=x onerror=y>",
    "&amp;",
    "```",
    "~~~",
    "|",
    "[a](javascript:x)",
    "![](http://x)",
    "https://x.y",
    "@user",
    "#1",
    "##[group]",
    "##vso[x]",
    "-->",
    '"',
    "\n\n# heading\n",
    "\n---\n",
    "%0A",
    "[[ATTACHMENT|/etc/passwd]]",
)
WORDS = st.lists(st.sampled_from(HOSTILE) | st.text(st.characters(codec=None), max_size=8), max_size=6).map(
    "".join
)
LOGS = st.lists(
    st.binary(max_size=30) | WORDS.map(lambda word: word.encode("utf-8", "replace")), max_size=8
).map(b"".join)
STATUSES = ("completed", "failed", "flaky", "skipped", "blocked", "cancelled", "running", "pending")


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[tuple[str, str, str, bytes, Any]], str]:
    """Draw steps as (id, title, status, log, outputs) and the plan's title."""
    ids = draw(
        st.lists(WORDS.filter(lambda name: name.strip("./\0 ") != ""), min_size=1, max_size=4, unique=True)
    )
    values = (
        st.none()
        | st.integers()
        | WORDS
        | st.lists(WORDS, max_size=2)
        | st.dictionaries(WORDS, WORDS, max_size=2)
    )
    steps = [
        (
            name,
            draw(WORDS),
            draw(st.sampled_from(STATUSES)),
            draw(LOGS),
            draw(st.dictionaries(WORDS, values, max_size=2)),
        )
        for name in ids
    ]
    return steps, draw(WORDS)


def told(rundir: Path, steps: list[tuple[str, str, str, bytes, Any]], title: str) -> RunState:
    """Run the drawn steps; each depends on the one before."""
    plan = []
    for number, (name, label, *_) in enumerate(steps):
        edges = (Edge(on=steps[number - 1][0], kind="done"),) if number else ()
        plan.append(Step(id=name, action=Run(script=""), kind="run", title=label, edges=edges, line=number))
    story = Story(rundir, *plan, title=title, name=title or "x", file=title or "x")
    for number, (name, label, status, log, outputs) in enumerate(steps):
        error = {"class": "unknown", "rule": label, "message": label}
        checks = ({"name": label, "ok": False, "message": label},)
        path = f"logs/{number}.log"
        story.log_path = path
        if status in ("completed", "failed"):
            story.run(name, status, log=log, error=error, outputs=outputs, checks=checks, notes=(label,))
        elif status == "flaky":
            story.run(name, "waiting", log=log, error=error, checks=checks).run(name, log=log)
        elif status == "running":
            story.start(name, log)
        elif status != "pending":
            story.move(name, status, "upstream", label)
    return story.state


def flat(tokens: list[Token] | None) -> list[Token]:
    """All tokens of a page, inline ones too."""
    return [found for token in tokens or [] for found in (token, *flat(token.children))]


def is_calm(text: str) -> bool:
    """Whether a terminal and a CI agent can read it without doing anything."""
    rows = text.split("\n")
    return (
        not any(ord(char) < 0x20 and char not in "\t\n" for char in text)
        and not any(0x7F <= ord(char) < 0xA0 or char == "\u202e" for char in text)
        and not any(row.lstrip().startswith("::") for row in rows)
        and "##[" not in text
        and "##vso[" not in text
    )


@pytest.mark.shows("R10")
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(stories())
def test_every_report_stays_well_formed_and_dead(drawn: tuple[list[Any], str]) -> None:
    """Valid XML for each schema, valid JSON, UTF-8; no escape, no command, no HTML, link or image."""
    with tempfile.TemporaryDirectory() as folder:
        state = told(Path(folder), *drawn)
        reports = {
            form: render(state, folder, form).decode() for form in ("junit", "markdown", "text", "json")
        }
        dialects = {name: render(state, folder, "junit", dialect=name) for name in STRICT}
    assert all(is_calm(text) for text in reports.values())
    root = etree.fromstring(reports["junit"].encode(), etree.XMLParser(resolve_entities=False))
    assert len(root.findall(".//testcase")) == len(state.steps)
    assert not any("[[ATTACHMENT" in (out.text or "") for out in root.iter("system-out"))
    for name, data in dialects.items():
        STRICT[name].assertValid(etree.fromstring(data))
    value = json.loads(reports["json"])
    jsonschema.Draft7Validator(LEDGER_SCHEMA).validate(value)
    assert len(value["steps"]) == len(state.steps)
    page = flat(MarkdownIt("commonmark").enable("table").parse(reports["markdown"]))
    kinds = {token.type for token in page}
    assert not kinds & {"html_inline", "html_block", "link_open", "image"}
    headings = [token for token in page if token.type == "heading_open"]
    failures = [step for step in state.steps.values() if step.status == "failed"]
    assert len([token for token in headings if token.tag == "h1"]) == 1
    assert len([token for token in headings if token.tag == "h3"]) == len(failures)
