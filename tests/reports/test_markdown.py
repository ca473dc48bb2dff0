"""The markdown report has the forms people know, and shows what others wrote without obeying it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from planrun.model.plan import Limits
from planrun.model.state import RunState
from planrun.reports.drawing import MAX_CHARS, flowchart, label
from planrun.reports.escape import code, fence, inline
from planrun.reports.markdown import SUMMARY_BYTES, write_markdown
from tests.golden import Golden
from tests.reports.runs import Story, mixed_run, step

GOLDEN = Path(__file__).parent / "golden"
NASTY = st.text(st.sampled_from("`|<>&@#*_[]()!~$\\:/.-w \n\r\x1b\u202eaé1") | st.characters(codec="utf-8"))


def markdown(state: RunState, rundir: Path, budget: int | None = None) -> str:
    """The report as text."""
    out = io.BytesIO()
    write_markdown(state, str(rundir), out, budget)
    return out.getvalue().decode()


def flat(tokens: list[Token] | None) -> list[Token]:
    """All tokens of a page, inline ones too."""
    return [found for token in tokens or [] for found in (token, *flat(token.children))]


def parsed(text: str) -> list[Token]:
    """Return the HTML of a CommonMark reader with tables."""
    return flat(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text))


def test_the_forms_of_a_report(tmp_path: Path) -> None:
    """Header and step lines read as they always did; the result is one line, without counts of nothing."""
    story = Story(
        tmp_path,
        step("1", title="Build"),
        step("2", title="Count"),
        step("3", title="Test"),
        step("4", title="Ship"),
        title="Release",
    )
    story.run("1", took=12.3, usage={"input_tokens": 1000, "output_tokens": 234})
    story.run("2", took=75.0)
    story.run("3", "failed", 30.0, reason="timeout")
    story.move("4", "skipped", "replaced_by_replan")
    rows = markdown(story.end(1), tmp_path).splitlines()
    assert rows[0] == '# ✗ Plan v1: "Release" [Failed]'
    assert rows[2] == "## Execution Summary"
    assert rows[4] == "**failed (exit code 1), 1m57s, 4 steps: 2 successful, 1 failed, 1 skipped**"
    assert rows[6] == "## Failures"
    assert [row for row in rows if row.startswith("- ") and "Step" in row] == [
        "- ✓ Step 1: Build (12.3s, 1.2K tokens)",
        "- ✓ Step 2: Count (1m15s)",
        "- ✗ Step 3: Test (failed: timeout)",
        "- ⊘ Step 4: Ship (skipped: replaced by replan)",
    ]


def test_the_whole_report(tmp_path: Path, golden: Golden) -> None:
    """A run with one of everything, as it was reviewed once."""
    golden(GOLDEN / "report.md", markdown(mixed_run(tmp_path), tmp_path))


def test_partial_is_shown_first(tmp_path: Path) -> None:
    """A run whose failures are all tolerated is headed as partial."""
    story = Story(tmp_path, step("lint", on_failure="continue"), step("build"))
    story.run("lint", "failed").run("build")
    text = markdown(story.end(), tmp_path)
    assert text.startswith('# ⚠ Plan v1: "release" [Partial]\n')
    assert "\n**partial (exit code 0), 1.0s, 2 steps: 1 successful, 1 failed**\n" in text
    assert "- **Tolerated:** the run does not fail because of it\n" in text


def test_a_killed_run_is_shown_as_such(tmp_path: Path) -> None:
    """Without an end the report names the state the records are in."""
    story = Story(tmp_path, step("a"), step("b", "a"))
    story.start("a")
    text = markdown(story.state, tmp_path)
    assert text.startswith('# ◐ Plan v1: "release" [Executing]\n')
    assert "\n**executing (the records have no end), 0.0s, 2 steps: 2 to run**\n" in text
    assert "- ◐ Step a (running)\n- ○ Step b (pending)\n" in text


@given(NASTY)
def test_running_text_is_only_text(raw: str) -> None:
    """Whatever a title holds, a reader sees one line of text: no markup, link, HTML or mention."""
    shown = inline(raw)
    tokens = parsed(f"- x {shown}\n")
    kinds = {token.type for token in tokens} - {"text_special"}
    assert kinds <= {
        "bullet_list_open",
        "list_item_open",
        "paragraph_open",
        "inline",
        "text",
        "paragraph_close",
        "list_item_close",
        "bullet_list_close",
    }
    assert "\n" not in shown
    assert "\x1b" not in shown
    seen = "".join(token.content for token in tokens if token.type in ("text", "text_special"))
    assert not any(seen[at + 1 : at + 2].isalnum() for at, char in enumerate(seen) if char in "@#")
    assert not any(start in seen.lower() for start in ("://", "www.", "gh-"))


@given(NASTY)
def test_code_spans_hold_anything(raw: str) -> None:
    """A code span is one cell of a table, whatever is in it."""
    tokens = parsed(f"| a | b |\n| - | - |\n| {code(raw)} | end |\n")
    cells = [token for token in tokens if token.type == "td_open"]
    assert len(cells) == 2
    assert [token.type for token in tokens].count("code_inline") == 1
    assert not any(token.type in ("html_inline", "link_open", "image") for token in tokens)


@given(st.text(st.sampled_from("`~ab \n"), max_size=40))
def test_fences_hold_anything(raw: str) -> None:
    """A log cannot close its fence."""
    tokens = parsed(fence(raw) + "\nafter\n")
    assert [token.type for token in tokens].count("fence") == 1
    assert tokens[-1].type == "paragraph_close"


def test_words_keep_their_underscores() -> None:
    """Ids stay readable; only what could be emphasis is escaped."""
    assert inline("step_1 and _loud_ words_") == "step_1 and \\_loud\\_ words\\_"


def test_the_graph_is_drawn_while_it_can_be_read(tmp_path: Path) -> None:
    """Up to 100 nodes are drawn, more are left to the table; labels are quoted and escaped."""
    assert label('a "b" [c] `d` <e> end;') == ("a #34;b#34; #91;c#93; #96;d#96; #60;e#62; end#59;")
    names = [f"s{number}" for number in range(101)]
    chain = [step(name, *names[max(0, n - 1) : n], title="x" * 80) for n, name in enumerate(names)]
    drawn = flowchart(Story(tmp_path, *chain[:100]).state)
    assert drawn.count("-->") == 99
    assert len(drawn) <= MAX_CHARS
    assert flowchart(Story(tmp_path, *chain).state) == ""
    dense = [step(name, *names[:n]) for n, name in enumerate(names[:30])]
    assert flowchart(Story(tmp_path, *dense).state) == ""


def test_a_budget_is_kept(tmp_path: Path) -> None:
    """A step summary stays below its size; failures come first, omitted steps are counted."""
    steps = [step(f"step-{number}", title="t" * 200) for number in range(6000)]
    story = Story(tmp_path, *steps)
    for number, found in enumerate(steps):
        if number % 10 == 0:
            story.run(found.id, "failed", log=b"word " * 4000)
        else:
            story.run(found.id)
    text = markdown(story.end(1), tmp_path, SUMMARY_BYTES)
    assert len(text.encode()) <= SUMMARY_BYTES
    assert text.index("## Failures") < text.index("<summary>Steps</summary>")
    assert text.count("<details>") == text.count("</details>") > 0
    assert text.endswith("more entries left out: the report ends at its size limit.\n")
    assert parsed(text)[-1].type == "paragraph_close"


def test_long_logs_are_cut(tmp_path: Path) -> None:
    """A failure shows the end of its log and how much is missing."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"line\n" * 100_000 + b"the reason\n")
    text = markdown(story.end(1), tmp_path)
    assert "the reason\n```" in text
    assert " bytes left out …\n" in text
    assert len(text) < 12_000


