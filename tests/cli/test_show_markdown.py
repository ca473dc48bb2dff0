"""`planrun show --format markdown`: a plan as those see it who have to approve it, in a job's summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from tests.cli.test_diff import HOSTILE, running_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said

PLAN = """\
version: 1
name: release
description: Ship it.
secrets: [PYPI_TOKEN]
steps:
  - {id: look, run: git status, timeout: 1m}
  - {id: clean, title: Clean up, run: "rm -rf build\\necho done", depends_on: [look], timeout: 2m}
  - {id: publish, exec: [twine, upload, "dist/*"], depends_on: {clean: done}, condition: run.ci, secrets: [PYPI_TOKEN]}
finally:
  - {id: tidy, run: "true"}
"""


def markdown_of(say: Callable[..., Said], plan: str, *options: str) -> str:
    """Return a plan as markdown."""
    with open("plan.yml", "w", encoding="utf-8") as file:
        file.write(plan)
    said = say("show", "plan.yml", "--format", "markdown", *options)
    assert (said.code, said.err) == (0, "")
    return said.out


@pytest.mark.shows("N-11")
def test_the_summary_has_what_an_approver_asks_for(say: Callable[..., Said]) -> None:
    """Title, number of steps, how long at most, risks with icons, what is destructive, and a row for each step."""
    out = markdown_of(say, PLAN)
    digest = json.loads(say("show", "plan.yml", "--json").out)["plan"]["digest"]
    head, table = out.split("\n\n| ")
    assert head.startswith("### 📋 release\n\nShip it.\n\n")
    assert f"- `plan.yml`, digest `{digest[:12]}`\n" in head
    assert "4 steps · ⏱ at most 8m · 🔴 1 high, 🟡 1 medium" in head
    assert "- 💥 1 destructive: `clean`\n" in head
    assert "- 🔑 secrets: `PYPI_TOKEN` (publish)" in head
    rows = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table.split("\n")[2:] if row]
    assert [row[:5] for row in rows] == [
        ["⚪", "`look`", "`git status`", "-", "1m"],
        ["🟡💥", "`clean` Clean up", "`rm -rf build` … 1 more line", "look", "2m"],
        ["🔴", "`publish`", "`twine upload 'dist/*'`, if `run.ci`", "clean (done)", "5m"],
        [rows[3][0], "`tidy` (finally)", "`true`", "-", "5m"],
    ]
    assert rows[1][5].startswith("medium: ")


def test_text_of_a_plan_stays_text_in_the_summary(say: Callable[..., Said]) -> None:
    """Markup, links, mentions, bars and commands to CI in any text of a plan stay what they are."""
    step: dict[str, Any] = {"id": "a", "title": HOSTILE, "run": f"{HOSTILE}\n::error::x"}
    step["condition"] = f"'{HOSTILE}' == 'x'"
    plan = {
        "version": 1,
        "name": HOSTILE,
        "description": f"{HOSTILE}\n\n# x",
        "goal": HOSTILE,
        "steps": [step],
    }
    out = markdown_of(say, json.dumps(plan))
    html = MarkdownIt("gfm-like", {"linkify": False}).render(out)
    for tag in ("<a ", "<img", "<script", "<em>", "<h1>", "<details>"):
        assert tag not in html
    assert html.count("<tr>") == 2
    assert "@team" not in running_text(out)
    assert not [row for row in out.split("\n") if row.lstrip().startswith("::")]


def test_a_summary_stays_below_what_github_shows(say: Callable[..., Said]) -> None:
    """4,000 steps: less than 1 MiB, and a line says how many are left out."""
    rows = "".join(f"  - {{id: step-{n}, title: '{'🙂' * 60}', run: 'echo {n}'}}\n" for n in range(4_000))
    out = markdown_of(say, f"version: 1\nsteps:\n{rows}")
    assert len(out.encode()) < 1 << 20
    assert "more steps are not shown" in out


def test_forms_exclude_each_other(say: Callable[..., Said]) -> None:
    """One view at a time; `--format json` is `--json`."""
    markdown_of(say, PLAN)
    assert say("show", "plan.yml", "--format", "markdown", "--levels").code == 2
    assert say("show", "plan.yml", "--format", "json").out == say("show", "plan.yml", "--json").out
    assert say("show", "plan.yml", "--format", "text").out == say("show", "plan.yml").out
