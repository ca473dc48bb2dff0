"""The guides to clusters work: `docs/cluster/ssh.py` runs a plan by SSH on loopback, and the manifests are valid.

An OpenSSH server is started for it, with keys and certificates made for it, as whoever runs this. The manifests are
compared with the schemas of Kubernetes (kubernetes-validate) and of the operator (the definition in dask-kubernetes).
planrun, built from this tree, and these programs are installed into a new environment from a package index.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import yaml

from proofs.releases import free_port, reaches, until
from proofs.trials import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GUIDES = ROOT / "docs" / "cluster"
KUBERNETES = "1.37.0"
LIMIT = 600
_PLAN = """\
version: 1
name: spread
steps:
  - {id: build, run: echo built > built.txt}
  - {id: test, depends_on: [build], matrix: {part: [1, 2, 3, 4]}, run: 'cat built.txt; sleep 1'}
"""
_SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host-key
PidFile none
AuthorizedKeysFile {folder}/key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
"""
_CLIENT = """\
Host 127.0.0.1
  Port {port}
  IdentityFile {folder}/key
"""


class Site:
    """A new environment with planrun, and an SSH server on loopback."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.python = folder / "venv" / "bin" / "python"
        self.env = {**os.environ, "HOME": str(folder), "PATH": f"{self.python.parent}:{os.environ['PATH']}"}
        self._server: subprocess.Popen[bytes] | None = None

    def call(
        self, *words: str | Path, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=cwd or self.folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def run(self, *words: str | Path, cwd: Path | None = None) -> None:
        """Run a command that has to succeed."""
        done = self.call(*words, cwd=cwd)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def install(self) -> None:
        """Build planrun, and install it with what the guides need."""
        self.run(
            sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", self.folder / "dist", cwd=ROOT
        )
        (wheel,) = (self.folder / "dist").glob("*.whl")
        self.run(sys.executable, "-m", "venv", self.folder / "venv")
        pip: list[str | Path] = [self.python, "-m", "pip", "install", "--quiet"]
        self.run(*pip, f"{wheel}[dask]", "asyncssh>=2,<3", f"kubernetes-validate=={KUBERNETES}")
        self.run(
            *(self.python, "-m", "pip", "download", "--quiet", "--no-deps", "dask-kubernetes==2026.3.0"),
            *("-d", self.folder / "operator"),
        )

    def serve(self) -> None:
        """Start the SSH server."""
        for name in ("host-key", "key"):
            self.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
        config = self.folder / "sshd_config"
        config.write_text(_SSHD.format(port=self.port, folder=self.folder), "utf-8")
        client = self.folder / ".ssh"
        client.mkdir(mode=0o700)
        (client / "config").write_text(_CLIENT.format(port=self.port, folder=self.folder), "utf-8")
        kind, key, *_ = (self.folder / "host-key.pub").read_text("utf-8").split()
        (client / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n", "utf-8")
        words = [
            shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or "sshd",
            "-D",
            "-f",
            str(config),
        ]
        with open(self.folder / "sshd.log", "wb") as log:
            self._server = subprocess.Popen(words, stdout=log, stderr=log)
        until(lambda: reaches(self.port))

    def stop(self) -> None:
        """End the SSH server."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(60)


def by_ssh(site: Site) -> Iterator[str]:
    """Run the plan on two workers, then without certificates."""
    workspace = site.folder / "workspace"
    workspace.mkdir()
    (workspace / "plan.yml").write_text(_PLAN, "utf-8")
    site.run("sh", GUIDES / "certificates.sh", cwd=workspace)
    lines = (workspace / "tls" / "environment").read_text("utf-8").splitlines()
    words = [line.removeprefix("export ").partition("=") for line in lines]
    certificates = {name: value.strip("'") for name, _, value in words}
    command: list[str | Path] = [
        site.python,
        GUIDES / "ssh.py",
        *["127.0.0.1"] * 3,
        "--",
        "planrun",
        "execute",
        "plan.yml",
        "--quiet",
    ]
    done = site.call(*command, cwd=workspace, **certificates)
    assert done.returncode == 0, done.stdout + done.stderr
    (ledger,) = workspace.glob(".planrun/runs/*/ledger.jsonl")
    events = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    workers = {event["worker"] for event in events if event.get("worker")}
    assert len(workers) == 2, workers
    assert all(worker.startswith("tls://") for worker in workers), workers
    yield f"by SSH, as {getpass.getuser()}: the run completed on two workers, over TLS"
    until(lambda: not _left(site))
    yield "no process of the cluster is left"
    done = site.call(*command, cwd=workspace)
    assert done.returncode, "it ran without certificates"
    assert len(list(workspace.glob(".planrun/runs/*"))) == 1
    yield "fault found: without certificates nothing runs"


