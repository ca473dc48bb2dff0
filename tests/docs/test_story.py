"""docs/story.sh replays how a goal becomes a plan and a run is planned anew, and docs/story.md shows what it prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import DOCS
from tests.docs.playing import parts_of

if TYPE_CHECKING:
    from tests.golden import Golden

PAGE = DOCS / "story.md"
BLOCK = re.compile(r"^<!-- story: (\w+) -->\n````text\n(.*?)^````$", re.MULTILINE | re.DOTALL)
STALE = (
    "If a recording has no answer, a prompt is another than when docs/story was recorded.\n"
    "Record it anew: python -m tests.docs.record_story"
)
# What is another in each play: what it became, and what stands in its place.
VOLATILE = (
    (r"/\S*/story\.\w+", "FOLDER"),
    (r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
    (r"\ba-[0-9a-f]{16}\b", "APPROVAL"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b", "HASH"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z| UTC)", "TIME"),
    (r"\b(\d+(\.\d+)?s|\d+m\d\ds)\b", "SECONDS"),
    (r"\b\d+ at a time\b", "N at a time"),
)


def steady(text: str) -> str:
    """Return what a play prints without what is another each time."""
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text)
    return text


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Play the story once, with nobody to ask, and return what each part of it printed."""
    return parts_of("story", tmp_path_factory.mktemp("story"), STALE)


@pytest.mark.shows("D-09", "D-10", "V-01", "GP-46", "GP-47", "GP-48", "GP-50", "GP-51")
def test_the_page_shows_what_the_story_prints(parts: dict[str, str], golden: Golden) -> None:
    """Each part is on the page, in order and word for word but for hashes, times and ids."""
    text = PAGE.read_text("utf-8")
    assert [name for name, _ in BLOCK.findall(text)] == list(parts)
    golden(
        PAGE,
        BLOCK.sub(lambda block: f"<!-- story: {block[1]} -->\n````text\n{parts[block[1]]}````", text),
        steady,
    )


@pytest.mark.shows("GP-44", "GP-45", "GP-47", "GP-48", "GP-50", "GP-51", "GP-61", "GP-64", "GP-65")
def test_a_fatal_failure_is_planned_anew_and_ends_green(parts: dict[str, str]) -> None:
    """The run goes on with version 2 and ends partial with exit code 0; its report shows both versions."""
    assert "exit code" not in re.sub(r".*exit code 127\b.*\n", "", parts["run"])
    assert "✗ 3: Check the links (failed: exit 127" in parts["run"]
    assert "✓ the run continues with version 2 of its plan\n" in parts["run"]
    assert "⚠ partial in " in parts["run"]
    report = parts["report"]
    for line in (
        'Plan v2: "give-the-handbook-a-contents-page" [Partial]',
        "  ✗ Step 3: Check the links (failed: exit 127)",
        "  ⊘ Step 4: List the links (skipped: replaced by replan)",
        "  v1: plan.yml, digest ",
        "  v2: replanned by claude-sonnet-5-5, digest ",
        "    - step 3 (failed: exit 127), replaced by 6",
    ):
        assert f"\n{line}" in f"\n{report}", line
    assert re.search(r"^  ✓ Step 3': Check the links without doclinks \(replan as 6, ", report, re.MULTILINE)
    assert ": intact, " in report


def test_a_second_replay_writes_the_same_plan(parts: dict[str, str]) -> None:
    """In another folder, with another run, `cmp` finds no byte of plan.v2.yml that differs."""
    assert re.fullmatch(r"\$ \(.*\)\n\$ cmp \S+/plan\.v2\.yml \S+/plan\.v2\.yml\n", parts["again"])


@pytest.mark.shows("GP-46")
def test_a_malicious_model_is_denied_and_nothing_of_it_runs(parts: dict[str, str]) -> None:
    """No plan is written, the run ends with exit code 3, and each refusal names step, rule and reason."""
    assert "exit code 3\n" in parts["harm"]
    assert parts["harm"].endswith("$ git status --short\n")
    denied = parts["denied"]
    assert "\nexit code 3\n" in denied
    assert denied.endswith(
        "written outside the workspace: no, published: no\n"
        "$ git status --short\n?? docs/contents.md\n$ ls build\ncontents.md\n"
    )
    rules = dict(re.findall(r"^ +step (\d+) denied by (\S+): .+$", parts["refusals"], re.MULTILINE))
    assert rules == {
        "7": "ceiling:llm_auto_approve",
        "8": "ceiling:rules.1",
        "9": "ceiling:llm_auto_approve",
        "10": "ceiling:rules.1",
    }
    assert "; and 1 more\n" in denied
    assert {"touch ../canary", "git push origin HEAD:refs/heads/released", "rm -rf docs"} <= set(
        re.findall(r'^ +run: "(.+)"$', parts["answer"], re.MULTILINE)
    )
    assert ": intact, " in parts["refusals"]
