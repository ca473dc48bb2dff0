"""The meaning of git's configuration files, compared with git itself."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planrun.actions import gitconfig
from planrun.actions.gitconfig import GitFiles, Unsure, effective, gitlinks

if TYPE_CHECKING:
    from pathlib import Path

PIECES = st.sampled_from(
    [
        *(
            b"[core]",
            b'[diff "a"]',
            b"[a.b]",
            b"[",
            b"]",
            b'"',
            b"\\",
            b"\n",
            b"\r\n",
            b"\r",
            b" ",
            b"\t",
            b"#",
            b";",
        ),
        *(
            b"=",
            b"x",
            b"Key",
            b"1",
            b"-",
            b"\\n",
            b'\\"',
            b"\\t",
            b"\\\n",
            b"\xef\xbb\xbf",
            b"\xc3\xa4",
            b".",
            b"\x0b",
        ),
        *(b'[diff "a]\\"b"]', b"textconv = foo bar", b"[Include]\npath=a", b"\x01", b'""'),
    ]
)
SIZE = gitconfig.MAX_CONFIG // 4
TEXTS = st.builds(
    lambda head, pieces: head + b"".join(pieces),
    st.sampled_from([b"", b"[core]\n"]),
    st.lists(PIECES, max_size=14),
)


def read_by_git(path: Path) -> list[tuple[bytes, bytes | None]] | None:
    """What git reads in a file; None when it refuses it."""
    words = ["git", "config", "--file", str(path), "-z", "--list"]
    process = subprocess.run(words, capture_output=True, check=False)
    if process.returncode:
        return None
    entries = [entry.partition(b"\n") for entry in process.stdout.split(b"\0")[:-1]]
    return [(name, blanks(value) if equals else None) for name, equals, value in entries]


def blanks(value: bytes) -> bytes:
    """Return white space as blanks: versions of git keep it differently."""
    return value.replace(b"\t", b" ").replace(b"\r", b" ")


def read_by_us(data: bytes) -> list[tuple[bytes, bytes | None]] | None:
    """The same as planrun reads it."""
    try:
        found = gitconfig.settings(data)
    except ValueError:
        return None
    return [
        (os.fsencode(name), None if value is None else blanks(os.fsencode(value))) for name, value in found
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=TEXTS)
def test_git_and_planrun_read_a_file_alike(data: bytes, tmp_path: Path) -> None:
    """Both read the same names and values, or both refuse the file."""
    path = tmp_path / "config"
    path.write_bytes(data)
    assert read_by_us(data) == read_by_git(path)


def test_reading_takes_time_in_proportion() -> None:
    """A large file is read, whatever it is full of."""
    for piece in (b"[a]\n", b'"', b"k=\\\n", b"[a]k=  x  y", b"#", b"[core]\nk = " + b"\\t" * 1000 + b"\n"):
        began = time.process_time()
        read_by_us((b"[core]\n" + piece * (SIZE // len(piece)))[:SIZE])
        assert time.process_time() - began < 60  # quadratic would be hours


SMELLS = (
    *(
        "command",
        "cmd",
        "program",
        "hook",
        "editor",
        "pager",
        "driver",
        "external",
        "textconv",
        "monitor",
        "process",
    ),
    *("smudge", "clean", "askpass", "proxy", "helper"),
)
HARMLESS = frozenset(
    (
        *(
            "clean.requireforce",
            "column.clean",
            "diff.<driver>.cachetextconv",
            "color.pager",
            "gitcvs.dbdriver",
        ),
        *("advice.ignoredhook", "advice.waitingforeditor"),
        *(
            "credential.helper",
            "http.proxy",
            "remote.<name>.proxy",
        ),  # only a connection to elsewhere runs them
        "pager.<cmd>",  # weaker than the variable that is set
    )
)


def test_keys_of_git_that_sound_like_programs_are_all_decided_about() -> None:
    """Of the keys that this git knows none that smells of a program is unknown to planrun."""
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout
    keys = [key.lower() for key in listed.split() if "." in key]
    doubtful = {key for key in keys if key.rpartition(".")[2].endswith(SMELLS)} - gitconfig._OFF - HARMLESS
    assert [key for key in sorted(doubtful) if not gitconfig.runs_program(key, "x")] == []


def repository(folder: Path) -> Path:
    """Make a repository with a commit."""
    subprocess.run(["git", "init", "-q", "--template=", folder], check=True)
    (folder / "a").write_text("x")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    """Commit all there is."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", folder, "add", "."], check=True, capture_output=True)
    subprocess.run(["git", "-C", folder, *identity, "commit", "-qm", "x"], check=True)


