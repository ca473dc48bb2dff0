"""Output that passes through planrun: masked before it is written, nothing lost, and planrun never blocks."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.errors import RecordsLost
from planrun.executors import attempt
from planrun.executors.piped import PipedLogs
from tests.executors.conftest import LIMIT, SECRET, SHORT, Bench, Masks, alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Pids = Callable[[], list[int]]

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
MIB = 1024 * 1024
FLOOD = "while :; do echo flood; done"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Give the test a folder with an executor that has masks."""
    bench = Bench(tmp_path, masked=True)
    with bench.make() as bench.executor:
        yield bench


@pytest.mark.shows("R12")
def test_a_secret_is_masked_however_it_arrives(bench: Bench) -> None:
    """Byte by byte or at once, on both outputs, also without a line end: the log never has it."""
    program = f"""
import os, sys, time
for at in {SECRET!r} + "\\n":
    os.write(1, at.encode())
    time.sleep(0.001)
os.write(2, b"{SECRET}\\n")
os.write(1, b"end {SECRET}")
"""
    outcome = bench.run(bench.python("a", program))
    assert bench.log("a") == "***\n***\nend ***"
    assert outcome.log_bytes == len("***\n***\nend ***")


def test_both_outputs_keep_their_order(bench: Bench) -> None:
    """Alternating output to stdout and stderr is in the log in that order."""
    bench.run(bench.shell("a", "for n in 1 2 3 4 5 6 7 8 9; do echo o$n; echo e$n >&2; done"))
    assert bench.log("a").split() == [f"{kind}{n}" for n in range(1, 10) for kind in "oe"]


def test_a_masked_log_is_for_its_owner_alone(bench: Bench) -> None:
    """Folders are 0700 and logs 0600, whatever the umask allows; silence leaves no file."""
    before = os.umask(0)
    try:
        bench.finish(bench.shell("a", "echo x"), bench.job("silent", "true"))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [bench.logs, *bench.logs.rglob("*")]}
    assert modes == {"logs": 0o700, "a": 0o700, "1.log": 0o600}


