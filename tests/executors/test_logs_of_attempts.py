"""Logs: their place, their permissions, and their state when planrun dies or a step changes them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import RecordsLost
from planrun.executors.local import LocalExecutor
from planrun.executors.logs import Logs, recover

if TYPE_CHECKING:
    from pathlib import Path

    from tests.executors.conftest import Bench

MIB = 1024 * 1024


def leases(folder: Path) -> bool:
    """Whether slots are in use here."""
    logs = Logs(str(folder / "try"))
    logs.open(str(folder / "try" / "x.log")).settle()
    logs.close()
    return logs.leased


def test_a_log_is_for_its_owner_alone(bench: Bench) -> None:
    """Folders are 0700 and logs 0600, whatever the umask allows."""
    before = os.umask(0)
    try:
        bench.run(bench.shell("a", "echo x"))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [bench.logs, *bench.logs.rglob("*")]}
    assert modes.pop("1.log") == 0o600
    assert modes["logs"] == modes["a"] == 0o700


def test_a_running_attempt_shows_its_log_after_a_second(bench: Bench) -> None:
    """The log of an attempt that takes a while has its name, so that it can be followed."""
    log = bench.logs / "a" / "1.log"
    bench.executor.start(bench.shell("a", "echo x; until test -e go; do sleep 0.02; done; echo y"))
    bench.until(lambda: log.exists() and log.stat().st_size > 1)
    assert log.read_text("ascii") == "x\n"
    (bench.folder / "go").touch()
    assert bench.outcomes(1)["a"].log_bytes == 4
    assert log.read_text("ascii") == "x\ny\n"


def test_after_printing_attempts_a_log_is_in_its_place_at_once(bench: Bench) -> None:
    """The fourth attempt with output writes into its log itself; one without output leaves neither file nor folder."""
    for name in ("a", "b", "c"):
        bench.run(bench.shell(name, "echo x"))
    bench.run(bench.shell("d", f"test -e {bench.logs / 'd' / '1.log'} && echo y"))
    assert (bench.logs / "d" / "1.log").read_text("ascii") == "y\n"
    assert bench.run(bench.shell("e", f"test -e {bench.logs / 'e' / '1.log'}")).status == "completed"
    assert not (bench.logs / "e").exists()


def test_much_output_costs_no_memory(bench: Bench) -> None:
    """Fifty MiB of output, the last line without an end, arrive whole while planrun's memory stays as it was."""
    program = f"""
import os, resource
from planrun.executors.local import LocalExecutor
from planrun.model.job import Job
def run(step, script):
    executor.start(Job(step=step, attempt=1, argv=("sh", "-c", script), env=dict(os.environ), cwd=os.getcwd(),
                       log={str(bench.logs)!r} + "/" + step + ".log", timeout=60.0))
    return executor.wait()[0][1]
with LocalExecutor(logs={str(bench.logs)!r}) as executor:
    run("little", "echo x")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run("much", "head -c {50 * MIB} /dev/zero; printf end").log_bytes == {50 * MIB + 3}
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=importing())
    unit = 1024 if sys.platform == "linux" else 1
    assert int(said.stdout) * unit < MIB


def test_a_link_in_the_logs_place_is_not_followed(tmp_path: Path, bench: Bench) -> None:
    """A symbolic link where the log should be never makes planrun write elsewhere."""
    precious = tmp_path / "precious"
    precious.write_text("mine", "ascii")
    for name, executor in {"slots": bench.executor, "files": LocalExecutor()}.items():
        folder = bench.logs / name
        folder.mkdir(parents=True)
        (folder / "1.log").symlink_to(precious)
        with executor:
            executor.start(bench.shell(name, "echo x"))
            executor.wait()
    assert precious.read_text("ascii") == "mine"


def test_a_log_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Without a place for the log nothing is started, and the error names the place."""
    (tmp_path / "file").touch()
    log = str(tmp_path / "file" / "1.log")
    with pytest.raises(RecordsLost, match=r"cannot write .*/file/1\.log: Not a directory"):
        Logs().open(log)


def test_one_slot_serves_all_silent_steps(bench: Bench, tmp_path: Path) -> None:
    """Silent steps that run one after the other share one file, and it is deleted at the end."""
    if not leases(tmp_path):
        pytest.skip("this file system has no leases")
    for number in range(5):
        bench.run(bench.job(f"s{number}", "true"))
    assert sorted(path.name for path in bench.logs.iterdir()) == [".slot-0", ".slots"]
    bench.executor.close()
    assert list(bench.logs.iterdir()) == []


