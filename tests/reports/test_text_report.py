"""The text report says the same as the markdown report, for terminals."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.reports.text import write_text
from planrun.reports.write import render
from tests.reports.runs import HEAD, Story, mixed_run, step

if TYPE_CHECKING:
    from tests.golden import Golden

GOLDEN = Path(__file__).parent / "golden"


def test_forms_and_icons(tmp_path: Path) -> None:
    """Header and step lines have their forms and each status its icon."""
    story = Story(tmp_path, *(step(name, title=f"Do {name}") for name in "12345"))
    story.run("1", took=12.3, usage={"input_tokens": 1200})
    story.run("2", "failed", reason="timeout")
    story.move("3", "skipped", "replaced_by_replan")
    story.start("4")
    out = io.BytesIO()
    write_text(story.state, str(tmp_path), out)
    rows = out.getvalue().decode().splitlines()
    assert rows[:2] == [
        'Plan v1: "release" [Executing]',
        "executing (the records have no end), 12.8s, 5 steps: 1 successful, 1 failed, 1 skipped, 2 to run",
    ]
    at = rows.index("Steps")
    assert rows[at + 1 : at + 6] == [
        "  ✓ Step 1: Do 1 (12.3s, 1.2K tokens)",
        "  ✗ Step 2: Do 2 (failed: timeout)",
        "  ⊘ Step 3: Do 3 (skipped: replaced by replan)",
        "  ◐ Step 4: Do 4 (running)",
        "  ○ Step 5: Do 5 (pending)",
    ]


@pytest.mark.parametrize(
    ("form", "name"), [("text", "report.txt"), ("json", "ledger.json"), ("junit", "junit.xml")]
)
def test_whole_reports(form: str, name: str, tmp_path: Path, golden: Golden) -> None:
    """A run with one of everything, as it was reviewed once."""
    data = render(mixed_run(tmp_path), str(tmp_path), form, head=HEAD)
    golden(GOLDEN / name, data.decode())


def test_partial_shows(tmp_path: Path) -> None:
    """Tolerated failures are named as such."""
    story = Story(tmp_path, step("lint", on_failure="skip"))
    story.run("lint", "failed")
    out = io.BytesIO()
    write_text(story.end(), str(tmp_path), out)
    text = out.getvalue().decode()
    assert text.startswith('Plan v1: "release" [Partial]\n')
    assert "  ⚠ Step lint (failed: exit 1) (tolerated)\n" in text


def test_the_status_shows_why_it_is_not_good(tmp_path: Path) -> None:
    """A partial run that ends with 1 because of --strict names what was tolerated."""
    story = Story(tmp_path, step("lint", on_failure="continue"), options={"strict": True})
    out = io.BytesIO()
    write_text(story.run("lint", "failed").end(1), str(tmp_path), out)
    said = "\npartial, but 1 tolerated failure (--strict): lint (exit code 1), "
    assert said in out.getvalue().decode()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"class": "unknown", "rule": "none"}, ""),
        ({"class": "unknown", "rule": "exit:77"}, ""),
        ({"class": "logic", "rule": "none"}, "logic"),
        ({"class": "fatal", "rule": "exit:command not found"}, "fatal"),
        ({"class": "logic", "rule": "text:assertion"}, "logic (assertion)"),
    ],
)
def test_an_unknown_class_is_not_shown(tmp_path: Path, error: dict[str, str], said: str) -> None:
    """A class is shown when there is one, and its rule when that was found in the output."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", error=error | {"message": "no"})
    out = io.BytesIO()
    write_text(story.end(1), str(tmp_path), out)
    text = out.getvalue().decode()
    assert "    no\n" in text
    assert [row.split(maxsplit=2)[2] for row in text.splitlines() if "Error class:" in row] == [said][
        : bool(said)
    ]
