"""Files that planrun and its workers do not share: the tree, the folders in which steps run, and what comes back."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.actions.files import patterns_of
from planrun.cluster.files import stored
from planrun.cluster.files.contents import Contents
from planrun.cluster.files.entries import named
from planrun.cluster.files.lanes import CannotPlace, Lane, Made
from planrun.cluster.files.moving import NotPlaced, place
from planrun.cluster.files.tree import Tree
from planrun.places.place import open_place
from planrun.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.cluster.files.entries import Entry

EVERYTHING = patterns_of(["**"])


def workspace(folder: Path) -> Path:
    """Make a workspace with modes, links and names of all kinds."""
    folder.mkdir()
    (folder / "src").mkdir()
    (folder / "src" / "a b.py").write_text("one", "utf-8")
    (folder / "run.sh").write_text("#!/bin/sh\n", "utf-8")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("src/a b.py")
    (folder / "ünïcode").write_text("two", "utf-8")
    (folder / "empty").touch()
    return folder


def fetched(contents: Contents, root: Path, entries: Mapping[str, Entry]) -> None:
    """Give a worker what it asks for."""
    paths = {entry[0]: path for path, entry in entries.items()}
    while due := contents.due():
        for digest, _ in due:
            data = (root / paths[digest]).read_bytes()
            contents.take(digest, data, number=contents.number(digest), is_last=True)


def prepared(lane: Lane, contents: Contents, root: Path, tree: Tree) -> None:
    """Bring a lane's files."""
    lane.stale.update(dict.fromkeys(tree.changes()))
    for _ in lane.prepare(tree.entries, {}):
        fetched(contents, root, tree.entries)


def made_in(lane: Lane, *declared: str) -> Made:
    """Return what a step made."""
    wanted = patterns_of(declared)
    *_, made = lane.collect(wanted.takes)
    lane.clear_folders()
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace."""
    return workspace(tmp_path / "ws")


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    """The contents of a worker."""
    return Contents(str(tmp_path / "contents"))


@pytest.fixture
def lane(tmp_path: Path, contents: Contents) -> Lane:
    """A folder for steps."""
    return Lane(str(tmp_path / "lane"), contents)


def shape(folder: Path) -> dict[str, tuple[str, bool]]:
    """Return each file: its text or target, and whether it is a program."""
    return {
        str(path.relative_to(folder)): (
            os.readlink(path) if path.is_symlink() else path.read_text("utf-8"),
            not path.is_symlink() and os.access(path, os.X_OK),
        )
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_a_step_finds_the_files_of_the_workspace(root: Path, contents: Contents, lane: Lane) -> None:
    """Contents, the executable bit, times, and links are those of planrun's workspace."""
    tree = Tree(str(root), ())
    tree.scan()
    prepared(lane, contents, root, tree)
    assert shape(Path(lane.root)) == shape(root)
    assert os.stat(f"{lane.root}/src/a b.py").st_mtime_ns == (root / "src" / "a b.py").stat().st_mtime_ns


def test_what_is_not_declared_reaches_no_other_step(root: Path, contents: Contents, lane: Lane) -> None:
    """It is named, and the folder has the files of the tree again: what was changed, deleted, added and replaced."""
    tree = Tree(str(root), ())
    tree.scan()
    prepared(lane, contents, root, tree)
    there = Path(lane.root)
    (there / "src" / "a b.py").write_text("ONE", "utf-8")  # as long as before
    (there / "link").unlink()
    (there / "empty").unlink()
    (there / "empty").mkdir()
    (there / "empty" / "inner").write_text("x", "utf-8")
    (there / "deep" / "er").mkdir(parents=True)
    (there / "deep" / "er" / "new").touch()
    (there / "dist").mkdir()
    (there / "dist" / "out").write_text("made", "utf-8")
    made = made_in(lane, "dist")
    assert [path for path, _ in made.rows] == ["dist/out"]
    assert sorted(made.undeclared) == ["deep/er/new", "empty", "empty/inner", "link", "src/a b.py"]
    prepared(lane, contents, root, tree)
    assert shape(there) == shape(root)
    assert not (there / "deep").exists()


