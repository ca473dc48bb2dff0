"""Calls of tools as a step makes them, and repositories for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from planrun.actions.outputs import parse_outputs
from planrun.actions.tool import process_of

if TYPE_CHECKING:
    from pathlib import Path


class End(NamedTuple):
    """How a call ended: its exit code, what it printed, and the texts of its outputs."""

    code: int
    log: str
    outputs: dict[str, str]


def call(workspace: Path, name: str, /, cwd: str = "", env: dict[str, str] | None = None, **args: Any) -> End:
    """Run a tool in a workspace, as the process of a step."""
    outputs = workspace.parent / "outputs"
    outputs.unlink(missing_ok=True)
    process = subprocess.run(
        process_of({"name": name, "args": args}, f"{outputs}.script"),
        cwd=workspace / cwd,
        env={
            **os.environ,
            "PLANRUN_OUTPUT": str(outputs),
            "PLANRUN_WORKSPACE": str(workspace),
            **(env or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    text = outputs.read_bytes().decode() if outputs.exists() else ""
    return End(process.returncode, process.stdout.decode(), parse_outputs(text))


def git(folder: Path, *words: str) -> str:
    """Run git with a fixed author, and return what it prints."""
    process = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process.stdout


def repository(folder: Path) -> Path:
    """Make a repository with one commit of `a.txt`, and an author."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main", "--template=")
    git(folder, "config", "user.name", "author")
    git(folder, "config", "user.email", "author@example.org")
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def execute(workspace: Path, plan: str, *words: str) -> dict[str, Any]:
    """Execute a plan in a workspace and return its ledger.json."""
    (workspace / "plan.yml").write_text(plan)
    process = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q", *words],
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    path = workspace / "planrun-out/ledger.json"
    assert path.exists(), process.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found
