"""The timeline of a run as a Mermaid gantt chart, within what GitHub draws, and what stands in its place beyond."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planrun.reports.drawing import GRAPH
from planrun.reports.gantt import MAX_BARS, TIMELINE, bars, chart
from planrun.reports.github import append_summary
from planrun.reports.markdown import SUMMARY_BYTES, _pieces
from tests.reports.runs import Story, step

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.model.state import RunState

BAR = re.compile(r"  · [^:;#,%{}<>`\"\\]+ :((done|crit|active), )?b\d+, \d+, \d+")


def page(state: RunState) -> str:
    """Return what the timeline adds to the page of a run."""
    return "".join(["".join(_pieces(section, 3)) for section in TIMELINE["sections"](state)])


def ran(folder: Path, count: int) -> RunState:
    """Return a run of so many steps, one after the other."""
    story = Story(folder, *[step(f"s{number}") for number in range(count)])
    for number in range(count):
        story.run(f"s{number}", "completed")
    return story.end(0)


def test_every_attempt_is_a_bar(tmp_path: Path) -> None:
    """With begin and end in milliseconds; names cannot end a bar, and no bar is empty."""
    story = Story(tmp_path, step("a"), step('b:x;#,%{}<>`"\\'), step("section"))
    story.run("a", "completed", took=2.5)
    story.run('b:x;#,%{}<>`"\\', "failed", took=0.0)
    story.run("section", "completed")
    text = chart(bars(story.end(1)))
    head, *rows = text.rstrip("\n").split("\n")[0], *text.rstrip("\n").split("\n")[3:]
    assert head == "gantt"
    assert all(BAR.fullmatch(row) for row in rows), rows
    assert re.match(r"  · a :done, b1, 1769850000000, 1769850002500$", rows[0])
    assert rows[1].startswith("  · b x :crit, ")
    begin, end = map(int, rows[1].split(", ")[-2:])
    assert end == begin + 1


def test_too_many_bars_become_a_table(tmp_path: Path) -> None:
    """Beyond what a chart can show a sentence and a table of the longest stand on the page."""
    assert page(ran(tmp_path, MAX_BARS)).count("\n  · ") == MAX_BARS
    text = page(ran(tmp_path, MAX_BARS + 1))
    assert "```" not in text
    assert "101 attempts are more than a chart can show; these are the 20 longest." in text
    assert text.count("\n| `s") == 20


def test_a_graph_that_is_too_large_is_a_sentence(tmp_path: Path) -> None:
    """The page says why there is no diagram, and where the same data stand."""
    steps = [step("s0"), *[step(f"s{number}", f"s{number - 1}") for number in range(1, 120)]]
    (graph,) = GRAPH["sections"](Story(tmp_path, *steps).state)
    assert "120 steps and 119 edges are more than a diagram can show." in graph.text


def test_a_summary_that_others_filled_is_cut_at_a_paragraph(tmp_path: Path) -> None:
    """A review that does not fit any more is cut, and says so; all together stays below GitHub's limit."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * (SUMMARY_BYTES - 2000))
    append_summary("\n\n".join(["word " * 20] * 100), str(path))
    text = path.read_text()
    assert len(text) <= SUMMARY_BYTES
    assert text.endswith("word \n\nThe rest is left out: the step summary ends at its size limit.\n")
    append_summary("more", str(path))
    assert len(path.read_text()) <= SUMMARY_BYTES
