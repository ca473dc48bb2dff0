"""Plans that a model wrote are written again from a recording, byte for byte, wherever that is."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from proofs.tapes import PLAN, planrun, record, replay
from tests.fakes.messages import FakeMessages, draft, say, step

if TYPE_CHECKING:
    from pathlib import Path

GOAL = "Test what there is."
STEPS = [step("lint", "make lint"), step("test", "make test", depends_on=["lint"])]
FILES = {
    "README.md": "# Shop\n\nA shop in 2026.\n",
    "Makefile": "lint:\n\ttrue\ntest:\n\ttrue\n",
    "src/a.py": "print(1)\n",
}


def project(folder: Path, *, in_git: bool) -> Path:
    """Make a small project."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if in_git:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.parametrize("in_git", [False, True])
def test_a_generated_plan_is_written_again(tmp_path: Path, in_git: bool) -> None:  # noqa: FBT001
    """The same goal in the same project gets the same file, without key and network."""
    first = project(tmp_path / "first", in_git=in_git)
    words = ("generate", GOAL, "--llm-model", "model-a", "-o", "plan.yml")
    with FakeMessages([say("No."), draft(STEPS)]) as api:
        done = planrun(first, *words, "--llm-record", "tapes", **api.env)
    assert done.returncode == 0, done.stderr
    written = (first / "plan.yml").read_bytes()
    for name in ("second", "third, with a longer name"):
        again = project(tmp_path / name, in_git=in_git)
        shutil.copytree(first / "tapes", again / "tapes")
        done = planrun(again, *words, "--llm-replay", "tapes")
        assert done.returncode == 0, done.stderr
        assert (again / "plan.yml").read_bytes() == written
        assert (again / "watched").read_text("utf-8") == ""
        (again / "watched").unlink()


ABSTRACT = """\
version: 1
name: shop
goal: The shop is packed.
llm: {model: model-a}
steps:
  - id: build   # as ever
    title: Build the shop
  - id: pack
    depends_on: [build]
    run: echo pack >> ran
"""
PIECES = draft([step("build", "echo build >> ran", title="Build the shop")])


@pytest.mark.parametrize(
    "words", [("expand", "plan.yml", "-o", "out.yml"), ("execute", "plan.yml", "--expand")]
)
def test_steps_are_made_concrete_again(words: tuple[str, ...], tmp_path: Path) -> None:
    """What `expand` writes, and the version that `execute --expand` runs, is the same from a recording."""
    written: list[list[bytes]] = []
    for name in ("first", "second", "third, with a longer name"):
        folder = project(tmp_path / name, in_git=False)
        (folder / "plan.yml").write_text(ABSTRACT, "utf-8")
        if written:
            shutil.copytree(tmp_path / "first" / "tapes", folder / "tapes")
            done = planrun(folder, *words, "--llm-replay", "tapes")
            assert (folder / "watched").read_text("utf-8") == ""
        else:
            with FakeMessages([say("No."), PIECES]) as api:
                done = planrun(folder, *words, "--llm-record", "tapes", **api.env)
        assert done.returncode == 0, done.stderr
        found = [*folder.glob("out.yml"), *folder.glob(".planrun/runs/*/plan.v2.yml")]
        written.append([path.read_bytes() for path in found])
    assert len(written[0]) == 1
    assert written[0] == written[1] == written[2]


def test_a_run_is_exported_with_its_plan_use_and_progress(tmp_path: Path) -> None:
    """`report --format json` holds the plan, what models used of which limits, and how many steps came to what."""
    record("mended at once", tmp_path / "recorded")
    replay(tmp_path / "recorded" / "tapes", tmp_path / "again")
    done = planrun(tmp_path / "again", "report", "last", "--format", "json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["plan"]["name"], told["plan"]["version"]) == ("shop", 2)
    assert told["usage"]["input_tokens"] + told["usage"]["cache_write_tokens"] > 0
    assert [call["replayed"] for call in told["llm"]["calls"]] == [True]
    assert {"total", "completed", "failed"} <= set(told["summary"])
    assert len(told["steps"]) == told["summary"]["total"]


def test_another_goal_is_missing(tmp_path: Path) -> None:
    """A goal, or a project, that nobody recorded ends with 1 and the difference; nothing is written or asked."""
    first = project(tmp_path / "first", in_git=False)
    words = ("--llm-model", "model-a", "-o", "plan.yml")
    with FakeMessages([draft(STEPS)]) as api:
        done = planrun(first, "generate", GOAL, *words, "--llm-record", "tapes", **api.env)
    assert done.returncode == 0, done.stderr
    second = project(tmp_path / "second", in_git=False)
    shutil.copytree(first / "tapes", second / "tapes")
    for goal, change in (("Test it all.", ""), (GOAL, "README.md")):
        if change:
            (second / change).write_text("# Another\n", "utf-8")
        done = planrun(second, "generate", goal, *words, "--llm-replay", "tapes")
        assert done.returncode == 1
        assert (
            "the recording has no answer to this generate request; the nearest is tapes/0001-" in done.stderr
        )
        assert not (second / "plan.yml").exists()
        assert (second / "watched").read_text("utf-8") == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--llm-replay", "none"), 2, "cannot read the recording in none: No such file"),
        (("--llm-replay", "a", "--llm-record", "b"), 2, "exclude each other"),
        (("--llm-record", "plan.yml"), 74, "the recording cannot be written to plan.yml"),
    ],
)
def test_a_recording_that_cannot_be_used_is_told_before_anything_runs(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    """Nothing starts, and there is no run, when a replay could not be, or a recording could not be kept."""
    (tmp_path / "plan.yml").write_text(PLAN, "utf-8")
    with FakeMessages([]) as api:
        done = planrun(tmp_path, "execute", "plan.yml", *words, **api.env)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "ran").exists()
    assert not list(tmp_path.glob(".planrun/runs/*"))
