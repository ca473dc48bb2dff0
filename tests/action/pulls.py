"""A repository with a remote, checked out as a runner does it, and the action started in it by a faked event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
START = ROOT / "action" / "start.py"
HERE = "acme/app"
IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@localhost", "-c", "commit.gpgsign=false")

POLICY = "auto_approve: low\n"
PLAN = "version: 1\nname: release\nsteps:\n  - {id: build, run: touch built}\n"
PUBLISH = "  - {id: publish, risk: high, run: ./publish.sh, depends_on: [build]}\n"
LAX = "auto_approve: high\n"


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return its output."""
    done = subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=folder,
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()


def lay(folder: Path, files: dict[str, str]) -> None:
    """Write files with their folders; scripts may be run."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)


class Did(NamedTuple):
    """What became of one start of the action."""

    code: int
    out: str
    err: str
    outputs: dict[str, str]
    summary: str


class Project:
    """A bare remote, a clone to work in, and checkouts as runners make them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = folder / "remote.git"
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.remote))
        git(self.work, "init", "-q", "-b", "main")
        git(self.work, "remote", "add", "origin", str(self.remote))
        files = {"plan.yml": PLAN, "ci/policy.yml": POLICY, "publish.sh": "#!/bin/sh\ntouch published\n"}
        self.main = self.commit("main", {**files, "approvals/README.md": "See the policy.\n"})

    def commit(self, branch: str, files: dict[str, str], *, gone: tuple[str, ...] = ()) -> str:
        """Commit files to a branch, which begins at what is checked out, push it, and return the commit."""
        known = git(self.work, "branch", "--list", branch)
        current = git(self.work, "symbolic-ref", "--short", "HEAD")
        if branch != current:
            git(self.work, "checkout", "-q", *([] if known else ["-b"]), branch)
        lay(self.work, files)
        for name in gone:
            git(self.work, "rm", "-q", name)
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "--allow-empty", "-m", "A change")
        git(self.work, "push", "-q", "origin", branch)
        return git(self.work, "rev-parse", "HEAD")

    def checkout(self, commit: str, name: str = "checkout", *, depth: int | None = 1) -> Path:
        """Check a commit out into a new folder, shallow unless `depth` is None."""
        place = self.folder / name
        place.mkdir()
        git(place, "init", "-q")
        git(place, "remote", "add", "origin", f"file://{self.remote}")
        words = [f"--depth={depth}"] if depth else []
        git(
            place,
            "fetch",
            "-q",
            "--no-tags",
            *words,
            "origin",
            commit if depth else "+refs/heads/*:refs/remotes/origin/*",
        )
        git(place, "checkout", "-q", "--detach", commit)
        return place

    def event(self, base: str, head: str, *, fork: str = HERE) -> dict[str, Any]:
        """Return the event of a pull request as GitHub sends it."""
        return {
            "pull_request": {
                "base": {"sha": base, "repo": {"full_name": HERE}},
                "head": {"sha": head, "repo": {"full_name": fork} if fork else None},
            }
        }


def act(place: Path, event: str, payload: dict[str, Any], **inputs: str) -> Did:
    """Start the action in a checkout, as action.yml does it, and return what it left behind."""
    runner = place.parent / f"{place.name}-runner"
    runner.mkdir(exist_ok=True)
    (runner / "event.json").write_text(json.dumps(payload), "utf-8")
    for name in ("summary", "output"):
        (runner / name).write_bytes(b"")
    given = {"plan": "plan.yml", "policy": "ci/policy.yml", "approvals": "approvals/*.json", **inputs}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "PLANRUN_"))}
    done = subprocess.run(
        [sys.executable, "-I", START],
        env=kept
        | {f"PLANRUN_INPUT_{name.upper()}": value for name, value in given.items()}
        | {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(place),
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(runner / "event.json"),
            "GITHUB_REPOSITORY": HERE,
            "GITHUB_OUTPUT": str(runner / "output"),
            "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        },
        cwd=place.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = (runner / "output").read_text("utf-8").splitlines()
    outputs = dict(row.split("=", 1) for row in rows if "=" in row)
    return Did(done.returncode, done.stdout, done.stderr, outputs, (runner / "summary").read_text("utf-8"))
