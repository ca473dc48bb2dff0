"""Steps on the workers of a Dask cluster end as they do here; a cluster that cannot be used is refused first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.dask import DaskCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LIMIT = 120.0
"""Seconds until something happens that always does."""
SECRET = "tangerine-4711-blue-whale"
VARIOUS = """\
version: 1
name: various
defaults: {on_failure: continue}
steps:
  - {id: prints, run: "seq 1 60000"}
  - {id: fails, run: "echo out; echo 'error: no space left on device' >&2; exit 3"}
  - {id: late, timeout: 500ms, run: sleep 60}
  - {id: silent, idle_timeout: 500ms, run: sleep 60}
  - {id: absent, exec: [no-such-program]}
  - {id: killed, run: "kill -9 $$"}
  - {id: leaves, run: "sleep 60 & echo left"}
  - {id: again, retries: {max: 1, backoff: {initial: 10ms}}, writes: [flag],
     run: "test -e flag || { touch flag; exit 1; }"}
  - id: gives
    run: 'echo "n=42" >> "$PLANRUN_OUTPUT"; echo made > made.txt; echo left > left.txt'
    outputs: {n: integer}
    produces: [made.txt]
    verify: [test -s made.txt]
  - id: takes
    depends_on: {gives: completed}
    runs_on: [large]
    env: {N: "${{ steps.gives.outputs.n }}"}
    run: 'echo $N; cat made.txt; test -x "a program.sh"; readlink link'
  - {id: script, run: "bash say.sh"}
  - {id: checks, depends_on: [gives], validate: [{files_exist: [made.txt]}]}
"""
SECRETS = """\
version: 1
name: secrets
secrets: [TOKEN, OTHER]
steps:
  - {id: listed, secrets: [TOKEN], run: 'echo "got $TOKEN and ${OTHER:-nothing}"; echo "$TOKEN" > kept.txt'}
  - {id: unlisted, depends_on: [listed], run: 'echo "got ${TOKEN:-nothing}"; cat kept.txt'}
  - {id: waits, depends_on: [unlisted], run: "until test -e go; do sleep 0.02; done"}
"""
SENT = """\
version: 1
name: sent
secrets: [TOKEN]
defaults: {on_failure: continue}
steps:
  - {id: makes, secrets: [TOKEN], produces: ["*.bin"],
     run: 'seq 60000 > plain.bin; seq 60000 > made.bin; echo "$TOKEN" >> made.bin; echo 1 > "${{ step.dir }}/own"',
     verify: ['test -s "${{ step.dir }}/own"']}
  - {id: there, depends_on: {makes: completed}, run: 'wc -l made.bin plain.bin; test "$PWD" = "$PLANRUN_WORKSPACE"'}
  - {id: again, depends_on: {makes: completed}, run: 'test -s made.bin; test -s plain.bin; test ! -e needed.txt'}
  - {id: forgets, run: 'echo x > needed.txt'}
  - {id: reads, depends_on: {forgets: completed}, inputs: [needed.txt], run: cat needed.txt}
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """Two workers; each offers the label `large` once."""
    with DaskCluster(tmp_path_factory.mktemp("dask"), ("one", "two"), "--resources", "large=1") as found:
        yield found


def facts_of(folder: Path) -> dict[str, Any]:
    """Return what a run came to, step by step, without times."""
    steps = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))["steps"]
    kept = (
        "status",
        "reason",
        "exit_code",
        "log_bytes",
        "log_sha256",
        "notes",
        "stderr",
        "outputs",
        "error",
        "files",
    )
    return {
        step["id"]: (
            step["status"],
            step.get("reason"),
            [{k: a.get(k) for k in kept} for a in step["attempts"]],
        )
        for step in steps
    }