def test_much_output_arrives_whole(bench: Bench) -> None:
    """Several steps that write as fast as they can lose no byte, and planrun's memory stays as it was."""
    bench.run(bench.shell("warm", f"head -c {4 * MIB} /dev/zero"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scripts = {step: f"yes line-of-{step} | head -c {20 * MIB}; printf end" for step in "abc"}
    outcomes = bench.finish(*(bench.shell(step, script) for step, script in scripts.items()))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert {outcome.log_bytes for outcome in outcomes.values()} == {20 * MIB + 3}
    for step in "abc":
        line = f"line-of-{step}\n"
        assert bench.log(step) == (line * (20 * MIB // len(line) + 1))[: 20 * MIB] + "end"
    unit = 1024 if sys.platform == "linux" else 1
    assert (after - before) * unit < 20 * MIB


@pytest.mark.parametrize("end", ["timeout", "cancel", "kill"])
def test_nothing_is_lost_at_any_end(bench: Bench, end: str) -> None:
    """Output from before the end of a step is in its log, also the part that the masks held back."""
    script = f"yes 0123456 | head -c {MIB}; printf %s {SECRET[:10]}; touch ready; sleep 60"
    ready = (bench.folder / "ready").exists
    if end == "timeout":
        outcome = bench.in_time(lambda timeout: bench.shell("a", script, timeout=timeout), ready)
    else:
        bench.executor.start(bench.shell("a", script))
        bench.until(ready)
        stop: dict[str, Callable[[], None]] = {
            "cancel": lambda: bench.executor.signal_all(signal.SIGTERM),
            "kill": bench.executor.kill_all,
        }
        stop[end]()
        outcome = bench.outcomes(1)["a"]
    assert outcome.status == ("failed" if end == "timeout" else "cancelled")
    assert bench.log("a") == "0123456\n" * (MIB // 8) + SECRET[:10]


def test_the_final_output_is_in_the_log(bench: Bench) -> None:
    """What a trap prints after the request to end arrives."""
    script = "trap 'echo cleaned; exit 0' TERM; echo begun; touch ready; while :; do sleep 0.02; done"
    with bench.make(grace=LIMIT) as bench.executor:
        outcome = bench.in_time(
            lambda timeout: bench.shell("a", script, timeout=timeout), (bench.folder / "ready").exists
        )
    assert outcome.reason == "timeout"
    lines = bench.log("a").splitlines()
    assert (lines[0], lines[-1]) == ("begun", "cleaned")  # between them a shell may say who was terminated


def test_one_that_never_stops_writing_blocks_nothing(bench: Bench, pids: Pids) -> None:
    """A background child that writes for ever is ended with its step; a quiet step beside it ends meanwhile."""
    wait = "until test -e go; do sleep 0.02; done"
    bench.executor.start(bench.shell("loud", f"trap '' TERM; ({FLOOD}) & echo $! >> pids; {wait}"))
    bench.until(lambda: len(pids()) == 1)
    bench.executor.start(bench.shell("quiet", "echo x"))
    assert set(bench.outcomes(1)) == {"quiet"}
    (bench.folder / "go").touch()
    outcomes = bench.outcomes(1)
    assert outcomes["loud"].notes == ("1 background process ended",)
    assert not alive(pids()[0])
    assert set(bench.log("loud").split()) <= {"flood", "floo", "flo", "fl", "f"}


@LINUX
def test_a_writer_that_nothing_ends_is_cut_off(
    bench: Bench, pids: Pids, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that even SIGKILL does not end, and that writes for ever, is named and loses its pipe."""
    from planrun.executors.tree import ProcessTree

    monkeypatch.setattr(ProcessTree, "signal", lambda _tree, _signum: None)
    monkeypatch.setattr(attempt, "UNKILLABLE", 1.0)
    outcome = bench.run(bench.shell("a", f"sh -c '{FLOOD}' & echo $! >> pids"))
    assert outcome.status == "completed"
    assert outcome.notes == (f"not ended even by SIGKILL: process {pids()[0]}",)
    assert outcome.log_bytes == (bench.logs / "a" / "1.log").stat().st_size > 0
    bench.until(lambda: not alive(pids()[0]))  # SIGPIPE


@LINUX
@pytest.mark.skipif(not hasattr(socket, "send_fds"), reason="needs descriptors sent over sockets")
def test_a_pipe_of_another_process_is_given_up_and_noted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a process that is no member has the pipe, its end is not waited for longer than for members."""
    monkeypatch.chdir(bench.folder)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(LIMIT)
        server.bind("socket")
        server.listen()
        program = (
            "import socket\n"
            "there = socket.socket(socket.AF_UNIX); there.connect('socket')\n"
            "socket.send_fds(there, [b'x'], [1]); there.recv(1)\n"
        )
        bench.executor.start(bench.python("a", program))
        there, _ = server.accept()
        with there:
            # The holder is this very process, in which the executor does not look.
            _, (held, *_), _, _ = socket.recv_fds(there, 1, 1)
            there.send(b"x")
            os.write(held, b"from afar\n")
            outcome = bench.outcomes(1)["a"]
    assert outcome.status == "completed"
    assert outcome.notes == (
        "output held open by a process that could not be found; what it writes later is lost",
    )
    assert bench.log("a") == "from afar\n"
    with pytest.raises(BrokenPipeError):
        os.write(held, b"late")
    os.close(held)


def test_silence_is_measured_before_the_masks(bench: Bench) -> None:
    """A step whose output the masks hold back is not silent; one without output is."""
    assert bench.run(bench.shell("silent", "sleep 60", idle_timeout=0.5)).reason == "idle_timeout"
    found: list[str] = []
    for silence in SHORT:  # on a busy machine even a `sleep` comes late: once must be enough
        letters = " ".join(SECRET[:12])
        slow = f"for part in {letters}; do printf %s $part; sleep {silence / 8}; done"
        log = str(bench.logs / f"slow {silence}" / "1.log")
        found.append(bench.run(bench.shell("slow", slow, idle_timeout=silence, log=log)).status)
        if found[-1] == "completed":
            assert bench.log(f"slow {silence}") == SECRET[:12]
            break
    assert found[-1] == "completed"


def test_outputs_can_be_opened_again(bench: Bench) -> None:
    """A step may open /dev/stdout and /dev/stderr."""
    bench.run(bench.shell("a", "echo a > /dev/stdout; echo b >> /dev/stderr; echo c | tee /dev/stderr"))
    assert bench.log("a") == "a\nb\nc\nc\n"


@LINUX
def test_no_step_has_the_pipe_of_another(bench: Bench) -> None:
    """A step has three descriptors, and no pipe end but its own; SIGPIPE ends it as usual."""
    script = "ls -l /proc/self/fd | grep -c pipe; yes | head -n 1; echo ${PIPESTATUS[0]}; sleep 0.2"
    bench.finish(*(bench.job(step, "bash", "-c", script) for step in "abc"))
    # 1 and 2 of ls; its 1 is bash's pipe to grep.
    assert {bench.log(step) for step in "abc"} == {"2\ny\n141\n"}


@LINUX
@pytest.mark.shows("R7")
def test_a_log_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    """On a full disk the error names the log, once; the steps are killed, and close() ends in time."""
    program = f"""
import os, resource, sys
sys.path[:] = {sys.path!r}
from pathlib import Path
from tests.executors.conftest import Bench
bench = Bench(Path({str(tmp_path)!r}), masked=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with bench.make() as bench.executor:
    for step in "ab":
        bench.executor.start(bench.shell(step, "echo $$ >> pids; yes"))
    while bench.executor.lost is None:
        bench.executor.wait(None)
    print(bench.executor.lost)
"""
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    first, *more = said.stdout.splitlines()
    assert first in {f"cannot write {tmp_path}/logs/{step}/1.log: File too large" for step in "ab"}
    assert more == []
    assert [pid for pid in map(int, (tmp_path / "pids").read_text("ascii").split()) if alive(pid)] == []
    assert max(path.stat().st_size for path in tmp_path.glob("logs/*/1.log")) == 100_000


def test_a_full_disk_is_reported_once_per_log(tmp_path: Path) -> None:
    """What follows after the first error is swallowed, so that its writer can be ended in peace."""
    (tmp_path / "file").touch()
    log = PipedLogs(Masks()).open(str(tmp_path / "file" / "1.log"))
    writing = os.dup(log.opening[0][1])
    log.begin()
    os.write(writing, b"x" * 100)
    with pytest.raises(RecordsLost, match=r"cannot write .*/file/1\.log: Not a directory"):
        log.receive()
    os.write(writing, b"y" * 100)
    assert log.receive()
    os.close(writing)
    assert log.settle() == 0


def test_a_step_that_removes_its_masked_log_is_found_out(bench: Bench) -> None:
    """Output that a step removed is reported; if the step was silent, nothing is reported."""
    assert bench.run(bench.shell("silent", f"rm -rf {bench.logs}")).status == "completed"
    assert bench.run(bench.shell("next", "echo x")).log_bytes == 2
    removes = f"echo x; until test -s {bench.logs}/loud/1.log; do sleep 0.02; done; rm -rf {bench.logs}"
    assert bench.executor.lost is None
    bench.run(bench.shell("loud", removes))
    assert "loud/1.log was removed while it was in use; 2 bytes" in str(bench.executor.lost)


@pytest.mark.parametrize("place", ["link", "pipe"])
def test_a_file_in_the_logs_place_is_not_written_into(bench: Bench, place: str) -> None:
    """Neither a symbolic link nor a named pipe makes planrun write elsewhere, or wait."""
    precious = bench.folder / "precious"
    precious.write_text("mine", "ascii")
    log = bench.logs / "a" / "1.log"
    log.parent.mkdir(parents=True)
    if place == "link":
        log.symlink_to(precious)
    else:
        os.mkfifo(log)
    bench.executor.start(bench.shell("a", "echo x"))
    bench.outcomes(1)
    assert f"cannot write {log}" in str(bench.executor.lost)
    assert precious.read_text("ascii") == "mine"


def test_an_earlier_planruns_slots_are_recovered(bench: Bench) -> None:
    """What a planrun without masks left in slots when it died is put into its place."""
    bench.logs.mkdir()
    (bench.logs / ".slot-0").write_text("output", "ascii")
    (bench.logs / ".slots").write_bytes(b"a/1.log".ljust(512, b"\n"))
    bench.run(bench.job("b", "true"))
    assert bench.log("a") == "output"


def test_waiting_costs_no_work(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a step is silent, or has closed its output, the loop sleeps."""
    waits: list[float | None] = []
    wait = bench.executor._watch.wait

    def counted(delay: float | None) -> list[tuple[int, int | None]]:
        waits.append(delay)
        return wait(delay)

    monkeypatch.setattr(bench.executor._watch, "wait", counted)
    bench.finish(bench.job("silent", "sleep", "1"), bench.shell("closed", "exec >&- 2>&-; sleep 1"))
    assert len(waits) < 20
