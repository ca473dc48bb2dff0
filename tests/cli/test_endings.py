"""What stands below the last step of a run that did not simply complete, as the installed command prints it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.golden import Golden

KEPT = Path(__file__).parent / "endings"
BEGINS = re.compile(
    r"(Failed|Tolerated|Blocked|Skipped|Cancelled|Not started|Not selected|Not passed|Slowest)\b.*:|[✓✗⚠⏸⊗◔] \w+ in "
)
CHANGING = (
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "RUN"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\b\d+\.\ds\b"), "0.0s"),
    (re.compile(r"/\S*?(?=/plan\.yml|/no)"), "…"),
)


@pytest.mark.parametrize("plan", sorted(KEPT.glob("*.yml")), ids=lambda path: path.stem)
def test_the_end_of_a_run(planrun: Command, plan: Path, golden: Golden) -> None:
    """What failed with its place and why, what did not run and because of what, the verdict, what to do next."""
    text = plan.read_text("utf-8")
    (planrun.folder / "plan.yml").write_text(text, "utf-8")
    words = text.partition("\n")[0].removeprefix("# planrun ").split()
    done = planrun(*words, "--jobs", "1")
    assert done.returncode in (0, 1, 3, 5, 130), done.stderr
    rows = done.stderr.splitlines()
    first = next(number for number, row in enumerate(rows) if BEGINS.match(row))
    golden(plan.with_suffix(".txt"), steady("\n".join(rows[first:]) + f"\nexit code {done.returncode}\n"))


def steady(text: str) -> str:
    """Replace what differs from run to run."""
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text
