"""The licence report fails on what is unknown or not accepted, and on entries that are not needed."""

from __future__ import annotations

import tomllib
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from release import licences
from release.licences import Rules, is_accepted, row, rules, stated_by
from release.locked import EXTRAS, RUNTIME, USER_EXTRAS, Locked, packages

ROOT = Path(__file__).parents[2]
PACKAGE = Locked("thing", "1.0", ("0" * 64,))
KNOWN = Rules(frozenset({"MIT", "Apache-2.0"}))


class Package:
    """The metadata of an installed package."""

    def __init__(self, **fields: str | list[str]) -> None:
        self.metadata = Message()
        for name, value in fields.items():
            for each in [value] if isinstance(value, str) else value:
                self.metadata[name.replace("_", "-")] = each


def judged(known: Rules = KNOWN, **fields: Any) -> tuple[str, str]:
    """Return the licence of a package, and what is wrong with it."""
    found = row(PACKAGE, known, Package(**fields))  # type: ignore[arg-type]
    return found.licence, found.problem


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT"}, "MIT"),
        ({"License": "Apache-2.0"}, "Apache-2.0"),
        ({"Classifier": ["License :: OSI Approved :: MIT License", "Typing :: Typed"]}, "MIT"),
        ({"License": "BSD"}, ""),
        ({"Classifier": ["License :: OSI Approved :: BSD License"]}, ""),
        (
            {
                "Classifier": [
                    "License :: OSI Approved :: MIT License",
                    "License :: OSI Approved :: BSD License",
                ]
            },
            "",
        ),
        ({"License": "Copyright 2020 Somebody\nPermission is hereby granted"}, ""),
        ({}, ""),
    ],
)
def test_only_a_clear_statement_counts(fields: dict[str, Any], licence: str) -> None:
    """A licence is an SPDX expression, or a classifier that means one licence."""
    assert stated_by(Package(**fields))[0] == licence  # type: ignore[arg-type]


def test_unknown_and_copyleft_licences_are_refused() -> None:
    """A licence nobody has read, and one that is not accepted, are problems."""
    assert judged() == ("", "unknown licence; read it, and add the package to `stated`")
    assert judged(License_Expression="GPL-3.0-or-later")[1] == "its licence is not accepted"
    assert judged(License_Expression="MIT")[1] == ""


def test_of_alternatives_one_is_enough_and_of_several_parts_all_are_needed() -> None:
    """`OR` gives a choice, `AND` and `WITH` do not."""
    accepted = KNOWN.accepted
    assert is_accepted("GPL-2.0-only OR MIT", accepted)
    assert not is_accepted("GPL-2.0-only AND MIT", accepted)
    assert not is_accepted("Apache-2.0 WITH LLVM-exception", accepted)


def test_entries_are_for_what_needs_them() -> None:
    """An exception is for one package and one licence; a statement that the metadata makes itself is removed."""
    known = Rules(
        KNOWN.accepted,
        exceptions={"thing": {"licence": "MPL-2.0"}},
        stated={"thing": {"licence": "BSD-3-Clause"}},
    )
    assert judged(Rules(known.accepted, known.exceptions), License="MPL-2.0") == ("MPL-2.0", "")
    assert judged(Rules(known.accepted, known.exceptions), License="LGPL-3.0-only")[1]
    assert "remove it from `exceptions`" in judged(Rules(known.accepted, known.exceptions), License="MIT")[1]
    assert "remove it from `stated`" in judged(known, License="MIT")[1]


def test_the_file_and_the_locks_fit_together() -> None:
    """Each entry is about a locked package and has a reason; the runtime is part of what the extras add to."""
    known, extras, runtime = rules(), packages(EXTRAS), packages(RUNTIME)
    for name, entry in {**known.exceptions, **known.stated}.items():
        assert name in extras
        assert licences.expression(entry["licence"])
        assert entry["why"]
    assert {name: extras[name] for name in runtime} == runtime
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*USER_EXTRAS} == {*project["optional-dependencies"]} - {"test", "bench", "dev"}
    lock = (ROOT / ".ci" / "lock").read_text("utf-8")
    assert all(f"--extra {extra}" in lock for extra in USER_EXTRAS)
