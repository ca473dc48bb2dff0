"""The progress that a step reports: the last whole line that is a number counts, whatever else the file holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from planrun.records.history import StepProgress, read_progress

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.42 compiling\n", StepProgress(share=0.42, message="compiling")),
        ("42% compiling it\n", StepProgress(share=0.42, message="compiling it")),
        ("0.1\n0.2\n", StepProgress(share=0.2, message="")),
        ("0.1 a\n0.2 b", StepProgress(share=0.1, message="a")),
        ("0.5 a\nsome words\n", StepProgress(share=0.5, message="a")),
        ("7 is too much\n", StepProgress(share=1.0, message="is too much")),
        ("words\n", None),
        ("-0.5\nnan\n1e5\n\u0665 x\n", None),
        ("", None),
    ],
)
def test_the_last_line_counts(tmp_path: Path, text: str, said: StepProgress | None) -> None:
    """Lines that are no numbers are passed over, and so is one that is still being written."""
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "a.1.progress").write_text(text)
    assert read_progress(str(tmp_path), "a", 1) == said


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe blocks no reader, a link is not followed, and of a long file only the end is read."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    os.mkfifo(folder / "pipe.1.progress")
    (folder / "link.1.progress").symlink_to("/etc/hostname")
    (folder / "long.1.progress").write_text("0.1 x\n" * 100_000 + "0.9 end\n")
    (folder / "bytes.1.progress").write_bytes(b"\xff\xfe\n0.3 \xff\n")
    assert read_progress(str(tmp_path), "pipe", 1) is None
    assert read_progress(str(tmp_path), "link", 1) is None
    assert read_progress(str(tmp_path), "missing", 1) is None
    assert read_progress(str(tmp_path), "long", 1) == StepProgress(share=0.9, message="end")
    assert read_progress(str(tmp_path), "bytes", 1) == StepProgress(share=0.3, message="\ufffd")
