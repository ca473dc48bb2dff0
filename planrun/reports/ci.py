"""Which CI system this is, where its checkout lies, and how a console in it or on a terminal looks."""

from __future__ import annotations

import os

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, Protocol, TextIO

    from planrun.reports.sections import Sections

    class Wishes(Protocol):
        """What the caller asked for."""

        @property
        def color(self) -> Literal["auto", "always", "never"]:
            """Whether to use colours."""

        @property
        def logs(self) -> Literal["auto", "all", "failed", "none"]:
            """Whose output to show; auto: of all steps in CI, else of the failed ones."""

        @property
        def quiet(self) -> bool:
            """Show only what failed, and the end."""

        @property
        def json(self) -> bool:
            """Stdout belongs to the ledger."""


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
}


def vendor(environ: Mapping[str, str]) -> str:
    """Return the CI system: github, gitea, gitlab, azure, buildkite, …, `other`, or "" outside of any.

    `CI=false` turns the detection off.
    """
    if environ.get("CI", "unset").lower() in _NO:
        return ""
    for name, found in _VENDORS:
        if environ.get(name):
            return found
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


def coloured(environ: Mapping[str, str], wish: str = "auto", *, terminal: bool) -> bool:
    """Whether to use colours: the flag (always, never, auto) before NO_COLOR, FORCE_COLOR and the terminal."""
    if wish in ("always", "never"):
        return wish == "always"
    if environ.get("NO_COLOR"):
        return False
    forced = environ.get("FORCE_COLOR")
    if forced is not None:
        return forced.lower() not in _NO
    return terminal and environ.get("TERM") != "dumb"


def style(environ: Mapping[str, str], *, terminal: bool) -> Literal["live", "plain", "groups"]:
    """Return how progress is shown: animated on a terminal of a person only, in groups where CI has them."""
    found = vendor(environ)
    if found in ("github", "gitea", "gitlab", "azure", "buildkite"):
        return "groups"
    return "live" if terminal and not found and environ.get("TERM", "dumb") != "dumb" else "plain"


class Look(Record):
    """How the console looks."""

    style: Literal["live", "plain", "groups"] = "plain"
    colour: bool = False
    unicode: bool = True
    logs: Literal["all", "failed", "none"] = "failed"
    quiet: bool = False
    sections: Sections | None = None


def look_of(stream: TextIO | None, environ: Mapping[str, str], wishes: Wishes) -> Look:
    """Return how a console on `stream` looks."""
    terminal = _is_terminal(stream)
    found = vendor(environ)
    chosen = style(environ, terminal=terminal)
    shown = wishes.logs
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return Look(
        style=chosen,
        colour=coloured(environ, wishes.color, terminal=terminal),
        unicode=encoding.lower().replace("-", "").replace("_", "") == "utf8",
        logs=("all" if found else "failed") if shown == "auto" else shown,
        quiet=wishes.quiet,
        sections=_sections(found) if chosen == "groups" else None,
    )


def _sections(found: str) -> Sections:
    from planrun.reports.sections import sections  # only in CI

    return sections(found)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False