def events_of(folder: Path) -> list[dict[str, Any]]:
    """Return the ledger of the only run."""
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a planrun that is not waited for."""
    return subprocess.Popen(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    limit = time.monotonic() + LIMIT
    while not path.exists() and time.monotonic() < limit:
        time.sleep(0.01)


def occurrences(pid: int, needle: bytes) -> int:
    """Count how often some bytes are in the memory of a process."""
    found = 0
    with (
        open(f"/proc/{pid}/maps", encoding="utf-8") as maps,
        open(f"/proc/{pid}/mem", "rb", buffering=0) as memory,
    ):
        for row in maps:
            places, rights = row.split()[:2]
            if not rights.startswith("rw"):
                continue
            low, high = (int(place, 16) for place in places.split("-"))
            memory.seek(low)
            found += memory.read(high - low).count(needle)
    return found


def test_steps_end_on_workers_as_they_do_here(tmp_path: Path, planrun: Command, cluster: DaskCluster) -> None:
    """Statuses, reasons, exit codes, outputs, files, notes and the bytes of logs are those of a run on this machine.

    So they are where workers do not share the workspace, but for what steps do not declare: it is named, and dropped.
    """
    store, there = str(tmp_path / "store"), ("--executor", cluster.address)
    ways = {"here": (), "there": there, "sent": (*there, "--cluster-store", store)}
    found = {}
    for name, words in ways.items():
        folder = tmp_path / "ws" / name
        folder.mkdir(parents=True)
        (folder / "plan.yml").write_text(VARIOUS, "utf-8")
        (folder / "say.sh").write_text("echo said\n", "utf-8")
        (folder / "a program.sh").write_bytes(b"#" * 300_000)  # large enough for the store
        (folder / "a program.sh").chmod(0o755)
        (folder / "link").symlink_to("a program.sh")
        ran = planrun("execute", "plan.yml", *words, cwd=folder)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        found[name] = facts_of(folder)
        assert not (folder / ".planrun" / "cluster").exists()
        assert ("warning: gives: not declared in" in ran.stdout + ran.stderr) is (name == "sent")
        assert (folder / "left.txt").exists() is (name != "sent")
    assert found["here"] == found["there"] == found["sent"]
    assert len([path for path in Path(store).rglob("*") if path.is_file()]) == 1
    events = events_of(tmp_path / "ws" / "there")
    workers = {event["step"]: event.get("worker") for event in events if event["type"] == "attempt_ended"}
    assert workers.pop("checks") is None  # planrun checks itself
    assert set(workers.values()) <= {"one", "two"}
    option = events[0]["options"]["executor"]
    assert (option["address"], option["workers"], option["slots"]) == (cluster.address, ["one", "two"], 4)


def test_a_secret_reaches_only_its_step(tmp_path: Path, cluster: DaskCluster) -> None:
    """It is masked, and neither in the scheduler nor in what Dask prints."""
    (tmp_path / "plan.yml").write_text(SECRETS, "utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "--executor", cluster.address],
        cwd=tmp_path,
        env={**os.environ, "TOKEN": SECRET, "OTHER": "another-secret-value"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    wait_for(tmp_path / "kept.txt")
    assert occurrences(cluster.pid("scheduler"), b"planrun-2") > 0  # it knows the tasks
    assert occurrences(cluster.pid("scheduler"), SECRET.encode()) == 0
    (tmp_path / "go").touch()
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, printed
    assert "got *** and nothing" in printed
    assert "got nothing" in printed
    assert SECRET not in printed
    assert not any(SECRET.encode() in cluster.log(name) for name in ("scheduler", "one", "two"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "kept.txt"]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def test_files_that_workers_do_not_share(tmp_path: Path, planrun: Command, cluster: DaskCluster) -> None:
    """What a step does not declare and another one reads is an error; a file with a secret gets into no store."""
    folder, store = tmp_path / "ws", tmp_path / "store"
    folder.mkdir()
    (folder / "plan.yml").write_text(SENT, "utf-8")
    words = ("--executor", cluster.address, "--cluster-store", str(store))
    ran = planrun("execute", "plan.yml", *words, cwd=folder, env={**os.environ, "TOKEN": SECRET})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = {name: (status, reason) for name, (status, reason, _) in facts_of(folder).items()}
    assert found["forgets"] == ("failed", "outputs")
    assert (
        "it writes needed.txt, which the step reads reads, and does not declare it" in ran.stdout + ran.stderr
    )
    assert found["there"] == found["again"] == ("completed", "ran")
    assert SECRET in (folder / "made.bin").read_text("utf-8")
    kept = [path.read_bytes() for path in store.rglob("*") if path.is_file()]
    assert len(kept) == 1
    assert SECRET.encode() not in kept[0]


def test_a_lost_worker_is_no_silent_second_run(
    tmp_path: Path, planrun: Command, cluster: DaskCluster
) -> None:
    """A step that is not idempotent fails as lost and ran once; another one is repeated as its retries say."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nname: lost\nsteps:\n"
        "  - {id: pays, idempotent: false, retries: 3, on_failure: continue, runs_on: [large],\n"
        "     run: 'echo paid >> effects; until test -e harmed; do sleep 0.02; done'}\n"
        "  - {id: builds, retries: {max: 3, backoff: {initial: 10ms}}, runs_on: [large],\n"
        "     run: 'echo built >> effects; until test -e harmed; do sleep 0.02; done'}\n",
        "utf-8",
    )
    process = start(tmp_path, "execute", "plan.yml", "--executor", cluster.address)
    limit = time.monotonic() + LIMIT
    while len(said(tmp_path / "effects")) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    for name in ("one", "two"):  # each has one of the steps
        cluster.kill(name)
    (tmp_path / "harmed").touch()
    cluster.revive(("one", "two"))
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, printed
    assert "was lost: the connection to it broke" in printed
    assert said(tmp_path / "effects").count("paid") == 1
    ends = [
        (e["step"], e["status"], e["reason"]) for e in events_of(tmp_path) if e["type"] == "attempt_ended"
    ]
    assert ("pays", "failed", "lost") in ends
    assert ("builds", "failed", "lost") in ends
    assert ("builds", "completed", "ran") in ends
    assert planrun("verify").returncode == 0


