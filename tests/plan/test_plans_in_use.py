"""Files that a plan uses: found inside its root alone, read once, and part of all that is bound to the plan."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from planrun.errors import InvalidPlan
from planrun.model.plan import Group
from planrun.plan import load as loading
from planrun.plan.includes import MAX_DEPTH
from planrun.plan.load import check_bytes, load, load_bytes
from planrun.plan.readers import NotIncluded, copies
from planrun.plan.yaml.file import read_source

SUB = "version: 1\nsteps: [{id: x, run: echo one}]\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of its own, with a cache of its own."""
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))


def write(path: str, text: str) -> str:
    """Write a file and the folders on its way."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return path


def using(*files: str) -> str:
    """Return a plan that uses files."""
    steps = "".join([f"  - {{id: s{at}, uses: '{file}'}}\n" for at, file in enumerate(files)])
    return f"version: 1\nsteps:\n{steps}"


def refused(text: str, file: str = "plan.yml") -> list[str]:
    """Return what is wrong with a plan, each finding with its file."""
    write(file, text)
    return [f"{each.file}: {each.code} {each.text}" for each in check_bytes(text.encode(), file).problems]


def test_a_changed_file_is_another_plan_also_for_the_cache() -> None:
    """The entry of the cache counts as long as every included file has the bytes that it was made from."""
    write("sub.yml", SUB)
    write("plan.yml", using("sub.yml"))
    first = load("plan.yml")
    assert load("plan.yml").digest == first.digest
    write("sub.yml", SUB.replace("one", "two"))
    second = load("plan.yml")
    assert second.digest != first.digest
    assert second.files["sub.yml"] != first.files["sub.yml"]
    assert load("plan.yml").digest == second.digest


def test_a_cached_plan_compiles_nothing_and_reads_its_files_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an entry is made of is compared by hash; only another hash has anything compiled."""
    write("sub.yml", SUB)
    write("plan.yml", using("sub.yml", "sub.yml"))
    plan = load("plan.yml")

    def never(*_words: object) -> None:
        raise AssertionError("it was compiled")

    monkeypatch.setattr(loading, "_compile", never)
    again = load("plan.yml")
    assert (again.digest, again.files) == (plan.digest, {"sub.yml": SUB.encode()})


def test_a_file_is_read_once_however_often_it_is_used() -> None:
    """Two steps that use a file get the same bytes, although it is replaced in between."""
    read: list[str] = []

    def reader(path: str) -> bytes:
        read.append(path)
        return SUB.replace("one", f"number {len(read)}").encode()

    plan = load_bytes(using("a.yml", "./a.yml").encode(), "plan.yml", cache=False, read=reader)
    assert read == ["a.yml"]
    assert plan.files == {"a.yml": SUB.replace("one", "number 1").encode()}
    assert plan.steps[1].action == plan.steps[3].action


def test_copies_are_all_there_is() -> None:
    """A plan that is loaded from copies opens no file."""
    write("sub.yml", SUB)
    with pytest.raises(InvalidPlan) as error:
        load_bytes(using("sub.yml").encode(), "plan.yml", read=copies({}))
    assert "not in the recorded files" in error.value.problems[0].message
    with pytest.raises(NotIncluded):
        copies({})("sub.yml")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../secret.yml", "is outside the working directory"),
        ("sub/../../secret.yml", "is outside the working directory"),
        ("link.yml", "a symbolic link leads outside the working directory"),
        ("folder/secret.yml", "a symbolic link leads outside the working directory"),
        ("/etc/hostname", "not a path inside"),
        ("~/plan.yml", "not a path inside"),
        ("git@example.org:x/y.yml", "nothing is downloaded"),
        ("dangling.yml", "no such file"),
        ("loop.yml", ""),
        ("pipe.yml", "got a pipe"),
        ("sub", "got a directory"),
        ("sub/", "not a file path"),
        ("a\\tb.yml", "no such file"),
    ],
)
def test_nothing_outside_of_the_root_is_opened(path: str, said: str) -> None:
    """Paths out by dots, by links of files and folders, and non-files are reported where they are written."""
    write("../secret.yml", SUB)
    write("sub/ok.yml", SUB)
    os.symlink("../secret.yml", "link.yml")
    os.symlink("..", "folder")
    os.symlink("nowhere.yml", "dangling.yml")
    os.symlink("loop.yml", "loop.yml")
    os.mkfifo("pipe.yml")
    found = refused(using(path))
    assert len(found) == 1
    assert found[0].startswith("plan.yml: E290")
    assert said in found[0]


