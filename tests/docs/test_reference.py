"""docs/reference/ is what the code says, and its probes and simulations are sound."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from planrun.model.lifecycle import ENDED
from tests.docs.keylist import goes, reached, schema
from tests.docs.pages import ROOT, text_of
from tests.docs.reference import FOLDER, generated
from tests.docs.rulebook import ENDS, ORDER, WORK, timeline

if TYPE_CHECKING:
    from tests.golden import Golden


@pytest.mark.parametrize("name", ["plan.md", "ledger.md", "commands.md", "semantics.md"])
def test_a_page_of_the_reference_is_what_the_code_says(name: str, golden: Golden) -> None:
    """The page is what schema, command line and rules give."""
    golden(FOLDER / name, generated()[name])


def test_a_key_that_means_nothing_is_not_listed_beside_an_action() -> None:
    """The probe tells what goes together from what does not, both ways."""
    assert goes("retries", "run")
    assert goes("args", "tool")
    assert goes("with", "uses")
    assert not goes("retries", "ask")
    assert not goes("args", "run")
    assert not goes("env", "uses")


def test_every_key_that_can_be_written_is_listed() -> None:
    """Each key of each part that a plan can reach has a row on the page."""
    sections = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", generated()["plan.md"], re.MULTILINE | re.DOTALL)
    )
    for name in reached():
        rows = re.findall(r"^\| \[?`([\w$-]+)`", sections[name], re.MULTILINE)
        assert rows == list(schema()[name]["properties"]), name


def test_every_end_of_a_step_is_asked_about() -> None:
    """The table of edges has each status in which a step can end."""
    assert {status for status, *_ in ENDS} - {"running"} == ENDED


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_atimeline_runs_each_step_for_its_time(schedule: str) -> None:
    """In the comparison of schedules every step runs as long as it takes, and never before what it waits for."""
    seconds = timeline(schedule)  # type: ignore[arg-type]
    for name, takes, on, _ in WORK:
        when = [at for at, running in enumerate(seconds) if f"`{name}`" in running]
        assert len(when) == takes
        if on:
            assert min(when) > max(at for at, running in enumerate(seconds) if f"`{on}`" in running)


def test_every_reason_that_a_case_shows_is_in_the_manual() -> None:
    """How steps end in the cases stands in the first table of docs/semantics.md."""
    told = dict(
        re.findall(r"^\| `(\w+)` \| (`.*) \|$", text_of("semantics.md").split("\n## ")[1], re.MULTILINE)
    )
    shown = set()
    for path in (ROOT / "tests" / "cases").glob("*/expected.txt"):
        text = path.read_text("utf-8")
        shown |= set(
            re.findall(r"^  \S+ (completed|failed|skipped|blocked|cancelled)\((\w+)\)", text, re.MULTILINE)
        )
    assert len(shown) > 20
    assert {(status, reason) for status, reason in shown if f"`{reason}`" not in told[status]} == set()


def test_the_order_of_a_step_is_that_of_the_manual() -> None:
    """docs/semantics.md has the same points in the same order."""
    text = text_of("semantics.md").split("## One step, in order")[1].split("\n## ")[0]
    assert re.findall(r"^\d\. \*\*(\w+)\*\*", text, re.MULTILINE) == [name for name, *_ in ORDER]
