"""The packages of the locks in `.ci/`: names, versions and hashes, and what the installed ones say of themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / ".ci" / "requirements-runtime.txt"
"""What `pip install planrun` brings."""
EXTRAS = ROOT / ".ci" / "requirements-extras.txt"
"""The same, with all extras that a user can ask for."""
USER_EXTRAS = ("dask", "lsp", "mcp", "otel", "shared")
"""The others are for work on planrun itself."""
_LINE = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_REQUIRED = re.compile(r"([A-Za-z0-9._-]+)")


@dataclass(frozen=True)
class Locked:
    """One package of a lock; `hashes`: the SHA-256 of each of its files, sorted."""

    name: str
    version: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def plain(name: str) -> str:
    """Return the name of a package as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(lock: Path) -> dict[str, Locked]:
    """Return the packages of a lock by name; raises ValueError for one without a hash."""
    found = {}
    for entry in re.split(r"\n(?=\S)", lock.read_text("utf-8")):
        line = _LINE.match(entry)
        if line is None:
            continue
        name, hashes = plain(line[1]), tuple(sorted(_HASH.findall(entry)))
        if not hashes:
            raise ValueError(f"{lock}: {name} has no hash")
        found[name] = Locked(name, line[2], hashes)
    return found


def installed(package: Locked) -> Distribution:
    """Return the installed package; raises ValueError where another version, or none, is installed."""
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        raise ValueError(f"{package.name} is not installed; install .ci/requirements.txt") from None
    if found.version != package.version:
        raise ValueError(
            f"{package.name} is installed as {found.version}, and the lock has {package.version}; "
            "install .ci/requirements.txt"
        )
    return found


def required(found: Distribution) -> set[str]:
    """Return the names that a package requires, on any platform, and with any extra."""
    return {plain(match[1]) for line in found.requires or [] if (match := _REQUIRED.match(line))}
