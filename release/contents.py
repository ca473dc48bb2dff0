"""Prints what is installed where it runs, as JSON: Python packages and those of the system; for release.sbom.

It needs nothing but Python, so that it runs in the image:

    docker run --rm -i --entrypoint python IMAGE - < release/contents.py
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path


def system_packages() -> list[list[str]]:
    """Return name, version and architecture of each Debian package; nothing where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return []
    words = ["dpkg-query", "--show", "--showformat", r"${Package}\t${Version}\t${Architecture}\n"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return sorted([line.split("\t") for line in done.stdout.splitlines()])


def release() -> str:
    """Return the distribution of the system, as `debian-13`; "" when it is unknown."""
    try:
        lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    except OSError:
        return ""
    values = dict([line.split("=", 1) for line in lines if "=" in line])
    return f"{values.get('ID', '')}-{values.get('VERSION_ID', '')}".replace('"', "")


if __name__ == "__main__":
    found = {re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower(): each.version for each in distributions()}
    json.dump(
        {"python": dict(sorted(found.items())), "system": system_packages(), "distribution": release()},
        sys.stdout,
    )
