"""The workspace lock: one holder, which a refusal names, and free as soon as the holder is dead."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from planrun.errors import RecordsLost
from planrun.records import lock as lock_module
from planrun.records.lock import WorkspaceHeld, WorkspaceLock
from planrun.records.rundir import home
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

HOLD = (
    "import os, sys, time; from planrun.records.lock import WorkspaceLock;"
    "WorkspaceLock(sys.argv[1]).acquire(f'run 1, process {os.getpid()} on here, since noon');"
    "print('ready', flush=True); time.sleep(60)"
)


# Dies while a child of its own has the lock as well, until the test closes the child's input.
LEAVE = (
    "import os, sys, signal; from planrun.records.lock import WorkspaceLock;"
    "lock = WorkspaceLock(sys.argv[1]); lock.acquire(f'run 1, process {os.getpid()} on here, since noon');"
    "os.fork() or (os.read(0, 1), os._exit(0)); os.kill(os.getpid(), signal.SIGKILL)"
)


def owner(run: int) -> str:
    """What a run of this process writes into the lock."""
    return f"run {run}, process {os.getpid()} on here, since noon"


def test_a_refusal_names_the_holder_of_the_workspace(tmp_path: Path) -> None:
    """The lock is held by a live process only: its death frees it, and nothing stale stays behind."""
    folder = home(str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-c", HOLD, folder], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "ready\n"
        refusal = f"another run holds this workspace: run 1, process {holder.pid} on here, since noon"
        with pytest.raises(WorkspaceHeld, match=refusal):
            WorkspaceLock(folder).acquire(owner(2))
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    lock = WorkspaceLock(folder)
    lock.acquire(owner(3))  # the holder was reaped, so what it held is free
    with pytest.raises(WorkspaceHeld, match="run 3"):
        WorkspaceLock(folder).acquire(owner(4))
    lock.release()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not say who has a lock")
def test_a_dead_holders_short_leftover_causes_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that is being spawned when its planrun is killed has the lock until it starts its program."""
    folder = home(str(tmp_path))
    monkeypatch.setattr(lock_module, "_NAMED_BY", LIMIT)
    holder = subprocess.Popen([sys.executable, "-c", LEAVE, folder], stdin=subprocess.PIPE)
    assert holder.stdin is not None
    holder.wait()
    with ThreadPoolExecutor(1) as pool, WorkspaceLock(folder) as lock:
        taken = pool.submit(lock.acquire, owner(2))
        with pytest.raises(TimeoutError):
            taken.result(0.2)
        holder.stdin.close()
        taken.result(LIMIT)


def test_a_lock_that_is_given_back_while_its_holder_is_looked_up_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name in the file is that of a finished run: it causes no refusal."""
    folder = home(str(tmp_path))
    with WorkspaceLock(folder) as first, WorkspaceLock(folder) as second:
        first.acquire(owner(1))

        def lock_holder_pid(_inode: int) -> int:
            first.release()
            return 0

        monkeypatch.setattr(lock_module, "lock_holder_pid", lock_holder_pid)
        second.acquire(owner(2))


def test_the_name_of_an_earlier_holder_is_not_shown(tmp_path: Path) -> None:
    """Between taking the lock and writing its name a holder is known by its process, not by the last run's name."""
    folder = home(str(tmp_path))
    with WorkspaceLock(folder) as first:
        first.acquire("run 1, process 1 on here, since noon")
    fd = os.open(first.path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(WorkspaceHeld) as refusal:
        WorkspaceLock(folder).acquire(owner(2))
    os.close(fd)
    expected = f"process {os.getpid()}" if sys.platform == "linux" else "run 1, process 1 on here, since noon"
    assert refusal.value.holder == expected


def test_an_earlier_holder_is_known(tmp_path: Path) -> None:
    """Only in a new workspace can nothing be left of an earlier run."""
    folder = home(str(tmp_path))
    for before in (False, True, True):
        with WorkspaceLock(folder) as lock:
            lock.acquire("run")
            assert lock.used_before is before


def test_a_replaced_lock_file_causes_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who locked a file that is not in its place any more tries again with the one that is."""
    folder = home(str(tmp_path))
    lock = WorkspaceLock(folder)
    flock, taken = fcntl.flock, []

    def racing(fd: int, how: int) -> None:
        taken.append(os.fstat(fd).st_ino)
        if len(taken) < 3:  # another process removes the folder's contents between our open and our lock
            os.unlink(lock.path)
            if len(taken) == 2:
                os.close(os.open(lock.path, os.O_CREAT | os.O_WRONLY))
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", racing)
    lock.acquire(owner(1))
    assert len(taken) == 3
    assert os.stat(lock.path).st_ino == taken[-1]
    assert os.stat(lock.path).st_size > 0
    lock.release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Where two runs cannot be kept apart none starts, and the message names the fix."""

    def unable(_fd: int, _how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", unable)
    with pytest.raises(
        RecordsLost, match=r"this file system has no locks: .*/lock: .*use a folder on a local disk"
    ):
        WorkspaceLock(home(str(tmp_path))).acquire(owner(1))


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    """A symbolic link in the place of the lock is refused, not followed."""
    folder = home(str(tmp_path))
    os.symlink(tmp_path / "elsewhere", os.path.join(folder, "lock"))
    with pytest.raises(RecordsLost, match="cannot lock"):
        WorkspaceLock(folder).acquire("run")


@pytest.mark.parametrize("place", ["link", "file"])
def test_records_go_into_a_folder_of_their_own(tmp_path: Path, place: str) -> None:
    """A file, or a link that leads elsewhere, in the place of `.planrun` is named and left as it is."""
    if place == "link":
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / ".planrun").symlink_to("elsewhere")
    else:
        (tmp_path / ".planrun").write_text("mine", "ascii")
    with pytest.raises(
        RecordsLost, match=r"cannot keep records in .*/\.planrun: it is (a symbolic link|no folder)"
    ):
        home(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [".planrun", *(["elsewhere"] if place == "link" else [])]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_workspace_of_another_user_is_reported_as_such(tmp_path: Path) -> None:
    """A file that cannot be opened is not reported as held by another run."""
    folder = home(str(tmp_path))
    os.seteuid(65534)
    try:
        with pytest.raises(RecordsLost, match=r"cannot lock this workspace: .*Permission denied"):
            WorkspaceLock(folder).acquire("run")
    finally:
        os.seteuid(0)


def test_a_folder_that_others_may_enter_is_closed(tmp_path: Path) -> None:
    """Records that an archive or a cache brought have its modes: what is new in them is for the owner alone."""
    (tmp_path / ".planrun").mkdir()
    (tmp_path / ".planrun").chmod(0o777)
    assert os.stat(home(str(tmp_path))).st_mode & 0o777 == 0o700


def test_many_may_make_the_folder_at_once(tmp_path: Path) -> None:
    """A start that meets another start while it makes the folder uses the same folder, and never fails."""
    for number in range(20):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        with ThreadPoolExecutor(4) as pool:
            folders = set(pool.map(home, [str(workspace)] * 8))
        assert folders == {str(workspace / ".planrun")}
        assert (workspace / ".planrun" / ".gitignore").read_bytes() == b"*\n"
