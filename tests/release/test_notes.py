"""A release has one version: the tag's, the package's and the changelog's."""

from __future__ import annotations

import pytest

from release.notes import notes

CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-01-02

### Added

- A thing.

## [1.1.0] - 2025-01-02

- An older thing.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    """Nothing of other versions is in them."""
    assert notes("v1.2.0", "1.2.0", CHANGELOG) == "### Added\n\n- A thing.\n"


@pytest.mark.parametrize(
    ("tag", "version", "change", "problem"),
    [
        ("v1.2.1", "1.2.0", ("", ""), "the tag is v1.2.1"),
        ("1.2.0", "1.2.0", ("", ""), "the tag is 1.2.0"),
        ("v1.3.0", "1.3.0", ("", ""), r"no section \[1.3.0\] at its top"),
        ("v1.1.0", "1.1.0", ("", ""), r"no section \[1.1.0\] at its top"),
        ("v1.2.0", "1.2.0", (" - 2026-01-02", ""), "has no date"),
        ("v1.2.0", "1.2.0", ("### Added\n\n- A thing.\n", ""), "has no entries"),
        (
            "v1.2.0",
            "1.2.0",
            ("## [Unreleased]\n", "## [Unreleased]\n\n- Late.\n"),
            "entries under Unreleased",
        ),
    ],
)
def test_a_release_that_does_not_fit_is_refused(
    tag: str, version: str, change: tuple[str, str], problem: str
) -> None:
    """The message says which part differs."""
    with pytest.raises(ValueError, match=problem):
        notes(tag, version, CHANGELOG.replace(*change) if change[0] else CHANGELOG)
