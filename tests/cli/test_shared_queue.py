"""A queue that several machines run: numbers, leases, and what becomes of the entries of a lost machine."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun.errors import InvalidInput
from planrun.model.queue import EntryAdded, EntryCancelling, EntryStarted, Worker
from planrun.places.place import open_place
from planrun.queue import entries as verbs
from planrun.queue import leases
from planrun.queue.keeper import FORM
from planrun.queue.sharing import settle_lost
from planrun.records.queueplace import Conflict, QueuePlace
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

AT = "2026-01-01T00:00:00.000Z"
HOLDS = """\
version: 1
defaults: {shell: sh}
steps:
  - {id: first, run: "echo $MACH >> ../effects"}
  - {id: hold, depends_on: [first], run: "touch ../began; until test -e ../go; do sleep 0.02; done"}
"""


def queue_of(folder: Path, machine: str = "a") -> QueuePlace:
    """Return the queue as a machine sees it."""
    workspace = folder / machine
    workspace.mkdir(exist_ok=True)
    return QueuePlace(str(workspace), open_place(str(folder / "queue")))


def put(queue: QueuePlace, **fields: Any) -> int:
    """Add an entry."""
    with queue.change() as change:
        number = change.queue.last + 1
        change.add(EntryAdded(at=AT, entry=number, plan="plan.yml", folder=".", **fields))
    return number


def begin(queue: QueuePlace, number: int, **worker: Any) -> None:
    """Record that an entry runs on a machine that is not this one."""
    process = Worker(pid=1, born="1", boot="x", host="far", runner="r", lease=10.0, folder="/far").but(
        **worker
    )
    with queue.change() as change:
        change.add(
            EntryStarted(
                at=AT, entry=number, verb="execute", run="20260101-000000-000000", worker=vars(process)
            )
        )


def test_one_of_two_changes_is_written(tmp_path: Path) -> None:
    """A change that was begun on a state that is gone is refused, whenever it ends, and nothing of it is written."""
    one, two = queue_of(tmp_path), queue_of(tmp_path, "b")
    late = one.change()
    with late as change:
        put(two)
        change.add(EntryAdded(at=AT, entry=1, plan="other.yml", folder="."))
        with pytest.raises(Conflict):
            late.__exit__(None)
        late._events.clear()
    assert [entry.added.plan for entry in one.read().entries.values()] == ["plan.yml"]
    assert put(one) == 2
    assert two.read().last == 2


def test_clearing_begins_a_new_chain(tmp_path: Path) -> None:
    """After `clear` old and new readers see what is left, numbers go on, and an altered object is refused."""
    one, two = queue_of(tmp_path), queue_of(tmp_path, "b")
    for _ in range(3):
        put(one)
    verbs.cancel(one, 2)
    assert verbs.clear(one, everything=False) == 1
    assert list(two.read().entries) == list(queue_of(tmp_path, "c").read().entries) == [1, 3]
    assert put(two) == 4
    assert list(one.read().entries) == [1, 3, 4]
    (*_, newest) = sorted((tmp_path / "queue" / "events").iterdir())
    newest.write_bytes(newest.read_bytes().replace(b"plan.yml", b"evil.yml"))
    with pytest.raises(InvalidInput, match="the queue is not what was written"):
        queue_of(tmp_path, "d")


def test_a_lease_is_over_when_no_sign_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer counts from the sign that it saw, a new sign begins the lease anew, and no sign ends it."""
    moment = 100.0
    monkeypatch.setattr(leases, "now", lambda: moment)
    place = open_place(str(tmp_path))
    lease, watch = leases.Lease(place, 10.0), leases.Watch(place)
    lease.sign()
    assert not watch.is_over(lease.runner, 10.0)
    moment += 9
    assert not watch.is_over(lease.runner, 10.0)
    lease.sign()
    moment += 9
    assert not watch.is_over(lease.runner, 10.0)
    moment += 11
    assert watch.is_over(lease.runner, 10.0)
    assert not leases.Watch(place).is_over(lease.runner, 10.0)


@pytest.mark.parametrize(
    ("fields", "status"),
    [({}, "lost"), ({"repeatable": True}, "queued"), ({"cancelling": True}, "cancelled")],
)
def test_entries_of_a_lost_machine(tmp_path: Path, fields: dict[str, Any], status: str) -> None:
    """Without its records an entry is left to a person, unless it is repeatable or was cancelled."""
    queue = queue_of(tmp_path)
    cancelling = fields.pop("cancelling", False)
    number = put(queue, **fields)
    begin(queue, number)
    with queue.change() as change:
        if cancelling:
            change.add(EntryCancelling(at=AT, entry=number))
        settle_lost(queue, change, change.queue.entries[number])
    entry = queue.read().entries[number]
    assert entry.status == status
    if status == "lost":
        assert "look there what run 20260101-000000-000000 did" in entry.reason
        verbs.retry(queue, [number])
        assert (queue.read().statuses()[number], queue.read().entries[number].run) == ("queued", "")


