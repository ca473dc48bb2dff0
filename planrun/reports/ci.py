"""Which CI system this is, where its checkout lies, how its console looks, folds text and marks problems."""

from __future__ import annotations

import os
import time

from planrun.model.record import Record
from planrun.reports.escape import line

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, Protocol, TextIO

    class ConsoleOptions(Protocol):
        """What the caller requests."""

        @property
        def color(self) -> Literal["auto", "always", "never"]:
            """Whether to use colours."""

        @property
        def output(self) -> Literal["auto", "stream", "group", "failed", "quiet"]:
            """What is shown of what steps print; auto: group where CI has sections, else stream."""

        @property
        def verbose(self) -> bool:
            """Show details that few runs need."""

        @property
        def json(self) -> bool:
            """Stdout belongs to the ledger."""

        @property
        def in_program(self) -> bool:
            """Stdout belongs to a Python program."""


# The first variable that is set decides. Gitea and Forgejo call themselves GitHub besides, so they come first.
_VENDORS = (
    ("GITEA_ACTIONS", "gitea"),
    ("FORGEJO_ACTIONS", "gitea"),
    ("GITHUB_ACTIONS", "github"),
    ("GITLAB_CI", "gitlab"),
    ("TF_BUILD", "azure"),
    ("BUILDKITE", "buildkite"),
    ("TEAMCITY_VERSION", "teamcity"),
    ("CIRCLECI", "circleci"),
    ("JENKINS_URL", "jenkins"),
)
_GENERIC = (
    "CI",
    "CONTINUOUS_INTEGRATION",
    "BUILD_ID",
    "BUILD_NUMBER",
    "CI_NAME",
    "CI_APP_ID",
    "CI_BUILD_ID",
    "CI_BUILD_NUMBER",
    "RUN_ID",
)
_NO = ("", "0", "false", "no")
# The folder of the repository: places that a CI system is to find are relative to it.
_CHECKOUTS = {
    "github": "GITHUB_WORKSPACE",
    "gitea": "GITHUB_WORKSPACE",
    "gitlab": "CI_PROJECT_DIR",
    "azure": "BUILD_SOURCESDIRECTORY",
    "buildkite": "BUILDKITE_BUILD_CHECKOUT_PATH",
    "circleci": "CIRCLE_WORKING_DIRECTORY",
    "jenkins": "WORKSPACE",
    "teamcity": "TEAMCITY_BUILD_CHECKOUTDIR",
}
SECTIONED = ("github", "gitea", "gitlab", "azure", "buildkite", "teamcity")
"""The systems whose logs have sections."""


def vendor(environ: Mapping[str, str]) -> str:
    """Return the CI system: github, gitea, gitlab, azure, buildkite, …, `other`, or "" outside of any.

    `CI=false` turns the detection off.
    """
    if environ.get("CI", "unset").lower() in _NO:
        return ""
    for variable, name in _VENDORS:
        if environ.get(variable):
            return name
    return "other" if any(environ.get(name) for name in _GENERIC) else ""


def from_checkout(file: str, environ: Mapping[str, str]) -> str:
    """Return a path as the CI system knows it: from the root of the checkout, when it lies inside.

    Elsewhere and outside of CI it stays as it was given, without `./`.
    """
    given = os.path.normpath(file) if file else file
    root = environ.get(_CHECKOUTS.get(vendor(environ), ""), "")
    if not root or not file:
        return given
    folder, name = os.path.split(given)
    try:
        root, folder = os.path.realpath(os.path.expanduser(root)), os.path.realpath(folder)
    except OSError:  # the working directory is gone
        return given
    inside = os.path.relpath(os.path.join(folder, name), root)
    return given if inside.startswith("../") else inside


def near(path: str) -> str:
    """Return a path as seen from here, or whole where that is shorter."""
    try:
        near, whole = os.path.relpath(path), os.path.abspath(path)
    except OSError:  # the working directory is gone
        return line(path)
    return line(near if len(near) <= len(whole) else whole)