def test_a_lane_follows_the_tree(root: Path, contents: Contents, lane: Lane) -> None:
    """A changed file is new, a deleted one is gone, and what did not change is not sent again."""
    tree = Tree(str(root), ())
    tree.scan()
    prepared(lane, contents, root, tree)
    made_in(lane)
    (root / "src" / "a b.py").write_text("three", "utf-8")
    (root / "ünïcode").unlink()
    tree.scan()
    lane.stale.update(dict.fromkeys(tree.changes()))
    work = lane.prepare(tree.entries, {})
    assert next(work) is True  # it waits for a content
    assert [size for _, size in contents.due()] == [5]
    contents.take(sha256(b"three").hexdigest(), b"three", number=1, is_last=True)
    assert list(work) == []
    assert shape(Path(lane.root)) == shape(root)


def test_a_file_that_changes_while_it_is_sent_is_refused(root: Path, contents: Contents, lane: Lane) -> None:
    """The step is not started with half of an old and half of a new file, and the file is named."""
    tree = Tree(str(root), ())
    tree.scan()
    (root / "run.sh").write_text("another", "utf-8")
    with pytest.raises(
        CannotPlace, match=r"run\.sh did not arrive on the worker: it changed while it was sent"
    ):
        prepared(lane, contents, root, tree)


def test_pieces_of_an_earlier_request_are_dropped(contents: Contents) -> None:
    """After a failure what is left of the first answer does not get into the second one."""
    digest = sha256(b"onetwo").hexdigest()
    contents.want([(digest, 6)])
    contents.due()
    contents.take(digest, b"one", number=1, is_last=False)
    contents.fail(digest, "the disk is full")
    assert contents.failure(digest)
    contents.want([(digest, 6)])
    contents.due()
    contents.take(digest, b"two", number=1, is_last=True)
    for piece, is_last in ((b"one", False), (b"two", True)):
        contents.take(digest, piece, number=2, is_last=is_last)
    assert contents.has(digest)


def test_products_are_placed_only_where_they_are_declared(tmp_path: Path, root: Path) -> None:
    """A worker names the paths, so they are checked: no other file, nothing above the workspace, nothing by a link."""
    (tmp_path / "arrived").write_text("new", "utf-8")
    (root / "away").symlink_to(tmp_path)
    digest = sha256(b"new").hexdigest()
    entry: Entry = [digest, 3, "program", time.time_ns()]
    for path, declared in (("b", "a"), ("../b", "**"), ("away/b", "**"), ("/b", "**"), ("a/../b", "**")):
        with pytest.raises(NotPlaced, match="does not declare"):
            place(
                str(root), [(path, entry)], {digest: str(tmp_path / "arrived")}, patterns_of([declared]).takes
            )
    rows: list[tuple[str, Entry]] = [
        ("x/one", entry),
        ("x/two", entry),
        ("link", [digest, 3, "link", "x/one"]),
    ]
    place(str(root), rows, {digest: str(tmp_path / "arrived")}, EVERYTHING.takes)
    assert shape(root)["x/one"] == shape(root)["x/two"] == ("new", True)
    assert os.readlink(root / "link") == "x/one"


def test_the_tree_is_what_git_lists(root: Path) -> None:
    """What git ignores is left out, unless a step names it."""
    (root / ".gitignore").write_text("*.log\n", "utf-8")
    (root / "a.log").touch()
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    tree = Tree(str(root), ("reports",))
    tree.scan()
    assert "a.log" not in tree.entries
    assert ".gitignore" in tree.entries
    assert not [path for path in tree.entries if path.startswith(".git/")]
    tree.name(["a.log"])
    tree.scan()
    assert "a.log" in tree.entries


def test_names_in_few_words() -> None:
    """Folders with many files are named once."""
    assert named(["a", *[f"build/{n}" for n in range(9)], "c/d"]) == "a, build/ (9 files), c/d"


def test_a_store_gives_back_what_it_got(tmp_path: Path) -> None:
    """By digest; another content under it, and a file that changed before it was sent, are refused."""
    shared = open_place(str(tmp_path / "store"))
    (tmp_path / "file").write_bytes(b"content")
    digest = sha256(b"content").hexdigest()
    target = str(tmp_path / "fetched")
    assert not stored.fetch(shared, digest, target, 7)
    assert stored.send(shared, digest, str(tmp_path / "file"))
    assert stored.fetch(shared, digest, target, 7)
    assert Path(target).read_bytes() == b"content"
    assert not stored.send(shared, sha256(b"else").hexdigest(), str(tmp_path / "file"))
    shared.write(stored.key_of(digest), b"altered")
    assert not stored.fetch(shared, digest, target, 7)