def said(path: Path) -> list[str]:
    """Return the words of a file that may not exist yet."""
    return path.read_text("utf-8").split() if path.exists() else []


def test_a_cancelled_run_ends_what_runs_on_workers(tmp_path: Path, cluster: DaskCluster) -> None:
    """The whole tree gets the signal, the cleanup runs on the cluster, and nothing of the step is left."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nname: cancelled\nsteps:\n"
        "  - {id: long, run: \"trap 'echo heard >> effects; exit 0' TERM; (setsid sleep 733 &) ; touch begun;"
        ' while :; do sleep 0.02; done"}\n'
        "finally:\n  - {id: tidy, run: 'echo tidied >> effects'}\n",
        "utf-8",
    )
    process = start(tmp_path, "execute", "plan.yml", "--executor", cluster.address)
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 143, printed
    assert said(tmp_path / "effects") == ["heard", "tidied"]
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert b"sleep\x00733\x00" not in lines


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense", "expected local, dask://HOST:PORT or tls://HOST:PORT"),
        ("dask://192.0.2.1:8786", "needs TLS"),
        ("dask://127.0.0.1:1", "no Dask scheduler answers"),
    ],
)
def test_an_address_that_cannot_be_used(tmp_path: Path, planrun: Command, address: str, said: str) -> None:
    """Nothing runs, and the message says why."""
    (tmp_path / "plan.yml").write_text("version: 1\nname: one\nsteps: [{id: a, run: touch ran}]\n", "utf-8")
    ran = planrun("execute", "plan.yml", "--executor", address)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / ".planrun" / "cluster").exists()


def test_a_label_that_no_worker_has(tmp_path: Path, planrun: Command, cluster: DaskCluster) -> None:
    """The step and the known labels are named before anything runs."""
    text = "version: 1\nname: one\nsteps: [{id: a, run: touch ran}, {id: b, runs_on: [gpu], run: 'true'}]\n"
    (tmp_path / "plan.yml").write_text(text, "utf-8")
    ran = planrun("execute", "plan.yml", "--executor", cluster.address)
    assert ran.returncode == 2
    assert "plan.yml:3: the step b runs on workers with gpu" in ran.stderr
    assert "labels of its workers: large" in ran.stderr
    assert not (tmp_path / "ran").exists()


def test_a_service_is_refused(tmp_path: Path, planrun: Command) -> None:
    """Steps on workers could not reach it."""
    steps = (
        "{id: db, service: true, ready: {run: 'true'}, run: sleep 9}, {id: a, depends_on: [db], run: 'true'}"
    )
    text = f"version: 1\nname: one\nsteps: [{steps}]\n"
    (tmp_path / "plan.yml").write_text(text, "utf-8")
    ran = planrun("execute", "plan.yml", "--executor", "dask://127.0.0.1:1")
    assert ran.returncode == 2
    assert "services run only on planrun's own machine" in ran.stderr


@pytest.mark.parametrize("place", ["top", "step"])
def test_a_plan_never_chooses_where_it_runs(tmp_path: Path, planrun: Command, place: str) -> None:
    """`executor` is no key of a plan, and the hint says what to use."""
    top, step = ("executor: 'dask://x:1'\n", "") if place == "top" else ("", ", executor: dask")
    (tmp_path / "plan.yml").write_text(f"version: 1\n{top}steps: [{{id: a, run: 'true'{step}}}]\n", "utf-8")
    ran = planrun("validate", "plan.yml")
    assert ran.returncode == 2
    assert "a plan never chooses where it runs: use the option `--executor`" in ran.stdout + ran.stderr
