"""What the fuzzer begins with: every plan of the project, good and bad, as bytes and as documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from proofs.fuzzing.witnesses import WITNESSES

ROOT = Path(__file__).parents[2]
LARGEST = 20_000
"""Bytes: of a larger file every mutation costs more and says no more."""


def seeds() -> list[bytes]:
    """Return what is tried as it is: what the fuzzer would find late, then all plans."""
    return [*WITNESSES.values(), *plans()]


def plans() -> list[bytes]:
    """Return the bytes of all plans of the project, in the order of their names."""
    folders = ("tests/cases", "plans", "tests/plan/bad", "tests/plan/good", "tests/data")
    paths = sorted(path for folder in folders for path in ROOT.joinpath(folder).rglob("*.yml"))
    found = [path.read_bytes() for path in paths]
    return [data for data in found if len(data) <= LARGEST]


def documents(files: list[bytes]) -> list[dict[str, Any]]:
    """Return what those of the files that can be read as mappings hold, as plain data."""
    found = []
    for data in files:
        try:
            document = yaml.load(data, Loader=yaml.CSafeLoader)
        except (yaml.YAMLError, ValueError):
            continue
        if isinstance(document, dict) and isinstance(document.get("steps"), list):
            found.append(document)
    return found
