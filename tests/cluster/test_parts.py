"""The parts of the executor for clusters: what is sent, what is left, and addresses."""

from __future__ import annotations

import base64
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun import cluster, entry
from planrun.cluster import folder, wire
from planrun.cluster.addresses import is_private, scheduler_address
from planrun.cluster.executor import RemoteLog
from planrun.errors import RecordsLost
from planrun.model.job import Job, Outcome, Script
from planrun.sha256 import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_a_job_arrives_as_it_was() -> None:
    """Only the log and the name are the runner's own; bytes that are not UTF-8 come through."""
    script = Script(
        source="/s", sha256="0" * 64, file="/w/a.sh", name="a.sh", words=((1, 0, 4, 0),), kind="text"
    )
    job = Job(
        step="a",
        attempt=2,
        argv=("sh", "-c", "echo \udcff"),
        env={"SAME": "1", "OTHER": "2", "NEW": "\udcfe"},
        cwd="/w",
        log="/here.log",
        timeout=3.5,
        scripts=(script,),
    )
    common = {"SAME": "1", "OTHER": "1", "AWAY": "1"}
    (said,) = wire.Lines().feed(wire.line({"job": wire.job_data(job, common)}))
    assert wire.job_of(said["job"], common, "/there.log", "t1") == job.but(log="/there.log", step="t1")


def test_an_outcome_arrives_as_it_was() -> None:
    """Tuples are tuples again."""
    outcome = Outcome(
        status="failed", reason="exit", exit_code=3, stderr=(4, 9), notes=("one",), duration=0.25
    )
    (said,) = wire.Lines().feed(wire.line(wire.outcome_data(outcome)))
    assert wire.outcome_of(said) == outcome


def test_lines_come_in_any_pieces() -> None:
    """Each byte may arrive alone."""
    lines, data = wire.Lines(), wire.line({"a": 1}) + wire.line({"b": "ü"})
    assert [said for byte in data for said in lines.feed(bytes([byte]))] == [{"a": 1}, {"b": "ü"}]


def test_a_log_has_what_arrived(tmp_path: Path) -> None:
    """Its file is made with its first byte, and its hash is that of its bytes."""
    log = RemoteLog(str(tmp_path / "logs" / "a" / "1.log"), None)
    assert not (tmp_path / "logs").exists()
    log.feed(b"one\n")
    log.feed(b"two\n")
    assert log.read(4, 100) == b"two\n"
    assert log.finish() == (8, sha256(b"one\ntwo\n").hexdigest())
    assert (tmp_path / "logs" / "a" / "1.log").read_bytes() == b"one\ntwo\n"


def test_a_log_counts_what_was_written(tmp_path: Path) -> None:
    """On a full disk its size and hash are those of the bytes in its file."""
    log = RemoteLog(str(tmp_path / "1.log"), None)
    log.feed(b"one\n")
    with pytest.raises(RecordsLost), limited(6):
        log.feed(b"two\n")
    assert (tmp_path / "1.log").read_bytes() == b"one\ntw"
    assert log.finish() == (6, sha256(b"one\ntw").hexdigest())