def kept(*words: str, lease: float) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command under a keeper; returns it, and where it gets signs of life."""
    theirs, ours = os.pipe()
    keeper = [sys.executable, "-m", "planrun.queue.keeper", str(lease), str(theirs), repr(leases.now())]
    process = subprocess.Popen([*keeper, *words], pass_fds=(theirs,), stdout=subprocess.PIPE)
    os.close(theirs)
    return process, ours


def test_a_keeper_ends_what_it_keeps() -> None:
    """Without signs of life the command gets SIGTERM and then SIGKILL; with signs it ends as it ends."""
    sh = "/bin/sh"
    process, signs = kept(sh, "-c", "trap 'echo term' TERM; while :; do sleep 0.05; done", lease=1.0)
    assert process.wait(LIMIT) == -signal.SIGKILL
    assert process.stdout is not None
    assert process.stdout.read() == b"term\n"
    process.stdout.close()
    os.close(signs)
    process, signs = kept(sh, "-c", "read -r _ < /dev/null; sleep 0.7; exit 7", lease=1.0)
    while process.poll() is None:
        os.write(signs, struct.pack(FORM, leases.now()))
        time.sleep(0.05)
    assert process.returncode == 7
    process.communicate()
    os.close(signs)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the command only on Linux")
def test_what_is_kept_dies_with_its_keeper() -> None:
    """A killed keeper leaves no command, and a closed pipe, as of a killed runner, ends it."""
    for kills in (True, False):
        process, signs = kept("/bin/sh", "-c", "echo $$; exec sleep 60", lease=60.0)
        assert process.stdout is not None
        assert process.stdout.readline()
        if kills:
            process.kill()
        os.close(signs)
        process.wait(LIMIT)
        assert process.stdout.read() == b""  # nothing holds its output
        process.stdout.close()


def runner(folder: Path, machine: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a runner on a machine."""
    (folder / machine).mkdir(exist_ok=True)
    (folder / machine / "plan.yml").write_text(HOLDS)
    own = {"PLANRUN_MACHINE": machine, "MACH": machine, "PLANRUN_QUEUE_LEASE": "3"}
    return subprocess.Popen(
        [sys.executable, "-m", "planrun", "queue", "run", "--at", str(folder / "queue"), *words],
        cwd=folder / machine,
        env=os.environ | own,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_a_machine_is_lost(tmp_path: Path, planrun: Command) -> None:
    """When a runner is killed, its run ends; another machine reports it lost, and the first one continues it later."""
    at = str(tmp_path / "queue")
    (tmp_path / "plan.yml").write_text(HOLDS)
    assert planrun("queue", "add", "plan.yml", "--at", at).returncode == 0
    one = runner(tmp_path, "a")
    while not (tmp_path / "began").exists():
        time.sleep(0.05)
    one.kill()
    one.wait(LIMIT)
    assert runner(tmp_path, "b").wait(LIMIT) == 0  # it cannot start anything
    two = runner(tmp_path, "b", "--wait")
    while "lost" not in (said := planrun("queue", "list", "--at", at, "--json").stdout):
        time.sleep(0.2)
    assert json.loads(said)["entries"][0]["status"] in ("running", "lost")
    (tmp_path / "go").touch()
    while '"lost","priority"' not in planrun("queue", "list", "--at", at, "--json").stdout:
        time.sleep(0.3)
    two.terminate()
    assert two.wait(LIMIT) == 128 + 15
    assert runner(tmp_path, "a").wait(LIMIT) == 0
    (row,) = json.loads(planrun("queue", "list", "--at", at, "--json").stdout)["entries"]
    assert (row["status"], row["machine"]) == ("completed", "a")
    assert (tmp_path / "effects").read_text() == "a\n"


def test_what_is_refused(tmp_path: Path, planrun: Command) -> None:
    """A place without atomic creation, a plan outside of the folder, and repeating what must not be repeated."""
    (tmp_path / "plan.yml").write_text(HOLDS.replace("id: first,", "id: first, idempotent: false,"))
    (tmp_path / "in").mkdir()
    at = str(tmp_path / "queue")
    for words, message in (
        (("--at", "memory://team"), "memory://team cannot hold a queue"),
        (("--repeatable",), "--repeatable is for a queue that machines share"),
        (("--repeatable", "--at", at), "must not run twice: first"),
        (("--at", at, "--folder", ".."), "is not in this folder"),
    ):
        found = planrun("queue", "add", "plan.yml", *words)
        assert found.returncode == 2
        assert message in found.stderr