def test_the_root_is_the_folder_that_planrun_runs_in_or_the_plans_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan below the working folder may use its neighbours; from elsewhere, only what lies beside and below it."""
    write("lib/sub.yml", SUB)
    write("plans/plan.yml", using("../lib/sub.yml"))
    assert load("plans/plan.yml").steps[1].file == "../lib/sub.yml"
    monkeypatch.chdir("plans")
    with pytest.raises(InvalidPlan) as error:
        load("plan.yml")
    assert "outside the working directory" in error.value.problems[0].message


def test_links_inside_the_root_are_files_like_others() -> None:
    """A link to a file inside is read; a circle through a link is one all the same."""
    write("real/sub.yml", SUB)
    os.symlink("real/sub.yml", "sub.yml")
    write("plan.yml", using("sub.yml"))
    assert load("plan.yml").steps[1].id == "s0/x"
    os.symlink("circle.yml", "other.yml")
    assert "other.yml → other.yml" in refused(using("other.yml"), "circle.yml")[0]


def test_depth_and_numbers_are_bounded() -> None:
    """Sixteen plans may be nested; fan-out through many levels is counted, not built."""
    for at in range(1, MAX_DEPTH):
        write(f"d{at}.yml", using(f"d{at + 1}.yml") if at < MAX_DEPTH - 1 else SUB)
    assert refused(using("d1.yml")) == []
    assert any("nested more than 16 levels" in each for each in refused(using("plan.yml"), "top.yml"))
    for at in range(15):
        write(f"bomb{at}.yml", using(*[f"bomb{at + 1}.yml"] * 8) if at < 14 else SUB)
    found = refused(using("bomb0.yml"))
    assert any("E240" in each and "10,000" in each for each in found)


def test_what_stands_in_no_file_of_its_own_does_not_change_the_digest() -> None:
    """Comments, the name of the file and its folder are no part of what a plan means."""
    write("sub.yml", SUB)
    write("plan.yml", using("sub.yml"))
    digest = load("plan.yml").digest
    write("sub.yml", f"# a comment\n{SUB}")
    assert load("plan.yml").digest == digest
    shutil.move("sub.yml", "other.yml")
    write("plan.yml", using("other.yml"))
    assert load("plan.yml").digest == digest


def test_members_know_their_file_and_what_they_wait_for() -> None:
    """Ids, edges, handlers and cleanup get the name of the step in front; sections are those of the step."""
    sub = (
        "version: 1\nsteps:\n  - {id: a, run: x}\n  - {id: b, run: x, recovers: [a]}\n"
        "  - {id: c, depends_on: [a], uses: inner.yml}\nfinally:\n  - {id: d, run: x}\n"
    )
    write("lib/sub.yml", sub)
    write("lib/inner.yml", SUB)
    write("plan.yml", "version: 1\nsteps: [{id: z, run: x}]\nfinally: [{id: s, uses: lib/sub.yml}]\n")
    plan = load("plan.yml", cache=False)
    steps = {step.id: step for step in plan.steps}
    assert list(steps) == ["z", "s", "s/a", "s/b", "s/c", "s/c/x", "s/d"]
    action = steps["s"].action
    assert isinstance(action, Group)
    assert action.members == ("s/a", "s/b", "s/c", "s/d")
    assert {step.section for step in plan.steps[1:]} == {"finally"}
    assert steps["s/b"].recovers == ("s/a",)
    assert [(edge.on, edge.kind) for edge in steps["s/d"].edges] == [
        ("s", "open"), ("s/a", "done"), ("s/b", "done"), ("s/c", "done"),
    ]  # fmt: skip
    assert (steps["s/c/x"].group, steps["s/c/x"].file, steps["s/c/x"].line) == ("s/c", "lib/inner.yml", 2)
    assert plan.file_of(steps["s/c/x"]) == "lib/inner.yml"


def test_instances_of_a_plan_in_use_are_refused() -> None:
    """A matrix is never silently left out."""
    write("sub.yml", SUB)
    found = refused("version: 1\nsteps: [{id: s, uses: sub.yml, matrix: {v: [a, b]}}]\n")
    assert [each for each in found if "E284" in each]


@pytest.mark.parametrize("key", ["lock: db", "rollback: {run: echo back}", "retries: 2", "env: {A: b}"])
def test_what_belongs_to_a_process_is_refused(key: str) -> None:
    """A key that would do nothing for a plan in use is an error, and never ignored."""
    write("sub.yml", SUB)
    found = refused(f"version: 1\nsteps: [{{id: s, uses: sub.yml, {key}}}]\n")
    assert [each for each in found if "E292" in each]


def test_the_environment_around_counts_for_the_risk_inside() -> None:
    """What the plan around sets decides about the commands of the plan in use, too."""
    write("sub.yml", "version: 1\nsteps: [{id: x, run: git status}]\n")
    quiet = using("sub.yml")
    write("plan.yml", quiet)
    before = load("plan.yml").steps[1]
    write("plan.yml", quiet.replace("steps:", "env: {GIT_SSH_COMMAND: ./steal}\nsteps:"))
    assert (before.risk, load("plan.yml").steps[1].risk) == ("read-only", "high")


def test_a_file_that_is_swapped_while_it_is_looked_for_is_not_followed_out() -> None:
    """The opened file is the checked one: its real path, not the link in its place."""
    write("../secret.yml", "version: 1\nsteps: [{id: leaked, run: x}]\n")
    write("sub.yml", SUB)
    os.symlink("sub.yml", "link.yml")
    write("plan.yml", using("link.yml"))
    assert load("plan.yml", cache=False).steps[1].id == "s0/x"
    os.unlink("link.yml")
    os.symlink("../secret.yml", "link.yml")
    with pytest.raises(InvalidPlan):
        load("plan.yml", cache=False)
    with pytest.raises(InvalidPlan):
        load("plan.yml")
    assert read_source("../secret.yml")