@contextlib.contextmanager
def limited(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    heard = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


def test_a_worker_without_the_folder_takes_files(tmp_path: Path) -> None:
    """It says why it does not share the workspace, runs a step in a folder of its own, and gives back its product."""
    away, env = str(tmp_path / "not-here"), {"PATH": os.environ["PATH"]}
    opening = {
        "session": "s",
        "run": "r",
        "runner": "1",
        "folder": f"{away}/.planrun/cluster/s",
        "marker": "m",
        "workspace": away,
        "scratch": str(tmp_path),
        "lease": 60.0,
        "env": env,
        "masked": False,
        "always_shell": False,
        "sends": False,
        "store": "",
    }
    argv = ("sh", "-c", f"cat in; pwd; echo made > {away}/out")
    job = Job(step="a", attempt=1, argv=argv, env=env, cwd=away, log="", timeout=60.0)
    entry = [sha256(b"text\n").hexdigest(), 5, "file", time.time_ns()]
    files = {"own": {}, "declared": [["out"]], "results": []}
    started = {"start": "t", "job": wire.job_data(job, env), "secrets": {}, "files": files}
    answers = conversation(tmp_path, opening, [{"tree": {"in": entry}}, started], b"text\n")
    assert answers["opened"][0]["opened"]["apart"].startswith(f"it cannot read {away}/.planrun/cluster/s")
    printed = b"".join(base64.b64decode(each["data"]) for each in answers["log"]).decode()
    assert printed.startswith(f"text\n{tmp_path}/planrun-")
    assert base64.b64decode(answers["piece"][0]["data"]) == b"made\n"
    (end,) = answers["end"]
    assert (end["outcome"]["status"], end["files"]["made"][0][0]) == ("completed", "out")
    assert not list(tmp_path.iterdir())


def conversation(
    folder: Path, opening: dict[str, Any], more: list[dict[str, Any]], content: bytes
) -> dict[str, list[dict[str, Any]]]:
    """Open a runner, tell it more, give it the content that it asks for; returns what it says until an attempt ends."""
    answers: dict[str, list[dict[str, Any]]] = {}
    with subprocess.Popen(
        entry.command("planrun.cluster.runner.run"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(wire.line(opening))
        process.stdin.flush()
        while "end" not in answers:
            (answer,) = wire.Lines().feed(process.stdout.readline())
            answers.setdefault(next(iter(answer)), []).append(answer)
            if "opened" in answer:
                process.stdin.write(b"".join(map(wire.line, more)))
            for digest, number in answer.get("want", ()):
                data = base64.b64encode(content).decode()
                said = {"content": digest, "number": number, "data": data, "last": True}
                process.stdin.write(wire.line(said))
            process.stdin.flush()
        process.stdin.close()
    return answers


def test_leftovers_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a runner goes at once; one whose runner never says that it ended, after the lease."""
    left, _ = folder.make(str(tmp_path), "old")
    folder.clear(str(tmp_path), lambda: False)
    assert list(tmp_path.iterdir()) == []
    left, _ = folder.make(str(tmp_path), "old")
    (tmp_path / "cluster" / "old" / "runner-1").touch()
    folder.remove(left)
    assert (tmp_path / "cluster" / "old").exists()
    monkeypatch.setattr(cluster, "LEASE", 0.2)
    monkeypatch.setattr(cluster, "SETTLING", 0.1)
    began = time.monotonic()
    folder.clear(str(tmp_path), lambda: False)
    assert time.monotonic() - began >= 0.3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("tcp://127.0.0.1:1", True),
        ("tcp://[::1]:1", True),
        ("tcp://localhost:1", True),
        ("tls://10.0.0.1:1", True),
        ("tcp://10.0.0.1:1", False),
        ("tcp://localhost.example.com:1", False),
        ("ucx://10.0.0.1:1", False),
    ],
)
def test_who_can_read_along(address: str, private: bool) -> None:  # noqa: FBT001
    """Without TLS only this machine is private."""
    assert is_private(address) is private


def test_addresses_in_the_form_of_dask() -> None:
    """`dask` stands for a connection without TLS."""
    assert scheduler_address("dask://127.0.0.1:8786") == "tcp://127.0.0.1:8786"
    assert scheduler_address("tls://cluster.example.com:8786") == "tls://cluster.example.com:8786"


def test_without_the_extra_it_is_named(tmp_path: Path) -> None:
    """Nothing runs, and the message says what to install."""
    (tmp_path / "plan.yml").write_text("version: 1\nname: one\nsteps: [{id: a, run: touch ran}]\n", "utf-8")
    driver = (
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'distributed' else real(name, *more)\n"
        "from planrun.cli import run\nrun()\n"
    )
    words = ["execute", "plan.yml", "--executor", "dask://127.0.0.1:1"]
    ran = subprocess.run(
        [sys.executable, "-c", driver, *words],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 2
    assert "needs the extra dask: pip install 'planrun[dask]'" in ran.stderr
    assert not (tmp_path / "ran").exists()
