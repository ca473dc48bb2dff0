"""The HTML report: one page whose parts say the same as the other reports, and whose texts do nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import html

from planrun.model import events as ev
from planrun.model.plan import Reports
from planrun.plan.kinds.command import Run
from planrun.plan.load import load
from planrun.reports.html.comparison import Baseline
from planrun.reports.html.page import LARGE
from planrun.reports.write import Source, render, rendered
from proofs import calm
from tests.reports.runs import HEAD, RUN, Story, mixed_run, mixed_story, step, waiting_run

if TYPE_CHECKING:
    from tests.golden import Golden

GOLDEN = Path(__file__).parent / "golden"
MARKUP = 300 * 1024
"""Bytes that a page of 1,000 steps may have besides its texts."""


def page_of(story: Story, **more: Any) -> html.HtmlElement:
    """Return the parsed page of a run."""
    source = Source(state=story.state, rundir=str(story.rundir), head=HEAD, **more)
    return parsed(rendered(source, "html"))


def parsed(data: bytes) -> html.HtmlElement:
    """Return the root of a page."""
    root = html.document_fromstring(data.decode())
    assert isinstance(root, html.HtmlElement)
    return root


def shown(element: html.HtmlElement) -> str:
    """Return the text of an element in one line."""
    return " ".join(element.text_content().split())


def section(page: html.HtmlElement, heading: str) -> html.HtmlElement:
    """Return the section under a heading."""
    (found,) = [each for each in page.iter("section") if shown(each.find("h2")) == heading]
    return found


def rows(page: html.HtmlElement, heading: str) -> list[list[str]]:
    """Return the texts in the cells of the first table under a heading."""
    table = section(page, heading).find(".//tbody")
    return [[shown(cell) for cell in row] for row in table.iter("tr")]


def test_the_whole_page(tmp_path: Path, golden: Golden) -> None:
    """A run with one of everything, as it was reviewed once."""
    golden(GOLDEN / "report.html", render(mixed_run(tmp_path), str(tmp_path), "html", head=HEAD).decode())


def test_a_page_does_nothing(tmp_path: Path) -> None:
    """It has no scripts, loads nothing, leads nowhere else, and its policy allows its own style alone."""
    data = render(mixed_run(tmp_path), str(tmp_path), "html", head=HEAD)
    assert list(calm.in_html(data, 9, 3)) == []
    assert b"<script" not in data
    assert b"http" not in data.replace(b"http-equiv", b"")


def test_names_titles_and_logs_are_text(tmp_path: Path) -> None:
    """What steps print and plans name stands on the page as it is, and is no markup."""
    evil = "<img src=x onerror=alert(1)>"
    story = Story(tmp_path, step(evil, title="</title><script>x</script>", line=1), title="<b>&amp;")
    story.log_path = "logs/1.log"
    story.run(evil, "failed", log=b"</pre><script>alert(1)</script>\n'\"&lt;\x1b[31mred\n")
    story.end(1)
    data = render(story.state, str(tmp_path), "html")
    assert list(calm.in_html(data, 1, 1)) == []
    page = parsed(data)
    assert shown(page.find(".//h1")) == "<b>&amp;"
    assert shown(page.find(".//h3")) == f"✗ {evil}: </title><script>x</script> failed: exit 1"
    assert page.findtext(".//article/pre") == "</pre><script>alert(1)</script>\n'\"&lt;red"


def test_the_first_screen_says_what_failed(tmp_path: Path) -> None:
    """Verdict, counts, and all failures with the ends of their logs, those that count first; then the next command."""
    page = page_of(mixed_story(tmp_path))
    assert shown(page.find(".//header")).startswith(
        "Release & ship ✗ failed in 52.1s, exit code 1 9 total 3 successful 3 failed 2 skipped 1 blocked"
    )
    failures = section(page, "3 failed steps")
    boxes = failures.findall("article")
    assert [shown(box.find("h3")) for box in boxes] == [
        "✗ fetch failed: timeout",
        "✗ integration: Tests | with <tricks> & @all #1 failed: exit 3",
        "⚠ lint failed: exit 1",
    ]
    assert [shown(box.find("pre")) for box in boxes] == [
        "50%",
        "second ```` try \ufffd",
        "E501 line too long",
    ]
    headings = [shown(each) for each in page.iter("h2")]
    assert headings[:4] == ["3 failed steps", "Next", "Notes", "Steps and timeline"]
    assert headings[-1] == "Run"
    assert shown(section(page, "Next").find("pre")) == f"planrun resume {RUN}"
    assert [each.tag for each in page.find(".//main")][:2] == ["section", "section"]


def test_headings_tables_and_pictures_can_be_read_aloud(tmp_path: Path) -> None:
    """Tables have captions and scopes, pictures a name or none, scrolled regions a name and a stop of the tab key."""
    story = waiting_run(tmp_path)
    story.rest()
    page = page_of(story)
    for table in page.iter("table"):
        assert shown(table.find("caption"))
        assert {cell.get("scope") for cell in table.iter("th")} <= {"col", "row"}
    for picture in page.iter("svg"):
        assert picture.get("aria-hidden") == "true" or (
            picture.get("role"),
            bool(picture.get("aria-label")),
        ) == (
            "img",
            True,
        )
    for region in page.iterfind(".//div[@role='region']"):
        assert region.get("tabindex") == "0"
        assert region.get("aria-label") or region.get("aria-labelledby")
    assert page.get("lang") == "en"
    assert len(page.findall(".//main")) == len(page.findall(".//h1")) == 1


def test_every_step_has_its_times(tmp_path: Path) -> None:
    """Start, wait, duration and attempts stand in the row whose bars show the same."""
    page = page_of(mixed_story(tmp_path))
    found = {row[0].split()[1]: row for row in rows(page, "Steps and timeline")}
    assert found["test"][1:2] + found["test"][3:] == ["completed flaky", "12.5s", "0.2s", "3.0s", "2"]
    assert found["integration"][1:2] + found["integration"][3:] == [
        "failed exit 3",
        "45.5s",
        "33.2s",
        "6.5s",
        "2",
    ]
    assert found["notify"][1:] == ["skipped condition", "", "", "", "", ""]
    bars = section(page, "Steps and timeline").findall(".//tbody/tr")[4].findall(".//rect")
    widths = [float(bar.get("width").rstrip("%")) for bar in bars]
    assert [bar.get("fill") for bar in bars] == ["#789", "#b70", "#d23"]  # waited, failed, failed again
    assert widths == pytest.approx([33.2 / 0.521, 3.0 / 0.521, 3.5 / 0.521], abs=0.02)


def test_the_critical_path_is_marked(tmp_path: Path) -> None:
    """The steps that the end waited for are named in order, and marked in the list."""
    story = Story(tmp_path, step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    for name, took in (("a", 1.0), ("b", 2.0), ("c", 5.0), ("d", 1.0)):
        story.run(name, took=took)
    story.end()
    page = page_of(story)
    assert "Critical path, 7.0s of 9.0s: a → c → d." in shown(section(page, "Steps and timeline"))
    marked = [row[0].split()[1] for row in rows(page, "Steps and timeline") if "◆" in row[0]]
    assert marked == ["a", "c", "d"]


def test_idle_times_are_cut_short(tmp_path: Path) -> None:
    """A night between two steps takes no more of the timeline than a mark."""
    story = Story(tmp_path, step("a"), step("b", "a"))
    story.run("a", took=10.0).ask("b")
    story.clock += 8 * 3600
    story.answer("b", "approved", by="Ann").run("b", took=10.0)
    story.end()
    found = section(page_of(story), "Steps and timeline")
    assert "⋯ stands for a time in which nothing ran: 8h." in shown(found)
    bars = [bar for bar in found.findall(".//tbody//rect") if bar.get("fill") == "#293"]
    assert [float(bar.get("width").rstrip("%")) for bar in bars] == pytest.approx([48.5, 48.5], abs=0.01)


def test_differences_from_the_last_good_run(tmp_path: Path) -> None:
    """New and lasting failures, flaky and slower steps are named with their times then and now."""
    baseline = Baseline(
        run="20260130-090000-aaaaaa",
        seconds={"build": 4.0, "test": 2.9},
        endings={
            "build": ("completed",),
            "test": ("flaky", "completed"),
            "fetch": ("completed", "failed", "failed"),
            "integration": ("completed",),
            "lint": ("failed",),
            "collect": ("completed",),
        },
    )
    page = page_of(mixed_story(tmp_path), baseline=baseline)
    assert rows(page, "Compared with the last good run") == [
        ["fetch", "failed in the 2 runs before, too", "", "30.0s"],
        ["integration", "new failure: it completed the last time it ran", "", "6.5s"],
        ["lint", "failed in the 1 run before, too", "", "0.2s"],
        ["test", "flaky: passed after a retry, flaky in 1 of 2 earlier runs", "2.9s", "3.0s"],
        ["build", "8.3s slower, 3.1 times as long", "4.0s", "12.3s"],
    ]


def test_policy_and_approvals_are_named_with_their_rules(tmp_path: Path) -> None:
    """Each rule says how many steps it allowed, asked for or denied; each gate who answered, or how to."""
    story = waiting_run(tmp_path)
    story.rest()
    page = page_of(story)
    assert ["allow", "approval:rel-7", "1", "notes"] in rows(page, "Policy decisions")
    assert ["deny", "ceiling:rules.1", "1", "wipe"] in rows(page, "Policy decisions")
    assert shown(section(page, "Answers")).startswith(
        "Answers notes: approved by Ann (by the approval rel-7) May it"
    )
    waits = shown(section(page, "Waiting for"))
    assert "◔ publish needs approval May it run? Whyrisk high (`git push`: publishes), limit medium" in waits
    assert "It would run true" in waits
    assert "planrun approve 20260131-093000-1f2e3d publish" in shown(section(page, "Waiting for"))


def test_the_test_cases_of_a_step(tmp_path: Path) -> None:
    """Cases that a step reported stand in its details, failed ones first, with message and text."""
    story = Story(tmp_path, step("test", reports=Reports(junit=("x.xml",)), line=3))
    (tmp_path / "logs" / "test").mkdir(parents=True)
    (tmp_path / "logs" / "test" / "1.junit").write_text(
        '{"suite": "s", "time": 1.0, "cases": 2}\n'
        '{"class": "t", "name": "good", "time": 0.5}\n'
        '{"class": "t", "name": "bad<b>", "time": 0.25, "file": "t.py", "line": 7,'
        ' "result": ["failure", "E", "4 != 3", "trace <i>"]}\n'
    )
    summary = {
        "tests": 2,
        "failures": 1,
        "errors": 0,
        "skipped": 0,
        "failed": [{"name": "bad<b>", "message": "4"}],
    }
    story.run("test", "failed", reports={"junit": {**summary, "file": "logs/test/1.junit"}})
    story.end(1)
    page = page_of(story)
    details = page.find(".//details")
    assert "Test cases: 1 passed, 1 failed (bad<b>)" in shown(details)
    cases = [[shown(cell) for cell in row] for row in details.find(".//tbody").iter("tr")]
    assert cases == [
        ["t.bad<b> t.py:7", "failed: 4 != 3 trace <i>", "0.250s"],
        ["t.good", "passed", "0.500s"],
    ]


def test_logs_have_head_and_tail(tmp_path: Path) -> None:
    """Of a long log both ends are on the page, with how much is between them and where all of it is."""
    story = Story(tmp_path, step("talk", line=1))
    story.run("talk", "failed", log=b"".join([b"line %d\n" % number for number in range(9000)]))
    story.end(1)
    (log,) = page_of(story).findall(".//details/pre")
    assert log.text.startswith("line 0\n")
    assert log.text.endswith("\nline 8999")
    assert "bytes left out, all of it is in logs/talk/1.log" in log.text
    assert log.get("tabindex") == "0"


def test_a_plan_with_a_secret_is_not_shown_as_written(tmp_path: Path) -> None:
    """Where the plan itself holds the value of a secret the page quotes no commands."""
    for places, count in ((["3:4 TOKEN"], 0), ([], 2)):
        options = {"secrets": {"missing": {}, "unmasked": [], "in_plan": places}}
        secret = step("a", line=1, risk="high", risk_reason="`use s3cr3t-value`: is unknown")
        story = Story(tmp_path, secret.but(action=Run(script="use s3cr3t-value")), options=options)
        story.run("a").end()
        data = render(story.state, str(tmp_path), "html")
        assert data.count(b"s3cr3t-value") == count


def large(rundir: Path, count: int) -> Story:
    """Return a run of many steps, each with one line of output."""
    steps = [step("s0")] + [step(f"s{n}", f"s{(n - 1) // 2}", f"s{n - 1}", line=n) for n in range(1, count)]
    story = Story(rundir, *steps)
    for number in range(count):
        story.run(f"s{number}", log=b"part %d is done\n" % number)
    story.end()
    return story


def test_a_thousand_steps_fit(tmp_path: Path) -> None:
    """Besides its texts the page of 1,000 steps with output has less than 300 KiB, the picture included."""
    story = large(tmp_path, 1000)
    data = render(story.state, str(tmp_path), "html")
    page = page_of(story)
    style = page.findtext("head/style") or ""
    assert len(data) - len(page.text_content().encode()) + len(style.encode()) < MARKUP
    assert "1000 steps and 1997 dependencies are too many to draw" in shown(section(page, "Graph"))
    assert list(calm.in_html(data, 1000, 0)) == []


def test_a_large_group_is_one_box(tmp_path: Path) -> None:
    """In the graph of a large run a group with many instances is one box, which counts them; lines lead to it."""
    text = (
        "version: 1\nsteps:\n  - {id: a, run: x}\n"
        f"  - {{id: b, depends_on: [a], matrix: {{n: {[*range(70)]}}}, run: x}}\n"
        "  - {id: c, depends_on: [b], matrix: {n: [1, 2]}, run: x}\n"
    )
    (tmp_path / "plan.yml").write_text(text)
    story = Story(tmp_path, *load(str(tmp_path / "plan.yml"), cache=False).steps)
    story.run("a")
    story.run("b[n=7]", "failed")
    graph = section(page_of(story), "Graph")
    texts = [found.text for found in graph.findall(".//svg/g/g/text")]
    assert texts == ["✓ a", "○ b (70, 1 failed)", "○ c[n=1]", "○ c[n=2]", "○ c (2)"]
    assert len(graph.findall(".//svg/g/path")) == 5
    assert "A group with many instances is one box." in shown(graph)


def test_the_work_grows_with_the_steps(tmp_path: Path) -> None:
    """Four times the steps take at most five times the calls, the picture of the graph included."""
    calls = {}
    for count in (LARGE + 50, 4 * (LARGE + 50)):
        folder = tmp_path / str(count)
        story = large(folder, count)
        calls[count] = _calls(lambda story=story, folder=folder: render(story.state, str(folder), "html"))
    few, many = calls.values()
    assert many < 5 * few


def _calls(work: Any) -> int:
    """Return how many functions a piece of work calls."""
    count = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_a_run_without_an_end(tmp_path: Path) -> None:
    """A run that is going on, or was killed, has a page as well."""
    story = Story(tmp_path, step("a"), step("b", "a"), step("c", "b"))
    story.run("a")
    story.start("b", b"half way\n")
    story.clock += 3.0
    page = page_of(story)
    assert shown(page.find(".//header")).startswith("release ◐ executing in ")
    found = {row[0].split()[1]: row for row in rows(page, "Steps and timeline")}
    assert (found["b"][1], found["c"][1]) == ("running", "pending")


def test_a_resumed_run_shows_attempts_before_and_after(tmp_path: Path) -> None:
    """All attempts are in the details; the row has the time since the resume."""
    story = Story(tmp_path, step("a", line=1), step("b", "a", line=2))
    story.run("a").run("b", "failed", 2.0, b"first\n")
    story.end(1)
    story.clock += 3600
    story.resume("b").run("b", took=1.0, log=b"second\n")
    story.end()
    page = page_of(story)
    found = {row[0].split()[1]: row for row in rows(page, "Steps and timeline")}
    assert found["b"][5:] == ["1.0s", "2"]
    assert [pre.text for pre in page.findall(".//details")[1].findall("pre")] == ["first", "second"]


def test_the_gate_of_a_whole_plan(tmp_path: Path) -> None:
    """A gate of the whole plan, and a plan without edges, have a page, too."""
    story = Story(tmp_path, step("a"), begun=False)
    story.ask("", question="May it?")
    page = page_of(story)
    assert "May it?" in shown(section(page, "Waiting for"))
    assert not [each for each in page.iter("h2") if shown(each) == "Graph"]


def test_no_log_outside_of_the_run_is_read(tmp_path: Path) -> None:
    """A log that is a link, or lies elsewhere, reads as empty."""
    (tmp_path / "secret").write_text("do not show")
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    os.symlink(tmp_path / "secret", run / "logs" / "1.log")
    story = Story(run, step("a", line=1))
    for path in ("logs/1.log", "../secret"):
        story.add(
            ev.AttemptStarted(at=story.at, step="a", n=len(story.state.steps["a"].attempts) + 1, log=path)
        )
        story.add(
            ev.AttemptEnded(
                at=story.at, step="a", n=len(story.state.steps["a"].attempts), status="failed",
                step_status="waiting" if path[0] == "l" else "failed", reason="exit", exit_code=1, log_bytes=11,
            )
        )  # fmt: skip
    story.end(1)
    assert b"do not show" not in render(story.state, str(run), "html")


def test_only_a_line_that_names_an_error_is_red(tmp_path: Path) -> None:
    """The last line of a program that says nothing of an error stands in its log alone."""
    story = Story(tmp_path, step("odd", line=1), step("bad", line=2))
    story.run("odd", "failed", log=b"done 12 of 13\n").run("bad", "failed", log=b"KeyError: 'x'\n1 more\n")
    story.end(1)
    page = page_of(story)
    assert [shown(each) for each in page.iterfind(".//p[@class='cause']")] == ["KeyError: 'x'"]
    assert next(shown(box.find("pre")) for box in page.iterfind(".//article")) == "done 12 of 13"
