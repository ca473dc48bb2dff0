"""Networks that can be cut: a namespace for each worker of a cluster, with a cable to this one. Needs root on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

_TLS = {"CA_FILE": "ca.pem", "SCHEDULER__CERT": "cert.pem", "SCHEDULER__KEY": "key.pem"} | {
    f"{role}__{kind.upper()}": f"{kind}.pem" for role in ("WORKER", "CLIENT") for kind in ("cert", "key")
}


def missing() -> str:
    """Return why networks cannot be made; empty when they can."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in ("ip", "openssl") if shutil.which(name) is None]
    if absent:
        return f"there is no {' and no '.join(absent)}"
    name = f"planrun-try-{os.getpid()}"  # several processes may try at once
    tries = (
        ["netns", "add", name],
        ["-n", name, "link", "add", "try0", "type", "bridge"],
        ["-n", name, "link", "add", "try1", "type", "veth", "peer", "name", "try2"],
    )
    refused = next((words for words in tries if _fails(words)), None)
    _fails(["netns", "del", name])
    return f"this machine refuses ip {' '.join(refused)}" if refused else ""


def _fails(words: Sequence[str]) -> bool:
    return bool(subprocess.run(["ip", *words], capture_output=True, check=False).returncode)


class Networks:
    """One network for each name; planrun and the scheduler are here, at `host`."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder = folder
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._made: list[str] = []
        self._tag = f"plr{os.getpid()}"  # others on this machine may have networks, too
        self._net = f"10.213.{os.getpid() % 256}"
        self.host = f"{self._net}.1"
        _ip("link", "add", self._tag, "type", "bridge")
        _ip("addr", "add", f"{self.host}/24", "dev", self._tag)
        _ip("link", "set", self._tag, "up")
        for name in names:
            self._add(name)
        self._certify()

    @property
    def env(self) -> dict[str, str]:
        """The variables by which Dask finds its certificates."""
        return {
            f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(self._folder / file) for name, file in _TLS.items()
        }

    def address(self, name: str) -> str:
        """Return the address of a worker."""
        return f"{self._net}.{self._numbers[name] + 1}"

    def inside(self, name: str) -> list[str]:
        """Return the words before a command that has it run in a network."""
        return ["ip", "netns", "exec", f"{self._tag}-{name}"]

    def cut(self, name: str) -> None:
        """Pull the cable of a worker."""
        _ip("link", "set", self._cable(name), "down")

    def mend(self, name: str) -> None:
        """Put the cable back."""
        _ip("link", "set", self._cable(name), "up")

    def close(self) -> None:
        """Leave no network."""
        for name in self._made:
            _ip("netns", "del", f"{self._tag}-{name}")
        _ip("link", "del", self._tag)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _cable(self, name: str) -> str:
        return f"{self._tag}.{self._numbers[name]}"

    def _add(self, name: str) -> None:
        space, ours, theirs = f"{self._tag}-{name}", self._cable(name), f"{self._cable(name)}b"
        _ip("netns", "add", space)
        self._made.append(name)
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        _ip("link", "set", ours, "master", self._tag, "up")
        _ip("link", "set", theirs, "netns", space)
        _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", theirs)
        _ip("-n", space, "link", "set", theirs, "up")
        _ip("-n", space, "link", "set", "lo", "up")

    def _certify(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        words = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=planrun",
        ]
        files = ["-keyout", str(self._folder / "key.pem"), "-out", str(self._folder / "cert.pem")]
        subprocess.run([*words, *files], capture_output=True, check=True)
        shutil.copyfile(self._folder / "cert.pem", self._folder / "ca.pem")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=True)
