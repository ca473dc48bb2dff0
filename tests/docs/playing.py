"""Pages that are played: the files that they show are written into a fresh folder, their commands are run there.

A page of this kind carries marks, which no reader sees:

    <!-- file: plan.yml -->      the block below is this file, from here on
    <!-- more: plan.yml -->      the block below is added to its end
    <!-- session -->             each line of the block below that begins with `$ ` is run; what it printed follows it

What a command prints is both of its streams, and its exit code where that is not 0. It sees nothing of whoever runs
the tests: no settings of git, no variables of planrun or of a CI system. Times, ids and hashes are another in each play
and are not compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.conftest import LIMIT
from tests.docs.pages import DOCS

MARKED = re.compile(
    r"^<!-- (?P<what>file|more|session)(?:: (?P<name>\S+))? -->\n(?P<fence>`{3,})\w*\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
KEPT = re.compile(r"PATH|TMPDIR|LANG|PYTHON.*")
DATE = "2026-01-31T09:30:00Z"
CALLER = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Dev",
    "GIT_AUTHOR_EMAIL": "dev@localhost",
    "GIT_COMMITTER_NAME": "Dev",
    "GIT_COMMITTER_EMAIL": "dev@localhost",
    "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_DATE": DATE,
    "PLANRUN_JOBS": "2",  # else it is the number of processors
    "LC_ALL": "C.UTF-8",
}
# What is another in each play: what it became, and what stands in its place.
VOLATILE = (
    (r"\b\d{8}-\d{6}-[0-9a-f]{6}\b", "RUN"),
    (r"\ba-[0-9a-f]{16}\b", "APPROVAL"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|\b[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{7}\b", "HASH"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?", "TIME"),
    (r"(?<![\d.])\d+(\.\d+)?(s|ms)\b", "SECONDS"),
    (r" +SECONDS\b", " SECONDS"),
)


class Play(NamedTuple):
    """What became of a page: its text as it should be."""

    text: str
    sessions: int


def steady(text: str) -> str:
    """Return what a page shows without what is another in each play."""
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text)
    return text


def played() -> list[Path]:
    """Return the pages that have something to play."""
    return [page for page in sorted(DOCS.rglob("*.md")) if "\n<!-- session -->\n" in page.read_text("utf-8")]


def play(text: str, folder: Path) -> Play:
    """Write the files of a page and run its sessions, in their order; return the page with what they print."""
    parts, at, sessions = [], 0, 0
    for block in MARKED.finditer(text):
        parts.append(text[at : block.start("text")])
        at = block.end("text")
        if block["what"] == "session":
            sessions += 1
            parts.append(_session(block["text"], folder))
        else:
            _write(folder / block["name"], block["text"], add=block["what"] == "more")
            parts.append(block["text"])
    return Play("".join([*parts, text[at:]]), sessions)


def commands(text: str) -> list[str]:
    """Return the command lines of a session."""
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def _write(path: Path, text: str, *, add: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if add else "w", encoding="utf-8") as file:
        file.write(text)
    if text.startswith("#!"):
        path.chmod(0o755)


def _session(text: str, folder: Path) -> str:
    return "".join([f"$ {line}\n{_printed(line, folder)}" for line in commands(text)])


def _printed(line: str, folder: Path) -> str:
    home = folder.parent / f"{folder.name}-home"
    home.mkdir(exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if KEPT.fullmatch(name)}
        | CALLER
        | {"PATH": path, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    printed = done.stdout.replace(str(folder), "FOLDER")
    if printed and not printed.endswith("\n"):
        printed += "\n"
    return printed + (f"exit code {done.returncode}\n" if done.returncode else "")
