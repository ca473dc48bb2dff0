"""The locks belong to pyproject.toml and to each other: what forgot `.ci/lock` fails here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release.locked import packages, plain

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / ".ci").glob("requirements*.txt"))
EVERYTHING = packages(ROOT / ".ci" / "requirements.txt")


def required() -> list[Requirement]:
    """Return what pyproject.toml asks for, with all extras and groups but references to its own extras."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = content["project"]
    lines = [
        *project["dependencies"],
        *[each for group in content["dependency-groups"].values() for each in group],
    ]
    lines += [each for extra in project["optional-dependencies"].values() for each in extra]
    return [found for line in lines if (found := Requirement(line)).name != "planrun"]


def test_each_requirement_is_locked_within_its_bounds() -> None:
    """A bound that was changed without writing the locks anew is found."""
    for requirement in required():
        assert EVERYTHING[plain(requirement.name)].version in requirement.specifier, requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_all_locks_have_the_same_versions_and_each_a_hash(lock: Path) -> None:
    """What is tested is what the action, the image and users get."""
    for name, package in packages(lock).items():
        assert package.version == EVERYTHING[name].version
        assert set(package.hashes) <= set(EVERYTHING[name].hashes)
    assert not re.search(r"^(?:-e|--(?!hash)|git\+|https?:)", lock.read_text("utf-8"), re.MULTILINE)
