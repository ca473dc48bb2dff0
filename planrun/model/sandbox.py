"""What a step may reach: how the sandboxes of a plan and of policies are combined; the record is `plan.Sandbox`.

The levels follow the risk classes. read-only: the step writes nothing but its private temporary folder. low: it also
writes in the workspace, except for git's data and files that control CI and planrun. medium: it also writes the named
caches of package managers. off: no sandbox.
"""

from __future__ import annotations

from planrun.model.plan import Sandbox
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from planrun.model.plan import Text

LEVELS = ("read-only", "low", "medium", "off")
"""From the strictest to none."""
_NETWORKS = ("none", "hosts", "any")


class Confinement(Record):
    """How the sandboxes of one run are enforced.

    `backend`: landlock, bubblewrap, or none: steps that do not require a sandbox run without one; "": not known yet,
    since only steps that a model may write need it. `ceilings`: the sandboxes of policies. `for_models`: those of
    policies for steps that a model wrote; empty: each step has the level of its risk class.
    """

    workspace: str
    home: str
    backend: str = ""
    ceilings: tuple[Sandbox, ...] = ()
    for_models: tuple[Sandbox, ...] = ()

    def of(self, sandbox: Sandbox | None) -> Sandbox | None:
        """Return the sandbox in which a step starts that the plan wants in this one; None: in none."""
        found = placed(sandbox, self.workspace, self.home) if sandbox is not None else Sandbox()
        for ceiling in self.ceilings:
            found = tightened(found, placed(ceiling, self.workspace, self.home))
        return found.but(backend=self.backend) if found.is_on else None

    def of_model(self, sandbox: Sandbox | None, risk: str) -> Sandbox | None:
        """Return the sandbox of a step that a model wrote, with this risk; `sandbox`: that of the step so far."""
        found = sandbox or Sandbox()
        for ceiling in self.for_models or (Sandbox(level=""),):
            found = tightened(found, placed(of_class(ceiling, risk), self.workspace, self.home))
        return found.but(backend=self.backend, hides=True) if found.is_on else None

    def of_agent(self, sandbox: Sandbox | None, risk: str) -> Sandbox | None:
        """Return the sandbox of a process of an agent with this risk; `sandbox`: that of its step, which was reviewed.

        The step cannot turn it off or do without it, policies can. What was approved above medium runs as medium.
        """
        level = risk if risk in LEVELS else "medium"
        own = self.of(sandbox)
        if own is None or self.for_models:
            return self.of_model(own, level)
        return own.but(level=min(own.level, level, key=LEVELS.index), require=True, hides=True)


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
    return tuple(
        [
            host
            for host in one.hosts
            if any(
                True if other == host else other.startswith("*.") and host.endswith(other[1:])
                for other in ceiling.hosts
            )
        ]
    )


def _common(paths: Iterable[Text], ceiling: Iterable[Text]) -> tuple[Text, ...]:
    """Return the paths that lie in folders which the ceiling names as well."""
    roots = [root.rstrip("/") for root in ceiling if isinstance(root, str)]
    found = [path for path in paths if isinstance(path, str)]
    return tuple(
        [path for path in found if any(path == root or path.startswith(f"{root}/") for root in roots)]
    )


def of_class(sandbox: Sandbox, risk: str) -> Sandbox:
    """Return a sandbox with the level of a risk class, where it has none of its own; a high step has none."""
    if sandbox.level:
        return sandbox
    return sandbox.but(level=risk if risk in LEVELS else "off")


def placed(sandbox: Sandbox, workspace: str, home: str) -> Sandbox:
    """Return it with absolute paths."""
    return sandbox.but(
        write=tuple([_absolute(str(path), workspace, home) for path in sandbox.write]),
        read=tuple([_absolute(str(path), workspace, home) for path in sandbox.read]),
    )


def _absolute(path: str, workspace: str, home: str) -> str:
    from posixpath import join, normpath  # few plans name paths

    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return normpath(join(workspace, path))


def described(recorded: dict[str, Any]) -> str:
    """Return a recorded sandbox in a few words: `low, no network (landlock)`."""
    network = {"none": "no network", "any": "any network"}.get(recorded["network"], "")
    network = network or f"network {', '.join(recorded.get('hosts', ()))}"
    if recorded["backend"] == "none":
        return f"none, although {recorded['level']} is wanted: this machine has none"
    return f"{recorded['level']}, {network} ({recorded['backend']})"
