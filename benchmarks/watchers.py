"""`python -m benchmarks.watchers`: what it costs a run of 1,000 steps to be followed by `watch` or `serve`.

Three runs by turns: alone, with `watch` on a terminal, and with `serve`, two readers of events and one that loads the
page twice a second. A figure is the ratio of medians of the wall time of the run; the processor time of the run and of
what follows it stand beside it.
"""

from __future__ import annotations

import argparse
import http.client
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.live import drained, run

ROOT = str(Path(__file__).parents[1])
STEPS = 1000
FIRST = 0.4  # seconds that the first step takes, in which the watcher begins
KINDS = ("alone", "watch", "serve")
PLANRUN = (sys.executable, "-m", "planrun")


class Watching:
    """A terminal with `planrun watch`, begun when the run is there."""

    def __init__(self, folder: Path) -> None:
        leader, follower = pty.openpty()
        environ = {**os.environ, "PYTHONPATH": ROOT, "TERM": "xterm", "CI": "false"}
        self._process = subprocess.Popen(
            [*PLANRUN, "watch"],
            cwd=folder,
            env=environ,
            stdin=follower,
            stdout=follower,
            start_new_session=True,
        )
        os.close(follower)
        self._reader = threading.Thread(target=drained, args=(leader,))
        self._reader.start()

    def close(self) -> None:
        """End it, and fail when it had ended before: then nothing was measured."""
        if self._process.poll() is not None:
            raise SystemExit("planrun watch ended by itself")
        self._process.terminate()
        self._process.wait()
        self._reader.join()


class Serving:
    """`planrun serve`, with readers that follow the newest run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [*PLANRUN, "serve"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ROOT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        address, _, token = self._process.stdout.readline().strip().partition("/?token=")
        self._port = int(address.rpartition(":")[2])
        self._headers = {"Cookie": f"planrun_{self._port}={token}"}
        self._is_over = threading.Event()
        self.pages = self.events = 0
        self._threads: list[threading.Thread] = []

    def follow(self, run_id: str) -> None:
        """Begin to read."""
        for what in (self._read, self._read, self._load):
            thread = threading.Thread(target=what, args=(run_id,))
            thread.start()
            self._threads.append(thread)

    def _asked(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("GET", path, headers=self._headers)
        return connection.getresponse()

    def _read(self, run_id: str) -> None:
        response = self._asked(f"/runs/{run_id}/events")
        while line := response.readline():
            self.events += line.startswith(b"data:")

    def _load(self, run_id: str) -> None:
        while not self._is_over.wait(0.5):
            self.pages += len(self._asked(f"/runs/{run_id}").read()) > 1000

    def close(self) -> None:
        """End it, and fail when nobody read anything."""
        self._is_over.set()
        self._process.terminate()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        if not self.events:
            raise SystemExit("no event of planrun serve was read")


def measured(kind: str, folder: Path) -> tuple[float, float, float]:
    """Run the plan once beside a watcher; return its wall time, its processor time and that of the watcher."""
    known = set(os.listdir(folder / ".planrun" / "runs")) if (folder / ".planrun").exists() else set()
    serving = Serving(folder) if kind == "serve" else None
    watcher: list[Watching] = []

    def begin() -> None:
        while True:
            found = {path.parent.name for path in folder.glob(".planrun/runs/*/ledger.jsonl")} - known
            if found:
                break
            time.sleep(0.01)
        if kind == "watch":
            watcher.append(Watching(folder))
        if serving:
            serving.follow(found.pop())

    thread = threading.Thread(target=begin)
    thread.start()
    argv = [*PLANRUN, "run", "plan.yml", "--jobs", "2", "--output", "quiet"]
    wall, processor, _ = run(argv, folder, "null", ROOT)
    thread.join()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if serving:
        serving.close()
    for each in watcher:
        each.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, processor, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure and print a markdown table; exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watchers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few steps and runs: does it work?")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    steps, rounds = (50, 1) if chosen.quick else (STEPS, chosen.rounds)
    rows = [f"  - {{id: s{number}, depends_on: [first], run: echo {number}}}\n" for number in range(steps)]
    plan = f"version: 1\ndefaults: {{shell: sh}}\nsteps:\n  - {{id: first, exec: [sleep, '{FIRST}']}}\n"
    found: dict[str, list[tuple[float, float, float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="watchers-") as name:
        (Path(name) / "plan.yml").write_text(plan + "".join(rows), "utf-8")
        for number in range(rounds + 1):
            for kind in KINDS:
                figures = measured(kind, Path(name))
                if number or chosen.quick:  # the first is a warm-up
                    found[kind].append(figures)
    alone = [statistics.median(column) for column in zip(*found["alone"], strict=True)]
    print(f"| Run of {steps} steps | wall | processor | of what follows it | ratio of wall | of processor |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        wall, processor, other = (statistics.median(column) for column in zip(*found[kind], strict=True))
        ratios = f"{wall / alone[0]:.2f} | {processor / alone[1]:.2f}"
        print(f"| {kind} | {wall:.2f} s | {processor:.2f} s | {other:.2f} s | {ratios} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
