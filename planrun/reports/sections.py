"""Foldable sections and annotations in the languages of CI systems.

What a step prints stands between our own marks and must not be able to write such marks itself: it is cleaned
(`reports.clean`), and where the system has a way to stop listening it is used as well.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Sections(Protocol):
        """How one CI system folds text and marks a problem; all texts clean, `body` ends with a newline."""

        def group(self, title: str, body: str, /) -> str:
            """Return `body` as a section."""

        def problem(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation, or ""."""

        def warning(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation of a failure that is tolerated, or ""."""

        def notice(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation of something that is no failure, or ""."""


MESSAGE_CHARS = 4000  # GitHub cuts a message at 4,096


class GitHub:
    """`::group::` and `::error::`; commands inside of a section are switched off by a fresh random word."""

    def group(self, title: str, body: str) -> str:
        """Return a section that is not nested and whose text is no command."""
        word = os.urandom(16).hex()
        return f"::group::{_data(title)}\n::stop-commands::{word}\n{body}::{word}::\n::endgroup::\n"

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return an error that GitHub shows at the line of the plan."""
        return _annotation("error", file, line, title, message)

    def warning(self, file: str, line: int, title: str, message: str) -> str:
        """Return a warning that GitHub shows at the line of the plan."""
        return _annotation("warning", file, line, title, message)

    def notice(self, file: str, line: int, title: str, message: str) -> str:
        """Return a notice that GitHub shows at the line of the plan."""
        return _annotation("notice", file, line, title, message)


def _annotation(kind: str, file: str, line: int, title: str, message: str) -> str:
    place = f"file={_property(file)},line={line}," if line else ""
    return f"::{kind} {place}title={_property(title)}::{_data(message[:MESSAGE_CHARS])}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


class GitLab:
    """Collapsed sections with unique names; GitLab reads problems from the JUnit report."""

    def __init__(self) -> None:
        self._count = 0

    def group(self, title: str, body: str) -> str:
        """Return a collapsed section."""
        self._count += 1
        now, name = int(time.time()), f"planrun_{self._count}"
        start = f"\x1b[0Ksection_start:{now}:{name}[collapsed=true]\r\x1b[0K{title}\n"
        return f"{start}{body}\x1b[0Ksection_end:{now}:{name}\r\x1b[0K\n"

    def problem(self, *_problem: object) -> str:
        """Return nothing: GitLab has no annotations in the log."""
        return ""

    warning = notice = problem


class Azure:
    """`##[group]` and `##vso[task.logissue]`."""

    def group(self, title: str, body: str) -> str:
        """Return a section."""
        return f"##[group]{title}\n{body}##[endgroup]\n"

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return an error of the build with its place in the plan."""
        return _issue("error", file, line, title, message)

    def warning(self, file: str, line: int, title: str, message: str) -> str:
        """Return a warning of the build."""
        return _issue("warning", file, line, title, message)

    notice = warning  # there is nothing below


def _issue(kind: str, file: str, line: int, title: str, message: str) -> str:
    place = f"type={kind};sourcepath={_vso(file)};linenumber={line}"
    return f"##vso[task.logissue {place}]{_vso(f'{title}: {message}'[:MESSAGE_CHARS])}\n"


def _vso(text: str) -> str:
    for char, escape in (("%", "%AZP25"), (";", "%3B"), ("]", "%5D"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(char, escape)
    return text


class Buildkite:
    """`---` headings; a section ends where the next heading starts, and every line of a step is indented."""

    def group(self, title: str, body: str) -> str:
        """Return a heading with what belongs to it."""
        rows = body.removesuffix("\n").split("\n")
        return f"--- {title}\n" + "".join([f"  {row}\n" for row in rows])

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return a heading that stays open."""
        return f"+++ {title}\n  {file}:{line}: {message}\n"

    warning = notice = problem


def sections(vendor: str) -> Sections:
    """Return the sections of a CI system that `ci.style` gives groups to."""
    if vendor == "gitlab":
        return GitLab()
    if vendor == "azure":
        return Azure()
    return Buildkite() if vendor == "buildkite" else GitHub()
