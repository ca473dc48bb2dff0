"""docs/walk.sh plays the way of a change from pull request to release, and docs/walk.md shows what it prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import DOCS
from tests.docs.playing import parts_of

if TYPE_CHECKING:
    from tests.golden import Golden

PAGE = DOCS / "walk.md"
BLOCK = re.compile(r"^<!-- walk: (\w+) -->\n````text\n(.*?)^````$", re.MULTILINE | re.DOTALL)
# What is another in each play: what it became, and what stands in its place.
VOLATILE = (
    (r"/\S*/walk\.\w+", "FOLDER"),
    (r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
    (r"\ba-[0-9a-f]{16}\b", "APPROVAL"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b", "HASH"),
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
    """Play the walk once, and return what each part of it printed."""
    return parts_of("walk", tmp_path_factory.mktemp("walk"))


@pytest.mark.shows("GP-53", "N-02")
def test_the_page_shows_what_the_walk_prints(parts: dict[str, str], golden: Golden) -> None:
    """Each part is on the page, in order and word for word but for hashes, times and ids."""
    text = PAGE.read_text("utf-8")
    assert [name for name, _ in BLOCK.findall(text)] == list(parts)
    golden(
        PAGE,
        BLOCK.sub(lambda block: f"<!-- walk: {block[1]} -->\n````text\n{parts[block[1]]}````", text),
        steady,
    )


@pytest.mark.shows("GP-53")
def test_the_walk_ends_each_job_as_the_page_tells(parts: dict[str, str]) -> None:
    """A review passes, what is not approved waits or is rejected, and only what was approved has an effect."""
    codes = {name: re.findall(r"^exit code (\d+)$", text, re.MULTILINE) for name, text in parts.items()}
    assert codes == {
        "main": [],
        "proposal": ["0"],
        "waits": ["5"],
        "cheat": ["0", "5"],
        "approval": [],
        "release": ["0"],
        "again": ["5"],
        "drift": ["5"],
        "rejected": ["3"],
    }
    effects = {name: re.findall(r"^built: .*", text, re.MULTILINE) for name, text in parts.items()}
    nothing = ["built: no, published: no"]
    assert (effects["waits"], effects["cheat"]) == (nothing, nothing)
    assert effects["release"] == ["built: yes, published: yes"]
    assert "approved by release-team" in parts["release"]
    assert "used up" in parts["again"]
    (approved,) = re.findall(r"This approves `([0-9a-f]{12})`", parts["proposal"])
    assert f'"digest": "{approved}' in parts["approval"]
    assert f"it approves {approved}; this plan is " in parts["drift"]
