"""The release workflow runs up to the uploads: act plays the runner, servers on loopback play index and registry.

What cannot be had without a network, or without GitHub, has a stub, which notes what it was given: setup-python (gives
the Python of the trial), upload-artifact and download-artifact (a folder), attest, gh-action-pypi-publish (uploads to
the index of the trial), `gh`. Three things differ in the copy of the repository: the section of the changelog, which
every release has, the base image, and the name of the registry. The index is pypiserver, installed for the trial; the
registry is Debian's docker-registry; the engine is a dockerd of our own. Only Python 3.11 of the matrix is run. An
approval of the environment is GitHub's business, and is not shown.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planrun import __version__
from proofs.trials import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ACT = Path(sys.executable).with_name("act")
LIMIT = 1800
"""Seconds for one run of the workflow, most of them for installations."""
TAG = f"v{__version__}"
IMAGE_JOBS = ("image", "push")
_STUB = """\
name: stub
description: stands for {of}
inputs: {{{inputs}}}
runs:
  using: composite
  steps:
    - shell: bash
      env:
        GIVEN: ${{{{ toJSON(inputs) }}}}
        NAME: ${{{{ inputs.name }}}}
        PLACE: ${{{{ inputs.path || inputs.packages-dir || 'dist' }}}}
      run: |
        printf '%s\\n' "$GIVEN" | tr -d '\\n' >> "{notes}/{of}"; echo >> "{notes}/{of}"
{script}
"""
_INPUTS = {
    "setup-python": ("python-version",),
    "upload-artifact": ("name", "path", "if-no-files-found"),
    "download-artifact": ("name", "path"),
    "attest": ("subject-path", "subject-name", "subject-digest", "sbom-path", "push-to-registry"),
    "gh-action-pypi-publish": ("attestations", "print-hash", "packages-dir"),
}
_SCRIPTS = {
    "setup-python": """\
        venv=$RUNNER_TEMP/python
        "{python}" -m venv "$venv"
        echo "$venv/bin" >> "$GITHUB_PATH"
