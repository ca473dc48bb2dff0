"""A Dask cluster of real processes, for tests, proofs and benchmarks: on loopback, or in network namespaces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from tests.fakes.networks import Networks

ROOT = Path(__file__).parents[2]
LIMIT = 120.0
"""Seconds for a process to be ready; nobody waits for them unless it hangs."""


class DaskCluster:
    """A scheduler and workers, each a process that can be killed and started again under the same name."""

    def __init__(
        self,
        folder: Path,
        workers: Iterable[str],
        *options: str,
        threads: int = 2,
        networks: Networks | None = None,
    ) -> None:
        self.folder = folder
        self._options = (*options, "--nthreads", str(threads))
        self.networks = (
            networks  # None: loopback; else each worker has its own network, and connections have TLS
        )
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.start_scheduler()
        for name in workers:
            self.start_worker(name, wait=False)
        for name in workers:
            self._await(name)

    @property
    def address(self) -> str:
        """The address as `--executor` takes it."""
        found = json.loads(self._file.read_text("utf-8"))["address"]
        scheme, _, place = found.partition("://")
        return f"{'tls' if scheme == 'tls' else 'dask'}://{place}"

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of a client: with certificates, where there are any."""
        return {**os.environ, **(self.networks.env if self.networks else {})}

    @property
    def _file(self) -> Path:
        return self.folder / "scheduler.json"

    def pid(self, name: str) -> int:
        """Return the process of a worker, or of `scheduler`."""
        return self._processes[name].pid

    def log(self, name: str) -> bytes:
        """Return what a worker, or `scheduler`, printed."""
        return b"".join(path.read_bytes() for path in sorted(self.folder.glob(f"{name}.*.log")))

    def start_scheduler(self) -> None:
        """Start the scheduler at a free port."""
        self._file.unlink(missing_ok=True)
        host = self.networks.host if self.networks else "127.0.0.1"
        words: tuple[str, ...] = ("--host", host, "--port", "0", "--dashboard-address", "127.0.0.1:0")
        words += ("--protocol", "tls") if self.networks else ()
        self._start("scheduler", "dask_scheduler", *words, "--scheduler-file", str(self._file))
        limit = time.monotonic() + LIMIT
        while not self._file.exists() or not self._file.stat().st_size:
            self._require("scheduler", limit)

    def start_worker(self, name: str, *, wait: bool = True) -> None:
        """Start a worker."""
        words: tuple[str, ...] = (
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(self.folder / name),
            "--name",
            name,
        )
        words += ("--protocol", "tls", "--host", self.networks.address(name)) if self.networks else ()
        self._start(name, "dask_worker", "--scheduler-file", str(self._file), *words, *self._options)
        if wait:
            self._await(name)

    def revive(self, workers: Iterable[str]) -> None:
        """Start again what is dead; workers also end when their scheduler does."""
        if self._processes["scheduler"].poll() is not None:
            for name in workers:
                self.kill(name)
            self.start_scheduler()
        for name in workers:
            if self._processes[name].poll() is not None:
                self.start_worker(name)

    def kill(self, name: str, signum: int = signal.SIGKILL) -> None:
        """Send a signal to the process of a worker, or of `scheduler`."""
        process = self._processes[name]
        if process.poll() is None:
            process.send_signal(signum)
        if signum == signal.SIGKILL:
            process.wait()

    def close(self) -> None:
        """Leave no process."""
        for name in self._processes:
            self.kill(name, signal.SIGCONT)
            self.kill(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _start(self, name: str, module: str, *words: str) -> None:
        self._starts += 1
        log = self.folder / f"{name}.{self._starts:03}.log"
        before = self.networks.inside(name) if self.networks and name != "scheduler" else []
        with log.open("wb") as output:
            self._processes[name] = subprocess.Popen(
                [*before, sys.executable, "-m", f"distributed.cli.{module}", *words],
                cwd=self.folder,
                env={**self.env, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "false"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _await(self, name: str) -> None:
        """Wait until a worker has registered."""
        newest = max(self.folder.glob(f"{name}.*.log"))
        limit = time.monotonic() + LIMIT
        while b"Registered to" not in newest.read_bytes():
            self._require(name, limit)

    def _require(self, name: str, limit: float) -> None:
        if self._processes[name].poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"{name} did not start: {self.log(name)[-2000:].decode()}")
        time.sleep(0.02)