@pytest.mark.parametrize(
    ("story", "said"),
    [
        (("cancel", {"signal": 15}), "cancelled by SIGTERM"),
        (("deadline", {}), "failed: the deadline of 1h30m passed"),
        (("abort", {"step": "a"}), "failed: aborted by the failure of a"),
    ],
)
def test_the_status_shows_what_ended_the_run(
    tmp_path: Path, story: tuple[str, dict[str, Any]], said: str
) -> None:
    """Signal, deadline or step stand beside the status."""
    run_story = Story(tmp_path, step("a"), limits=Limits(deadline=5400.0))
    run_story.start("a")
    run_story.ending(story[0], **story[1]).cancel("a")
    text = markdown(run_story.end(9), tmp_path)
    assert f"\n**{said} (exit code 9), " in text
    assert "- ⊗ Step a (cancelled)\n" in text
    assert "| `a` | cancelled | 1 |" in text


def test_the_status_shows_why_it_is_not_good(tmp_path: Path) -> None:
    """A completed run that ends with 1 says why; the step is flaky in the table too."""
    story = Story(tmp_path, step("a"), options={"fail_on_flaky": True})
    text = markdown(story.run("a", "waiting").run("a").end(1), tmp_path)
    assert "\n**completed, but 1 flaky step (--fail-on-flaky): a (exit code 1), " in text
    assert "| `a` | completed, flaky | 2 |" in text


def test_a_resumed_step_tells_of_its_new_attempts(tmp_path: Path) -> None:
    """Number and time of attempts are those since the run was resumed."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", took=60.0, log=b"old words\n").end(1)
    story.resume("a").run("a", "failed", took=2.0, log=b"new words\n")
    text = markdown(story.end(1), tmp_path)
    assert "- **Ran:** 2.0s\n" in text
    assert "| `a` | failed: exit 1 | 1 | 2.0s |" in text
    assert "new words" in text
    assert "old words" not in text