def names(folder: Path, files: GitFiles | None = None) -> list[str]:
    """Return the names of all settings that count in a folder."""
    found = effective(files or GitFiles(), str(folder.resolve()), [], "/nowhere")
    return [setting.name for setting in found]


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_repositories_inside_are_found_in_every_kind_of_index(
    version: str, form: str, tmp_path: Path
) -> None:
    """Gitlinks are found among many names, short and longer than 4,095 bytes, with either hash."""
    top = tmp_path / "top"
    subprocess.run(["git", "init", "-q", f"--object-format={form}", top], check=True)
    for n in range(300):
        (top / f"file-{n:03}").write_text("x")
    for name in ("inner", "zz/deep"):
        inner = top / name
        subprocess.run(["git", "init", "-q", f"--object-format={form}", inner], check=True)
        (inner / "a").write_text("x")
        commit(inner)
    subprocess.run(["git", "-C", top, "add", "."], check=True, capture_output=True)
    subprocess.run(["git", "-C", top, "update-index", "--index-version", version], check=True)
    if version == "3":
        subprocess.run(["git", "-C", top, "update-index", "--skip-worktree", "file-007"], check=True)
    assert gitlinks((top / ".git/index").read_bytes()) == ["inner", "zz/deep"]


def test_an_index_that_is_shared_is_read(tmp_path: Path) -> None:
    """With a split index the entries stand in another file."""
    top = repository(tmp_path / "top")
    repository(top / "inner")
    subprocess.run(["git", "-C", top, "add", "."], check=True, capture_output=True)
    subprocess.run(["git", "-C", top, "update-index", "--split-index"], check=True)
    subprocess.run(["git", "-C", top / "inner", "config", "filter.odd.clean", "x"], check=True)
    assert "filter.odd.clean" in names(top)


def test_what_looks_like_a_repository_does_not_hide_the_real_one(tmp_path: Path) -> None:
    """Git searches the parent folder next, and so does planrun."""
    top = repository(tmp_path / "top")
    subprocess.run(["git", "-C", top, "config", "filter.odd.clean", "x"], check=True)
    (top / "sub/.git/objects").mkdir(parents=True)
    (top / "sub/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert "filter.odd.clean" in names(top / "sub")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """What was read counts only as long as the file is the same."""
    top, files = repository(tmp_path / "top"), GitFiles()
    assert "filter.odd.clean" not in names(top, files)
    subprocess.run(["git", "-C", top, "config", "filter.odd.clean", "x"], check=True)
    assert "filter.odd.clean" in names(top, files)


def test_includes_end(tmp_path: Path) -> None:
    """Files that include each other, and an unusual number of files, end the search."""
    top = repository(tmp_path / "top")
    config = top / ".git/config"
    config.write_text(config.read_text() + "[include]\npath = config\npath = config\n")
    with pytest.raises(Unsure):
        names(top)


@pytest.mark.parametrize(
    "text", ['[include]\npath = "a\\tb"\n', "[include]\npath = %(prefix)/x\n", "no\n[", "\0"]
)
def test_an_undecidable_case_is_reported(text: str, tmp_path: Path) -> None:
    """A file that git refuses, or that versions of git read differently, is no quiet one."""
    top = repository(tmp_path / "top")
    (top / ".git/config").write_text(text)
    with pytest.raises(Unsure):
        names(top)