def _left(site: Site) -> list[str]:
    """Return the command lines of processes of the environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(site.python.parent.parent) in line:
            found.append(line)
    return found


def strict(part: Any) -> None:
    """Have a schema refuse unknown keys, as `kubectl apply` does with the definition of a resource."""
    if isinstance(part, dict):
        is_open = part.get("x-kubernetes-preserve-unknown-fields")
        if part.get("type") == "object" and "properties" in part and not is_open:
            part.setdefault("additionalProperties", False)
        for value in list(part.values()):
            strict(value)
    elif isinstance(part, list):
        for value in part:
            strict(value)


def definition(site: Site) -> dict[str, Any]:
    """Return the schema of a DaskCluster."""
    (wheel,) = (site.folder / "operator").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("/crds/daskcluster.yaml")]
        content = yaml.safe_load(archive.read(name))
    schema: dict[str, Any] = content["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    strict(schema)
    schema["properties"].update(apiVersion={}, kind={}, metadata={})
    return schema


def problems(site: Site, text: str) -> list[str]:
    """Return what the schemas say of manifests."""
    found, files = [], []
    for number, document in enumerate(yaml.safe_load_all(text)):
        resources = [document]
        if document["kind"] == "DaskCluster":
            errors = jsonschema.Draft202012Validator(definition(site)).iter_errors(document)
            found += [error.message for error in errors]
            spec = document["spec"]
            pods = [{"kind": "Pod", "spec": spec[part]["spec"]} for part in ("scheduler", "worker")]
            service = {"kind": "Service", "spec": spec["scheduler"]["service"]}
            resources = [{"apiVersion": "v1", "metadata": {"name": "x"}, **each} for each in (*pods, service)]
        for at, resource in enumerate(resources):
            file = site.folder / f"resource-{number}-{at}.json"
            file.write_text(json.dumps(resource), "utf-8")
            files.append(file)
    done = site.call(site.python.with_name("kubernetes-validate"), "--strict", "-k", KUBERNETES, *files)
    return found + ([done.stdout + done.stderr] if done.returncode else [])


def by_schema(site: Site) -> Iterator[str]:
    """Check the manifests, then two that are wrong."""
    text = (GUIDES / "kubernetes.yml").read_text("utf-8")
    assert not problems(site, text), problems(site, text)
    yield f"the manifests are valid by the schemas of Kubernetes {KUBERNETES} and of the operator"
    for right, wrong in (("replicas: 3", "replica: 3"), ("backoffLimit: 0", "backoffLimits: 0")):
        assert problems(site, text.replace(right, wrong)), wrong
    yield "faults found: a wrong key of the cluster, and one of the job"


def main(argv: Sequence[str] = ()) -> int:
    """Try the guides."""
    argparse.ArgumentParser(prog="python -m proofs guides").parse_args(argv)
    begun, folder = time.monotonic(), Path(tempfile.mkdtemp())
    site = Site(folder)
    try:
        site.install()
        site.serve()
        for check in (by_ssh, by_schema):
            for line in check(site):
                print(f"ok: {line}", flush=True)
    except AssertionError as error:
        print(f"FAILED: {error}")
        return 1
    finally:
        site.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(f"in {time.monotonic() - begun:.0f} s")
    return 0
