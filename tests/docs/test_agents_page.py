"""docs/agents.sh replays how agents mend a bug, and docs/agents.md shows what it prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from planrun.approval.responses import user_name
from tests.docs.pages import DOCS
from tests.docs.playing import parts_of
from tests.docs.test_story import steady

if TYPE_CHECKING:
    from tests.golden import Golden

PAGE = DOCS / "agents.md"
BLOCK = re.compile(r"^<!-- agents: (\w+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STALE = (
    "If a recording has no answer, a prompt or a tool is another than when docs/agents was recorded.\n"
    "Record it anew: python -m tests.docs.record_agents"
)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Play the example once, with nobody to ask, and return what each part of it printed; whoever plays it is ada."""
    played = parts_of("agents", tmp_path_factory.mktemp("agents"), STALE)
    return {
        part: text.replace(f"approved by {user_name()}", "approved by ada") for part, text in played.items()
    }


@pytest.mark.shows("N-33", "N-35", "V-40")
def test_the_page_shows_what_the_example_prints(parts: dict[str, str], golden: Golden) -> None:
    """Each part is on the page, in order and word for word but for hashes, times and ids."""
    text = PAGE.read_text("utf-8")
    assert [name for name, _, _ in BLOCK.findall(text)] == list(parts)
    golden(
        PAGE,
        BLOCK.sub(lambda block: f"<!-- agents: {block[1]} -->\n```{block[2]}\n{parts[block[1]]}```", text),
        steady,
    )


def test_the_patch_is_reviewed_before_it_is_applied(parts: dict[str, str]) -> None:
    """Before the approval the workspace is as it was; afterwards the bug is mended and the check passes."""
    assert "exit code 5\n$ git status --short\n" in parts["run"]
    assert parts["run"].endswith("$ git status --short\n")
    assert "-    return a\n+    return a + b\n" in parts["review"]
    assert "✓ again" in parts["resume"]
    assert " calc.py | 2 +-\n" in parts["resume"]
    assert ": intact, " in parts["report"]
