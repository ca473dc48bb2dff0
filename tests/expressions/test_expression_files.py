"""hash_files: the same bytes give the same digest, and nothing outside of the root is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.expressions.parse import parse
from planrun.expressions.tree import ROOT_KEY

if TYPE_CHECKING:
    from pathlib import Path


def digest(root: Path, arguments: str) -> str:
    """Return what `hash_files(arguments)` says about a folder."""
    found = evaluate(parse(f"hash_files({arguments})"), {ROOT_KEY: str(root)})
    assert isinstance(found, str)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with some files."""
    root = tmp_path / "root"
    for name in (
        "a.txt",
        "b.lock",
        "src/x.py",
        "src/deep/y.py",
        "src/deep/er/z.py",
        ".git/x.py",
        ".hidden.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_same_files_same_digest(tree: Path) -> None:
    """The digest is a function of names and contents; order and repetition of globs do not matter."""
    assert digest(tree, "'a.txt', '*.lock'") == digest(
        tree, "'./*.lock', '[b]'".replace("'[b]'", "'?.txt', 'a.*'")
    )
    before = digest(tree, "'**/*.py'")
    assert len(before) == 64
    (tree / "src" / "x.py").rename(tree / "src" / "w.py")
    renamed = digest(tree, "'**/*.py'")
    (tree / "src" / "w.py").write_text("other")
    assert len({before, renamed, digest(tree, "'**/*.py'")}) == 3


def test_globs_reach_what_they_say(tree: Path) -> None:
    """`*` stays in a folder, `**` crosses folders, `.git` is read only when it is named."""
    below = "'src/x.py', 'src/deep/y.py', 'src/deep/er/z.py'"
    assert digest(tree, "'src/**'") == digest(tree, "'src/**/*.py'") == digest(tree, below)
    assert digest(tree, "'src/*'") == digest(tree, "'src/x.py'")
    assert digest(tree, "'**/deep/**/*.py'") == digest(tree, "'src/deep/y.py', 'src/deep/er/z.py'")
    assert digest(tree, "'**/*.py'") == digest(tree, f"'.hidden.py', {below}")
    assert digest(tree, "'.git/*.py'") == digest(tree, "'.git/x.py'") != digest(tree, "'src/x.py'")


def test_no_file_is_absent(tree: Path) -> None:
    """A glob without a match has no digest, which `default` may replace."""
    with pytest.raises(AbsentError, match=r"no file matches \*\.none"):
        digest(tree, "'*.none', 'src'")
    assert evaluate(parse("hash_files('x') | default('')"), {ROOT_KEY: str(tree)}) == ""


@pytest.mark.parametrize(
    "pattern", ["/etc/passwd", "../x", "src/../../x", "a/..", "[ab].txt", "{a,b}", "", ".", "/"]
)
def test_what_is_no_glob_of_ours(tree: Path, pattern: str) -> None:
    """A glob that leads out of the root, or that other tools read in another way, is refused."""
    with pytest.raises(EvaluationError) as caught:
        digest(tree, repr(pattern))
    assert not isinstance(caught.value, AbsentError)


def test_links_do_not_lead_out(tree: Path, tmp_path: Path) -> None:
    """A link to a file inside is read, one that leads outside is an error, and linked folders are not entered."""
    (tmp_path / "secret.py").write_text("secret")
    (tree / "loop").symlink_to(tree)
    assert digest(tree, "'**/z.py'") == digest(tree, "'src/deep/er/z.py'")
    (tree / "inside.md").symlink_to(tree / "a.txt")
    assert digest(tree, "'inside.md'")
    (tree / "outside.md").symlink_to(tmp_path / "secret.py")
    (tree / "folder").symlink_to(tmp_path)
    for pattern in ("outside.md", "*.md", "folder/secret.py", "folder/*.py"):
        with pytest.raises(EvaluationError, match="outside of the workspace"):
            digest(tree, repr(pattern))


def test_only_regular_files(tree: Path) -> None:
    """A pipe is no file to wait for."""
    os.mkfifo(tree / "pipe")
    with pytest.raises(AbsentError):
        digest(tree, "'pipe', 'pip?'")


def test_many_stars_take_little_time(tree: Path) -> None:
    """A glob cannot be made so that matching it explodes."""
    (tree / ("a" * 200)).write_text("x")
    with pytest.raises(AbsentError):
        digest(tree, "'" + "*a" * 100 + "b', '" + "**/" * 60 + "none'")
