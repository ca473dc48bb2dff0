"""The workflows of docs/ci run for real: act plays the runner, a server on loopback plays GitHub's API.

Remote actions cannot be fetched here: stubs give a Python as setup-python does, and keep artifacts in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proofs.trials import ROOT
from tests.fakes.github import REPOSITORY, TOKEN, FakeGitHub, person, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

BIN = Path(sys.executable).parent
ACT = BIN / "act"
LIMIT = 900
"""Seconds for one workflow, most of them for the installation."""
HEAD = "a" * 40
_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", ".planrun", "planrun-out")
_FILES = {
    "plans/release.yml": "version: 1\nname: release\nsteps:\n  - {id: build, run: touch built}\n",
    "plans/tests.yml": "version: 1\nname: tests\nsteps:\n  - {id: build, run: touch built}\n"
    "  - {id: test, depends_on: [build], matrix: {p: [a, b, c, d]}, run: 'echo ${{ matrix.p }}'}\n",
    "ci/policy.yml": "auto_approve: none\nask_for: plan\n",
    "ci/timings.json": '{"steps": []}\n',
}
_STUB = "name: stub\ndescription: stands for {of}\ninputs: {{{inputs}}}\n{outputs}runs:\n  using: composite\n  steps:\n"
_STEP = (
    '    - shell: bash\n      env: {{N: "${{{{ inputs.name }}}}", P: "${{{{ inputs.path }}}}"}}\n'
    "      run: |\n        {run}\n"
)
_INPUTS = {
    "setup-python": ("python-version", "update-environment"),
    "upload-artifact": ("name", "path", "include-hidden-files", "if-no-files-found"),
    "download-artifact": ("name", "path", "pattern", "run-id", "github-token"),
}


class Played(NamedTuple):
    """What became of a workflow: whether its jobs succeeded, what act said, and GitHub afterwards."""

    passed: bool
    said: str
    github: FakeGitHub


class Stage:
    """A repository with one workflow of the docs, the stubs, and a GitHub with one pull request of a fork."""

    def __init__(self, folder: Path, workflow: str) -> None:
        self.folder, self.repository, self.store = folder, folder / "repository", folder / "store"
        self.store.mkdir(parents=True)
        shutil.copytree(ROOT, folder / "planrun", ignore=_LEFT_OUT)
        text = (
            (ROOT / "docs" / "ci" / f"{workflow}.yml")
            .read_text("utf-8")
            .replace("@COMMIT #", f"@{'0' * 40} #")
        )
        for name, content in {**_FILES, ".github/workflows/it.yml": text}.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "A change"]):
            self.git(*words)
        self.git("remote", "add", "origin", f"https://github.com/{REPOSITORY}")
        self.sha = self.git("rev-parse", "HEAD")
        uses = text + (ROOT / "action.yml").read_text("utf-8")
        self.pins = dict(re.findall(r"uses: ([\w.-]+/[\w.-]+)@(\w+)", uses))
        self.github = FakeGitHub()
        self.github.pull(7, head=HEAD, branch="topic", source="mallory/app", opener="mallory")
        self.event: dict[str, Any] = {}
        self.trigger = "push"

    def git(self, *words: str) -> str:
        """Run git in the repository and return its output."""
        own = ("-c", "user.name=proofs", "-c", "user.email=proofs@localhost", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *own, *words], cwd=self.repository, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def planrun(self, *words: str) -> str:
        """Run planrun in the repository and return its output."""
        done = subprocess.run(
            [BIN / "planrun", *words], cwd=self.repository, check=True, capture_output=True, text=True
        )
        return done.stdout

    def play(self) -> Played:
        """Run the workflow."""
        (self.folder / "event.json").write_text(json.dumps(self.event))
        stubs = {f"actions/{name}": self._stub(name) for name in _INPUTS} | {
            "OWNER/planrun": self.folder / "planrun"
        }
        with serving(self.github):
            env = ("--env", f"GITHUB_API_URL={self.github.url}", "--env", f"GITHUB_REPOSITORY={REPOSITORY}")
            done = subprocess.run(
                [
                    str(ACT),
                    self.trigger,
                    "-W",
                    ".github/workflows/it.yml",
                    "-e",
                    str(self.folder / "event.json"),
                ]
                + ["-P", "ubuntu-latest=-self-hosted", "--action-offline-mode", "--pull=false"]
                + ["-s", f"GITHUB_TOKEN={TOKEN}", *env]
                + [
                    f"--local-repository={name}@{self.pins[name]}={at}"
                    for name, at in stubs.items()
                    if name in self.pins
                ],
                cwd=self.repository,
                env=os.environ
                | {"XDG_CACHE_HOME": str(self.folder / "cache"), "PIP_CACHE_DIR": f"{_CACHE}/pip"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        return Played(done.returncode == 0, done.stdout, self.github)

    def _stub(self, name: str) -> Path:
        runs = {
            "setup-python": ":",
            "upload-artifact": f'mkdir -p "{self.store}/$N"; for p in $P; do cp -r "$p" "{self.store}/$N/" || :; done',
            "download-artifact": f'mkdir -p "$P"; cp -r "{self.store}/$N/." "$P/"',
        }
        python = f"outputs:\n  python-path: {{description: x, value: {sys.executable}}}\n"
        inputs = ", ".join([f"{each}: {{description: x}}" for each in _INPUTS[name]])
        head = _STUB.format(of=name, inputs=inputs, outputs=python if name == "setup-python" else "")
        path = self.folder / name / "action.yml"
        path.parent.mkdir()
        path.write_text(head + _STEP.format(run=runs[name]), "utf-8")
        return path.parent


def comment(folder: Path) -> list[str]:
    """The review of a fork becomes one comment on its pull request."""
    stage = Stage(folder, "github-comment")
    stage.trigger = "workflow_run"
    source = {"full_name": "mallory/app"}
    run = {
        "id": 5,
        "event": "pull_request",
        "head_sha": HEAD,
        "head_branch": "topic",
        "head_repository": source,
    }
    stage.event = {"workflow_run": run}
    reports = stage.store / "planrun-review" / "planrun-out"
    stage.planrun("review", "plans/release.yml", "--policy", "ci/policy.yml", "--report-dir", str(reports))
    played = stage.play()
    bodies = [each["body"] for each in played.github.comments[7]]
    shown = (
        len(bodies) == 1 and "### Plan `plans/release.yml`" in bodies[0] and "Digest to approve" in bodies[0]
    )
    return [] if played.passed and shown else [f"comment: {bodies}\n{played.said[-4000:]}"]


def _approved(folder: Path, said: str) -> Played:
    stage = Stage(folder, "github-comment-approval")
    stage.github.pulls[7] |= {"state": "closed", "merged_at": "2026-01-31T12:00:00Z"}
    stage.github.merged[stage.sha] = [7]
    stage.github.permissions = {"bob": {"permission": "write", "role_name": "write"}}
    digest = json.loads(stage.planrun("approve", "plans/release.yml", "-o", "-"))["digest"]
    stage.github.say(7, said.format(digest), person("bob"))
    return stage.play()


def approval(folder: Path) -> list[str]:
    """A comment approves the merged plan, which runs; a comment about another digest does not, and nothing runs."""
    problems = []
    played = _approved(folder / "yes", "/planrun approve {}")
    if not played.passed or "the plan: approved by bob" not in played.said:
        problems.append(f"an approved plan did not run\n{played.said[-4000:]}")
    played = _approved(folder / "no", "/planrun approve 0123456789ab")
    if played.passed or "approved by bob" in played.said:
        problems.append(f"a plan ran without its approval\n{played.said[-4000:]}")
    return problems


def shards(folder: Path) -> list[str]:
    """Four machines run four shards, and the last job counts every step."""
    stage = Stage(folder, "github-shards")
    stage.event = {"ref": "refs/heads/main"}
    played = stage.play()
    whole = "completed: 4 shards, 5 steps: 5 completed" in played.said
    return [] if played.passed and whole else [f"shards\n{played.said[-4000:]}"]


def release(folder: Path) -> list[str]:
    """Who approved the environment approves the digest that the review of the same run shows."""
    stage = Stage(folder, "github-release")
    review = {"state": "approved", "user": person("max"), "environments": [{"name": "release"}]}
    stage.github.deployments = {str(number): [review] for number in range(1, 5)}  # act counts runs from 1
    played = stage.play()
    return (
        []
        if played.passed and "the plan: approved by max" in played.said
        else [f"release\n{played.said[-4000:]}"]
    )


WORKFLOWS: dict[str, Callable[[Path], list[str]]] = {
    "comment": comment,
    "approval": approval,
    "shards": shards,
    "release": release,
}


def main(argv: Sequence[str]) -> int:
    """Run the workflows, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m proofs pipelines", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(WORKFLOWS)}; default: all")
    names = parser.parse_args(argv).names or list(WORKFLOWS)
    problems: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="planrun-pipelines-") as folder:
            found = WORKFLOWS[name](Path(folder))
        print(f"{name}: {'FAILED' if found else 'held'}")
        problems += found
    print("\n".join(problems))
    return 1 if problems else 0
