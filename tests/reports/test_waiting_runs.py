"""Reports of a waiting run: the questions, the reasons, the answer commands, and the reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from lxml import etree

from planrun.model import events as ev
from planrun.reports.elements import DIALECTS
from planrun.reports.policies import grounds
from planrun.reports.write import render
from tests.reports.runs import DIGEST, RUN, Story, asking, step, waiting_run
from tests.reports.test_junit import SCHEMAS, STRICT

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "\x1b[31m::error::x\r\n##vso[task.complete]`|](http://a.b) <b>@all #1 \u202e ]]>"


def text(story: Story, form: str = "text") -> str:
    """Return a report."""
    return render(story.state, str(story.rundir), form).decode()


def test_the_text_report_shows_questions_and_answer_commands(tmp_path: Path) -> None:
    """Each open gate with its reason, its options and the commands; then the answers."""
    story = waiting_run(tmp_path)
    story.rest()
    found = text(story)
    assert "[Waiting]\n" in found
    assert "\nwaiting (exit code 5), 2.0s, 8 steps: 2 successful, 1 failed, 5 to run\n" in found
    rows = found.split("\nWaiting for\n")[1].split("\nSteps\n")[0].splitlines()
    assert rows == [
        "",
        "  ◔ publish needs approval",
        "    May it run?",
        "    Why:    risk high (`git push`: publishes), limit medium, plans/release.yml:7",
        "    Risk:   high",
        f"    Digest: {DIGEST}",
        "    It would run",
        "      | true",
        "    To answer",
        f"      $ planrun approve {RUN} publish",
        f"      $ planrun reject {RUN} publish",
        (
            "      $ planrun approve plans/release.yml --step publish -o approval.json  "
            "# a file to be committed, for execute --approval approval.json"
        ),
        "",
        "  ◔ really needs an answer",
        "    Last look: Publish <1.2> to @all?",
        "    To answer",
        f"      $ planrun decide {RUN} really=yes",
        f"      $ planrun decide {RUN} really=no",
        "",
        "  ◔ where needs a decision",
        "    Where to?",
        "    Answer: staging: Staging - nobody sees it",
        "    Answer: prod",
        "    Time:   until 2026-01-31T10:00:00.000Z, then the answer is staging",
        "    To answer",
        f"      $ planrun decide {RUN} where=staging",
        f"      $ planrun decide {RUN} where=prod",
        "",
        "Next",
        f"  $ planrun resume {RUN}  # once everything is answered",
    ]
    (answers,) = found.split("\nAnswers\n")[1:]
    assert answers.splitlines()[:2] == [
        "  notes: approved by Ann (by the approval rel-7)",
        "    May it run? risk high (`git push`: publishes), limit medium, plans/release.yml:7, 2026-01-31 09:00:02 UTC",
    ]
    assert "    Denied by: ceiling:rules.1\n" in found


def test_the_markdown_report_tells_the_same(tmp_path: Path) -> None:
    """Texts of the plan are escaped; the commands stand in a block to be copied; risks are a column."""
    story = waiting_run(tmp_path)
    story.rest()
    found = text(story, "markdown")
    assert "- **Policy:** auto-approve medium, model-written low, 2 rules" in found
    assert "- **Risk:** high, 2 destructive, 3 modify files, 2 external calls, 1 not fully known" in found
    waits = found.split("\n## Waiting for\n")[1].split("\n## Steps\n")[0]
    assert "### ◔ really needs an answer\n\nLast look: Publish &lt;1.2&gt; to @&#8203;all?\n" in waits
    assert f"```sh\nplanrun approve {RUN} publish\nplanrun reject {RUN} publish\n" in waits
    assert "- notes: approved by Ann (by the approval rel-7)\n" in found
    assert "- **Denied by:** `ceiling:rules.1`\n" in found
    assert "| `publish` | waiting: approval | 0 |  | test | high |\n" in found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_junit_readers_see_what_waits_as_skipped_and_what_was_denied_as_failed(
    dialect: str, tmp_path: Path
) -> None:
    """No reader may take a run that waits for a red or a green one; every dialect stays valid."""
    story = waiting_run(tmp_path)
    data = render(story.rest(), str(tmp_path), "junit", dialect=dialect)
    if dialect in STRICT:
        etree.XMLSchema(etree.parse(str(SCHEMAS / STRICT[dialect]))).assertValid(etree.fromstring(data))
    cases = {case.attrib["name"]: case for case in ET.fromstring(data).iter("testcase")}
    (skipped,) = cases["publish"]
    assert skipped.tag == "skipped"
    assert skipped.attrib["message"].startswith(
        "waiting for approval: risk high (`git push`: publishes), limit medium, plans/release.yml:7"
    )
    assert cases["where"][0].attrib["message"] == "waiting for decision: Where to?"
    assert cases["after"][0].attrib["message"] == "not run: the run waits for an answer"
    (denied,) = cases["wipe"]
    assert (denied.tag, denied.attrib["type"]) == ("failure", "Denied")


def test_a_run_that_was_answered_and_not_resumed_only_has_to_go_on(tmp_path: Path) -> None:
    """Nothing is asked any more, and the report shows the command that continues."""
    story = Story(tmp_path, step("a"))
    story.ask("a", rule="plan:rules.1", reason="why").rest()
    assert "Waiting for" in text(story)
    story.answer("a", "approved", by="Ann")
    found = text(story)
    assert "Waiting for" not in found
    assert f"  $ planrun resume {RUN}\n" in found
    assert "\nAnswers\n  a: approved by Ann\n" in found


def test_a_whole_plan_is_approved_or_rejected(tmp_path: Path) -> None:
    """The gate of the plan has commands without a step."""
    story = Story(tmp_path, step("a"))
    story.ask("", reason="a: risk high", rule="plan:auto_approve")
    story.add(ev.PlanMoved(at=story.at, status="paused"))
    found = text(story)
    assert "May this plan be executed?" not in found  # it runs already
    asked = Story(tmp_path, step("a"), begun=False)
    asked.ask("", reason="a: risk high", rule="plan:auto_approve")
    found = text(asked)
    assert "  ◔ the plan needs approval\n    May this plan be executed?\n" in found
    assert f"      $ planrun approve {RUN}\n      $ planrun reject {RUN}\n" in found


def test_values_of_every_kind_can_be_answered(tmp_path: Path) -> None:
    """Types and bounds of a value are shown; valid options: quoted for the shell; several can be chosen."""
    story = Story(tmp_path, asking("n"), asking("many"))
    story.ask("n", "ask", question="How many?", schema={"type": "integer", "minimum": 1})
    options = tuple({"label": word, "value": word} for word in ("a b", "$x;", "c"))
    story.ask("many", "decide", question="Which?", options=options, multi=True).rest()
    found = text(story)
    assert "    Answer: integer, minimum 1\n" in found
    assert f"      $ planrun decide {RUN} n=VALUE\n" in found
    assert f"    $ planrun decide {RUN} many='a b'\n      $ planrun decide {RUN} many='$x;'\n" in found
    assert f"    $ planrun decide {RUN} many='a b','$x;',c\n" in found


@pytest.mark.parametrize("form", ["text", "markdown", "junit"])
def test_hostile_questions_stay_texts(form: str, tmp_path: Path) -> None:
    """What plans and people write steers no terminal, no CI system and no markdown."""
    story = Story(tmp_path, asking("a"), asking("b"))
    options = ({"label": HOSTILE, "value": HOSTILE, "description": HOSTILE},)
    story.ask(
        "a", "decide", question=HOSTILE, header=HOSTILE, options=options, reason=HOSTILE, default=(HOSTILE,)
    )
    story.ask("b", "ask", question=HOSTILE, until="2026-01-31T10:00:00.000Z").answer("b", HOSTILE, by=HOSTILE)
    story.rest()
    found = text(story, form)
    assert "\x1b" not in found
    assert "\u202e" not in found
    assert not [row for row in found.splitlines() if row.lstrip().startswith(("::error", "##vso"))]
    assert "##vso" not in found
    running = "".join(found.split("```")[::2]) if form == "markdown" else found  # outside of code blocks
    assert "<b>" not in running or form == "text"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            "its risk is high (`git push`: publishes), and auto_approve is low (plan.yml:6)",
            "risk high (`git push`: publishes), limit low, plan.yml:6",
        ),
        (
            "its risk is medium, and auto_approve is low by --auto-approve",
            "risk medium, limit low, --auto-approve",
        ),
        (
            "its risk is medium, and llm_auto_approve is low, since the plan has no policy",
            "risk medium, limit for steps of a model low, the plan has no policy",
        ),
        (
            "second: its risk is high, and auto_approve is low (plan.yml:4); 2 files change",
            "second: risk high, limit low, plan.yml:4; 2 files change",
        ),
        ("rule 1 (plan.yml:5) requires an approval", "rule 1 (plan.yml:5) requires an approval"),
        ("", "risk high"),
    ],
)
def test_one_reason_for_an_approval_in_plain_words(reason: str, said: str) -> None:
    """The risk, the limit and where it stands, once; any other reason as it was recorded."""
    opened = ev.GateOpened(
        at="", step="a", kind="approval", risk="high", rule="plan:auto_approve", reason=reason
    )
    assert grounds(opened) == said
