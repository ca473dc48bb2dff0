"""`python -m benchmarks.live`: what it costs to show the output of steps while they run, and how soon a line is shown.

Programs take turns; a figure is the ratio of medians. `--against DIR` compares with another checkout of planrun,
otherwise the comparison is with `--output failed`, which shows nothing of steps that pass.
"""

from __future__ import annotations

import argparse
import os
import pty
import resource
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

STEPS = 1000
MIB = 200
LINES = 60
PAUSE = 0.05  # seconds between two lines whose latency is measured
SECRET = "correct-horse-battery"

PRINTS = "version: 1\ndefaults: {shell: sh}\nsteps:\n"
COPIES = "version: 1\ndefaults: {shell: sh}\nsteps: [{id: copy, exec: [cat, big]}]\n"
TICKS = """\
version: 1
SECRETS
steps:
  - id: ticks
    SECRETS
    exec:
      - PYTHON
      - -c
      - |
        import time
        for number in range(LINES):
            print(f"tick {time.monotonic():.6f} end", flush=True)
            time.sleep(PAUSE)
"""


class Timing:
    """Seconds of one program: wall-clock and processor time of all its processes."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def __str__(self) -> str:
        return f"{statistics.median(self.wall):.3f} s ({statistics.median(self.processor):.3f} s processor)"


def run(
    argv: list[str], folder: Path, sink: str, root: str = ""
) -> tuple[float, float, list[tuple[float, bytes]]]:
    """Run a program with its output in `sink`: file, null or pty; return its times and what came when."""
    leader, follower = pty.openpty() if sink == "pty" else (-1, -1)
    if sink != "pty":
        where = os.devnull if sink == "null" else str(folder / "out.txt")
        follower = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    environ = {**os.environ, "PYTHONPATH": root, "TERM": "xterm", "TOKEN": SECRET, "CI": "false"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    pid = os.fork()
    if not pid:
        os.chdir(folder)
        for number in (1, 2):
            os.dup2(follower, number)
        os.execvpe(argv[0], argv, environ)
    os.close(follower)
    came = drained(leader) if leader >= 0 else []
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    wall = time.monotonic() - started
    if status:
        raise SystemExit(f"{argv} ended with {status}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, spent, came


def drained(leader: int) -> list[tuple[float, bytes]]:
    """Read a terminal until its last writer has closed it."""
    came: list[tuple[float, bytes]] = []
    while True:
        select.select([leader], [], [])
        try:
            data = os.read(leader, 1 << 16)
        except OSError:
            data = b""
        if not data:
            os.close(leader)
            return came
        came.append((time.monotonic(), data))


def planrun(*words: str) -> list[str]:
    """Return the command line of a run by this interpreter."""
    return [sys.executable, "-m", "planrun", "execute", "plan.yml", "--jobs", "2", *words]


def turns(
    programs: dict[str, tuple[list[str], str]], folder: Path, sink: str, rounds: int
) -> dict[str, Timing]:
    """Run programs, each a command line and the checkout of planrun, by turns."""
    timings = {name: Timing() for name in programs}
    for number in range(rounds + 1):
        for name, (argv, root) in programs.items():
            wall, processor, _ = run(argv, folder, sink, root)
            if number:  # the first is a warm-up
                timings[name].wall.append(wall)
                timings[name].processor.append(processor)
    return timings


def ratio(one: Timing, other: Timing) -> str:
    """Return the ratios of two programs."""
    wall = statistics.median(one.wall) / statistics.median(other.wall)
    processor = statistics.median(one.processor) / statistics.median(other.processor)
    return f"{wall:.2f} times ({processor:.2f} times the processor)"


def printing(folder: Path, against: tuple[list[str], str], rounds: int, steps: int) -> None:
    """Measure many steps that print one line each."""
    rows = [f"  - {{id: s{number}, run: echo {number}}}\n" for number in range(steps)]
    (folder / "plan.yml").write_text(PRINTS + "".join(rows), "utf-8")
    for sink in ("file", "pty"):
        found = turns({"now": (planrun(), ROOT), "before": against}, folder, sink, rounds)
        print(f"| {steps} printing steps to a {sink} | {found['now']} | {found['before']} |", end=" ")
        print(f"{ratio(found['now'], found['before'])} |")


def copying(folder: Path, against: tuple[list[str], str], rounds: int, mib: int) -> None:
    """Measure one step with much output."""
    line = b"a line of output such as a compiler or a test runner prints, 79 characters long\n"
    (folder / "big").write_bytes(line * (mib * 2**20 // len(line)))
    (folder / "plan.yml").write_text(COPIES, "utf-8")
    for sink in ("null", "pty"):
        programs = {"now": (planrun(), ROOT), "before": against, "cat": (["cat", "big"], "")}
        found = turns(programs, folder, sink, rounds)
        print(f"| one step of {mib} MiB to {sink} | {found['now']} | {found['before']} |", end=" ")
        print(f"{ratio(found['now'], found['before'])}; {ratio(found['now'], found['cat'])} of cat |")


def latency(folder: Path, *, masked: bool) -> None:
    """Measure the time from the write of a line to its arrival at the terminal."""
    text = TICKS.replace("PYTHON", sys.executable).replace("LINES", str(LINES)).replace("PAUSE", str(PAUSE))
    secrets = "secrets: [TOKEN]"
    top, _, rest = text.partition("SECRETS\n")
    text = f"{top}{secrets}\n{rest}" if masked else top + rest
    text = text.replace("    SECRETS\n", f"    {secrets}\n" if masked else "")
    (folder / "plan.yml").write_text(text, "utf-8")
    _, _, came = run(planrun(), folder, "pty", ROOT)
    delays = []
    for at, data in came:
        for part in data.split(b"tick ")[1:]:
            written, found, _ = part.partition(b" end")
            if found and b"." in written:
                delays.append(at - float(written))
    delays.sort()
    if len(delays) < LINES:
        raise SystemExit(f"{len(delays)} of {LINES} lines were shown whole")
    p95 = delays[int(len(delays) * 0.95)]
    kind = "masked" if masked else "plain"
    print(f"| latency of a {kind} line | median {statistics.median(delays):.3f} s |", end=" ")
    print(f"95 of 100 ≤ {p95:.3f} s | at most {delays[-1]:.3f} s |")


ROOT = str(Path(__file__).parents[1])


def main() -> int:
    """Measure and print a markdown table; exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small and few runs: does it work?")
    parser.add_argument("--against", metavar="DIR", default="", help="another checkout of planrun")
    chosen = parser.parse_args()
    rounds = 1 if chosen.quick else 5
    against = (planrun(), chosen.against) if chosen.against else (planrun("--output", "failed"), ROOT)
    with tempfile.TemporaryDirectory(prefix="live-") as name:
        folder = Path(name)
        print("| Work | now | before | ratio |\n|---|---|---|---|")
        printing(folder, against, rounds, 50 if chosen.quick else STEPS)
        copying(folder, against, rounds, 8 if chosen.quick else MIB)
        for masked in (False, True):
            latency(folder, masked=masked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
