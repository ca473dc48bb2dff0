"""Folders of the machine are believed as long as they stay what they were."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from planrun.actions.trust import Ground

if TYPE_CHECKING:
    from pathlib import Path


def test_each_look_sees_who_can_write_a_folder_now(tmp_path: Path) -> None:
    """An earlier result is invalid while others can write there, and valid again afterwards."""
    folder, workspace = tmp_path / "tools" / "bin", str(tmp_path / "work")
    folder.mkdir(parents=True)
    assert Ground(workspace).blot(str(folder)) == ""
    folder.parent.chmod(0o777)
    assert "exchange" in Ground(workspace).blot(str(folder))
    folder.parent.chmod(0o755)
    folder.chmod(0o777)
    assert "write" in Ground(workspace).blot(str(folder))
    folder.chmod(0o755)
    assert Ground(workspace).blot(str(folder)) == ""


def test_each_look_sees_where_a_folder_leads_now(tmp_path: Path) -> None:
    """A folder on the way that became a link into the workspace is seen, and so is one that is there only now."""
    folder, work = tmp_path / "tools" / "bin", tmp_path / "work"
    assert Ground(str(work)).blot(str(folder)) == ""
    folder.mkdir(parents=True)
    assert Ground(str(work)).blot(str(folder)) == ""
    (work / "bin").mkdir(parents=True)
    folder.parent.rename(tmp_path / "before")
    folder.parent.symlink_to(work)
    assert Ground(str(work)).blot(str(folder)) == "in the workspace"


def test_a_path_without_links_equals_realpath(tmp_path: Path) -> None:
    """Links, points, doubled slashes and what is not there lead where realpath says; so do links in a circle."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "up").symlink_to("../link")
    (tmp_path / "circle").symlink_to("circle")
    ground = Ground(str(tmp_path))
    for path in (
        "a/b",
        "link/x",
        "a/up/../b",
        "a//up/",
        "./a/./up",
        "gone/x",
        "circle/x",
        "a/up/" + "d/" * 99,
    ):
        whole = f"{tmp_path}/{path}"
        assert ground.real(whole) == os.path.realpath(whole)
