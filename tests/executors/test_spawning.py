"""How a process starts: what it inherits, its place, and the message when it cannot start."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.executors.conftest import Bench

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    """Write an executable file."""
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def test_standard_input_is_empty(bench: Bench) -> None:
    """Reading from standard input ends at once."""
    assert bench.run(bench.shell("a", "cat; echo end")).status == "completed"
    assert bench.log("a") == "end\n"


@LINUX
def test_nothing_but_the_standard_descriptors_is_inherited(bench: Bench) -> None:
    """A child has descriptors 0 to 2 only, also when this process holds one that is open for its children."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        # The executor is made first in the fixture; what is opened later is close-on-exec by Python's rule.
        with type(bench.executor)(logs=str(bench.logs)) as bench.executor:
            bench.executor.start(bench.job("sleeper", "sleep", "60"))
            bench.executor.start(bench.shell("a", "ls -l /proc/self/fd"))
            assert bench.outcomes(1)["a"].status == "completed"
    finally:
        os.close(reading)
        os.close(writing)
    names = [line.split()[8] for line in bench.log("a").splitlines()[1:]]
    assert names == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


def test_it_leads_a_session_of_its_own(bench: Bench) -> None:
    """The process is the leader of a new session and group, without a terminal."""
    program = "import os; print(os.getpid(), os.getsid(0), os.getpgid(0), flush=True); open('/dev/tty')"
    bench.run(bench.python("a", program))
    numbers, *rest = bench.log("a").splitlines()
    assert len(set(numbers.split())) == 1
    assert rest[-1].startswith("OSError")


@LINUX
def test_signals_are_as_a_program_expects_them(bench: Bench) -> None:
    """No signal is ignored or blocked in the child, though Python ignores SIGPIPE."""
    bench.run(bench.shell("a", "exec cat /proc/self/status"))
    state = dict(line.split(":\t") for line in bench.log("a").splitlines() if line.startswith("Sig"))
    glibc = (1 << 31) | (1 << 32)  # its two internal signals, which its posix_spawn ignores itself
    assert int(state["SigBlk"], 16) == 0
    assert int(state["SigIgn"], 16) & ~glibc == 0


def test_the_environment_is_that_of_the_job(bench: Bench) -> None:
    """A child sees the job's variables and no other, byte for byte."""
    env = {"PATH": os.environ["PATH"], "A": "x\ny", "B": "", "C": "\udcff\u00e9"}
    program = (
        "import json, os; print(json.dumps(sorted((k, v) for k, v in os.environ.items() if k != 'LC_CTYPE')))"
    )
    bench.run(bench.python("a", program, env=env))
    assert dict(json.loads(bench.log("a"))) == env


def test_each_job_runs_in_its_own_folder(bench: Bench, tmp_path: Path) -> None:
    """A job starts in its `cwd`, and planrun stays where it was."""
    before = os.getcwd()
    (tmp_path / "sub").mkdir()
    bench.finish(
        bench.job("a", "pwd", "-P", cwd=str(tmp_path / "sub")),
        bench.job("b", "pwd", "-P", cwd=before),
        bench.job("c", "./there", cwd=str(script(tmp_path / "there", "#!/bin/sh\npwd -P\n").parent)),
    )
    assert [bench.log(step).strip() for step in "abc"] == [str(tmp_path / "sub"), before, str(tmp_path)]
    assert os.getcwd() == before


