"""Report files appear whole or not at all, and what cannot be written is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from planrun.errors import InvalidInput, RecordsLost
from planrun.reports.write import FORMATS, place, render, write_reports
from tests.reports.runs import HEAD, mixed_run


def test_files_are_what_render_gives(tmp_path: Path) -> None:
    """The three files hold the same bytes as `planrun report`, and replace those of an earlier run."""
    state, out = mixed_run(tmp_path), tmp_path / "out" / "deep"
    write_reports(state, str(tmp_path), str(out), head="0" * 64)
    paths, lost = write_reports(state, str(tmp_path), str(out), head=HEAD, dialect="surefire")
    assert lost is None
    assert paths == {
        "junit": str(out / "junit.xml"),
        "markdown": str(out / "report.md"),
        "json": str(out / "ledger.json"),
    }
    for form, path in paths.items():
        data = render(state, str(tmp_path), form, head=HEAD, dialect="surefire")
        assert Path(path).read_bytes() == data
    assert sorted(os.listdir(out)) == [".gitignore", "junit.xml", "ledger.json", "report.md"]


def test_a_report_folder_that_was_there_gets_no_gitignore(tmp_path: Path) -> None:
    """It is the caller's, and may be committed on purpose."""
    state = mixed_run(tmp_path)
    (tmp_path / "mine").mkdir()
    write_reports(state, str(tmp_path), str(tmp_path / "mine"))
    assert not (tmp_path / "mine" / ".gitignore").exists()


def test_reports_can_be_rebuilt(tmp_path: Path) -> None:
    """The same state and logs give the same bytes."""
    state = mixed_run(tmp_path)
    for form in FORMATS:
        assert render(state, str(tmp_path), form) == render(mixed_run(tmp_path), str(tmp_path), form)


def test_a_report_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder in its place is exit 74 with the file's name; the other reports are there all the same."""
    out = tmp_path / "out"
    (out / "junit.xml").mkdir(parents=True)
    paths, lost = write_reports(mixed_run(tmp_path), str(tmp_path), str(out))
    assert lost is not None
    assert "/junit.xml: " in str(lost)
    assert lost.exit_code == 74
    assert sorted(paths) == ["json", "markdown"]
    assert sorted(os.listdir(out)) == ["junit.xml", "ledger.json", "report.md"]


def test_no_folder_no_reports(tmp_path: Path) -> None:
    """A file where the folder should be is named."""
    (tmp_path / "out").write_text("")
    paths, lost = write_reports(mixed_run(tmp_path), str(tmp_path), str(tmp_path / "out"))
    assert paths == {}
    assert f"report folder {tmp_path / 'out'}" in str(lost)


def test_no_half_file_is_left(tmp_path: Path) -> None:
    """When writing stops in the middle the old file stays and nothing else is left."""
    target = tmp_path / "x.json"
    target.write_text("old")

    def broken(out: BinaryIO) -> None:
        out.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RecordsLost, match=r"x\.json: No space left on device"):
        place(str(target), broken)
    assert os.listdir(tmp_path) == ["x.json"]
    assert target.read_text() == "old"


def test_the_old_report_is_there_until_the_new_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed before the new file takes its place, so a kill at any moment leaves one of them."""
    target, rename, seen = tmp_path / "x", os.rename, []
    target.write_text("old")

    def watched(part: str, path: str) -> None:
        seen.append((target.read_text(), Path(part).read_text()))
        rename(part, path)

    monkeypatch.setattr(os, "rename", watched)

    def new(out: BinaryIO) -> None:
        out.write(b"new")

    place(str(target), new)
    assert (seen, target.read_text()) == ([("old", "new")], "new")


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link planted in place of a report is replaced; what it names is not touched."""
    (tmp_path / "precious").write_text("keep")
    (tmp_path / ".x.part").symlink_to(tmp_path / "precious")
    (tmp_path / "x").symlink_to(tmp_path / "precious")
    place(str(tmp_path / "x"), lambda out: out.writelines([b"new"]))
    assert (tmp_path / "precious").read_text() == "keep"
    assert (tmp_path / "x").read_text() == "new"
    assert not (tmp_path / "x").is_symlink()


@pytest.mark.parametrize(("form", "dialect"), [("pdf", "default"), ("junit", "nunit")])
def test_unknown_words_are_usage_errors(form: str, dialect: str, tmp_path: Path) -> None:
    """An unknown format or dialect is exit 2 and lists the known ones."""
    with pytest.raises(InvalidInput, match="known: "):
        render(mixed_run(tmp_path), str(tmp_path), form, dialect=dialect)
