"""What a step may reach: the record of a sandbox, in a plan, in a policy and in a Job, and how two are combined.

The levels follow the risk classes. read-only: the step writes nothing but its private temporary folder. low: it also
writes in the workspace, except for git's data and files that control CI and planrun. medium: it also writes the named
caches of package managers. off: no sandbox.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

    from planrun.model.plan import Text

    SandboxLevel = Literal["", "read-only", "low", "medium", "off"]
    Network = Literal["none", "hosts", "any"]

LEVELS = ("read-only", "low", "medium", "off")
"""From the strictest to none."""
_NETWORKS = ("none", "hosts", "any")


class Sandbox(Record):
    """The limits of one step, enforced by the kernel; in a Job all paths are absolute and without templates.

    `level` "": the one of the step's risk class. `hosts`: reached through a proxy, for the network `hosts`; each is
    `host`, `host:port` or `*.domain`. `require` false: the step runs without a sandbox where there is none. `backend`:
    in a Job, what enforces it: landlock, bubblewrap or none. `line`: of the key in the plan or policy file.
    """

    level: SandboxLevel = "off"
    network: Network = "none"
    hosts: tuple[str, ...] = ()
    write: tuple[Text, ...] = ()
    read: tuple[Text, ...] = ()
    require: bool = True
    processes: int | None = None
    memory: int | None = None  # bytes of data, for each process
    file_size: int | None = None  # bytes
    backend: str = ""
    line: int = 0

    @property
    def is_on(self) -> bool:
        """Whether it limits anything."""
        return self.level != "off"

    def recorded(self) -> dict[str, Any]:
        """Return it as the ledger records it for an attempt."""
        found: dict[str, Any] = {"backend": self.backend, "level": self.level, "network": self.network}
        for name in ("hosts", "write", "read"):
            if value := getattr(self, name):
                found[name] = list(value)
        for name in ("processes", "memory", "file_size"):
            if (value := getattr(self, name)) is not None:
                found[name] = value
        return found


def tightened(one: Sandbox, ceiling: Sandbox) -> Sandbox:
    """Return what both allow; paths and hosts that only one of them names are not allowed."""
    if not ceiling.is_on:
        return one
    if not one.is_on:
        return ceiling.but(backend=one.backend) if one.backend else ceiling
    network = min(one.network, ceiling.network, key=_NETWORKS.index)
    fields: dict[str, Any] = {
        "level": min(one.level, ceiling.level, key=LEVELS.index),
        "network": network,
        "hosts": _hosts(one, ceiling) if network == "hosts" else (),
        "write": _common(one.write, ceiling.write),
        "read": _common(one.read, ceiling.read),
        "require": one.require or ceiling.require,
    }
    for name in ("processes", "memory", "file_size"):
        known = [value for value in (getattr(one, name), getattr(ceiling, name)) if value is not None]
        fields[name] = min(known, default=None)
    return one.but(**fields)


def _hosts(one: Sandbox, ceiling: Sandbox) -> tuple[str, ...]:
    """Return the hosts that both allow."""
    if one.network == "any":
        return ceiling.hosts
    if ceiling.network == "any":
        return one.hosts
    return tuple([host for host in one.hosts if any(_covers(other, host) for other in ceiling.hosts)])


def _covers(pattern: str, host: str) -> bool:
    """Whether an allowed host includes another one: `*.a.b` includes `c.a.b`."""
    if pattern == host:
        return True
    return pattern.startswith("*.") and host.endswith(pattern[1:])


def _common(paths: Iterable[Text], ceiling: Iterable[Text]) -> tuple[Text, ...]:
    """Return the paths that lie in folders which the ceiling names as well."""
    roots = [root.rstrip("/") for root in ceiling if isinstance(root, str)]
    found = [path for path in paths if isinstance(path, str)]
    return tuple([path for path in found if any(path == root or path.startswith(f"{root}/") for root in roots)])