""",
    "upload-artifact": 'mkdir -p "{store}/$NAME"\ncp -r "$PLACE"/. "{store}/$NAME"\n',
    "download-artifact": 'mkdir -p "$PLACE"\nif [ -n "$NAME" ]; then cp -r "{store}/$NAME"/. "$PLACE"\n'
    'else cp -r "{store}"/. "$PLACE"; fi\n',
    "attest": ":\n",
    "gh-action-pypi-publish": 'for file in "$PLACE"/*; do\n'
    '  curl --fail --silent --show-error --form :action=file_upload --form "content=@$file" "{index}/"\ndone\n',
}
_GH = '#!/bin/sh\nprintf \'%s\\n\' "gh $*" >> "{notes}/gh"\ncase "$*" in *PATCH*) exit 1 ;; esac\n'
"""It knows no tag of the major version yet, so that the workflow has to make one."""
_REGISTRY = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


class Played(NamedTuple):
    """What became of a run of the workflow: whether it passed, and what act printed."""

    passed: bool
    said: str


class Trial:
    """A copy of the repository with a tag, and everything around it."""

    def __init__(self, folder: Path, base: str) -> None:
        self.folder = folder
        self.base = base
        self.repository = folder / "repository"
        self.notes, self.store, self.files = folder / "notes", folder / "artifacts", folder / "index"
        self.processes: list[subprocess.Popen[bytes]] = []
        for each in (self.notes, self.store, self.files):
            each.mkdir()
        self.index_port, self.registry_port = free_port(), free_port()
        self.index = f"http://127.0.0.1:{self.index_port}"
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"},
            "DOCKER_HOST": f"unix://{folder}/engine.sock",
            "DOCKER_BUILDKIT": "0",
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start the index, and with a base image the engine and the registry."""
        venv = self.folder / "pypiserver"
        self.run(sys.executable, "-m", "venv", str(venv))
        self.run(str(venv / "bin" / "pip"), "install", "--quiet", "pypiserver>=2.4,<3")
        serve = [
            str(venv / "bin" / "pypi-server"),
            "run",
            "--port",
            str(self.index_port),
            "--interface",
            "127.0.0.1",
        ]
        self.spawn(*serve, "--passwords", ".", "--authenticate", ".", "--disable-fallback", str(self.files))
        until(lambda: reaches(self.index_port))
        if self.base:
            self._start_engine()

    def _start_engine(self) -> None:
        at = self.folder / "engine"
        self.spawn(
            *(
                "dockerd",
                "--iptables=false",
                "--bridge=none",
                "--pidfile",
                f"{at}.pid",
                "-H",
                self.env["DOCKER_HOST"],
            ),
            *("--data-root", f"{at}/data", "--exec-root", f"{at}/exec"),
        )
        config = self.folder / "registry.yml"
        config.write_text(_REGISTRY.format(folder=self.folder / "registry", port=self.registry_port), "utf-8")
        self.spawn("docker-registry", "serve", str(config))
        until(lambda: not self.call("docker", "version").returncode and reaches(self.registry_port))
        self.run("docker", "import", self.base, "base:trial")

    def spawn(self, *words: str) -> None:
        """Start a server; `stop` ends it."""
        with open(self.folder / "servers.log", "ab") as log:
            self.processes.append(
                subprocess.Popen(words, env=self.env, stdout=log, stderr=log, start_new_session=True)
            )

    def stop(self) -> None:
        """End the servers."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)
        if self.base:  # the engine leaves it mounted
            self.call("umount", f"{self.folder}/engine/exec/netns/default")

    def call(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command; return what it printed and how it ended."""
        return subprocess.run(
            words,
            cwd=cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """Run a command that has to succeed; return what it printed."""
        done = self.call(*words, cwd=cwd)
        if done.returncode:
            raise AssertionError(
                f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def lay(self, tag: str = TAG, change: Callable[[Path], None] = lambda _: None) -> None:
        """Lay out a copy of HEAD whose changelog has the version, commit and tag it."""
        shutil.rmtree(self.repository, ignore_errors=True)
        for folder in (self.notes, self.store, self.files):
            shutil.rmtree(folder)
            folder.mkdir()
        self.run("git", "clone", "--quiet", str(ROOT), str(self.repository))
        # act takes the name of the repository from it.
        origin = "https://github.com/owner/planrun.git"
        self.run("git", "remote", "set-url", "origin", origin, cwd=self.repository)
        self._prepare()
        change(self.repository)
        git = ["git", "-c", "user.name=trial", "-c", "user.email=trial@localhost"]
        self.run(*git, "commit", "--quiet", "--all", "--message", "A release", cwd=self.repository)
        self.run("git", "tag", tag, cwd=self.repository)
        (self.folder / "event.json").write_text(json.dumps({"ref": f"refs/tags/{tag}"}), "utf-8")

    def _prepare(self) -> None:
        changelog = self.repository / "CHANGELOG.md"
        text = changelog.read_text("utf-8")
        changelog.write_text(
            text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{__version__}] - 2026-01-02\n", 1),
            "utf-8",
        )
        workflow = self.repository / ".github" / "workflows" / "release.yml"
        text = workflow.read_text("utf-8").replace("ghcr.io/", f"127.0.0.1:{self.registry_port}/")
        workflow.write_text(text if self.base else without_image(text), "utf-8")
        container = self.repository / "Containerfile"
        container.write_text(
            re.sub(r"(?m)^FROM \S+@\S+ AS base$", "FROM base:trial AS base", container.read_text("utf-8")),
            "utf-8",
        )

    def play(self, pythons: Sequence[str]) -> Played:
        """Run the workflow with a tag that was pushed."""
        stubs = dict(self._stubs(pythons[0]))
        binaries = self.folder / "bin"
        binaries.mkdir(exist_ok=True)
        (binaries / "gh").write_text(_GH.format(notes=self.notes), "utf-8")
        (binaries / "gh").chmod(0o755)
        words = [str(ACT), "push", "-P", "ubuntu-24.04=-self-hosted", "--action-offline-mode", "--pull=false"]
        words += ["-W", ".github/workflows/release.yml", "--eventpath", str(self.folder / "event.json")]
        words += [
            "--matrix",
            "os:ubuntu-24.04",
            "--matrix",
            "python:3.11",
            "-s",
            "GITHUB_TOKEN=no-token-at-all",
        ]
        words += [f"--local-repository={action}={stub}" for action, stub in stubs.items()]
        done = self.call(*words, cwd=self.repository)
        said = done.stdout + done.stderr
        (self.folder / "act.log").write_text(said, "utf-8")
        return Played(done.returncode == 0, said)

    def _stubs(self, python: str) -> Iterator[tuple[str, Path]]:
        text = (self.repository / ".github" / "workflows" / "release.yml").read_text("utf-8")
        for action in sorted(set(re.findall(r"uses: (\S+@[0-9a-f]{40})", text))):
            name = action.partition("@")[0].rpartition("/")[2]
            if name not in _SCRIPTS:
                continue
            script = _SCRIPTS[name].format(python=python, store=self.store, index=self.index)
            indented = "".join([f"        {line.strip()}\n" for line in script.splitlines()])
            inputs = ", ".join([f"{each}: {{description: as the real one}}" for each in _INPUTS[name]])
            stub = self.folder / "stubs" / name / "action.yml"
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text(_STUB.format(of=name, inputs=inputs, notes=self.notes, script=indented), "utf-8")
            yield action, stub.parent

    def noted(self, name: str) -> list[dict[str, str]]:
        """Return what a stub was given, use by use."""
        file = self.notes / name
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def without_image(text: str) -> str:
    """Return the workflow without the jobs that need an engine."""
    for job in IMAGE_JOBS:
        text = re.sub(rf"\n  {job}:\n(?:    .*\n|\n(?=    ))+", "\n", text)
    return (
        text.replace("[try, image]", "[try]")
        .replace("[pypi, push]", "[pypi]")
        .replace(" image/planrun-image.cdx.json", "")
    )


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def reaches(port: int) -> bool:
    """Whether a server answers on a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


def until(is_so: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for a server."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("a server of the trial did not start")
        time.sleep(0.2)


def check_release(trial: Trial) -> Iterator[str]:
    """Run the workflow, and yield what it published; raises AssertionError where anything is missing."""
    trial.lay()
    played = trial.play([sys.executable])
    assert played.passed, _last(played.said)
    built = {path.name: path.read_bytes() for path in (trial.store / "dist").iterdir()}
    published = {
        path.name: path.read_bytes() for path in trial.files.iterdir() if path.suffix in (".whl", ".gz")
    }
    assert published == built, (sorted(published), sorted(built))
    assert len(built) == 2
    yield f"the index has the bytes that were built: {', '.join(sorted(built))}"
    yield from _check_attested(trial)
    venv = trial.folder / "user"
    trial.run(sys.executable, "-m", "venv", str(venv))
    trial.run(
        str(venv / "bin" / "pip"),
        "install",
        "--quiet",
        "--index-url",
        f"{trial.index}/simple",
        "--no-deps",
        "planrun",
    )
    assert trial.run(str(venv / "bin" / "planrun"), "--version") == f"planrun {__version__}\n"
    yield "pip installs planrun by name from that index"
    page, *tags = (trial.notes / "gh").read_text("utf-8").splitlines()
    assert f"gh release create {TAG} --verify-tag" in page
    assert all(name in page for name in [*built, "SHA256SUMS", "planrun.cdx.json", "planrun.licences.md"]), (
        page
    )
    assert any("--method POST" in line and "refs/tags/v0" in line for line in tags), tags
    yield "the page has the files, and the tag of the major version is made"


def _last(said: str) -> str:
    """Return the lines that say why a job failed: its own output, at the end."""
    lines = [line for line in said.splitlines() if re.search(r"\]   (\||❌)|^Error", line)]
    return "\n".join(lines[-40:])


def _check_attested(trial: Trial) -> Iterator[str]:
    given = trial.noted("attest")
    subjects = [(each["subject-path"] or each["subject-name"], each["sbom-path"]) for each in given]
    expected = [("dist/*", ""), ("dist/*.whl", "about/planrun.cdx.json")]
    if trial.base:
        image = f"127.0.0.1:{trial.registry_port}/"
        assert subjects[2][0].startswith(image), subjects
        expected += [(subjects[2][0], ""), (subjects[2][0], "image/planrun-image.cdx.json")]
        digest = given[2]["subject-digest"]
        name = f"{subjects[2][0].removeprefix(image)}/manifests/{__version__}"
        request = urllib.request.Request(f"http://{image}v2/{name}", method="HEAD")
        request.add_header("Accept", "application/vnd.docker.distribution.manifest.v2+json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Docker-Content-Digest"] == digest
        yield f"the registry has the image that was tried, with the digest that was attested: {digest}"
    assert subjects == expected, subjects
    yield f"{len(subjects)} attestations have their subjects"


def other_tag(_repository: Path) -> None:
    """Change nothing: the fault is the tag."""


def broken_start(repository: Path) -> None:
    """Have the wheel lack a file that a run needs, which only a try of the wheel can notice."""
    with open(repository / "pyproject.toml", "a", encoding="utf-8") as file:
        file.write('\n[tool.hatch.build]\nexclude = ["planrun/model/state.py"]\n')


def entries_left(repository: Path) -> None:
    """Have an entry stand under Unreleased."""
    changelog = repository / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    changelog.write_text(
        text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Not yet released.\n", 1), "utf-8"
    )


FAULTS = {
    "the tag is another version": ("v9.9.9", other_tag, "and planrun.__version__ is"),
    "the changelog has an entry under Unreleased": (TAG, entries_left, "entries under Unreleased"),
    "the wheel lacks a module": (TAG, broken_start, "No module named 'planrun.model.state'"),
}


def check_fault(trial: Trial, name: str) -> str:
    """Run the workflow with a fault; raises AssertionError when anything is attested or published."""
    tag, change, reason = FAULTS[name]
    trial.lay(tag, change)
    played = trial.play([sys.executable])
    assert not played.passed, f"{name}: the workflow passed"
    assert reason in played.said, _last(played.said)
    assert not list(trial.files.iterdir())
    assert not trial.noted("attest")
    assert not (trial.notes / "gh").exists()
    return f"nothing is published: {name}"


def main(argv: Sequence[str] = ()) -> int:
    """Run the trial of the release workflow, then its faults."""
    parser = argparse.ArgumentParser(prog="python -m proofs release")
    parser.add_argument(
        "--base",
        default="",
        help="a tar file of a Debian with python3-venv; without it the jobs of the image are left out",
    )
    parser.add_argument("--keep", type=Path, help="the folder of the trial, which is kept")
    given = parser.parse_args(argv)
    folder = given.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    trial = Trial(folder, given.base)
    print_now = functools.partial(print, flush=True)
    try:
        trial.start()
        if not given.base:
            print_now(
                "left out: the jobs image and push; they need --base, root, dockerd and docker-registry"
            )
        for line in check_release(trial):
            print_now(f"ok: {line}")
        for name in FAULTS:
            print_now(f"ok: {check_fault(trial, name)}")
    except AssertionError as error:
        print_now(f"FAILED: {error}")
        return 1
    finally:
        trial.stop()
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 0
