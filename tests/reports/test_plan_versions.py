"""What reports show of a plan that was revised during its run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from planrun.model.planning import lineage
from planrun.plan.load import load_bytes
from planrun.reports.junit import write_junit
from planrun.reports.ledgerjson import write_ledger
from planrun.reports.markdown import write_markdown
from planrun.reports.text import write_text
from tests.app.replans import REPAIRED, Shop, draft, newest, step

if TYPE_CHECKING:
    from planrun.model.state import RunState

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "ledger.schema.json").read_bytes())


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop with a scripted model."""
    return Shop(tmp_path, monkeypatch)


def text_of(state: RunState, rundir: str) -> str:
    """The text report."""
    out = io.BytesIO()
    write_text(state, rundir, out)
    return out.getvalue().decode()


def test_the_text_report_shows_both_versions(shop: Shop) -> None:
    """Heading, primed labels, replaced steps, and what became of the plan."""
    shop.run(REPAIRED)
    rundir, state = newest(shop.folder)
    text = text_of(state, rundir)
    assert text.startswith('Plan v2: "shop" [Partial]\n')
    assert "  ✗ Step 3: Generate (failed: exit 77)\n" in text
    assert "✓ Step 3': Generate by hand (replan as 7, " in text
    assert "⊘ Step 4: Check (skipped: replaced by replan)\n" in text
    assert "  v2: replanned by model-a, digest " in text
    assert "    Nobody may write there.\n" in text
    assert "    + step 7: Generate by hand, replaces 3\n" in text
    assert "    - step 4 (skipped: replaced by replan), replaced by 8\n" in text


def test_reports_are_the_same_when_they_are_written_again(shop: Shop) -> None:
    """The report of a live run equals the report from its ledger."""
    shop.run(REPAIRED)
    rundir, state = newest(shop.folder)
    reports = shop.folder / "planrun-out"
    head = json.loads((Path(rundir) / "ledger.jsonl").read_text("utf-8").splitlines()[-1])["hash"]
    again = {name: io.BytesIO() for name in ("report.md", "junit.xml", "ledger.json")}
    write_markdown(state, rundir, again["report.md"], head=head)
    write_junit(state, rundir, again["junit.xml"], head=head)
    write_ledger(state, again["ledger.json"])
    for name, out in again.items():
        assert out.getvalue() == (reports / name).read_bytes(), name


def test_the_ledger_holds_every_version(shop: Shop) -> None:
    """`plan.versions` and `replaces` follow the schema."""
    shop.run(REPAIRED)
    data = json.loads((shop.folder / "planrun-out" / "ledger.json").read_bytes())
    jsonschema.Draft7Validator(SCHEMA).validate(data)
    first, second = data["plan"]["versions"]
    assert (first["cause"], second["cause"], second["model"]) == ("file", "replan", "model-a")
    assert second["added"] == ["7", "8"]
    assert second["replaced"] == {"3": ["7"], "4": ["8"]}
    assert {found["id"]: found["replaces"] for found in data["steps"]}["8"] == ["4"]


def test_refusals_and_problems_are_shown(shop: Shop) -> None:
    """A denied planning names step, rule and reason; an invalid one what was wrong at last."""
    (shop.folder / "ceiling.yml").write_text("auto_approve: high\nllm_auto_approve: low\n", encoding="utf-8")
    shop.run(draft(step("7", "rm -rf ~/x", replaces=["3"])), policy="ceiling.yml")
    rundir, state = newest(shop.folder)
    text = text_of(state, rundir)
    assert "replanning 3: the model's plan is not allowed; none of it ran" in text
    assert "step 7 denied by ceiling:llm_auto_approve: its risk is high" in text
    wrong = draft(step("7", "true", replaces=["1"]))
    shop.run(wrong, wrong, wrong)
    rundir, state = newest(shop.folder)
    assert "steps[0].replaces[0]: " in text_of(state, rundir)
    data = json.loads((shop.folder / "planrun-out" / "ledger.json").read_bytes())
    jsonschema.Draft7Validator(SCHEMA).validate(data)
    assert data["llm"]["plannings"][0]["problems"]
    page = (shop.folder / "planrun-out" / "report.md").read_text("utf-8")
    assert "<summary>Plan versions</summary>" in page


def test_text_of_a_model_is_escaped_in_reports(shop: Shop) -> None:
    """Its analysis and titles are text in every report."""
    answer = draft(
        step("7", "true", title="</testcase> **x** <img src=x>", replaces=["3", "4", "5"]),
        analysis="::error::now\n# Heading <script>",
    )
    shop.run(answer)
    page = (shop.folder / "planrun-out" / "report.md").read_text("utf-8")
    assert "<script>" not in page
    assert "<img" not in page
    assert "\n# Heading" not in page


def test_labels_grow_a_prime_with_each_replacement() -> None:
    """3, 3' and 3''; a circle, which no plan has, ends."""
    rows = ["{id: 3, run: echo}", "{id: 7, run: echo, replaces: [3]}", "{id: 8, run: echo, replaces: [7]}"]
    plan = load_bytes(f"version: 1\nsteps: [{', '.join(rows)}]\n".encode(), "plan.yml", cache=False)
    assert lineage(plan) == {"7": "3'", "8": "3''"}