def coloured(environ: Mapping[str, str], choice: str = "auto", *, terminal: bool) -> bool:
    """Whether to use colours: the flag (always, never, auto) before NO_COLOR, FORCE_COLOR and the terminal."""
    if choice in ("always", "never"):
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR")
    if forced is not None:
        return forced.lower() not in _NO
    return terminal and environ.get("TERM") != "dumb"


def style(environ: Mapping[str, str], *, terminal: bool) -> Literal["live", "plain", "groups"]:
    """Return how progress is shown: animated on a terminal of a person only, in groups where CI has them."""
    system = vendor(environ)
    if system in SECTIONED:
        return "groups"
    return "live" if terminal and not system and environ.get("TERM", "dumb") != "dumb" else "plain"


def reads_commands(environ: Mapping[str, str]) -> bool:
    """Return whether a CI system may execute commands that it finds in a log, also where CI=false hides it."""
    return bool(vendor(environ)) or any(environ.get(variable) for variable, _ in _VENDORS)


class Look(Record):
    """How the console looks.

    `output_colour`: whether the colours of steps are kept. `inert`: commands to CI systems are broken in the output of
    steps.
    """

    style: Literal["live", "plain", "groups"] = "plain"
    colour: bool = False
    unicode: bool = True
    verbose: bool = False
    output: Literal["stream", "group", "failed", "quiet"] = "failed"
    output_colour: bool = False
    inert: bool = True
    sections: Sections | None = None

    @property
    def quiet(self) -> bool:
        """Whether only failures and the result are shown."""
        return self.output == "quiet"


def look_of(
    stream: TextIO | None, environ: Mapping[str, str], options: ConsoleOptions, out: TextIO | None = None
) -> Look:
    """Return how a console on `stream` looks, with the output of steps on `out` (None: on the same)."""
    terminal = _is_terminal(stream)
    chosen = style(environ, terminal=terminal)
    shown = options.output
    if shown == "auto":
        shown = "group" if chosen == "groups" else "stream"
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return Look(
        style=chosen,
        colour=coloured(environ, options.color, terminal=terminal),
        unicode=encoding.lower().replace("-", "").replace("_", "") == "utf8",
        output=shown,
        verbose=options.verbose,
        output_colour=coloured(environ, options.color, terminal=_is_terminal(out or stream)),
        # The variables of a CI system may have been removed on the way here, as tox, sudo and docker do.
        inert=reads_commands(environ) or not _is_terminal(out or stream),
        sections=sections_of(vendor(environ)) if chosen == "groups" else None,
    )


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