def test_the_path_of_the_job_finds_the_program(bench: Bench, tmp_path: Path) -> None:
    """A name is looked up on the job's PATH, past what may not be executed; empty entries are the job's folder."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "dir" / "tool").mkdir(parents=True)
    script(tmp_path / "one" / "tool", "#!/bin/sh\necho one\n", 0o644)
    script(tmp_path / "two" / "tool", "#!/bin/sh\necho two\n")
    script(tmp_path / "tool", "#!/bin/sh\necho here\n")
    paths = {"a": f"{tmp_path}/dir:{tmp_path}/one:{tmp_path}/two", "b": f":{tmp_path}/two", "c": "two"}
    bench.finish(*[bench.job(step, "tool", env={"PATH": path}) for step, path in paths.items()])
    assert [bench.log(step).strip() for step in "abc"] == ["two", "here", "two"]


def test_every_reason_not_to_start_is_named(bench: Bench, tmp_path: Path) -> None:
    """Each way in which a process cannot be started has its own one-line message."""
    script(tmp_path / "plain", "echo hi\n", 0o644)
    script(tmp_path / "data", "no program\n")
    script(tmp_path / "lost", "#!/no/such/interpreter -x\n")
    script(tmp_path / "windows", "#!/bin/bash\r\necho hi\r\n")
    (tmp_path / "folder").mkdir()
    here = str(tmp_path)
    only_plain = {"PATH": here}
    messages = {
        "a": (bench.job("a", ""), 'no program named "" on PATH'),
        "b": (bench.job("b", "./missing"), "no such program: ./missing"),
        "c": (bench.job("c", "./plain"), "not executable: ./plain"),
        "d": (bench.job("d", "plain", env=only_plain), f'"plain" on PATH is not executable: {here}/plain'),
        "e": (bench.job("e", "./folder"), "a folder, not a program: ./folder"),
        "f": (
            bench.job("f", "./data"),
            "neither a program of this machine nor a script with a #! line: ./data",
        ),
        "g": (bench.job("g", "./lost"), "the interpreter of ./lost does not exist: '/no/such/interpreter'"),
        "m": (
            bench.job("m", "./windows"),
            "the file has Windows line ends: ./windows; save it with LF, as `sed -i 's/\\r$//' FILE` does",
        ),
        "h": (bench.job("h", "true", cwd="/no/such"), "working directory does not exist: /no/such"),
        "i": (
            bench.job("i", "true", cwd=f"{here}/plain"),
            f"working directory is not a folder: {here}/plain",
        ),
        "j": (bench.job("j", "true", "a\0b"), "cannot start 'true': embedded null byte"),
        "k": (
            bench.job("k", "true", env={"A=B": ""}),
            "cannot start 'true': illegal environment variable name",
        ),
        "l": (bench.job("l", "./plain/x"), "cannot start ./plain/x: Not a directory"),
    }
    outcomes = bench.finish(*[job for job, _ in messages.values()])
    assert {(outcome.status, outcome.reason) for outcome in outcomes.values()} == {("failed", "spawn")}
    assert {step: outcomes[step].message for step in messages} == {
        step: text for step, (_, text) in messages.items()
    }


def test_too_long_arguments_are_named_with_their_size(bench: Bench) -> None:
    """An argument that the kernel refuses is an outcome that says how long it is."""
    outcome = bench.run(bench.job("a", "true", "x" * 3_000_000, env={}))
    assert outcome.reason == "spawn"
    assert "too long for the system: 3000006 bytes, the longest argument 3000001" in outcome.message


def test_a_variable_that_is_too_long_is_named(bench: Bench) -> None:
    """A value that the kernel refuses is named by its variable, with its size."""
    outcome = bench.run(bench.job("a", "true", env={"SHORT": "x", "NOTES": "x" * 3_000_000}))
    assert outcome.reason == "spawn"
    assert "the longest argument 5, the longest variable, NOTES, 3000007" in outcome.message


def test_too_many_open_files_are_an_outcome(both: Bench) -> None:
    """When planrun has no descriptor left, steps fail to start and the executor continues."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    both.run(both.job("warm", "true"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        outcome = both.run(both.job("a", "true"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (outcome.status, outcome.reason) == ("failed", "spawn")
    assert outcome.message.startswith("cannot ")
    assert both.run(both.job("b", "true")).status == "completed"


@LINUX
def test_descriptors_are_given_back(both: Bench) -> None:
    """However attempts end, no descriptor of theirs stays open."""
    gc.collect()  # what earlier tests left open is not closed while this one counts
    before = len(os.listdir("/proc/self/fd"))
    with both.make(grace=0.2) as executor:
        both.executor = executor
        both.finish(
            both.job("silent", "true"),
            both.job("missing", "no-such-program"),
            both.shell("loud", "echo x; exit 1"),
            both.shell("left", "sleep 60 &"),
            both.job("late", "sleep", "60", timeout=0.1),
        )
    assert len(os.listdir("/proc/self/fd")) == before


def test_nothing_slow_is_imported() -> None:
    """Running processes needs none of the modules that would double the time to start."""
    heavy = "{'typing', 're', 'enum', 'signal', 'subprocess', 'json', 'contextlib', 'collections', 'logging'}"
    program = f"import sys; sys.path[:] = {sys.path}; import planrun.executors.local; print({heavy} & set(sys.modules))"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True
    )
    assert said.stdout == "set()\n"


def test_it_starts_with_all_descriptors_closed(bench: Bench) -> None:
    """A planrun that was started without standard descriptors keeps its own files out of their numbers."""
    program = f"""
import os
from planrun.executors.local import LocalExecutor
from planrun.model.job import Job
with LocalExecutor(logs={str(bench.logs)!r}) as executor:
    job = Job(step="a", attempt=1, argv=("sh", "-c", "cat; echo out; echo err >&2"), env=dict(os.environ),
              cwd=os.getcwd(), log={str(bench.logs / "a" / "1.log")!r}, timeout=60.0)
    executor.start(job)
    assert executor.wait()[0][1].status == "completed"
"""
    arguments = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", program]
    subprocess.run(arguments, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert bench.log("a") == "out\nerr\n"
