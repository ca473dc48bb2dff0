"""`track_files`: changes of a step in the tree are in its record, whether it names the files or not."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
defaults: {track_files: true}
steps:
  - id: first
    produces: [made]
    run: "echo made > made; echo new > new; echo b > old; rm gone; mkdir d; ln -s ../old d/l"
  - {id: proved, depends_on: [first], run: "echo more >> new", verify: "echo x > verified"}
  - {id: failed, depends_on: [proved], on_failure: continue, run: "echo y > left; exit 1"}
  - {id: one, depends_on: [failed], run: "touch one.up; until [ -e two.up ]; do sleep 0.05; done"}
  - {id: two, depends_on: [failed], run: "touch two.up; until [ -e one.up ]; do sleep 0.05; done"}
  - {id: silent, depends_on: [one, two], run: "true"}
  - {id: off, depends_on: [silent], track_files: false, run: "echo z > unseen"}
"""


def sha256(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.shows("GP-57")
def test_what_a_step_changes_is_recorded(tmp_path: Path) -> None:
    """Path, kind of change, hash, the hash before where it is known, and the steps that ran in the same time."""
    for name in ("old", "gone"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    (tmp_path / "plan.yml").write_text(PLAN, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "--jobs", "2"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=LIMIT,
        check=False,
    )
    record = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, dict[str, Any]]] = {
        step["id"]: {row["path"]: row for row in step["attempts"][0].get("files") or ()}
        for step in record["steps"]
    }
    tracked = {name: [path for path, row in rows.items() if "key" in row] for name, rows in found.items()}
    assert tracked["first"] == ["d/l", "gone", "new", "old"]
    first = found["first"]
    assert [first[path]["op"] for path in tracked["first"]] == ["created", "deleted", "created", "changed"]
    assert first["old"]["sha256"] == sha256("b\n")
    assert tracked["proved"] == ["new", "verified"]
    assert found["proved"]["new"]["before"] == sha256("new\n")
    assert found["proved"]["new"]["sha256"] == sha256("new\nmore\n")
    assert tracked["failed"] == ["left"]
    assert "two.up" in tracked["one"] or "one.up" in tracked["two"]
    assert all(row["also"] == ["two"] for row in found["one"].values())
    assert tracked["silent"] == tracked["off"] == []


def test_a_large_tree_is_not_scanned_and_the_record_states_it(tmp_path: Path) -> None:
    """The step runs all the same."""
    for number in range(20_001):
        (tmp_path / f"f{number}").touch()
    plan = 'version: 1\nsteps:\n  - {id: a, track_files: true, run: "true"}\n'
    (tmp_path / "plan.yml").write_text(plan, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=LIMIT,
        check=True,
    )
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    assert "the tree has more than 20,000 files" in ledger.read_text(encoding="utf-8")


@pytest.mark.shows("GP-58")
@pytest.mark.parametrize("kind", ["repository", "worktree"])
def test_branches_and_tags_of_a_step_are_recorded(tmp_path: Path, kind: str) -> None:
    """Created, moved and deleted ones, packed or not, in a repository and in a worktree of one."""
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgSign=false"]
    script = f"""set -e
{" ".join(git)} init -q -b main . && {" ".join(git)} commit -q --allow-empty -m a
git branch old && git tag v1 && git pack-refs --all
"""
    main = tmp_path / "main"
    main.mkdir()
    subprocess.run(["bash", "-c", script], cwd=main, check=True)
    folder = main
    if kind == "worktree":
        folder = tmp_path / "tree"
        subprocess.run(["git", "worktree", "add", "-q", str(folder), "-b", "side"], cwd=main, check=True)
    (folder / "plan.yml").write_text(
        f"""version: 1
steps:
  - id: release
    track_files: true
    run: |
      git branch -D old && git branch release/2 && git tag v2
      {" ".join(git)} commit -q --allow-empty -m b
  - {{id: quiet, depends_on: [release], track_files: true, run: git pack-refs --all}}
""",
        encoding="utf-8",
    )
    subprocess.run([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=folder, check=True)
    record = json.loads((folder / "planrun-out" / "ledger.json").read_text(encoding="utf-8"))
    found = {step["id"]: step["attempts"][0]["resources"] for step in record["steps"]}
    rows = {(row["kind"], row["id"]): row["action"] for row in found["release"]}
    assert rows == {
        ("branch", "main" if kind == "repository" else "side"): "changed",
        ("branch", "old"): "deleted",
        ("branch", "release/2"): "created",
        ("tag", "v2"): "created",
    }
    assert found["quiet"] == []