if TYPE_CHECKING:
    from typing import Protocol

    class Sections(Protocol):
        """How one CI system folds text and marks a problem; all texts clean. Sections are not nested."""

        @property
        def indent(self) -> bytes:
            """What stands before each line in a section."""

        def begin(self, title: str, /, *, live: bool = False) -> str:
            """Return what opens a section; `live`: it is read while it is written."""

        def end(self) -> str:
            """Return what closes the section."""

        def problem(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation, or ""."""

        def warning(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation of a failure that is tolerated, or ""."""

        def notice(self, file: str, line: int, title: str, message: str, /) -> str:
            """Return an annotation of something that is no failure, or ""."""


MESSAGE_CHARS = 4000  # GitHub cuts a message at 4,096


class GitHub:
    """`::group::` and `::error::`; commands inside of a section are switched off by a fresh random word."""

    indent = b""

    def __init__(self) -> None:
        self._word = ""

    def begin(self, title: str, *, live: bool = False) -> str:  # noqa: ARG002 - as GitLab
        """Return what opens a section whose text is no command."""
        self._word = os.urandom(16).hex()
        return f"::group::{_data(title)}\n::stop-commands::{self._word}\n"

    def end(self) -> str:
        """Return what closes the section."""
        return f"::{self._word}::\n::endgroup::\n"

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

    indent = b""

    def __init__(self) -> None:
        self._count = 0

    def begin(self, title: str, *, live: bool = False) -> str:
        """Return what opens a section, collapsed unless it is live."""
        self._count += 1
        name = f"planrun_{self._count}{'' if live else '[collapsed=true]'}"
        return f"\x1b[0Ksection_start:{int(time.time())}:{name}\r\x1b[0K{title}\n"

    def end(self) -> str:
        """Return what closes the section."""
        return f"\x1b[0Ksection_end:{int(time.time())}:planrun_{self._count}\r\x1b[0K\n"

    def problem(self, *_problem: object) -> str:
        """Return nothing: GitLab has no annotations in the log."""
        return ""

    warning = notice = problem


class Azure:
    """`##[group]` and `##vso[task.logissue]`."""

    indent = b""

    def begin(self, title: str, *, live: bool = False) -> str:  # noqa: ARG002 - as GitLab
        """Return what opens a section."""
        return f"##[group]{title}\n"

    def end(self) -> str:
        """Return what closes the section."""
        return "##[endgroup]\n"

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return an error of the build with its place in the plan."""
        return _issue("error", file, line, title, message)

    def warning(self, file: str, line: int, title: str, message: str) -> str:
        """Return a warning of the build."""
        return _issue("warning", file, line, title, message)

    notice = warning  # there is nothing below


def _issue(kind: str, file: str, line: int, title: str, message: str) -> str:
    from planrun.reports.logcommands import vso  # only failures need it

    place = f"type={kind};sourcepath={vso(file)};linenumber={line}"
    return f"##vso[task.logissue {place}]{vso(f'{title}: {message}'[:MESSAGE_CHARS])}\n"


class TeamCity:
    """Blocks, build problems and messages; every value is escaped."""

    indent = b""

    def __init__(self) -> None:
        self._title = ""

    def begin(self, title: str, *, live: bool = False) -> str:  # noqa: ARG002 - as GitLab
        """Return what opens a block."""
        from planrun.reports.logcommands import service_message

        self._title = title
        return service_message("blockOpened", name=title)

    def end(self) -> str:
        """Return what closes the block."""
        from planrun.reports.logcommands import service_message

        return service_message("blockClosed", name=self._title)

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return a problem of the build with its place in the plan."""
        from planrun.reports.logcommands import service_message

        place = f"{file}:{line}: " if line else ""
        return service_message("buildProblem", description=f"{place}{title}: {message}"[:MESSAGE_CHARS])

    def warning(self, file: str, line: int, title: str, message: str) -> str:
        """Return a warning in the log of the build."""
        return self._message("WARNING", f"{file}:{line}: {title}: {message}")

    def notice(self, file: str, line: int, title: str, message: str) -> str:
        """Return a message in the log of the build."""
        return self._message("NORMAL", f"{file}:{line}: {title}: {message}")

    def _message(self, status: str, text: str) -> str:
        from planrun.reports.logcommands import service_message

        return service_message("message", text=text[:MESSAGE_CHARS], status=status)


class Buildkite:
    """`---` headings; a section ends where the next heading starts, and every line of a step is indented."""

    indent = b"  "

    def begin(self, title: str, *, live: bool = False) -> str:  # noqa: ARG002 - as GitLab
        """Return a heading."""
        return f"--- {title}\n"

    def end(self) -> str:
        """Return nothing: a section ends where the next one begins."""
        return ""

    def problem(self, file: str, line: int, title: str, message: str) -> str:
        """Return a heading that stays open."""
        return f"+++ {title}\n  {file}:{line}: {message}\n"

    warning = notice = problem


def sections_of(vendor: str) -> Sections:
    """Return the sections of a CI system that `ci.style` gives groups to."""
    if vendor == "gitlab":
        return GitLab()
    if vendor == "azure":
        return Azure()
    if vendor == "teamcity":
        return TeamCity()
    return Buildkite() if vendor == "buildkite" else GitHub()