def test_a_slot_in_use_is_not_used_again(tmp_path: Path) -> None:
    """A straggler that kept a silent step's output open cannot write into the log of a later step."""
    if not leases(tmp_path):
        pytest.skip("this file system has no leases")
    logs = Logs(str(tmp_path / "logs"))
    first = logs.open(str(tmp_path / "logs" / "a.log"))
    straggler = os.open(tmp_path / "logs" / ".slot-0", os.O_WRONLY | os.O_APPEND)
    assert first.held()
    assert first.settle() == 0
    second = logs.open(str(tmp_path / "logs" / "b.log"))
    os.write(straggler, b"late\n")
    os.close(straggler)
    assert second.settle() == 0
    logs.close()
    assert list((tmp_path / "logs").iterdir()) == []


def test_the_output_of_a_killed_planrun_is_found_again(bench: Bench) -> None:
    """After kill -9 each running attempt's output is put where it belongs; silent ones leave nothing."""
    program = f"""
import os, signal, time
from planrun.executors.local import LocalExecutor
from planrun.model.job import Job
executor = LocalExecutor(logs={str(bench.logs)!r})
def start(step, script):
    executor.start(Job(step=step, attempt=1, argv=("sh", "-c", script), env=dict(os.environ), cwd=os.getcwd(),
                       log={str(bench.logs)!r} + "/" + step + "/1.log", timeout=60.0))
start("before", "echo before")
executor.wait()
for step in ("a", "b", "silent"):
    start(step, "test $0 = silent || echo $0; echo $$ >> pids; exec sleep 60".replace("$0", step))
while not os.path.exists("pids") or open("pids").read().count("\\n") < 3:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, env=importing(), cwd=bench.folder)
    assert ended.returncode == -9
    for pid in (bench.folder / "pids").read_text("ascii").split():
        os.kill(int(pid), 9)
    recover(str(bench.logs))
    assert [bench.log(step) for step in ("before", "a", "b")] == ["before\n", "a\n", "b\n"]
    assert [path.name for path in bench.logs.iterdir() if path.is_file()] == []
    assert recover(str(bench.logs)) == ()


def test_the_next_executor_recovers_by_itself(tmp_path: Path) -> None:
    """Slots that are left are put into their places before new ones are handed out."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / ".slot-0").write_text("output", "ascii")
    (folder / ".slots").write_bytes(b"a/1.log".ljust(512, b"\n"))
    logs = Logs(str(folder))
    logs.open(str(folder / "b.log")).settle()
    assert (folder / "a" / "1.log").read_text("ascii") == "output"


def test_a_torn_index_costs_no_output(tmp_path: Path) -> None:
    """A slot of an unknown owner stays in its place."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / ".slot-0").write_text("output", "ascii")
    (folder / ".slots").write_bytes(b"a/1.l")
    assert recover(str(folder)) == ()
    logs = Logs(str(folder))
    log = logs.open(str(folder / "b.log"))
    (folder / ".slot-1").write_text("more", "ascii")
    assert log.settle() == 4
    logs.close()
    assert {path.name: path.read_text("ascii") for path in folder.iterdir()} == {
        ".slot-0": "output",
        "b.log": "more",
    }


def test_a_slot_without_a_record_goes_when_it_is_empty(tmp_path: Path) -> None:
    """A planrun that was killed between making a slot and recording it leaves nothing behind."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / ".slot-0").touch()
    assert recover(str(folder)) == ()
    (folder / ".slot-1").touch()
    (folder / ".slots").write_bytes(b"a/1.log".ljust(512, b"\n"))
    assert recover(str(folder)) == ()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", [b"", b"../../elsewhere", b"\0" * 512, b"/tmp/../x"])
def test_an_index_cannot_lead_astray(tmp_path: Path, name: bytes) -> None:
    """A record that names no place below the folder moves nothing."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / ".slot-0").write_text("output", "ascii")
    (folder / ".slots").write_bytes(name.ljust(512, b"\n"))
    assert recover(str(folder)) == ()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [".slot-0"]


def test_a_step_that_removes_the_logs_is_found_out(bench: Bench) -> None:
    """Output that a step removed is reported; if the step was silent, nothing is reported."""
    assert bench.run(bench.shell("silent", f"rm -rf {bench.logs}")).status == "completed"
    assert bench.run(bench.shell("next", "echo x")).log_bytes == 2
    assert bench.executor.lost is None
    assert bench.run(bench.shell("loud", f"echo x; rm -rf {bench.logs}")).status == "completed"
    assert "loud/1.log was removed while it was in use; 2 bytes" in str(bench.executor.lost)


def importing() -> dict[str, str]:
    """An environment in which a child finds the package as this process does."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
